package common;

import io.rsocket.core.Resume;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.util.retry.Retry;

/** What each client on the JVM does: a row for each question, and counts while connections are cut. */
public final class Rows {
  private Rows() {}

  public static void row(String name, Callable<Boolean> check) {
    try {
      System.out.println(name + "\t" + (check.call() ? "ok" : "wrong answer"));
    } catch (Throwable failed) {
      System.out.println(name + "\t" + failed.toString().replace('\n', ' '));
    }
  }

  public static List<String> numbers(int count) {
    return IntStream.range(0, count).mapToObj(n -> "" + n).collect(Collectors.toList());
  }

  /** Read with demands of different sizes, each when the last one is used up. */
  public static List<String> unevenly(Flux<String> found) throws Exception {
    int[] demands = {1, 7, 2, 30};
    List<String> got = new ArrayList<>();
    CompletableFuture<List<String>> done = new CompletableFuture<>();
    found.subscribe(
        new BaseSubscriber<String>() {
          int turn = 0;
          int left = 0;

          void more() {
            left = demands[turn++ % demands.length];
            request(left);
          }

          @Override
          protected void hookOnSubscribe(Subscription subscription) {
            more();
          }

          @Override
          protected void hookOnNext(String each) {
            if (left-- == 0) {
              done.completeExceptionally(new IllegalStateException("an element without demand"));
            }
            got.add(each);
            if (left == 0) more();
          }

          @Override
          protected void hookOnComplete() {
            done.complete(got);
          }

          @Override
          protected void hookOnError(Throwable failed) {
            done.completeExceptionally(failed);
          }
        });
    return done.get(20, TimeUnit.SECONDS);
  }

  public static Resume resume() {
    return new Resume()
        .sessionDuration(Duration.ofSeconds(60))
        .streamTimeout(Duration.ofSeconds(60))
        .cleanupStoreOnKeepAlive()
        .retry(Retry.fixedDelay(Long.MAX_VALUE, Duration.ofMillis(5)));
  }

  /** What has come of numbers that are due in order. */
  private static class Count {
    int due = 0;
    int lost = 0;
    int repeated = 0;

    synchronized void note(String number) {
      int found = Integer.parseInt(number.trim());
      if (found < due) {
        repeated++;
        return;
      }
      lost += found - due;
      due = found + 1;
    }

    @Override
    public synchronized String toString() {
      return "Count(due=" + due + ", lost=" + lost + ", repeated=" + repeated + ")";
    }
  }

  /** Count the numbers of three streams until a line comes, and print what has come of each. */
  public static void countUntilTold(
      Flux<String> stream, Flux<String> channel, Flux<String> answers) throws Exception {
    List<String> failures = Collections.synchronizedList(new ArrayList<>());
    Count[] counts = {new Count(), new Count(), new Count()};
    stream.subscribe(counts[0]::note, failed -> failures.add("stream: " + failed));
    channel.subscribe(counts[1]::note, failed -> failures.add("channel: " + failed));
    answers.subscribe(counts[2]::note, failed -> failures.add("answers: " + failed));
    System.in.read();
    System.out.println(
        "stream " + counts[0] + ", channel " + counts[1] + ", answers " + counts[2] + " "
            + failures);
    System.out.flush();
  }

  /** The data of request `n` while connections are cut: lengths differ. */
  public static String padded(int n) {
    return n + " ".repeat((int) (n * 997L % 20_000));
  }
}
