"""Bounded pipes inside the process, for one direction each: a sender waits until its data fits.

Rules of this file:

* A byte pipe accepts the part that fits and waits with the rest, as a socket does. A message pipe
  accepts whole messages. It accepts a message larger than its capacity only while it is empty.
* Each end can be used by one task at a time;
  a second one gets trio.BusyResourceError, as with every stream of trio.
* If the sending end is closed, the reader receives the remaining data and then the end. If the
  reading end is closed, `send` raises BrokenResourceError.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from penstock.spi import Bytes

DEFAULT_CAPACITY: Final = 64 << 10
"""Bytes: the capacity of a pipe of Linux."""


class _End:
    """One end of a pipe. It knows whether a task uses it, which tasks wait,
    and whether it is closed.
    """

    __slots__ = ("_is_busy", "closed", "verb", "waiting")

    def __init__(self, verb: str) -> None:
        self.verb = verb  # for error texts: "send" or "receive"
        self.closed = False
        self.waiting = trio.lowlevel.ParkingLot()
        self._is_busy = False

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Allow one task at a time. Raises trio.BusyResourceError for a second one."""
        if self._is_busy:
            raise trio.BusyResourceError(f"another task is using this pipe to {self.verb}")
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    def check_open(self) -> None:
        if self.closed:
            raise trio.ClosedResourceError(f"this pipe was closed, so it cannot {self.verb}")

    def close(self, other: "_End") -> None:
        if not self.closed:
            self.closed = True
            self.waiting.unpark_all()
            other.waiting.unpark_all()


class BytePipe:
    """Bytes, in one direction."""

    __slots__ = ("_capacity", "_data", "_reader", "_sender")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._data = bytearray()
        self._sender = _End("send")
        self._reader = _End("receive")

    async def send_all(self, data: Bytes) -> None:
        """Send all of `data`; waits while the pipe is full.
        If cancelled, a part may have been sent. Checkpoints.
        """
        with self._sender.exclusive():
            self._check_sending()
            await trio.lowlevel.checkpoint()
            # cast: len() of a memoryview counts items, which may have several bytes.
            with memoryview(data).cast("B") as view:
                position = 0
                while position < len(view):
                    self._check_sending()
                    room = self._capacity - len(self._data)
                    if room:
                        self._data += view[position : position + room]
                        position += room
                        self._reader.waiting.unpark_all()
                    else:
                        await self._sender.waiting.park()

    async def wait_room(self) -> None:
        """Wait until the pipe has room, or until sending would raise. Checkpoints."""
        with self._sender.exclusive():
            self._sender.check_open()
            await trio.lowlevel.checkpoint()
            while len(self._data) >= self._capacity and not self._reader.closed:
                await self._sender.waiting.park()
                self._sender.check_open()

    async def receive_some(self, max_bytes: int) -> bytes:
        """Return at most `max_bytes` bytes; b"" at the end. Waits while the pipe is empty.
        Checkpoints.
        """
        with self._reader.exclusive():
            self._reader.check_open()
            await trio.lowlevel.checkpoint()
            while not self._data:
                self._reader.check_open()
                if self._sender.closed:
                    return b""
                await self._reader.waiting.park()
            data = bytes(self._data[:max_bytes])
            del self._data[:max_bytes]
            self._sender.waiting.unpark_all()
            return data

    async def send_eof(self) -> None:
        """Close the sending end. Raises trio.BusyResourceError while another task sends.
        Checkpoints.
        """
        with self._sender.exclusive():
            await trio.lowlevel.checkpoint()
            self.close_sender()

    def close_sender(self) -> None:
        """Close the sending end at once: the reader receives the remaining data, then the end."""
        self._sender.close(self._reader)

    def close_reader(self) -> None:
        """Close the reading end: the data in the pipe is lost,
        and `send_all` raises BrokenResourceError.
        """
        self._reader.close(self._sender)
        self._data.clear()

    def _check_sending(self) -> None:
        self._sender.check_open()
        if self._reader.closed:
            raise trio.BrokenResourceError("the reading end of this pipe is closed")


class MessagePipe:
    """Whole messages, in one direction, bounded by their bytes and their number."""

    __slots__ = ("_capacity", "_held_bytes", "_messages", "_reader", "_sender")

    MAX_MESSAGES: Final = 64

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held_bytes = 0
        self._messages: deque[bytes] = deque()  # bounded by _capacity and MAX_MESSAGES: _fits
        self._sender = _End("send")
        self._reader = _End("receive")

    async def send(self, message: Bytes) -> None:
        """Send one message; waits until it fits. If cancelled, it has not been sent.
        Checkpoints.
        """
        with self._sender.exclusive():
            self._sender.check_open()
            await trio.lowlevel.checkpoint()
            whole = bytes(message)
            while not self._fits(whole) and not self._sender.closed and not self._reader.closed:
                await self._sender.waiting.park()
            self._sender.check_open()
            if self._reader.closed:
                raise trio.BrokenResourceError("the reading end of this pipe is closed")
            self._messages.append(whole)
            self._held_bytes += len(whole)
            self._reader.waiting.unpark_all()

    async def receive(self) -> bytes | None:
        """Return the next message, or None at the end. Checkpoints."""
        with self._reader.exclusive():
            self._reader.check_open()
            await trio.lowlevel.checkpoint()
            while not self._messages:
                self._reader.check_open()
                if self._sender.closed:
                    return None
                await self._reader.waiting.park()
            message = self._messages.popleft()
            self._held_bytes -= len(message)
            self._sender.waiting.unpark_all()
            return message

    def close_sender(self) -> None:
        """Close the sending end: the reader receives the remaining messages, then the end."""
        self._sender.close(self._reader)

    def close_reader(self) -> None:
        """Close the reading end: the messages in the pipe are lost,
        and `send` raises BrokenResourceError.
        """
        self._reader.close(self._sender)
        self._messages.clear()
        self._held_bytes = 0

    def _fits(self, message: bytes) -> bool:
        # An empty pipe accepts any message:
        # otherwise a message above the capacity could never be sent.
        return not self._messages or (
            self._held_bytes + len(message) <= self._capacity
            and len(self._messages) < self.MAX_MESSAGES
        )


class MemoryStream(trio.abc.HalfCloseableStream):
    """One side of a connection inside the process: two byte pipes.
    `memory_stream_pair` makes both sides.
    """

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
            raise TypeError(f"max_bytes={max_bytes!r} is not an integer")
        elif max_bytes < 1:
            raise ValueError(f"max_bytes={max_bytes}; give at least 1")
        return await self._incoming.receive_some(max_bytes)

    async def send_eof(self) -> None:
        await self._outgoing.send_eof()

    async def aclose(self) -> None:
        self._outgoing.close_sender()
        self._incoming.close_reader()
        await trio.lowlevel.checkpoint()


def memory_stream_pair(capacity: int = DEFAULT_CAPACITY) -> tuple[MemoryStream, MemoryStream]:
    """Return both sides of a connection that holds at most `capacity` bytes in each direction;
    beyond that, sending waits.

    The function of the same name in trio.testing has no bound: a sender never waits.
    """
    there, back = BytePipe(capacity), BytePipe(capacity)
    return MemoryStream(there, back), MemoryStream(back, there)
