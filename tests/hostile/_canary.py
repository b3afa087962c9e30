"""The canary: an honest client of the server that is attacked. How long it waits for a tick
shows how the attack disturbs others.
"""

from typing import Any

import trio

from tests.hostile._attack_clock import AttackClock
from tests.hostile._control_canary import TICK

GAP = 0.1
"""Seconds that a canary may wait for its next tick, times the stretch of the attack. Without an
attack it waits for one `TICK`.
"""

__all__ = ["GAP", "TICK", "Canary"]


class Canary:
    """Reads one tick after the other, and knows the longest wait."""

    def __init__(self, clock: AttackClock) -> None:
        self._clock = clock
        self._last: float | None = None
        self._ticked = trio.Event()
        self.longest = 0.0

    async def watch(self, stream: Any) -> None:
        async for _ in stream:
            self.on_tick()

    def on_tick(self) -> None:
        now = self._clock.now()
        if self._last is not None:
            self.longest = max(self.longest, now - self._last)
        self._last = now
        self._ticked.set()
        self._ticked = trio.Event()

    async def wait_ticks(self, count: int = 2) -> None:
        for _ in range(count):
            await self._ticked.wait()

    def restart(self) -> None:
        """Forget the waits until now. The current one begins anew:
        the tests themselves may have held the loop up.
        """
        self.longest = 0.0
        self._last = self._clock.now()
