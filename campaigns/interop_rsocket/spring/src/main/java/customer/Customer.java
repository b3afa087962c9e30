package customer;

import java.time.Duration;
import java.util.List;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.security.autoconfigure.rsocket.RSocketSecurityAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.http.MediaType;
import org.springframework.messaging.rsocket.RSocketRequester;
import org.springframework.messaging.rsocket.RSocketStrategies;
import org.springframework.security.rsocket.metadata.SimpleAuthenticationEncoder;
import org.springframework.security.rsocket.metadata.UsernamePasswordMetadata;
import org.springframework.util.MimeType;
import reactor.core.publisher.Flux;

// This program serves nothing, so it needs no rules for those who ask it.
@SpringBootApplication(exclude = RSocketSecurityAutoConfiguration.class)
public class Customer {
  private static final MimeType CREDENTIALS =
      MimeType.valueOf("message/x.rsocket.authentication.v0");
  private static final Duration MOST = Duration.ofSeconds(10);

  record Order(String symbol, int amount) {}

  record Receipt(String symbol, double total) {}

  record Tick(String symbol, int number) {}

  public static void main(String[] arguments) {
    SpringApplication.run(Customer.class, arguments).close();
  }

  @Bean
  CommandLineRunner ask(RSocketRequester.Builder builder, RSocketStrategies strategies) {
    return arguments -> {
      var stock =
          builder
              .rsocketStrategies(
                  strategies.mutate().encoder(new SimpleAuthenticationEncoder()).build())
              .dataMimeType(MediaType.APPLICATION_JSON)
              .setupMetadata(new UsernamePasswordMetadata("ann", "secret"), CREDENTIALS)
              .tcp("127.0.0.1", Integer.parseInt(arguments[0]));

      var order = new Order("AAPL", 3);
      System.out.println(
          stock.route("buy").data(order).retrieveMono(Receipt.class).block(MOST));

      var nothing = new Order("AAPL", 0);
      stock
          .route("buy")
          .data(nothing)
          .retrieveMono(Receipt.class)
          .doOnError(failed -> System.out.println(failed.getMessage()))
          .onErrorComplete()
          .block(MOST);

      // A demand of 2, and 2 more when 2 have come; a cancel after 3 elements.
      List<Tick> ticks =
          stock
              .route("ticks/{symbol}", "AAPL")
              .retrieveFlux(Tick.class)
              .limitRate(2)
              .take(3)
              .collectList()
              .block(MOST);
      System.out.println(ticks);

      var totals = stock.route("totals").data(Flux.range(1, 4)).retrieveFlux(Integer.class);
      System.out.println(totals.collectList().block(MOST));

      stock.route("note").data("see you").send().block(MOST);
      System.out.println(stock.route("last-note").retrieveMono(String.class).block(MOST));
      stock.dispose();
    };
  }
}
