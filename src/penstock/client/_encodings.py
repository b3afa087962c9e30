"""Which encodings of its messages a connection lists in its hello, and which one its transport
or its URL has chosen before.

Rules of this file:

* A client lists an encoding only if the program names it. A server lists all that are installed:
  the client decides.
* The name that a transport negotiates (ALPN, a subprotocol) ends with ``+msgpack`` if it means
  that encoding.
* An encoding that was chosen before the first byte is that of both directions, and of the hellos.
  Then none is negotiated.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

import attrs

from penstock.api import UsageError, shown
from penstock.session import Dialect, DialectFactory, DialectHost, DialectSettings
from penstock.spi import Factory, Registry, Url, check_one_encoding

COMPACT: Final = "compact"
"""The name of the encoding that every connection has."""


def takes_encodings(kind: DialectFactory) -> bool:
    """Return whether the messages of a dialect have encodings."""
    return getattr(kind, "takes_encodings", False)  # the dialect of a plugin may lack the attribute


def encoding_asked(
    registry: Registry, name: str | None, url: Url, kind: DialectFactory
) -> tuple[Factory, ...]:
    """Return the encoding that a program asks for as ``encoding=``, as the list for its hello.
    Raises UsageError if it is not installed.

    The list is empty if `url` has chosen the encoding already. `kind` is the dialect at `url`.
    """
    check_one_encoding(url, name)
    if name is None or name == COMPACT or url.encoding is not None:
        return ()
    if not isinstance(name, str):
        raise UsageError(
            f"encoding={shown(name)}; give the name of an encoding, for example 'msgpack'"
        )
    if not takes_encodings(kind):
        raise UsageError(
            f"encoding={name!r} was given for {kind.name}, whose messages have one encoding; RS.io "
            "has others"
        )
    return (registry.encoding(name),)


def in_encoding_of_url(
    registry: Registry, kinds: Sequence[DialectFactory], url: Url
) -> list[DialectFactory]:
    """Return `kinds` as the URL asks for them. Raises UsageError if its encoding is not
    installed, or if no dialect has encodings.
    """
    if url.encoding is None or url.encoding == COMPACT:
        return list(kinds)
    offer = registry.encoding(url.encoding)
    encoded: list[DialectFactory] = [
        DialectInEncoding(kind, offer) for kind in kinds if takes_encodings(kind)
    ]
    if not encoded:
        raise UsageError(
            f"{str(url)!r} asks for an encoding, and the messages of {url.dialect} have only one; "
            "leave ?encoding= out"
        )
    return encoded


def in_encoding_agreed(
    registry: Registry, kinds: Sequence[DialectFactory], protocol: str | None
) -> Sequence[DialectFactory]:
    """Return `kinds` as the transport has negotiated them. `protocol` is the name that it agreed
    on during its handshake, if it has one.
    """
    name = (protocol or "").partition("+")[2]
    offer = registry.encodings.get(name)
    if offer is None:
        return kinds
    # Without such a dialect the name meant something else.
    return [DialectInEncoding(kind, offer) for kind in kinds if takes_encodings(kind)] or kinds


def protocols_of(
    kinds: Iterable[DialectFactory], encodings: Iterable[Factory] = ()
) -> Iterator[str]:
    """Yield the ALPN names of each dialect that has one: in each of `encodings`, and in its own."""
    names = [encoding.name for encoding in encodings]
    for kind in kinds:
        # The dialect of a plugin may lack the attribute, and can be spoken without ALPN.
        if alpn := getattr(kind, "alpn", ""):
            # The encodings first: the client that lists one prefers it.
            yield from (f"{alpn}+{name}" for name in names if takes_encodings(kind))
            yield alpn


class DialectInEncoding:
    """A dialect that is spoken in one encoding from the first byte: a `DialectFactory`."""

    # Nothing is negotiated: the choice was made.
    takes_encodings: bool = False

    def __init__(self, kind: DialectFactory, offer: Factory) -> None:
        self._kind = kind
        self._offer = offer
        self.name: str = kind.name
        self.takes_extensions: bool = kind.takes_extensions
        self.default_extensions: frozenset[int] = kind.default_extensions
        # The dialect of a plugin may lack these two.
        self.examines_peers: bool = getattr(kind, "examines_peers", False)
        # Without it the extension was left out over ALPN and WebSocket,
        # and a lost connection was over.
        self.resumes: bool = getattr(kind, "resumes", False)
        self.alpn: str = f"{kind.alpn}+{offer.name}"

    def __call__(self, session: DialectHost, settings: DialectSettings, /) -> Dialect:
        """Make the dialect of one connection."""
        return self._kind(session, attrs.evolve(settings, encoding=self._offer, encodings=()))

    def recognises(self, first: bytes, framed: bool, /) -> bool | None:  # noqa: FBT001  # as in the protocol
        """Return what the dialect says: the first byte of a hello is the same in all encodings."""
        return self._kind.recognises(first, framed)

    def refusal(self, reason: str, /, *, framed: bool = False) -> bytes:
        """Return the refusal in the encoding."""
        # A dialect that takes encodings also has this parameter.
        return cast(
            "bytes", cast("Any", self._kind).refusal(reason, framed=framed, encoding=self._offer)
        )
