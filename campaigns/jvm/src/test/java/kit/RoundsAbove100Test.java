package kit;

public class RoundsAbove100Test extends NumbersVerification {
    public RoundsAbove100Test() {
        super("rounds-above-100");
    }
}
