"""A stream that comes over a connection. Elements of fixed size can be read as packed memory."""

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from penstock.core import Stream
from penstock.reader import RemoteBuffer

T = TypeVar("T")


class RemoteStream(RemoteBuffer[T], Stream[T]):
    """The elements of one subscription to a publisher of the peer."""

    # Empty until the publisher begins anew: to set it would cost each stream a call.
    __slots__ = ("_restarts",)

    _restarts: int

    @property
    def restarts(self) -> int:
        """How often the publisher was subscribed to anew, from its beginning, after a lost
        connection (`Reconnect`).

        A publisher with positions is subscribed to at the position of the next element, and that is
        not counted.
        """
        return getattr(self, "_restarts", 0)

    def on_restart(self) -> None:
        """Count that the stream begins anew, over another connection."""
        self._restarts = self.restarts + 1

    def buffers(self) -> AsyncIterator[bytes]:
        """Iterate over packed elements as memory: each time all that has arrived, a whole number of
        elements, and never empty.

        For publishers with a fixed ``element_size``; others raise UsageError from the iteration.
        Checkpoints once a piece.
        """
        self._in_pieces = True
        return _Buffers(self)

    async def next_buffer(self) -> bytes:
        """Return what has arrived as one piece of memory; `buffers` iterates with this.
        Checkpoints.
        """
        return await self._read(self._take_buffer)


class _Buffers(AsyncIterator[bytes]):
    """Iterates over a stream as memory."""

    __slots__ = ("_stream",)

    def __init__(self, stream: RemoteStream[Any]) -> None:
        self._stream = stream

    async def __anext__(self) -> bytes:
        return await self._stream.next_buffer()
