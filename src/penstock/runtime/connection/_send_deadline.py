"""Sends with a deadline: the connection to a peer that takes nothing, or one byte now and then, is given up.

Rules of this file:

* A cancelled send does not tell how much of it was sent. So a peer that may be slow gets pieces of `Limits.min_drain` bytes, and each
  piece has `Limits.write_stall` seconds. A peer that took the last bytes within `FAST_SECONDS` gets them whole, which is much faster.
* A new peer may be slow. Small sends prove nothing: the buffers of the system take them even if the peer does not read.
"""

from typing import Final

import trio

from penstock.api import Limits
from penstock.plugins import Bytes, Connection

FAST_SECONDS: Final = 1.0
"""A peer that takes a send within this time counts as fast."""


class DeadlineSender:
    """Sends on one transport connection. Raises what the transport raises, and trio.TooSlowError."""

    __slots__ = ("_connection", "_is_fast", "_limits")

    def __init__(self, connection: Connection, limits: Limits) -> None:
        self._connection = connection
        self._limits = limits
        self._is_fast = False

    async def send(self, data: Bytes) -> None:
        """Send all of `data`, as long as the peer takes it fast enough. Checkpoints."""
        piece = self._limits.min_drain
        began = trio.current_time()
        if self._is_fast or self._connection.framed or len(data) <= piece:  # a framed transport carries whole messages: no pieces
            await self._send(data)
        else:
            # Slices of a memoryview copy nothing.
            whole = memoryview(data)
            for start in range(0, len(data), piece):
                await self._send(whole[start : start + piece])
        # The time of the whole send counts: a peer that is slow with one piece is slow.
        is_quick = trio.current_time() - began < FAST_SECONDS
        # A send of up to `piece` bytes can show that a peer has become slow, but not that it is fast.
        self._is_fast = is_quick and (self._is_fast or len(data) > piece)

    async def _send(self, data: Bytes) -> None:
        with trio.CancelScope(deadline=trio.current_time() + self._limits.write_stall) as stall:
            await self._connection.send(data)
        # Part of the piece may have been sent: the connection cannot be used after this.
        if stall.cancelled_caught:
            raise trio.TooSlowError
