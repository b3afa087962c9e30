"""What a dialect is to the session: how its protocol says things, and the rules that are its own.

The session core knows streams, demand, splitting, and the end; a dialect knows bytes, ids, the handshake, and what its protocol calls
an error. Decoding, a dialect calls the core's `peer_…` methods; sending, the core calls the dialect's methods below. Those that return
bytes only say: what they return is queued as it is, and ``b""`` says nothing.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Protocol

from penstock.api import Model


class Fault(Enum):
    """Why a stream of this side's ends with an error: for a dialect that has a code for each."""

    REFUSED = "refused"
    """It never began: nothing was done."""
    FAILED = "failed"
    """Its publisher failed."""
    INVALID = "invalid"
    """The peer has broken its contract."""


class Dialect(Protocol):
    """One protocol on one connection. What is a property here may be an attribute, of the class or of each."""

    @property
    def name(self) -> str:
        """What stands for it in a URL, before the '+'."""

    @property
    def models(self) -> frozenset[Model]:
        """What this side may ask a peer for."""

    @property
    def delimits_cancelled(self) -> bool:
        """What still arrives for a stream that this side has cancelled cannot be delimited unless the stream is remembered."""

    @property
    def answers_goodbye(self) -> bool:
        """A goodbye is answered by one; where it is not, the transport's end is the answer."""

    @property
    def max_unsplit(self) -> int:
        """The longest element that goes as a whole. A longer one goes in parts of `Limits.split_outbound_at`, in turn with others."""

    @property
    def preauth_bytes(self) -> int:
        """How much the peer may send before its hello is complete."""

    def start(self, now: float, /) -> None:
        """Begin: a client says hello, where one is due. Where a client's first bytes choose the dialect, they are fed right after."""

    def feed(self, data: bytes, most: int, /) -> bool:
        """Decode `data`, at most `most` messages of it; return whether some may be left. Raises ProtocolError."""

    def held(self) -> int:
        """Return how many bytes have arrived that are not decoded yet."""

    def tick(self, now: float, /) -> float | None:
        """Do what is due, and return when to be called again, or None."""

    def overdue(self) -> None:
        """The time for the handshake is over, and the session is not open."""

    def next_id(self, target: Any, /) -> int:
        """Return the id for what this side asks for. Who asked may change its mind before `subscribe` is called."""

    def subscribe(self, stream_id: int, target: Any, demand: int, /) -> bytes:
        """Open a stream."""

    def fire(self, stream_id: int, target: Any, /) -> bytes:
        """Say something that has no answer."""

    def request(self, stream_id: int, n: int, /) -> bytes:
        """Grant demand."""

    def cancel(self, stream_id: int, /) -> bytes:
        """Stop a stream that this side opened."""

    def begin(self, stream_id: int, element_size: int, /) -> bytes:
        """Accept a stream that the peer opened."""

    def header(self, stream_id: int, length: int, /) -> bytes:
        """What stands before an element that goes as a whole. It may serve for all that follow, as long as they have this length."""

    def write_packed(self, into: bytearray, stream_id: int, size: int, elements: bytearray, /) -> None:
        """Write elements of fixed size, which lie one behind the other in `elements`."""

    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool, /) -> bytes:  # noqa: FBT001  # on the path of elements
        """What stands before a part of an element."""

    def complete(self, stream_id: int, /) -> bytes:
        """End a stream well."""

    def error(self, stream_id: int, text: str, fault: Fault, /) -> bytes:
        """End a stream with an error."""

    def goodbye(self, reason: str, /) -> bytes:
        """Say that this side is done."""

    def split(self, data: bytearray, /) -> Iterable[bytes | bytearray | memoryview]:
        """Cut what shall be sent into the messages that a framed transport carries."""
