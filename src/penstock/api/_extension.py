"""What a protocol extension is, and the link through which it acts: the session runs extensions, plugins bring them.

An extension is negotiated in the hello: it is active when both hellos list its id. Active, it gets a link to its connection, and returns
what shall act there. It defines messages of its own, and may change what elements mean, once both sides have said so.
"""

from collections.abc import Callable
from enum import Enum
from typing import Protocol, runtime_checkable

from penstock.api._limits import Limits


class Role(Enum):
    """Who opened the connection."""

    CLIENT = "client"
    SERVER = "server"


class ExtensionLink(Protocol):
    """What an active extension may do to its connection."""

    role: Role
    limits: Limits
    chance: Callable[[], float]
    """A random number from 0 to 1, for jitter."""

    def send(self, type: int, body: bytes) -> None:  # noqa: A002  # the wire's word
        """Queue a message of the extension's own; `type` must be one of its codes."""

    def break_off(self, reason: str) -> None:
        """End the connection because the peer broke the extension's rules; `reason` is a fixed token."""

    def glitch(self, weight: int = 1) -> None:
        """Spend some of the peer's budget for oddities; when it is empty the connection ends."""

    def hold_elements(self) -> None:
        """Stop sending elements, until `resume_elements`: what they mean is being negotiated."""

    def resume_elements(self) -> None:
        """Send elements again."""

    def change_elements(
        self, *, outgoing: Callable[[bytes], bytes] | None = None, incoming: Callable[[bytes], bytes] | None = None
    ) -> None:
        """From here on, send `outgoing(element)` and deliver `incoming(element)`. Declare it to the peer, and wait for its word, first."""


class ActiveExtension(Protocol):
    """An extension at work on one connection."""

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
        """Take one of the extension's messages."""

    def heard(self, now: float, /) -> None:
        """Something, anything, arrived from the peer."""

    def tick(self, now: float, /) -> float | None:
        """Do what is due, and return when to be called again, or None."""


@runtime_checkable
class Extension(Protocol):
    """An extension of RS.io: what a plugin registers."""

    id: int
    """Its number in the hello. Below 128 is penstock's own; take one from 128 on."""

    name: str
    codes: frozenset[int]
    """The type codes of its messages: 0x60 to 0x7e for anybody, 0x40 to 0x5f are penstock's own. Bodies are length-prefixed."""

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        """Begin on a connection on which both sides have it."""
