package peer;

import static common.Rows.countUntilTold;
import static common.Rows.numbers;
import static common.Rows.padded;
import static common.Rows.resume;
import static common.Rows.row;
import static common.Rows.unevenly;

import jakarta.validation.Valid;
import jakarta.validation.constraints.NotBlank;
import jakarta.validation.constraints.Positive;
import java.net.URI;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.rsocket.autoconfigure.RSocketMessageHandlerCustomizer;
import org.springframework.boot.rsocket.context.RSocketServerInitializedEvent;
import org.springframework.boot.rsocket.server.RSocketServerCustomizer;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.event.EventListener;
import org.springframework.core.codec.Encoder;
import org.springframework.http.MediaType;
import org.springframework.messaging.handler.annotation.DestinationVariable;
import org.springframework.messaging.handler.annotation.MessageMapping;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.messaging.rsocket.RSocketRequester;
import org.springframework.messaging.rsocket.RSocketStrategies;
import org.springframework.messaging.rsocket.annotation.ConnectMapping;
import org.springframework.messaging.rsocket.annotation.support.RSocketMessageHandler;
import org.springframework.security.rsocket.metadata.BearerTokenAuthenticationEncoder;
import org.springframework.security.rsocket.metadata.BearerTokenMetadata;
import org.springframework.security.rsocket.metadata.SimpleAuthenticationEncoder;
import org.springframework.security.rsocket.metadata.UsernamePasswordMetadata;
import org.springframework.stereotype.Controller;
import org.springframework.util.MimeType;
import org.springframework.validation.Validator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Spring as a server and as a client: {@code server SCHEME}, {@code client SCHEME PORT};
 * {@code resume-server} and {@code resume-client} take the same.
 */
@SpringBootApplication
@Import(shop.Security.class)
public class SpringPeer {
  static final MimeType CREDENTIALS = MimeType.valueOf("message/x.rsocket.authentication.v0");
  static final MimeType OCTETS = MediaType.APPLICATION_OCTET_STREAM;
  static final Duration MOST = Duration.ofSeconds(20);

  public record Order(@NotBlank String symbol, @Positive int amount) {}

  public record Receipt(String symbol, double total) {}

  @EventListener
  void tellPort(RSocketServerInitializedEvent event) {
    System.out.println(event.getServer().address().getPort());
  }

  @Bean
  RSocketMessageHandlerCustomizer validating(Validator validator) {
    return handler -> handler.setValidator(validator);
  }

  @Bean
  RSocketServerCustomizer resuming(@Value("${peer.resumes}") boolean resumes) {
    return server -> {
      if (resumes) server.resume(resume());
    };
  }

  public static void main(String[] arguments) throws Exception {
    boolean serves = arguments[0].endsWith("server");
    boolean resumes = arguments[0].startsWith("resume-");
    Map<String, Object> settings =
        serves
            ? Map.of(
                "spring.rsocket.server.port", 0,
                "spring.rsocket.server.address", "127.0.0.1",
                "spring.rsocket.server.transport", arguments[1].equals("ws") ? "websocket" : "tcp",
                "spring.rsocket.server.fragment-size", "4096B")
            : Map.of();
    ApplicationContext context =
        new SpringApplicationBuilder(SpringPeer.class)
            .properties(settings)
            .properties("spring.main.banner-mode=off", "logging.level.root=off")
            .properties("peer.resumes=" + resumes)
            .run();
    if (!serves) {
      Asking asking = new Asking(context, arguments[1], Integer.parseInt(arguments[2]));
      if (resumes) asking.askResumable();
      else asking.ask();
      System.exit(0);
    }
  }
}

/** The routes that a peer of penstock has. */
@Controller
class Routes {
  volatile String seen = "nothing";
  volatile String dataType = "none";
  final AtomicInteger cancelled = new AtomicInteger();

  @ConnectMapping
  Mono<Void> connect(RSocketRequester client) {
    dataType = client.dataMimeType().toString();
    return Mono.empty();
  }

  @MessageMapping("echo")
  Mono<byte[]> echo(@Payload byte[] data) {
    return Mono.just(data);
  }

  @MessageMapping("fail")
  Mono<byte[]> fail() {
    return Mono.error(new IllegalStateException("boom"));
  }

  @MessageMapping("note")
  Mono<Void> note(@Payload byte[] data) {
    seen = "" + data.length;
    return Mono.empty();
  }

  @MessageMapping("seen")
  Mono<String> seen() {
    return Mono.just(seen);
  }

  @MessageMapping("type")
  Mono<String> type() {
    return Mono.just(dataType);
  }

  @MessageMapping("count.{n}")
  Flux<String> count(@DestinationVariable int n) {
    return Flux.range(0, n)
        .map(number -> "" + number)
        .doOnCancel(cancelled::incrementAndGet);
  }

  @MessageMapping("cancelled")
  Mono<String> cancelled() {
    return Mono.just("" + cancelled.get());
  }

  @MessageMapping("double")
  Flux<String> twice(Flux<String> texts) {
    return texts.limitRate(4).map(text -> text + text);
  }

  @MessageMapping("same")
  Flux<String> same(Flux<String> texts) {
    return texts.limitRate(4);
  }

  @MessageMapping("order.{discount}")
  Mono<SpringPeer.Receipt> order(
      @DestinationVariable int discount, @Valid @Payload SpringPeer.Order order) {
    return Mono.just(new SpringPeer.Receipt(order.symbol(), order.amount() * 100.0 - discount));
  }

  @MessageMapping("ask-back")
  Mono<String> askBack(RSocketRequester client) {
    return client.route("hello").data("Spring").retrieveMono(String.class);
  }
}

/** The routes of a client, which its server asks. */
@Controller
class Hello {
  @MessageMapping("hello")
  Mono<String> hello(@Payload String name) {
    return Mono.just("hello " + name);
  }
}

/** What a client asks penstock, one row after the other. */
class Asking {
  private final RSocketStrategies plain;
  private final String scheme;
  private final int port;

  Asking(ApplicationContext context, String scheme, int port) {
    this.plain = context.getBean(RSocketStrategies.class);
    this.scheme = scheme;
    this.port = port;
  }

  RSocketRequester connect(MimeType dataType, Object credentials) {
    // One of them: each takes both kinds of credentials for its own.
    Encoder<?> encoder =
        credentials instanceof BearerTokenMetadata
            ? new BearerTokenAuthenticationEncoder()
            : new SimpleAuthenticationEncoder();
    RSocketStrategies strategies = plain.mutate().encoder(encoder).build();
    RSocketRequester.Builder builder =
        RSocketRequester.builder()
            .rsocketStrategies(strategies)
            .dataMimeType(dataType)
            .setupData("hi".getBytes())
            .setupMetadata(credentials, SpringPeer.CREDENTIALS)
            .rsocketConnector(
                connector ->
                    connector
                        .fragment(4096)
                        .acceptor(RSocketMessageHandler.responder(strategies, new Hello())));
    return scheme.equals("ws")
        ? builder.websocket(URI.create("ws://127.0.0.1:" + port))
        : builder.tcp("127.0.0.1", port);
  }

  /** Ask for as long as connections are cut: until a line comes. */
  void askResumable() throws Exception {
    RSocketRequester.Builder builder =
        RSocketRequester.builder()
            .rsocketStrategies(plain)
            .dataMimeType(SpringPeer.OCTETS)
            .rsocketConnector(
                connector ->
                    connector
                        .keepAlive(Duration.ofSeconds(5), Duration.ofSeconds(30))
                        .resume(resume())
                        .fragment(4096));
    RSocketRequester peer =
        scheme.equals("ws")
            ? builder.websocket(URI.create("ws://127.0.0.1:" + port))
            : builder.tcp("127.0.0.1", port);
    countUntilTold(
        peer.route("count/{n}", 2_000_000_000).retrieveFlux(String.class).limitRate(64),
        peer.route("same")
            .data(Flux.range(0, Integer.MAX_VALUE).map(n -> "" + n))
            .retrieveFlux(String.class)
            .limitRate(8),
        Flux.range(0, Integer.MAX_VALUE)
            .concatMap(n -> peer.route("echo").data(padded(n)).retrieveMono(String.class), 1));
  }

  static String text(RSocketRequester peer, String route, String... data) {
    RSocketRequester.RequestSpec request = peer.route(route);
    return (data.length == 0 ? request : request.data(data[0]))
        .retrieveMono(String.class)
        .block(SpringPeer.MOST);
  }

  static List<String> texts(Flux<String> found) {
    return found.collectList().block(SpringPeer.MOST);
  }

  boolean isRefused(Object credentials) {
    RSocketRequester peer = connect(SpringPeer.OCTETS, credentials);
    try {
      text(peer, "echo", "x");
      return false;
    } catch (RuntimeException failed) {
      return failed.toString().contains("RejectedSetupException");
    } finally {
      peer.dispose();
    }
  }

  void ask() {
    RSocketRequester peer = connect(SpringPeer.OCTETS, new BearerTokenMetadata("token"));
    RSocketRequester json =
        connect(MediaType.APPLICATION_JSON, new UsernamePasswordMetadata("ann", "secret"));
    row("request-response", () -> text(peer, "echo", "x").equals("x"));
    row(
        "fragments",
        () -> {
          byte[] data = new byte[256_000];
          for (int at = 0; at < data.length; at++) data[at] = (byte) at;
          return Arrays.equals(
              peer.route("echo").data(data).retrieveMono(byte[].class).block(SpringPeer.MOST),
              data);
        });
    row(
        "error",
        () -> {
          try {
            text(peer, "fail");
            return false;
          } catch (RuntimeException failed) {
            return ("" + failed.getMessage()).contains("boom");
          }
        });
    row(
        "fire-and-forget",
        () -> {
          peer.route("note").data(new byte[10_000]).send().block(SpringPeer.MOST);
          for (int tries = 0; tries < 100; tries++) {
            if (text(peer, "seen").equals("10000")) return true;
          }
          return false;
        });
    row(
        "stream",
        () ->
            unevenly(peer.route("count/{n}", 2000).retrieveFlux(String.class))
                .equals(numbers(2000)));
    row(
        "cancel",
        () -> {
          Flux<String> found =
              peer.route("count/{n}", 100_000).retrieveFlux(String.class).limitRate(16).take(5);
          return texts(found).size() == 5 && text(peer, "echo", "x").equals("x");
        });
    row(
        "cancel heard",
        () -> {
          for (int tries = 0; tries < 100; tries++) {
            if (!text(peer, "cancelled").equals("0")) return true;
          }
          return false;
        });
    row(
        "channel",
        () -> {
          Flux<String> sent = Flux.fromIterable(numbers(50));
          return texts(peer.route("double").data(sent).retrieveFlux(String.class).limitRate(5))
              .equals(numbers(50).stream().map(n -> n + n).collect(Collectors.toList()));
        });
    row(
        "typed",
        () ->
            json.route("order/{discount}", 7)
                .data(new SpringPeer.Order("AAPL", 3))
                .retrieveMono(SpringPeer.Receipt.class)
                .block(SpringPeer.MOST)
                .equals(new SpringPeer.Receipt("AAPL", 293.0)));
    row(
        "invalid",
        () -> {
          try {
            json.route("order/{discount}", 7)
                .data(Map.of("symbol", "AAPL", "amount", "three"))
                .retrieveMono(SpringPeer.Receipt.class)
                .block(SpringPeer.MOST);
            return false;
          } catch (RuntimeException failed) {
            return ("" + failed.getMessage()).contains("amount");
          }
        });
    row(
        "credentials",
        () ->
            text(json, "seen").equals("10000")
                && isRefused(new UsernamePasswordMetadata("ann", "guess"))
                && isRefused(new BearerTokenMetadata("guess")));
    row("asks back", () -> text(peer, "ask-back").equals("hello penstock"));
    peer.dispose();
    json.dispose();
  }
}
