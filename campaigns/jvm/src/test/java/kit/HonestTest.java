package kit;

public class HonestTest extends NumbersVerification {
    public HonestTest() {
        super();
    }
}
