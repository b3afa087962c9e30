package kit;

import org.reactivestreams.Publisher;
import org.reactivestreams.tck.PublisherVerification;
import org.reactivestreams.tck.TestEnvironment;

/** All checks of the JVM's kit over {@link Numbers} with the given faults. A subclass has one fault. */
public abstract class NumbersVerification extends PublisherVerification<Long> {
    private final String[] faults;

    protected NumbersVerification(String... faults) {
        super(new TestEnvironment(100));
        this.faults = faults;
    }

    @Override
    public Publisher<Long> createPublisher(long elements) {
        return new Numbers(elements, faults);
    }

    @Override
    public Publisher<Long> createFailedPublisher() {
        return null;
    }
}
