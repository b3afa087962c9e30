package kit;

public class CancelInsideOnNextIgnoredTest extends NumbersVerification {
    public CancelInsideOnNextIgnoredTest() {
        super("cancel-inside-on-next-ignored");
    }
}
