"""An address that a server listens at, and the checks of its URL."""

from collections.abc import Sequence

import attrs

from penstock.api import Limits, UsageError
from penstock.client import check_credentials, check_examines, dialects_at
from penstock.runtime.service import Service
from penstock.session import DialectFactory
from penstock.spi import Registry, RequestTransport, Url, parse_url


@attrs.frozen(kw_only=True)
class ListeningAddress:
    """An address that is listened at."""

    address: str
    dialects: Sequence[DialectFactory]
    transport: RequestTransport | None
    """Attends the connections; None for most transports,
    whose connections go to a session at once.
    """


def check_guard(service: Service, url: str, registry: Registry) -> None:
    """Raise UsageError if clients could get in without being examined, through a protocol
    that cannot examine them.
    """
    if service.authenticate is not None:
        # Each of them: the client chooses which one it speaks.
        for kind in dialects_at(registry, parse_url(url)):
            check_examines(kind, kind.name)
    if service.is_guarded and parse_url(url).dialect is None:
        advice = (
            # Such a transport answers clients itself, in any protocol:
            # a dialect before its URL would serve none of them.
            "Give Service(authenticate=…), which examines the clients of every protocol"
            if isinstance(registry.transport(parse_url(url).transport), RequestTransport)
            else (
                f"Write 'reactivesocket+{url}', or name another protocol before a '+' if all of "
                "its clients may be accepted"
            )
        )
        raise UsageError(
            f"{url!r} speaks every protocol, and a client of RS.io sends nothing that "
            "Service(setup=…) could check: it would be accepted. "
            f"{advice}"
        )


def check_exposed(service: Service, url: str, registry: Registry) -> None:
    """Raise UsageError for an address that other machines reach, in the clear,
    if the service lets every client in.
    """
    parsed = listening_url(url)
    is_examined = service.authenticate is not None or service.is_guarded
    # The transport is asked: only it knows which of its addresses leave the machine in the clear.
    if not is_examined and registry.transport(parsed.transport).is_exposed(parsed):
        raise UsageError(
            f"{url!r} is an address that other machines can reach, in the clear, and the service "
            "examines no client: each of them could "
            "read all of it. Listen at 127.0.0.1, or with TLS, or give Service(authenticate=…); "
            "or pass insecure=True (--insecure) if the network itself keeps others away"
        )


def check_shown(credentials: object, service: Service, limits: Limits) -> None:
    """Raise UsageError for credentials of the server that would reach no client,
    or every stranger.
    """
    if credentials is None:
        return
    check_credentials(credentials, limits)
    if service.authenticate is None:
        raise UsageError(
            "serve(credentials=…) shows them to clients that were let in, and the service lets "
            "each one in: a stranger could show them to others. Give Service(authenticate=…)"
        )


def listening_url(url: str) -> Url:
    """Return where to listen. Raises UsageError for a URL with a publisher's name,
    which would be ignored.
    """
    parsed = parse_url(url)
    if parsed.publisher is not None:
        raise UsageError(
            f"{url!r} names a publisher ({parsed.publisher!r}); a server offers all of its "
            "service: leave it out"
        )
    return parsed
