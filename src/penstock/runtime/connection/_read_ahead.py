"""Reading ahead: while it is examined who a peer is, what it sends waits; that it has gone is noticed all the same.

Rules of this file:

* Nobody cancels a `receive` because a peer is let in: what is under way goes on, and whoever reads from then on waits for that one.
* What waits is bounded: nothing more is read once there is as much as a peer may say before it is known.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

Received: TypeAlias = bytes | bytearray | None


class ReadAheadBuffer:
    """What has been read, and not been asked for yet."""

    __slots__ = ("_chunks", "_is_asked", "_is_reading", "_most", "_news", "_receive", "held")

    def __init__(self, receive: Callable[[], Awaitable[Received]], most: int) -> None:
        self._receive = receive
        self._most = most
        self._chunks: deque[Received] = deque()
        self._is_reading = True  # from its making on: nobody else may begin
        self._is_asked = False
        self._news = trio.Event()
        self.held: int = 0
        """Bytes that wait."""

    async def read(self) -> bool:
        """Read until somebody asks, or as much waits as may, or nothing more comes; return whether that is so."""
        data: Received = b""
        try:
            while data is not None and self.held < self._most and not self._is_asked:
                data = await self._receive()
                self._chunks.append(data)
                self.held += len(data or b"")
        finally:
            self._is_reading = False
            self._news.set()
        return data is None

    async def take(self) -> Received:
        """Return what came first and was not taken yet, be it still to come."""
        self._is_asked = True
        if self._is_reading and not self._chunks:
            await self._news.wait()
        if not self._chunks:
            return await self._receive()
        data = self._chunks.popleft()
        self.held -= len(data or b"")
        return data

    @property
    def is_over(self) -> bool:
        """All of it was taken: whoever reads may do so himself."""
        return not self._chunks and not self._is_reading
