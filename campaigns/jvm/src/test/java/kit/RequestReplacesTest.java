package kit;

public class RequestReplacesTest extends NumbersVerification {
    public RequestReplacesTest() {
        super("request-replaces");
    }
}
