"""The clock of one HTTP/2 connection:
pings, frames without an end, and connections without streams.

`Watch.look` is a plain function of the time: it says what is due. `Watch.run` asks it, some times
within each interval of the pings.
"""

import random
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

import trio

from penstock_http.multiplex._frame_filter import FrameFilter

LOOKS: Final = 2
"""Looks at the clock within one interval of the pings."""

JITTER: Final = 0.15
"""The looks at many connections that began at the same time are spread by this part of the
interval.
"""

UNFINISHED_SECONDS: Final = 30.0
"""Seconds for a frame, and for all frames of a header block, from the first byte to the last:
`Limits.partial_age`.
"""

IDLE_SECONDS: Final = 60.0
"""Seconds that a connection may have no stream."""


class Due(Enum):
    """What `Watch.look` finds to do."""

    NOTHING = auto()
    PING = auto()


class Watch:
    """The times of one connection."""

    def __init__(self, gate: FrameFilter, *, ping: float, is_server: bool, now: float) -> None:
        self._gate = gate
        self._ping = ping
        self._is_server = is_server
        self._heard_at = now
        self._pinged_at: float | None = None
        self._unfinished: int | None = None
        self._unfinished_since = now
        self._idle_since: float | None = now

    def on_bytes(self, now: float) -> None:
        """Note that bytes have arrived, and whether they leave something unfinished."""
        self._heard_at, self._pinged_at = now, None
        unfinished = self._gate.unfinished
        if unfinished != self._unfinished:
            self._unfinished, self._unfinished_since = unfinished, now

    def on_streams(self, count: int, now: float) -> None:
        """Note how many streams are open."""
        self._idle_since = None if count else now

    def look(self, now: float) -> Due | str:
        """Return what is due, or a text if the connection is to be given up."""
        if self._unfinished is not None and now - self._unfinished_since >= UNFINISHED_SECONDS:
            return f"a frame or its headers did not end within {UNFINISHED_SECONDS:g} s"
        if not self._is_server:
            return Due.NOTHING
        if self._idle_since is not None and now - self._idle_since >= IDLE_SECONDS:
            return f"no stream for {IDLE_SECONDS:g} s"
        if self._pinged_at is not None:
            return (
                f"the peer did not answer a ping within {self._ping:g} s"
                if now - self._pinged_at >= self._ping
                else Due.NOTHING
            )
        if now - self._heard_at >= self._ping:
            self._pinged_at = now
            return Due.PING
        return Due.NOTHING

    async def run(self, ping: Callable[[], None], give_up: Callable[[str], None]) -> None:
        """Look until the connection is given up. It raises nothing."""
        interval = min(self._ping, UNFINISHED_SECONDS) / LOOKS
        while True:
            await trio.sleep(interval * random.uniform(1 - JITTER, 1))  # noqa: S311 (no secret)
            due = self.look(trio.current_time())
            if isinstance(due, str):
                give_up(due)
                return
            if due is Due.PING:
                ping()
