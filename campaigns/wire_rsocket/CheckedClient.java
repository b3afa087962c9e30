import static common.Routed.COMPOSITE;
import static common.Routed.bytes;

import common.Routed;
import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.SocketAcceptor;
import io.rsocket.core.RSocketConnector;
import io.rsocket.transport.netty.client.TcpClientTransport;
import io.rsocket.util.DefaultPayload;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * What `penstock tck --client` checks, by rsocket-java: a client that does its tasks at a port,
 * connection after connection.
 */
public class CheckedClient {
  static final Duration MOST = Duration.ofSeconds(20);
  static final String[] WORDS = {"one", "two", "three", "four", "five"};

  static Payload named(String name, String data) {
    return Routed.named(name, data.getBytes(StandardCharsets.UTF_8));
  }

  /** What the client answers. */
  static class Handler implements RSocket {
    @Override
    public Mono<Payload> requestResponse(Payload payload) {
      return Mono.just(DefaultPayload.create(bytes(payload.sliceData())));
    }

    @Override
    public Flux<Payload> requestStream(Payload payload) {
      return Flux.generate(
          () -> 0,
          (number, sink) -> {
            sink.next(DefaultPayload.create("" + number));
            return number + 1;
          });
    }
  }

  /** Reads in portions; 0 is all at once. Cancels after `most` elements, if that is not 0. */
  static class Reader extends BaseSubscriber<Payload> {
    final List<String> got = new ArrayList<>();
    final CompletableFuture<String> end = new CompletableFuture<>();
    final int portion;
    final int most;

    Reader(int portion, int most) {
      this.portion = portion;
      this.most = most;
    }

    @Override
    protected void hookOnSubscribe(Subscription subscription) {
      if (portion == 0) requestUnbounded();
      else request(portion);
    }

    @Override
    protected void hookOnNext(Payload payload) {
      got.add(payload.getDataUtf8());
      if (got.size() == most) {
        cancel();
        end.complete("cancelled");
      } else if (portion != 0 && got.size() % portion == 0) {
        request(portion);
      }
    }

    @Override
    protected void hookOnComplete() {
      end.complete("complete");
    }

    @Override
    protected void hookOnError(Throwable failed) {
      end.complete("error " + failed.getMessage());
    }

    String outcome() throws Exception {
      String word = end.get(MOST.toSeconds(), TimeUnit.SECONDS);
      return "elements " + String.join(",", got) + " " + word;
    }
  }

  static String value(RSocket peer, Payload payload) {
    try {
      Payload found = peer.requestResponse(payload).block(MOST);
      return found == null ? "empty" : "value " + found.getDataUtf8();
    } catch (RuntimeException failed) {
      return "error " + failed.getMessage();
    }
  }

  static String perform(RSocket peer, String name, String rest) throws Exception {
    Reader reader;
    switch (name) {
      case "request":
        return value(peer, named("echo", rest));
      case "large":
        byte[] data = new byte[200_000];
        for (int index = 0; index < data.length; index++) data[index] = (byte) (index % 251);
        return value(peer, Routed.named("echo", data));
      case "stream":
        reader = new Reader(Integer.parseInt(rest), 0);
        break;
      case "unbounded":
        reader = new Reader(0, 0);
        break;
      case "cancel":
        reader = new Reader(2 * Integer.parseInt(rest), Integer.parseInt(rest));
        break;
      case "channel":
        reader = new Reader(2, 0);
        peer.requestChannel(Flux.fromArray(WORDS).map(word -> named("channel", word)))
            .subscribe(reader);
        return reader.outcome();
      case "forget":
        peer.fireAndForget(named("echo", rest)).block(MOST);
        return "done";
      case "push":
        peer.metadataPush(DefaultPayload.create(new byte[0], rest.getBytes())).block(MOST);
        return "done";
      case "nothing":
      case "serve":
        return "done";
      default:
        return "unsupported";
    }
    peer.requestStream(named("numbers", "")).subscribe(reader);
    return reader.outcome();
  }

  static void converse(RSocket peer) throws Exception {
    String task = peer.requestResponse(named("tck", "")).block(MOST).getDataUtf8();
    String[] words = task.split(" ", 2);
    String outcome = perform(peer, words[0], words.length > 1 ? words[1] : "");
    peer.requestResponse(named("tck-done", outcome)).block(MOST);
    peer.onClose().block();
  }

  public static void main(String[] arguments) throws Exception {
    RSocketConnector connector =
        RSocketConnector.create()
            .metadataMimeType(COMPOSITE)
            .dataMimeType("application/octet-stream")
            .keepAlive(Duration.ofMillis(500), Duration.ofSeconds(10))
            .acceptor(SocketAcceptor.with(new Handler()))
            .fragment(4096);
    TcpClientTransport transport =
        TcpClientTransport.create("127.0.0.1", Integer.parseInt(arguments[0]));
    while (true) {
      RSocket peer = null;
      try {
        peer = connector.connect(transport).block(MOST);
        converse(peer);
      } catch (Exception failed) {
        System.err.println(failed);
      }
      if (peer != null) peer.dispose();
      Thread.sleep(20);
    }
  }
}
