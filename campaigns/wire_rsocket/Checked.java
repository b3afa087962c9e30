import static common.Routed.bytes;
import static common.Routed.route;

import io.rsocket.ConnectionSetupPayload;
import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.SocketAcceptor;
import io.rsocket.core.RSocketServer;
import io.rsocket.exceptions.RejectedSetupException;
import io.rsocket.lease.Lease;
import io.rsocket.transport.netty.server.CloseableChannel;
import io.rsocket.transport.netty.server.TcpServerTransport;
import io.rsocket.util.DefaultPayload;
import java.nio.ByteBuffer;
import java.time.Duration;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** What `penstock tck` needs, served by rsocket-java. Prints its port. With an argument it has leases. */
public class Checked {
  static Payload large(int number) {
    ByteBuffer element = ByteBuffer.allocate(200_000);
    for (int word = 0; word < 50_000; word++) element.putInt((number << 24) + word);
    return DefaultPayload.create(element.array());
  }

  /** A subscriber that requests 2^30 elements at first, and again after each one. */
  static class Greedy extends BaseSubscriber<Payload> {
    @Override
    protected void hookOnSubscribe(Subscription subscription) {
      subscription.request(1 << 30);
    }

    @Override
    protected void hookOnNext(Payload payload) {
      request(1 << 30);
    }
  }

  static class Handler implements RSocket {
    @Override
    public Mono<Payload> requestResponse(Payload payload) {
      if (route(payload).equals("echo")) return Mono.just(DefaultPayload.create(bytes(payload.sliceData())));
      return Mono.error(new IllegalArgumentException("no such route"));
    }

    @Override
    public Mono<Void> fireAndForget(Payload payload) {
      return Mono.empty();
    }

    @Override
    public Mono<Void> metadataPush(Payload payload) {
      return Mono.empty();
    }

    @Override
    public Flux<Payload> requestStream(Payload payload) {
      switch (route(payload)) {
        case "numbers":
          return Flux.<Payload>generate(sink -> sink.next(DefaultPayload.create("a number")))
              .subscribeOn(Schedulers.boundedElastic()); // else it keeps the thread of the socket
        case "three":
          return Flux.just("one", "two", "three").map(DefaultPayload::create);
        case "one":
          return Flux.just(DefaultPayload.create("one"));
        case "empty":
          return Flux.empty();
        case "failing":
          return Flux.just(DefaultPayload.create("one"))
              .concatWith(Flux.error(new RuntimeException("failed on purpose")));
        case "slow":
          return Flux.just(DefaultPayload.create("late")).delaySequence(Duration.ofMillis(250));
        case "large":
          return Flux.range(0, 5).map(Checked::large);
        default:
          return Flux.error(new IllegalArgumentException("no such route"));
      }
    }

    @Override
    public Flux<Payload> requestChannel(Publisher<Payload> payloads) {
      return Flux.from(payloads)
          .switchOnFirst(
              (signal, all) -> {
                if (!signal.hasValue()) return all;
                switch (route(signal.get())) {
                  case "channel":
                    return all.limitRate(4).map(each -> DefaultPayload.create(bytes(each.sliceData())));
                  case "pair":
                    return all.limitRequest(2).map(each -> DefaultPayload.create(bytes(each.sliceData())));
                  case "greedy":
                    return Flux.<Payload>never().doOnSubscribe(none -> all.subscribe(new Greedy()));
                  default:
                    return Flux.error(new IllegalArgumentException("no such route"));
                }
              });
    }
  }

  public static void main(String[] arguments) {
    SocketAcceptor acceptor =
        (ConnectionSetupPayload setup, RSocket sending) ->
            setup.getDataUtf8().equals("refuse me")
                ? Mono.error(new RejectedSetupException("refused"))
                : Mono.just(new Handler());
    RSocketServer server = RSocketServer.create(acceptor).fragment(4096);
    if (arguments.length > 0) { // with leases
      Flux<Lease> leases =
          Flux.defer(() -> Flux.just(Lease.create(Duration.ofSeconds(10), 3)))
              .concatWith(Flux.never());
      server.lease(config -> config.sender(() -> leases));
    }
    CloseableChannel bound = server.bind(TcpServerTransport.create("127.0.0.1", 0)).block();
    System.out.println(bound.address().getPort());
    bound.onClose().block();
  }
}
