package kit;

public class DriesUpAfter25Test extends NumbersVerification {
    public DriesUpAfter25Test() {
        super("dries-up-after-25");
    }
}
