"""Pipes inside the process, one way each, with a bound: who sends more than fits waits until it has been read.

Rules of this file:

* A byte pipe takes what fits and waits with the rest, as a socket does. A message pipe takes a message whole, and one larger than its bound
  only when it is empty.
* Each end has one user at a time; a second one gets trio.BusyResourceError, as with any stream of trio.
* The sender's end closed means: what is in the pipe can still be read, then comes the end. The reader's end closed breaks the sender.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from penstock.plugins import Bytes

DEFAULT_CAPACITY: Final = 64 << 10
"""What a pipe of the operating system holds on Linux."""


class _End:
    """One end of a pipe: who uses it, and whether it is closed."""

    __slots__ = ("_busy", "closed", "lot", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self.closed = False
        self.lot = trio.lowlevel.ParkingLot()
        self._busy = False

    @contextmanager
    def used(self) -> Iterator[None]:
        """Hold the end while using it."""
        if self._busy:
            raise trio.BusyResourceError(f"another task is using this pipe to {self.what}")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def check_open(self) -> None:
        if self.closed:
            raise trio.ClosedResourceError(f"this pipe was closed, so it cannot {self.what}")

    def close(self, other: "_End") -> None:
        if not self.closed:
            self.closed = True
            self.lot.unpark_all()
            other.lot.unpark_all()


class BytePipe:
    """Bytes, one way."""

    __slots__ = ("_capacity", "_data", "_reader", "_sender")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._data = bytearray()
        self._sender = _End("send")
        self._reader = _End("receive")

    async def send_all(self, data: Bytes) -> None:
        """Send all of it; waits while the pipe is full. Cancelled, a part may have been sent. Checkpoints."""
        with self._sender.used():
            self._check_sending()
            await trio.lowlevel.checkpoint()
            with memoryview(data).cast("B") as view:
                position = 0
                while position < len(view):
                    self._check_sending()
                    room = self._capacity - len(self._data)
                    if room:
                        self._data += view[position : position + room]
                        position += room
                        self._reader.lot.unpark_all()
                    else:
                        await self._sender.lot.park()

    async def wait_room(self) -> None:
        """Wait until something fits, or until sending would fail. Checkpoints."""
        with self._sender.used():
            self._sender.check_open()
            await trio.lowlevel.checkpoint()
            while len(self._data) >= self._capacity and not self._reader.closed:
                await self._sender.lot.park()
                self._sender.check_open()

    async def receive_some(self, max_bytes: int) -> bytes:
        """Return what there is, at most `max_bytes`; b"" at the end. Waits while there is nothing. Checkpoints."""
        with self._reader.used():
            self._reader.check_open()
            await trio.lowlevel.checkpoint()
            while not self._data:
                self._reader.check_open()
                if self._sender.closed:
                    return b""
                await self._reader.lot.park()
            data = bytes(self._data[:max_bytes])
            del self._data[:max_bytes]
            self._sender.lot.unpark_all()
            return data

    async def send_eof(self) -> None:
        """Close the sender's end, in its turn: not while somebody sends. Checkpoints."""
        with self._sender.used():
            await trio.lowlevel.checkpoint()
            self.end()

    def end(self) -> None:
        """Close the sender's end at once: the reader gets what is in the pipe, then the end."""
        self._sender.close(self._reader)

    def abandon(self) -> None:
        """Close the reader's end: what is in the pipe is lost, and the sender breaks."""
        self._reader.close(self._sender)
        self._data.clear()

    def _check_sending(self) -> None:
        self._sender.check_open()
        if self._reader.closed:
            raise trio.BrokenResourceError("nobody reads from this pipe any more")


class MessagePipe:
    """Whole messages, one way, bounded by their bytes and their number."""

    __slots__ = ("_capacity", "_held", "_messages", "_reader", "_sender")

    MOST_MESSAGES: Final = 64

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held = 0
        self._messages: deque[bytes] = deque()  # bounded by both figures above
        self._sender = _End("send")
        self._reader = _End("receive")

    async def send(self, message: Bytes) -> None:
        """Send one message; waits while it does not fit. Cancelled, it has not been sent. Checkpoints."""
        with self._sender.used():
            self._sender.check_open()
            await trio.lowlevel.checkpoint()
            whole = bytes(message)
            while not self._fits(whole) and not self._sender.closed and not self._reader.closed:
                await self._sender.lot.park()
            self._sender.check_open()
            if self._reader.closed:
                raise trio.BrokenResourceError("nobody reads from this pipe any more")
            self._messages.append(whole)
            self._held += len(whole)
            self._reader.lot.unpark_all()

    async def receive(self) -> bytes | None:
        """Return the next message, or None at the end. Checkpoints."""
        with self._reader.used():
            self._reader.check_open()
            await trio.lowlevel.checkpoint()
            while not self._messages:
                self._reader.check_open()
                if self._sender.closed:
                    return None
                await self._reader.lot.park()
            message = self._messages.popleft()
            self._held -= len(message)
            self._sender.lot.unpark_all()
            return message

    def end(self) -> None:
        """Close the sender's end: the reader gets what is in the pipe, then the end."""
        self._sender.close(self._reader)

    def abandon(self) -> None:
        """Close the reader's end: what is in the pipe is lost, and the sender breaks."""
        self._reader.close(self._sender)
        self._messages.clear()
        self._held = 0

    def _fits(self, message: bytes) -> bool:
        return not self._messages or (self._held + len(message) <= self._capacity and len(self._messages) < self.MOST_MESSAGES)


class MemoryStream(trio.abc.HalfCloseableStream):
    """One side of a connection inside the process: two byte pipes. `memory_stream_pair` makes both sides."""

    def __init__(self, outgoing: BytePipe, incoming: BytePipe) -> None:
        self._outgoing = outgoing
        self._incoming = incoming

    async def send_all(self, data: Bytes) -> None:
        await self._outgoing.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._outgoing.wait_room()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if max_bytes is None:
            max_bytes = DEFAULT_CAPACITY
        elif not isinstance(max_bytes, int):
            raise TypeError(f"max_bytes={max_bytes!r} is no integer")
        elif max_bytes < 1:
            raise ValueError(f"max_bytes={max_bytes} asks for nothing")
        return await self._incoming.receive_some(max_bytes)

    async def send_eof(self) -> None:
        await self._outgoing.send_eof()

    async def aclose(self) -> None:
        self._outgoing.end()
        self._incoming.abandon()
        await trio.lowlevel.checkpoint()


def memory_stream_pair(capacity: int = DEFAULT_CAPACITY) -> tuple[MemoryStream, MemoryStream]:
    """Return both sides of a connection that holds at most `capacity` bytes each way: beyond that, sending waits.

    (The pair of the same name in trio.testing never lets a sender wait.)
    """
    there, back = BytePipe(capacity), BytePipe(capacity)
    return MemoryStream(there, back), MemoryStream(back, there)
