"""One port for all protocols: a client's first bytes tell which one it speaks. A client of another
protocol is refused in its own protocol.

At most `MAX_FIRST_BYTES` are looked at, or the first line of a text, and nothing is sent before
they have come. A client of no known protocol is left to the first of the served dialects, which
refuses it.
"""

from collections.abc import Sequence
from typing import Final

from penstock.api import ProtocolError
from penstock.session._dialect import Dialect
from penstock.session._dialect_host import DialectHost
from penstock.session._dialect_settings import DialectFactory, DialectSettings
from penstock.session._foreign_clients import BeforeHello, ForeignClient, examine_foreign_client
from penstock.session._handshake_guard import ChooseDialect
from penstock.session._reasons import NOT_SERVED

MAX_FIRST_BYTES: Final = 8
"""With this many bytes every protocol that is known here can be told: RSocket 1.0 needs the
most, the eighth byte has its frame type.
"""


def protocol_detector(
    offers: Sequence[tuple[DialectFactory, DialectSettings]],
    *,
    framed: bool,
    unserved: Sequence[DialectFactory] = (),
) -> ChooseDialect[DialectHost]:
    """Return a function that chooses among `offers` by a client's first bytes.

    `unserved` are the dialects that this program knows and does not offer here: a client that
    speaks one of them is refused in its own protocol. The function raises ProtocolError with the
    name of the client's protocol.
    """

    def choose(session: DialectHost, first: bytes) -> Dialect | None:
        # True wins over None: one dialect may need more bytes than another one
        # that is certain already.
        verdicts = [factory.recognises(first, framed) for factory, _ in offers]
        if True in verdicts:
            factory, settings = offers[verdicts.index(True)]
            # A look at fewer bytes may have set it.
            session.foreign_refusal = None
            return factory(session, settings)
        # On a framed transport the first message is whole,
        # so waiting for more bytes would only delay the refusal.
        if not framed and len(first) < MAX_FIRST_BYTES and None in verdicts:
            return None
        _refuse_unserved(session, first, unserved, framed=framed)
        stranger = examine_foreign_client(
            first, _advice_for([factory.name for factory, _ in offers])
        )
        if isinstance(stranger, BeforeHello) and not framed:
            # If the rest never comes, a client of a text protocol gets no goodbye of a protocol
            # that it does not speak.
            session.foreign_refusal = b"" if stranger is BeforeHello.TEXT else None
            return None
        if isinstance(stranger, ForeignClient):
            session.foreign_refusal = stranger.answer
            raise ProtocolError(
                f"the client speaks {stranger.speaks}, which is not served here",
                reason=f"protocol:{stranger.token}",
            )
        # An unknown client is refused by a dialect, because only that knows how to say goodbye.
        session.foreign_refusal = None
        factory, settings = offers[0]
        return factory(session, settings)

    return choose


def refusal_for(
    first: bytes,
    reason: str,
    offers: Sequence[DialectFactory],
    *,
    framed: bool,
    unserved: Sequence[DialectFactory] = (),
) -> bytes | None:
    """Return the last bytes for a client that begins with `first` and is not let in for `reason`;
    None if that takes more bytes.

    A client of one of `offers` gets the reason in its protocol. A client of another protocol gets
    the answer of a server with room. An unknown client gets no byte.
    """
    verdicts = [factory.recognises(first, framed) for factory in offers]
    if True in verdicts:
        return _last_words(offers[verdicts.index(True)], reason, framed=framed)
    if not framed and len(first) < MAX_FIRST_BYTES and None in verdicts:
        return None
    for factory in unserved:
        if factory.recognises(first, framed):
            return _last_words(factory, NOT_SERVED, framed=framed)
    stranger = examine_foreign_client(first, _advice_for([factory.name for factory in offers]))
    if isinstance(stranger, BeforeHello) and not framed:
        return None
    return stranger.answer if isinstance(stranger, ForeignClient) else b""


def _last_words(factory: DialectFactory, reason: str, *, framed: bool) -> bytes:
    # The dialect of a plugin may lack the method: then the client gets no byte.
    return factory.refusal(reason, framed=framed) if hasattr(factory, "refusal") else b""


def _refuse_unserved(
    session: DialectHost, first: bytes, unserved: Sequence[DialectFactory], *, framed: bool
) -> None:
    """Raise ProtocolError if the client speaks one of `unserved`, and leave
    that protocol's own refusal with the session.
    """
    for factory in unserved:
        if factory.recognises(first, framed):
            # In the client's protocol: a client that left out its SETUP once got a goodbye of
            # RS.io, which it cannot read.
            session.foreign_refusal = _last_words(factory, NOT_SERVED, framed=framed)
            raise ProtocolError(
                f"the client speaks {factory.name}, which is not served here", reason=NOT_SERVED
            )


def _advice_for(names: Sequence[str]) -> str:
    return (
        f"this port speaks {' and '.join(names)}; connect with a client of "
        f"{'one of these' if names[1:] else 'that'}"
    )
