"""The settings of a dialect, and the factory that makes one for each connection."""

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from penstock.api import Extension
from penstock.session._dialect import Dialect
from penstock.session._dialect_host import DialectHost


class EncodingOffer(Protocol):
    """An encoding of the messages of a dialect, as a plugin offers it."""

    # A protocol and not the record of the plugins: the session lies beside them.
    @property
    def name(self) -> str:
        """Its name: ``msgpack``."""

    @property
    def id(self) -> int | None:
        """Its number in a hello."""

    @property
    def make(self) -> Callable[..., object]:
        """Makes one."""


@attrs.frozen(kw_only=True)
class DialectSettings:
    """The settings that a connection gives its dialect. A dialect uses those that concern it."""

    extensions: Sequence[Extension] = ()
    """The extensions of this side. One is active if the peer also has it."""

    # Bytes, opaque to the session: often a secret, so no error or log line shows it.
    setup: bytes = b""
    """The introduction of a client, in a dialect that has introductions."""

    encodings: Sequence[EncodingOffer] = ()
    """The encodings that this side's hello lists, best first, in a dialect that negotiates them."""

    encoding: EncodingOffer | None = None
    """The encoding of both directions from the first byte, if the transport or the URL has
    chosen one. Then none is negotiated.
    """

    framed: bool = False
    """The transport carries whole messages."""


class DialectFactory(Protocol):
    """Makes a dialect for each connection; usually the dialect's class. The hook
    ``penstock_dialects`` returns it as `Factory.make`.
    """

    name: str
    """The dialect's name in a URL."""

    takes_extensions: bool
    """Extensions are on unless they are switched off."""

    default_extensions: frozenset[int]
    """The ids of extensions that are on unless they are switched off, in a dialect
    that does not take all of them.
    """

    takes_encodings: bool
    """The messages of the dialect have encodings that plugins offer."""

    # Each dialect declares its own: every client once offered the name of the first dialect with
    # every URL.
    alpn: str
    """The dialect's name where TLS negotiates the protocol (ALPN), 1 to 255 ASCII characters;
    empty: it is not offered there.
    """

    def __call__(self, session: DialectHost, settings: DialectSettings, /) -> Dialect:
        """Make the dialect of one connection."""

    def recognises(self, first: bytes, framed: bool, /) -> bool | None:  # noqa: FBT001  # a fact about the transport, nothing else fits
        """Return whether a client that begins with these bytes speaks this protocol;
        None if it takes more bytes to tell.
        """

    def refusal(self, reason: str, /, *, framed: bool = False) -> bytes:
        """Return the bytes that refuse a client of this protocol, for example where another one is
        served. The client gets nothing else.

        `framed` means that the transport delivers messages: the bytes are one message.
        """
