import static common.Routed.COMPOSITE;
import static common.Routed.bytes;
import static common.Routed.named;
import static common.Routed.route;
import static common.Rows.countUntilTold;
import static common.Rows.numbers;
import static common.Rows.padded;
import static common.Rows.resume;
import static common.Rows.row;
import static common.Rows.unevenly;

import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.CompositeByteBuf;
import io.rsocket.ConnectionSetupPayload;
import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.SocketAcceptor;
import io.rsocket.core.RSocketConnector;
import io.rsocket.core.RSocketServer;
import io.rsocket.lease.Lease;
import io.rsocket.metadata.AuthMetadataCodec;
import io.rsocket.metadata.CompositeMetadataCodec;
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
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * rsocket-java as a server and as a client: {@code server SCHEME}, {@code client SCHEME PORT};
 * {@code lease-server}, {@code resume-server} and {@code resume-client} take the same.
 */
public class Peer {
  static volatile String seen = "nothing";

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

  static List<String> texts(Flux<Payload> payloads) {
    return payloads.map(Payload::getDataUtf8).collectList().block(Duration.ofSeconds(20));
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
                .equals(numbers(2000)));
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
                    numbers(50).stream().map(n -> n + n).collect(Collectors.toList())));
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
    countUntilTold(
        peer.requestStream(named("count/2000000000", new byte[0]))
            .limitRate(64)
            .map(Payload::getDataUtf8),
        peer.requestChannel(
                Flux.range(0, Integer.MAX_VALUE).map(n -> named("same", ("" + n).getBytes())))
            .limitRate(8)
            .map(Payload::getDataUtf8),
        Flux.range(0, Integer.MAX_VALUE)
            .concatMap(n -> peer.requestResponse(named("echo", padded(n).getBytes())), 1)
            .map(Payload::getDataUtf8));
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
