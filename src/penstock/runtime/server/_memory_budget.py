"""The memory budget of a server: measures the bytes in the buffers of all connections, and slows or closes connections.

Rules of this file:

* Nothing is counted per element. The connections are asked what they hold (`measure`) when `slack` bytes have moved since the last time,
  and every `MEASURE_SECONDS` while memory is tight. While it is not tight, no timer runs.
* At 80 % a connection that holds more than an equal share is not read from; the others are, so that a few large connections do not stop
  the small ones. At 90 % no connection is accepted. At 95 % the connection that holds most is closed, and the next, until it is less.
"""

from typing import Final

import trio

from penstock.runtime.connection import MemoryHolder

TIGHT: Final = 0.80
FULL: Final = 0.90
OVER: Final = 0.95

MEASURE_SECONDS: Final = 0.05
"""Seconds between two measurements while memory is tight."""


class MemoryBudget:
    """Measures the memory of the connections of one server. The `SharedMemory` of these connections."""

    __slots__ = ("_closed", "_holders", "_limit", "_relief", "_share", "_tension", "is_full", "is_tight", "moved", "slack")

    def __init__(self, limit: int) -> None:
        self.is_tight: bool = False
        """A connection that holds more than its share is not read from."""
        self.is_full: bool = False
        """No connection is accepted."""
        self._limit = limit
        self._holders: dict[MemoryHolder, None] = {}  # bounded by Limits.max_connections; a dict keeps the order, a set would not
        self._closed: set[MemoryHolder] = set()  # those that were told to close, and still hold memory
        self.moved: int = 0
        """Bytes since the last measurement."""
        self.slack: float = limit * TIGHT / 4
        """`measure` is due when `moved` has reached this."""
        self._share = float("inf")
        self._relief = trio.Event()  # set and replaced at each measurement
        self._tension = trio.Event()  # set while memory is tight

    def add(self, holder: MemoryHolder) -> None:
        """Count `holder` from now on."""
        self._holders[holder] = None

    def remove(self, holder: MemoryHolder) -> None:
        """Stop counting `holder`."""
        self._holders.pop(holder, None)
        self._closed.discard(holder)

    def note_bytes(self, size: int) -> None:
        """Note that `size` bytes have arrived, or were requested from publishers, or are about to be sent."""
        self.moved += size
        if self.moved >= self.slack:
            self.measure()

    def measure(self) -> None:
        """Ask every connection what it holds, close the largest ones if that is too much, and set `is_tight` and `is_full`."""
        held = {holder: holder.held() for holder in self._holders}
        total = sum(held.values())
        # Largest first: the fewest connections are closed. Those that are closing already are left to their goodbye.
        for holder in sorted(held.keys() - self._closed, key=held.__getitem__, reverse=True):
            if total < self._limit * OVER:
                break
            self._closed.add(holder)
            holder.close_for_memory(held[holder], self._limit)
            # A closed session has dropped its buffers, but bytes in flight remain: so it is asked again.
            total += holder.held() - held[holder]
        self.is_full = total >= self._limit * FULL
        self.is_tight = total >= self._limit * TIGHT
        self._share = self._limit * TIGHT / max(1, len(held))
        self.moved = 0
        # A quarter of the bytes left until TIGHT. Buffers grow by no more than the bytes that move, so no threshold is passed unseen.
        # 1/64 of the limit at least: near the threshold each message would cause a measurement otherwise.
        self.slack = max(self._limit / 64, (self._limit * TIGHT - total) / 4)
        if self.is_tight:
            self._tension.set()
        # Every waiter looks again after each measurement, and waits for the next one if it must.
        relief, self._relief = self._relief, trio.Event()
        relief.set()

    async def wait_for_room(self, holder: MemoryHolder) -> None:
        """Wait while memory is tight and `holder` has more than its share."""
        while self.is_tight and holder.held() > self._share:
            await self._relief.wait()
        # Also without a wait: the caller relies on a checkpoint.
        await trio.lowlevel.checkpoint()

    async def watch(self) -> None:
        """Measure again and again while memory is tight; until cancelled."""
        while True:
            await self._tension.wait()
            while self.is_tight:
                await trio.sleep(MEASURE_SECONDS)
                self.measure()
            self._tension = trio.Event()
