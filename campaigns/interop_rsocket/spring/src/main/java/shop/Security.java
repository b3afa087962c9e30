package shop;

import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.authentication.BadCredentialsException;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.config.annotation.rsocket.EnableRSocketSecurity;
import org.springframework.security.config.annotation.rsocket.RSocketSecurity;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.oauth2.server.resource.authentication.BearerTokenAuthenticationToken;
import org.springframework.security.rsocket.core.PayloadSocketAcceptorInterceptor;
import reactor.core.publisher.Mono;

@Configuration
@EnableRSocketSecurity
public class Security {
  @Bean
  PayloadSocketAcceptorInterceptor interceptor(RSocketSecurity security) {
    return security
        .authorizePayload(
            authorize ->
                authorize
                    .setup()
                    .authenticated()
                    .anyRequest()
                    .authenticated()
                    .anyExchange()
                    .permitAll())
        .simpleAuthentication(simple -> simple.authenticationManager(Security::examine))
        .build();
  }

  /** Both kinds of credentials come here: a user with a password, and a token. */
  static Mono<Authentication> examine(Authentication shown) {
    boolean known =
        shown instanceof BearerTokenAuthenticationToken bearer
            ? bearer.getToken().equals("token")
            : shown.getName().equals("ann") && "secret".equals(shown.getCredentials());
    return known
        ? Mono.just(
            UsernamePasswordAuthenticationToken.authenticated(
                "ann", null, AuthorityUtils.createAuthorityList("ROLE_USER")))
        : Mono.error(new BadCredentialsException("unknown credentials"));
  }
}
