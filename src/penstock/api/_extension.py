"""Protocol extensions, and the link through which they act. Plugins provide extensions, and the session runs them.

An extension is negotiated in the hello: it is active if both hellos list its id. Then it gets a link to its connection, and returns
the object that acts there. It defines its own messages, and may change the encoding of elements once both sides have declared that.
"""

from collections.abc import Callable
from enum import Enum
from typing import Protocol, runtime_checkable

from penstock.api._limits import Limits


class Role(Enum):
    """The side of a connection: the client has opened it, the server has accepted it."""

    CLIENT = "client"
    SERVER = "server"


class ExtensionLink(Protocol):
    """The calls that an active extension may make on its connection."""

    role: Role
    limits: Limits
    chance: Callable[[], float]
    """A random number from 0 to 1, for jitter."""

    def send(self, type: int, body: bytes) -> None:  # noqa: A002  # the wire's word
        """Queue a message of the extension; `type` must be one of its codes."""

    def break_off(self, reason: str) -> None:
        """End the connection because the peer broke the extension's rules; `reason` is a fixed token."""

    def glitch(self, weight: int = 1) -> None:
        """Take `weight` from the peer's budget of anomalies (`Limits.glitch_burst`). If it is empty, the connection ends."""

    def hold_elements(self) -> None:
        """Stop sending elements until `resume_elements`, while their encoding is negotiated."""

    def resume_elements(self) -> None:
        """Send elements again."""

    def change_elements(
        self, *, outgoing: Callable[[bytes], bytes] | None = None, incoming: Callable[[bytes], bytes] | None = None
    ) -> None:
        """From now on send `outgoing(element)` and deliver `incoming(element)`. First declare it to the peer and wait for its answer."""


class ActiveExtension(Protocol):
    """The state of an extension on one connection."""

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
        """Receive one of the extension's messages."""

    def heard(self, now: float, /) -> None:
        """Called when bytes of any kind have arrived from the peer."""

    def tick(self, now: float, /) -> float | None:
        """Do what is due at the time `now`, and return the time of the next call, or None."""


class ChecksLength(Protocol):
    """An active extension whose messages are short may offer this beside the calls of `ActiveExtension`."""

    def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the wire's word
        """Refuse a message for the length of its body, with `ExtensionLink.break_off`. Called if the body has not arrived as a whole.

        Without it a peer can make this side hold `Limits.max_frame` bytes of each message that it never finishes.
        """


def check_length_of(active: ActiveExtension) -> Callable[[int, int], None] | None:
    """Return the `check_length` of `active`, or None if it has none."""
    method: Callable[[int, int], None] | None = getattr(active, "check_length", None)
    return method


@runtime_checkable
class Extension(Protocol):
    """An extension of RS.io, as a plugin registers it."""

    id: int
    """Its number in the hello. Numbers below 128 are reserved for penstock; take one from 128 on."""

    name: str
    codes: frozenset[int]
    """The type codes of its messages: 0x60 to 0x7e are free, 0x40 to 0x5f are reserved for penstock. Bodies are length-prefixed."""

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        """Start the extension on a connection on which both sides have it."""
