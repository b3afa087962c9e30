"""The interface of a dialect: how one protocol encodes and decodes, and the rules
that belong to it alone.

The session knows streams, demand, splitting and the end. A dialect knows bytes, ids, the handshake,
and what its protocol calls an error. When it decodes, a dialect calls the session (`DialectHost`);
when the session sends, it calls the dialect's methods below. Methods that return bytes only encode:
the bytes are queued unchanged, and ``b""`` sends nothing.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Protocol

from penstock.api import Model


class Fault(Enum):
    """Why a stream of this side's publishers ends with an error, for a dialect
    that has a code for each.
    """

    REFUSED = "refused"
    """It ended before an element was requested from a publisher.
    The function that makes the publisher may have acted.
    """
    FAILED = "failed"
    """Its publisher failed."""
    INVALID = "invalid"
    """The peer has broken the stream's contract."""


class Dialect(Protocol):
    """One protocol on one connection.
    A property here may be an attribute of the class or of the object.
    """

    @property
    def name(self) -> str:
        """The name in a URL, before the '+'."""

    @property
    def models(self) -> frozenset[Model]:
        """The interaction models that this side may ask a peer for."""

    @property
    def delimits_cancelled(self) -> bool:
        """Elements that arrive for a cancelled stream can only be delimited if the stream's
        element size is remembered.
        """

    @property
    def answers_goodbye(self) -> bool:
        """A goodbye is answered by a goodbye. If not, the end of the transport is the answer."""

    @property
    def max_unsplit(self) -> int:
        """The longest element that goes in one message. A longer one goes in parts of
        `Limits.split_outbound_at`, in turn with others.
        """

    @property
    # A property, because it may change: after a SETUP the following requests do not count.
    def preauth_bytes(self) -> int:
        """How many bytes the peer may send before its hello is complete."""

    def start(self, now: float, /) -> None:
        """Begin: a client sends its hello.
        If a client's first bytes have chosen the dialect, they are fed right after.
        """

    def feed(self, data: bytes, most: int, /) -> bool:
        """Decode `data`, at most `most` messages of it, and act on each. Return whether some may
        be left. Raises ProtocolError.
        """

    def held(self) -> int:
        """Return how many received bytes are not decoded yet."""

    def overdue(self) -> None:
        """React to the end of the handshake's time in a session that is not open."""

    # The target, because an answer to a stream of the peer may have to carry that stream's id.
    def next_id(self, target: Any, /) -> int:
        """Return the id for a new stream or request to `target`. If the subscriber cancels at
        once, `subscribe` does not follow.
        """

    def subscribe(self, stream_id: int, target: Any, demand: int, /) -> bytes:
        """Encode the opening of a stream."""

    def fire(self, stream_id: int, target: Any, /) -> bytes:
        """Encode a request that has no answer."""

    def request(self, stream_id: int, n: int, /) -> bytes:
        """Encode more demand."""

    def cancel(self, stream_id: int, /) -> bytes:
        """Encode the cancel of a stream that this side opened."""

    def begin(self, stream_id: int, element_size: int, /) -> bytes:
        """Encode the acceptance of a stream that the peer opened."""

    # The whole run in one call: a call for each element costs more than all the rest of its way.
    def join_run(self, stream_id: int, elements: list[bytes], /) -> bytearray:
        """Encode unsplit elements, one or more, each after its header."""

    def answer(self, stream_id: int, element: bytes, /) -> bytes:
        """Encode the acceptance of a stream, its only element, unsplit, and then the completion."""

    def write_packed(
        self, into: bytearray, stream_id: int, size: int, elements: bytearray, /
    ) -> None:
        """Write elements of fixed size, which lie one behind the other in `elements`."""

    # `first` and `last`: some protocols mark the first part, others the last.
    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool, /) -> bytes:  # noqa: FBT001  # on the path of elements
        """Encode the header of a part of an element."""

    def complete(self, stream_id: int, /) -> bytes:
        """Encode the completion of a stream."""

    # A fault, because a text cannot tell whose doing the end is: it may be a publisher's words.
    def error(self, stream_id: int, text: str, fault: Fault, /) -> bytes:
        """Encode the end of a stream with an error."""

    def goodbye(self, reason: str, /) -> bytes:
        """Encode the end of the connection, with a token for the reason or ``""``."""

    def split(self, data: bytearray, /) -> Iterable[bytes | bytearray | memoryview]:
        """Cut bytes that shall be sent into the messages of a framed transport."""
