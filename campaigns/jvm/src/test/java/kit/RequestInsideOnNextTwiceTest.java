package kit;

public class RequestInsideOnNextTwiceTest extends NumbersVerification {
    public RequestInsideOnNextTwiceTest() {
        super("request-inside-on-next-twice");
    }
}
