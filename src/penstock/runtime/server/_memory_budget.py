"""The memory budget of a server: all that its connections hold, in all their buffers, and what happens when that becomes too much.

Rules of this file:

* Nothing is counted with an element. The connections are asked what they hold when so many bytes have moved that the answer may matter,
  and twenty times a second while memory is tight. While it is not, no timer runs.
* At 80 % a connection that holds more than an equal share is not read from; who holds little goes on, so those who use up the budget
  do not stop the others. At 90 % nobody is accepted. At 95 % the connection that holds most is cut, and the next, until it is less.
"""

from typing import Final, Protocol

import trio

TIGHT: Final = 0.80
FULL: Final = 0.90
OVER: Final = 0.95

LOOK_SECONDS: Final = 0.05
"""Between two looks while memory is tight."""


class Holder(Protocol):
    """A connection, as the budget sees it."""

    def held(self) -> int:
        """Return how many bytes it holds."""

    def cut(self, held: int, budget: int, /) -> None:
        """Let go of them: the connection ends, with a goodbye ``limit:memory``."""


class MemoryBudget:
    """Counts the memory of the connections of one server."""

    __slots__ = ("_cut", "_holders", "_most", "_moved", "_relief", "_share", "_slack", "_tension", "is_full", "is_tight")

    def __init__(self, most: int) -> None:
        self.is_tight: bool = False
        """Who holds much is not read from."""
        self.is_full: bool = False
        """Nobody is accepted."""
        self._most = most
        self._holders: dict[Holder, None] = {}
        self._cut: set[Holder] = set()
        self._moved = 0
        self._slack = most * TIGHT / 4
        self._share = float("inf")
        self._relief = trio.Event()
        self._tension = trio.Event()

    def join(self, holder: Holder) -> None:
        """Count `holder` from now on."""
        self._holders[holder] = None

    def leave(self, holder: Holder) -> None:
        """Count it no more."""
        self._holders.pop(holder, None)
        self._cut.discard(holder)

    def moved(self, size: int) -> None:
        """Note that `size` bytes came in, were asked for from publishers, or went out and turned out to be more than that."""
        self._moved += size
        if self._moved >= self._slack:
            self.survey()

    def survey(self) -> None:
        """Ask every connection what it holds, and decide."""
        held = {holder: holder.held() for holder in self._holders}
        total = sum(held.values())
        for holder in sorted(held.keys() - self._cut, key=held.__getitem__, reverse=True):
            if total < self._most * OVER:
                break
            self._cut.add(holder)
            holder.cut(held[holder], self._most)
            total += holder.held() - held[holder]
        self.is_full = total >= self._most * FULL
        self.is_tight = total >= self._most * TIGHT
        self._share = self._most * TIGHT / max(1, len(held))
        self._moved = 0
        # What is held cannot have become too much before a good part of what is left has moved.
        self._slack = max(self._most / 64, (self._most * TIGHT - total) / 4)
        if self.is_tight:
            self._tension.set()
        relief, self._relief = self._relief, trio.Event()
        relief.set()

    async def wait_for_room(self, holder: Holder) -> None:
        """Wait while memory is tight and `holder` has more than its share of it."""
        while self.is_tight and holder.held() > self._share:
            await self._relief.wait()
        await trio.lowlevel.checkpoint()

    async def watch(self) -> None:
        """While memory is tight, look whether it still is; until cancelled."""
        while True:
            await self._tension.wait()
            while self.is_tight:
                await trio.sleep(LOOK_SECONDS)
                self.survey()
            self._tension = trio.Event()
