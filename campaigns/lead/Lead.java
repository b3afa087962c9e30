import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.SocketAcceptor;
import io.rsocket.core.RSocketConnector;
import io.rsocket.core.RSocketServer;
import io.rsocket.transport.netty.client.TcpClientTransport;
import io.rsocket.transport.netty.server.CloseableChannel;
import io.rsocket.transport.netty.server.TcpServerTransport;
import io.rsocket.util.DefaultPayload;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;

/**
 * rsocket-java as one side of a run: {@code server|client FOLDER SIZE MOST BEST PORT}. The other
 * sides are in _side.py.
 */
public class Lead {
  static final int TAKEN = 10;
  static final int MADE = 0;
  static final int CLOSED = 8;
  static final int TOOK = 16;
  static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));
  static MappedByteBuffer counters;

  static void await() {
    try {
      if (INPUT.readLine() == null) {
        Runtime.getRuntime().halt(0);
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  static void serve(int size, long most) {
    Random random = new Random(7);
    SocketAcceptor acceptor =
        SocketAcceptor.forRequestStream(
            request ->
                Flux.<Payload, Long>generate(
                        () -> 1L,
                        (number, sink) -> {
                          counters.putLong(MADE, number);
                          byte[] element = new byte[size];
                          random.nextBytes(element);
                          ByteBuffer.wrap(element).putLong(number);
                          sink.next(DefaultPayload.create(element));
                          if (number >= most) {
                            sink.complete();
                          }
                          return number + 1;
                        })
                    .doFinally(signal -> counters.putLong(CLOSED, 1)));
    CloseableChannel server =
        RSocketServer.create(acceptor).bind(TcpServerTransport.create("127.0.0.1", 0)).block();
    System.out.println("ready " + server.address().getPort());
    while (true) {
      await();
    }
  }

  static void read(int port, boolean best) throws InterruptedException {
    System.out.println("ready");
    await();
    RSocket socket =
        RSocketConnector.create().connect(TcpClientTransport.create("127.0.0.1", port)).block();
    CountDownLatch hasTaken = new CountDownLatch(1);
    CountDownLatch mayGoOn = new CountDownLatch(1);
    BaseSubscriber<Payload> reader =
        new BaseSubscriber<>() {
          private int taken;

          @Override
          protected void hookOnSubscribe(Subscription subscription) {
            if (best) {
              subscription.request(1);
            } else {
              requestUnbounded();
            }
          }

          @Override
          protected void hookOnNext(Payload payload) {
            if (taken == TAKEN) { // a subscriber that is pushed to can only hold up its caller
              hasTaken.countDown();
              try {
                mayGoOn.await();
              } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
              }
              return;
            }
            taken += 1;
            counters.putLong(TOOK, taken);
            payload.release();
            if (best && taken < TAKEN) {
              request(1);
            } else if (best) {
              hasTaken.countDown();
            }
          }
        };
    socket.requestStream(DefaultPayload.create("")).subscribe(reader);
    hasTaken.await();
    System.out.println("stopped");
    await();
    mayGoOn.countDown();
    reader.cancel();
    socket.dispose();
    System.out.println("left");
    while (true) {
      await();
    }
  }

  public static void main(String[] arguments) throws Exception {
    Path file = Path.of(arguments[1], "counters");
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      counters = channel.map(FileChannel.MapMode.READ_WRITE, 0, 24);
    }
    counters.order(ByteOrder.LITTLE_ENDIAN);
    if (arguments[0].equals("server")) {
      serve(Integer.parseInt(arguments[2]), Long.parseLong(arguments[3]));
    } else {
      read(Integer.parseInt(arguments[5]), Boolean.parseBoolean(arguments[4]));
    }
  }
}
