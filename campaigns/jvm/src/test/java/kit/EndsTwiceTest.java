package kit;

public class EndsTwiceTest extends NumbersVerification {
    public EndsTwiceTest() {
        super("ends-twice");
    }
}
