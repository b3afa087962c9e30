package kit;

import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/** The numbers 0, 1, ... count-1, signalled by a thread pool; with one fault, or with none. */
final class Numbers implements Publisher<Long> {
    private static final ExecutorService POOL = Executors.newFixedThreadPool(4, work -> {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    });

    private final long count;
    private final Set<String> faults;

    Numbers(long count, String... faults) {
        this.count = count;
        this.faults = Set.of(faults);
    }

    @Override
    public void subscribe(Subscriber<? super Long> subscriber) {
        if (subscriber == null) {
            throw new NullPointerException("rule 1.9");
        }
        new Stream(subscriber).begin();
    }

    private final class Stream implements Subscription, Runnable {
        private volatile Subscriber<? super Long> subscriber;
        private final AtomicLong demand = new AtomicLong();
        private final AtomicBoolean working = new AtomicBoolean();
        private volatile boolean refused;
        private volatile boolean open;
        private boolean inside;
        private long position;

        Stream(Subscriber<? super Long> subscriber) {
            this.subscriber = subscriber;
        }

        void begin() {
            subscriber.onSubscribe(this);
            open = true;
            wake();
        }

        @Override
        public void request(long n) {
            if (subscriber == null) {
                return;
            }
            if (n <= 0) {
                refused = true;
            } else if (faults.contains("dries-up-after-25") && position >= 25) {
                return;
            } else if (faults.contains("request-inside-on-next-twice") && inside) {
                add(n);
                add(n);
            } else if (faults.contains("request-replaces")) {
                demand.set(n);
            } else if (faults.contains("rounds-above-100") && n > 100 && n < Long.MAX_VALUE) {
                add(n / 100 * 100);
            } else {
                add(n);
            }
            wake();
        }

        private void add(long n) {
            demand.accumulateAndGet(n, (now, more) -> now + more < 0 ? Long.MAX_VALUE : now + more);
        }

        @Override
        public void cancel() {
            if (faults.contains("cancel-ignored") || (faults.contains("cancel-inside-on-next-ignored") && inside)) {
                return;
            }
            subscriber = null;
        }

        private void wake() {
            if (!open) {
                return;
            }
            if (faults.contains("request-in-a-checkpoint-forgotten")) {
                // A request that comes while the thread ends its work is not seen.
                if (!working.getAndSet(true)) {
                    POOL.execute(this);
                }
            } else if (working.compareAndSet(false, true)) {
                POOL.execute(this);
            }
        }

        @Override
        public void run() {
            work();
            if (faults.contains("request-in-a-checkpoint-forgotten")) {
                Thread.yield();
                working.set(false);
                return;
            }
            working.set(false);
            Subscriber<? super Long> now = subscriber;
            if (now != null && (refused || (demand.get() > 0 && position < count))) {
                wake();
            }
        }

        private void work() {
            while (true) {
                Subscriber<? super Long> now = subscriber;
                if (now == null) {
                    return;
                }
                if (refused) {
                    subscriber = null;
                    now.onError(new IllegalArgumentException("3.9: non-positive subscription request"));
                    return;
                }
                if (position == count) {
                    subscriber = null;
                    now.onComplete();
                    if (faults.contains("ends-twice")) {
                        now.onComplete();
                    }
                    return;
                }
                if (demand.get() <= 0) {
                    return;
                }
                if (demand.get() != Long.MAX_VALUE) {
                    demand.decrementAndGet();
                }
                inside = true;
                now.onNext(position++);
                inside = false;
            }
        }
    }
}
