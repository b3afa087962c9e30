"""Reads ahead while a setup function checks the client. Without reading, the end of the transport
would not be noticed until it returns.

Rules of this file:

* A `receive` in progress is never cancelled: that could lose bytes. After the client is accepted
  the reader waits for that same call.
* What waits is bounded: no more is read once `limit` bytes wait,
  which is what a client may send before it is known.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

Received: TypeAlias = bytes | bytearray | None
"""One result of `receive`; None at the end of the input."""


class ReadAheadBuffer:
    """Received chunks that were not taken yet."""

    __slots__ = ("_arrival", "_chunks", "_is_reading", "_is_wanted", "_limit", "_receive", "held")

    def __init__(self, receive: Callable[[], Awaitable[Received]], limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._chunks: deque[Received] = deque()
        # From here on, although `read` starts later: no other task may call `receive` in between.
        self._is_reading = True
        self._is_wanted = False
        self._arrival = trio.Event()
        self.held: int = 0
        """Bytes that wait."""

    async def read(self) -> bool:
        """Read until `take` is called, until `limit` bytes wait, or until the input ends. Return
        True if the input has ended.
        """
        data: Received = b""
        try:
            # The last chunk may exceed the limit by its size: a receive cannot be taken back.
            while data is not None and self.held < self._limit and not self._is_wanted:
                data = await self._receive()
                self._chunks.append(data)
                self.held += len(data or b"")
        finally:
            # Set also if `receive` raises: the reader must not wait for a chunk that never comes.
            self._is_reading = False
            self._arrival.set()
        return data is None

    async def take(self) -> Received:
        """Return the oldest chunk; wait for it if none is there."""
        self._is_wanted = True
        # `_is_wanted` ends the reading after the receive in progress, so one event is enough.
        if self._is_reading and not self._chunks:
            await self._arrival.wait()
        if not self._chunks:
            # The task that read ahead is gone: nothing more comes from there.
            return await self._receive()
        data = self._chunks.popleft()
        self.held -= len(data or b"")
        return data

    @property
    def is_over(self) -> bool:
        """True if everything was taken: from now on the reader may call `receive` itself."""
        return not self._chunks and not self._is_reading
