"""What a dialect is to the session: how its protocol says things, and the rules that are its own.

The session core knows streams, demand, splitting, and the end; a dialect knows bytes, ids, the handshake, and what its protocol calls
an error. Decoding, a dialect calls the core's `peer_…` methods; sending, the core calls the dialect's methods below.
"""

from typing import Any, Protocol


class Dialect(Protocol):
    """One protocol on one connection."""

    def start(self, now: float, /) -> None:
        """Say hello, where this side does so unasked."""

    def feed(self, data: bytes, most: int, /) -> bool:
        """Decode `data`, at most `most` messages of it; return whether some may be left. Raises ProtocolError."""

    def held(self) -> int:
        """Return how many bytes have arrived that are not decoded yet."""

    def tick(self, now: float, /) -> float | None:
        """Do what is due, and return when to be called again, or None."""

    def next_id(self) -> int:
        """Return the id for a stream that this side opens."""

    def subscribe(self, stream_id: int, target: Any, demand: int, /) -> bytes:
        """Open a stream."""

    def request(self, stream_id: int, n: int, /) -> bytes:
        """Grant demand."""

    def cancel(self, stream_id: int, /) -> bytes:
        """Stop a stream that this side opened."""

    def begin(self, stream_id: int, element_size: int, /) -> bytes:
        """Accept a stream that the peer opened."""

    def header(self, stream_id: int, length: int, /) -> bytes:
        """What stands before an element that goes as a whole; ``length`` is -1 where the size is fixed."""

    def packed(self, stream_id: int, count: int, /) -> bytes:
        """What stands before `count` elements of fixed size."""

    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool, /) -> bytes:  # noqa: FBT001  # on the path of elements
        """What stands before a part of an element."""

    def complete(self, stream_id: int, /) -> bytes:
        """End a stream well."""

    def error(self, stream_id: int, text: str, /) -> bytes:
        """End a stream with an error."""

    def goodbye(self, reason: str, /) -> bytes:
        """Say that this side is done."""
