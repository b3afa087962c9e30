package kit;

public class RequestInACheckpointForgottenTest extends NumbersVerification {
    public RequestInACheckpointForgottenTest() {
        super("request-in-a-checkpoint-forgotten");
    }
}
