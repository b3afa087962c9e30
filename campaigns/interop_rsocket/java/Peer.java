import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.CompositeByteBuf;
import io.rsocket.ConnectionSetupPayload;
import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.SocketAcceptor;
import io.rsocket.core.RSocketConnector;
import io.rsocket.core.RSocketServer;
import io.rsocket.core.Resume;
import io.rsocket.lease.Lease;
import io.rsocket.metadata.AuthMetadataCodec;
import io.rsocket.metadata.CompositeMetadata;
import io.rsocket.metadata.CompositeMetadataCodec;
import io.rsocket.metadata.RoutingMetadata;
import io.rsocket.metadata.TaggingMetadataCodec;
import io.rsocket.metadata.WellKnownMimeType;
import io.rsocket.transport.ClientTransport;
import io.rsocket.transport.ServerTransport;
import io.rsocket.transport.netty.client.TcpClientTransport;
import io.rsocket.transport.netty.client.WebsocketClientTransport;
import io.rsocket.transport.netty.server.CloseableChannel;
import io.rsocket.transport.netty.server.TcpServerTransport;
import io.rsocket.transport.netty.server.WebsocketServerTransport;
import io.rsocket.util.DefaultPayload;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/**
 * rsocket-java as a server and as a client: {@code server SCHEME}, {@code client SCHEME PORT};
 * {@code lease-server}, {@code resume-server} and {@code resume-client} take the same.
 */
public class Peer {
  static final String COMPOSITE = "message/x.rsocket.composite-metadata.v0";
  static volatile String seen = "nothing";

  static byte[] bytes(ByteBuf buffer) {
    byte[] found = new byte[buffer.readableBytes()];
    buffer.readBytes(found);
    return found;
  }

  static String route(Payload payload) {
    for (CompositeMetadata.Entry entry : new CompositeMetadata(payload.sliceMetadata(), false)) {
      if (WellKnownMimeType.MESSAGE_RSOCKET_ROUTING.getString().equals(entry.getMimeType())) {
        return new RoutingMetadata(entry.getContent()).iterator().next();
      }
    }
    return "";
  }

  static Payload named(String name, byte[] data) {
    CompositeByteBuf metadata = ByteBufAllocator.DEFAULT.compositeBuffer();
    CompositeMetadataCodec.encodeAndAddMetadata(
        metadata,
        ByteBufAllocator.DEFAULT,
        WellKnownMimeType.MESSAGE_RSOCKET_ROUTING,
        TaggingMetadataCodec.createRoutingMetadata(ByteBufAllocator.DEFAULT, List.of(name))
            .getContent());
    byte[] encoded = bytes(metadata);
    metadata.release();
    return DefaultPayload.create(data, encoded);
  }

  /** The routes that a peer of penstock has. */
  static class Handler implements RSocket {
    final String type;

    Handler(String type) {
      this.type = type;
    }

    @Override
    public Mono<Payload> requestResponse(Payload payload) {
      switch (route(payload)) {
        case "fail":
          return Mono.error(new RuntimeException("boom"));
        case "seen":
          return Mono.just(DefaultPayload.create(seen));
        case "type":
          return Mono.just(DefaultPayload.create(type));
        default:
          return Mono.just(DefaultPayload.create(bytes(payload.sliceData())));
      }
    }

    @Override
    public Mono<Void> fireAndForget(Payload payload) {
      seen = "" + payload.sliceData().readableBytes();
      return Mono.empty();
    }

    @Override
    public Flux<Payload> requestStream(Payload payload) {
      String name = route(payload);
      int count = Integer.parseInt(name.substring(name.lastIndexOf('.') + 1));
      return Flux.range(0, count).map(number -> DefaultPayload.create("" + number));
    }

    @Override
    public Flux<Payload> requestChannel(Publisher<Payload> payloads) {
      return Flux.from(payloads)
          .limitRate(4)
          .map(each -> DefaultPayload.create(each.getDataUtf8() + each.getDataUtf8()));
    }
  }

  static void serve(RSocketServer server, String scheme) throws Exception {
    ServerTransport<CloseableChannel> transport =
        scheme.equals("ws")
            ? WebsocketServerTransport.create("127.0.0.1", 0)
            : TcpServerTransport.create("127.0.0.1", 0);
    CloseableChannel served = server.fragment(4096).bind(transport).block();
    System.out.println(served.address().getPort());
    served.onClose().block();
  }

  static RSocketServer server() {
    SocketAcceptor acceptor =
        (ConnectionSetupPayload setup, RSocket sending) ->
            Mono.just(new Handler(setup.dataMimeType()));
    return RSocketServer.create(acceptor);
  }

  /** 3 requests at a time, again after a second. */
  static RSocketServer leasing() {
    Lease lease = Lease.create(Duration.ofSeconds(10), 3);
    Flux<Lease> leases =
        Flux.interval(Duration.ZERO, Duration.ofSeconds(1)).map(turn -> lease).onBackpressureDrop();
    return server().lease(config -> config.sender(() -> leases));
  }

  static ClientTransport transport(String scheme, int port) {
    return scheme.equals("ws")
        ? WebsocketClientTransport.create("127.0.0.1", port)
        : TcpClientTransport.create("127.0.0.1", port);
  }

  static void row(String name, Callable<Boolean> check) {
    try {
      System.out.println(name + "\t" + (check.call() ? "ok" : "wrong answer"));
    } catch (Throwable failed) {
      System.out.println(name + "\t" + failed.toString().replace('\n', ' '));
    }
  }

  static List<String> texts(Flux<Payload> payloads) {
    return payloads.map(Payload::getDataUtf8).collectList().block(Duration.ofSeconds(20));
  }

  /** Read with demands of different sizes, each when the last one is used up. */
  static List<String> unevenly(Flux<String> found) throws Exception {
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

  /** A connector with a bearer token, and with data in its SETUP. */
  static RSocketConnector connector() {
    CompositeByteBuf metadata = ByteBufAllocator.DEFAULT.compositeBuffer();
    CompositeMetadataCodec.encodeAndAddMetadata(
        metadata,
        ByteBufAllocator.DEFAULT,
        WellKnownMimeType.MESSAGE_RSOCKET_AUTHENTICATION,
        AuthMetadataCodec.encodeBearerMetadata(ByteBufAllocator.DEFAULT, "token".toCharArray()));
    return RSocketConnector.create()
        .metadataMimeType(COMPOSITE)
        .dataMimeType("application/octet-stream")
        .setupPayload(DefaultPayload.create("hi".getBytes(), bytes(metadata)))
        .fragment(4096);
  }

  static void ask(String scheme, int port) {
    RSocket peer = connector().connect(transport(scheme, port)).block();
    Duration most = Duration.ofSeconds(20);
    byte[] none = new byte[0];
    row(
        "request-response",
        () -> peer.requestResponse(named("echo", "x".getBytes())).block(most).getDataUtf8().equals("x"));
    row(
        "fragments",
        () -> {
          byte[] data = new byte[256_000];
          for (int at = 0; at < data.length; at++) data[at] = (byte) at;
          return Arrays.equals(
              bytes(peer.requestResponse(named("echo", data)).block(most).sliceData()), data);
        });
    row(
        "error",
        () -> {
          try {
            peer.requestResponse(named("fail", none)).block(most);
            return false;
          } catch (RuntimeException failed) {
            return ("" + failed.getMessage()).contains("boom");
          }
        });
    row(
        "fire-and-forget",
        () -> {
          peer.fireAndForget(named("note", new byte[10_000])).block(most);
          for (int tries = 0; tries < 100; tries++) {
            String found = peer.requestResponse(named("seen", none)).block(most).getDataUtf8();
            if (found.equals("10000")) return true;
          }
          return false;
        });
    row(
        "stream",
        () ->
            unevenly(
                    peer.requestStream(named("count/2000", none)).map(Payload::getDataUtf8))
                .equals(IntStream.range(0, 2000).mapToObj(n -> "" + n).collect(Collectors.toList())));
    row(
        "cancel",
        () ->
            texts(peer.requestStream(named("count/100000", none)).limitRate(16).take(5)).size() == 5
                && peer.requestResponse(named("echo", "x".getBytes()))
                    .block(most)
                    .getDataUtf8()
                    .equals("x"));
    row(
        "channel",
        () ->
            texts(
                    peer.requestChannel(
                            Flux.range(0, 50).map(n -> named("double", ("" + n).getBytes())))
                        .limitRate(5))
                .equals(
                    IntStream.range(0, 50).mapToObj(n -> "" + n + n).collect(Collectors.toList())));
    row(
        "leases",
        () -> {
          // More at once than penstock permits before it renews the lease.
          RSocket leased =
              connector()
                  .lease(config -> config.maxPendingRequests(100))
                  .connect(transport(scheme, port))
                  .block();
          List<String> found =
              texts(
                  Flux.range(0, 40)
                      .flatMap(n -> leased.requestResponse(named("echo", ("" + n).getBytes())), 40));
          leased.dispose();
          return found.size() == 40;
        });
    peer.dispose();
  }

  static Resume resume() {
    return new Resume()
        .sessionDuration(Duration.ofSeconds(60))
        .streamTimeout(Duration.ofSeconds(60))
        .cleanupStoreOnKeepAlive()
        .retry(Retry.fixedDelay(Long.MAX_VALUE, Duration.ofMillis(5)));
  }

  /** Routes for connections that are cut: numbers, and elements as they are. */
  static class Steady extends Handler {
    Steady() {
      super("");
    }

    @Override
    public Flux<Payload> requestChannel(Publisher<Payload> payloads) {
      return Flux.from(payloads)
          .limitRate(4)
          .map(each -> DefaultPayload.create(each.getDataUtf8()));
    }
  }

  static RSocketServer resumable() {
    return RSocketServer.create((setup, sending) -> Mono.just(new Steady())).resume(resume());
  }

  /** What has come of numbers that are due in order. */
  static class Count {
    int due = 0;
    int lost = 0;
    int repeated = 0;

    synchronized void note(int number) {
      if (number < due) {
        repeated++;
        return;
      }
      lost += number - due;
      due = number + 1;
    }

    @Override
    public synchronized String toString() {
      return "Count(due=" + due + ", lost=" + lost + ", repeated=" + repeated + ")";
    }
  }

  static void askResumable(String scheme, int port) throws Exception {
    RSocket peer =
        RSocketConnector.create()
            .metadataMimeType(COMPOSITE)
            .dataMimeType("application/octet-stream")
            .keepAlive(Duration.ofSeconds(5), Duration.ofSeconds(30))
            .resume(resume())
            .fragment(4096)
            .connect(transport(scheme, port))
            .block();
    Count stream = new Count();
    Count channel = new Count();
    Count answers = new Count();
    List<String> failures = Collections.synchronizedList(new ArrayList<>());
    peer.requestStream(named("count/2000000000", new byte[0]))
        .limitRate(64)
        .subscribe(
            each -> stream.note(Integer.parseInt(each.getDataUtf8())),
            failed -> failures.add("stream: " + failed));
    peer.requestChannel(
            Flux.range(0, Integer.MAX_VALUE).map(n -> named("same", ("" + n).getBytes())))
        .limitRate(8)
        .subscribe(
            each -> channel.note(Integer.parseInt(each.getDataUtf8())),
            failed -> failures.add("channel: " + failed));
    Flux.range(0, Integer.MAX_VALUE)
        .concatMap(
            n ->
                peer.requestResponse(
                    named("echo", ("" + n + " ".repeat(n * 997 % 20_000)).getBytes())),
            1)
        .subscribe(
            each -> answers.note(Integer.parseInt(each.getDataUtf8().trim())),
            failed -> failures.add("answers: " + failed));
    System.in.read();
    System.out.println(
        "stream " + stream + ", channel " + channel + ", answers " + answers + " " + failures);
    System.out.flush();
  }

  public static void main(String[] arguments) throws Exception {
    String scheme = arguments[1];
    switch (arguments[0]) {
      case "server":
        serve(server(), scheme);
        break;
      case "lease-server":
        serve(leasing(), scheme);
        break;
      case "resume-server":
        serve(resumable(), scheme);
        break;
      case "resume-client":
        askResumable(scheme, Integer.parseInt(arguments[2]));
        break;
      default:
        ask(scheme, Integer.parseInt(arguments[2]));
    }
    System.exit(0);
  }
}
