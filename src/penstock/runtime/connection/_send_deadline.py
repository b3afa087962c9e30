"""Sending with a deadline: a peer that takes nothing is given up, and so is one that takes a byte now and then.

Rules of this file:

* A cancelled send does not tell how much of it went out. So to a peer that may be slow, bytes go in pieces of `Limits.min_drain`, each
  with the whole of `Limits.write_stall` for itself; to one that took the last ones at once, they go whole, which is much faster.
* Whoever is new may be slow. Small sends prove nothing: the system's buffers take them in whatever the peer does.
"""

from typing import Final

import trio

from penstock.api import Limits
from penstock.plugins import Bytes, Connection

BRISK: Final = 1.0
"""Seconds in which a brisk peer takes what is sent at a time."""


class DeadlineSender:
    """Sends on one connection. What it raises is what the connection raises, and trio.TooSlowError."""

    __slots__ = ("_connection", "_is_brisk", "_limits")

    def __init__(self, connection: Connection, limits: Limits) -> None:
        self._connection = connection
        self._limits = limits
        self._is_brisk = False

    async def send(self, data: Bytes) -> None:
        """Send all of `data`, as long as the peer takes it fast enough. Checkpoints."""
        least = self._limits.min_drain
        began = trio.current_time()
        if self._is_brisk or self._connection.framed or len(data) <= least:
            await self._send(data)
        else:
            whole = memoryview(data)
            for start in range(0, len(data), least):
                await self._send(whole[start : start + least])
        is_quick = trio.current_time() - began < BRISK
        self._is_brisk = is_quick and (self._is_brisk or len(data) > least)

    async def _send(self, data: Bytes) -> None:
        with trio.CancelScope(deadline=trio.current_time() + self._limits.write_stall) as stall:
            await self._connection.send(data)
        if stall.cancelled_caught:
            raise trio.TooSlowError
