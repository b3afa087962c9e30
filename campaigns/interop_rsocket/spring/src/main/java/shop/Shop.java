package shop;

import io.rsocket.exceptions.CustomRSocketException;
import jakarta.validation.Valid;
import jakarta.validation.constraints.NotBlank;
import jakarta.validation.constraints.Positive;
import java.util.concurrent.atomic.AtomicReference;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.rsocket.autoconfigure.RSocketMessageHandlerCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.messaging.handler.annotation.DestinationVariable;
import org.springframework.messaging.handler.annotation.MessageExceptionHandler;
import org.springframework.messaging.handler.annotation.MessageMapping;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.messaging.handler.annotation.support.MethodArgumentNotValidException;
import org.springframework.stereotype.Controller;
import org.springframework.validation.Validator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@SpringBootApplication
public class Shop {
  public static void main(String[] arguments) {
    SpringApplication.run(Shop.class, arguments);
  }

  /** Spring Boot gives routes of RSocket no validator of its own: without this, @Valid does nothing. */
  @Bean
  RSocketMessageHandlerCustomizer validating(Validator validator) {
    return handler -> handler.setValidator(validator);
  }
}

record Order(@NotBlank String symbol, @Positive int amount) {}

record Receipt(String symbol, double total) {}

record Tick(String symbol, int number, double price) {}

@Controller
class Orders {
  private static final int REFUSED = 0x301; // RSocket leaves the codes from 0x301 on to programs

  private final AtomicReference<String> note = new AtomicReference<>("");

  @MessageMapping("buy")
  Mono<Receipt> buy(@Valid @Payload Order order) {
    return Mono.just(new Receipt(order.symbol(), order.amount() * 99.5));
  }

  @MessageMapping("ticks.{symbol}")
  Flux<Tick> ticks(@DestinationVariable String symbol) {
    return Flux.range(0, 1_000_000).map(number -> new Tick(symbol, number, 99.5 + number));
  }

  @MessageMapping("totals")
  Flux<Integer> totals(Flux<Integer> amounts) {
    return amounts.scan(Integer::sum);
  }

  @MessageMapping("note")
  Mono<Void> note(@Payload String text) {
    note.set(text);
    return Mono.empty();
  }

  @MessageMapping("last-note")
  Mono<String> lastNote() {
    return Mono.just(note.get());
  }

  @MessageExceptionHandler
  Mono<Void> refuse(MethodArgumentNotValidException failed) {
    var field = failed.getBindingResult().getFieldError();
    return Mono.error(
        new CustomRSocketException(REFUSED, field.getField() + " " + field.getDefaultMessage()));
  }
}
