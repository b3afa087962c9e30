package kit;

public class CancelIgnoredTest extends NumbersVerification {
    public CancelIgnoredTest() {
        super("cancel-ignored");
    }
}
