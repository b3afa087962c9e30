"""What a connection tells its dialect, and what a kind of dialect is to whoever offers it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from penstock.api import Extension
from penstock.session._dialect import Dialect

if TYPE_CHECKING:
    from penstock.session._session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectSettings:
    """What a connection tells its dialect. Each takes what concerns it, and leaves the rest."""

    extensions: Sequence[Extension] = ()
    """What this side has; used as far as the peer has it too."""

    setup: bytes = b""
    """What a client introduces itself with, in a dialect in which it does."""

    framed: bool = False
    """The transport carries whole messages."""


class DialectFactory(Protocol):
    """What makes a dialect for each connection: its class, as a rule. It is what `Factory.make` must be in ``penstock_dialects``."""

    name: str
    """The dialect's, as in a URL."""

    takes_extensions: bool
    """Extensions are on unless they are switched off."""

    alpn: str
    """What stands for it where TLS agrees on what is going to be spoken (ALPN), 1 to 255 ASCII characters; empty: it is not offered."""

    def __call__(self, session: "Session", settings: DialectSettings, /) -> Dialect:
        """Make one."""

    def recognises(self, first: bytes, framed: bool, /) -> bool | None:  # noqa: FBT001  # a fact about the transport, nothing else fits
        """Whether a client that begins with these bytes speaks it; None where it takes more of them to tell."""

    def refusal(self, reason: str, /) -> bytes:
        """Return the bytes that refuse a client of this protocol where another one is served. They are all that the client gets."""
