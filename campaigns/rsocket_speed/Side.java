import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.core.RSocketConnector;
import io.rsocket.core.RSocketServer;
import io.rsocket.frame.decoder.PayloadDecoder;
import io.rsocket.transport.netty.client.TcpClientTransport;
import io.rsocket.transport.netty.server.CloseableChannel;
import io.rsocket.transport.netty.server.TcpServerTransport;
import io.rsocket.util.ByteBufPayload;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * rsocket-java as one side of a measurement: {@code server}, which prints its port, or {@code client
 * WHAT PORT COUNT}. It does what `_side.py` does.
 */
public class Side {
  static final byte[] SMALL = new byte[64];
  static final byte[][] MIXED = new byte[985][];

  static {
    for (int index = 0; index < MIXED.length; index++) MIXED[index] = new byte[16 + index * 617 % 985];
  }

  static class Handler implements RSocket {
    @Override
    public Flux<Payload> requestStream(Payload payload) {
      String[] asked = payload.getDataUtf8().split(" ");
      payload.release();
      boolean isMixed = asked[0].equals("mixed");
      return Flux.range(0, Integer.parseInt(asked[1]))
          .map(index -> ByteBufPayload.create(isMixed ? MIXED[index % MIXED.length] : SMALL));
    }

    @Override
    public Mono<Payload> requestResponse(Payload payload) {
      return Mono.just(payload);
    }
  }

  static void serve() throws Exception {
    CloseableChannel served =
        RSocketServer.create((setup, sending) -> Mono.just(new Handler()))
            .payloadDecoder(PayloadDecoder.ZERO_COPY)
            .bind(TcpServerTransport.create("127.0.0.1", 0))
            .block();
    System.out.println(served.address().getPort());
    served.onClose().block();
  }

  static long stream(RSocket peer, String what, int count) throws Exception {
    CountDownLatch over = new CountDownLatch(1);
    AtomicLong got = new AtomicLong();
    peer.requestStream(ByteBufPayload.create(what + " " + count))
        .subscribe(
            payload -> {
              got.lazySet(got.get() + 1);
              payload.release();
            },
            failed -> over.countDown(),
            over::countDown);
    over.await();
    return got.get();
  }

  static long requests(RSocket peer, int count) {
    return Flux.range(0, count)
        .flatMap(index -> peer.requestResponse(ByteBufPayload.create(SMALL)), 256)
        .doOnNext(Payload::release)
        .count()
        .block();
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments[0].equals("server")) {
      serve();
      return;
    }
    String what = arguments[1];
    int count = Integer.parseInt(arguments[3]);
    RSocket peer =
        RSocketConnector.create()
            .payloadDecoder(PayloadDecoder.ZERO_COPY)
            .connect(TcpClientTransport.create("127.0.0.1", Integer.parseInt(arguments[2])))
            .block();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    while (lines.readLine() != null) {
      long began = System.nanoTime();
      long got = what.equals("requests") ? requests(peer, count) : stream(peer, what, count);
      System.out.println((double) (System.nanoTime() - began) / got);
    }
    System.exit(0);
  }
}
