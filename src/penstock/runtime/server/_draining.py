"""The drain of a server: new streams are refused, and open ones get time to end. A connection is
closed when no stream runs on it.

Rules of this file:

* The peers are told first, all of them, and every new stream is refused from then on.
* A peer that was told leaves by itself when its last requests are answered. It has `GRACE` seconds
  for that, also if no stream runs: otherwise requests that it sent before it was told would meet
  the goodbye.
* The drain polls, and uses no events:
  an event would cost each stream that ends, also without a drain.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import trio

from penstock.api import Limits
from penstock.core import Report, report
from penstock.runtime.connection import ConnectionTask, drain_connection, is_quiet
from penstock.runtime.server._admission import Slot
from penstock.spi import Listener

LOOK_SECONDS: Final = 0.05
"""Seconds between two looks at the connections. A look takes about 1 µs for each."""

GRACE: Final = 2.0
"""Seconds that a peer has to leave after it was told. More than a round trip to any place, and
short beside `Limits.drain`.
"""

REPORT_SECONDS: Final = 5.0
"""Seconds between two reports of the streams that a drain waits for."""

OnWaiting: TypeAlias = Callable[[Mapping[str, int], float], object]
"""Gets the number of streams that run, by the name of their publisher, and the seconds
that they have left.
"""

PER_PASS: Final = 10
"""Connections that are told, or left, in one pass of the run loop:
each of them takes up to 1 ms of the passes that follow.
"""


def time_for_streams(limits: Limits) -> float:
    """Return the seconds that streams may go on: `Limits.drain` without the time for the
    goodbyes, which are part of the shutdown.
    """
    return max(limits.drain - limits.goodbye_timeout - limits.linger, limits.drain / 2)


def may_leave(connection: ConnectionTask, now: float, began: float) -> bool:
    """Return whether a connection can be left without a loss, `now`, in a drain
    that began at the time `began`.
    """
    if not is_quiet(connection):
        return False
    # A peer without the extension *drain* is not told, and does not leave by itself. A peer that
    # has not said hello yet may have it.
    is_told = bool(connection.session.streams.drain.announcers) or not connection.is_open.is_set()
    return not is_told or now >= max(began, connection.opened_at or began) + GRACE


async def close_listeners(
    listeners: Sequence[Listener], seconds: float, on_violation: Report
) -> None:
    """Close all listeners, within `seconds`. Shielded:
    they must be closed although this task may be cancelled.
    """
    with trio.move_on_after(seconds, shield=True):
        for listener in listeners:
            try:
                await listener.aclose()
            except Exception as broken:
                # boundary: a listener may be a plugin; the others must be closed too.
                report(on_violation, broken)


async def cancel_connections(places: Iterable[Slot]) -> None:
    """Let every connection say goodbye, a few in each pass of the run loop:
    5,000 at the same time held it up for 1.8 s.
    """
    # A copy: a connection that ends removes itself.
    for number, place in enumerate(tuple(places), 1):
        place.cancel()
        if number % PER_PASS == 0:
            # This task may be cancelled, and the other connections must still be told.
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()


class Draining:
    """The drain of the connections in `running`, which is the table of the server:
    connections come and go in it.
    """

    def __init__(self, running: Mapping[ConnectionTask, object], limits: Limits) -> None:
        self._running = running
        self._limits = limits
        self._began = trio.current_time()
        self.until: float = self._began + time_for_streams(limits)
        """When the streams that still run are ended."""
        self.ends: float = self._began + limits.drain
        """When the server must have stopped."""

    def shorten(self, seconds: float) -> None:
        """Give streams at most `seconds` from now on. A later end than before has no effect: the
        peers know the earlier one.
        """
        # A time below 0 ends the streams now.
        self.until = min(self.until, trio.current_time() + max(0.0, seconds))

    def waits_for(self, name_of: Callable[[Any], str]) -> dict[str, int]:
        """Return the number of streams that peers still read,
        by what `name_of` says for their targets.
        """
        streams = (
            stream
            for connection in self._running
            for stream in connection.session.streams.serving.values()
        )
        return dict(Counter(name_of(stream.target) for stream in streams))

    async def run(
        self,
        has_connections: Callable[[], bool],
        report_wait: Callable[[float], object] | None = None,
    ) -> None:
        """Wait until no connection is left, and at most until the goodbyes at the end have had
        their time. Checkpoints.

        `report_wait` is called with the seconds that streams have left,
        every `REPORT_SECONDS` while one runs.
        """
        limits, reported_at = self._limits, float("-inf")
        while has_connections():
            now = trio.current_time()
            # Connections that were accepted and have not spoken yet are not in the table.
            # Leaving the server ends them.
            is_waiting = self._running or now < self._began + GRACE
            if not is_waiting or now >= self.until + limits.goodbye_timeout + limits.linger:
                break
            await self._look(now)
            has_streams = any(connection.session.streams.serving for connection in self._running)
            if report_wait is not None and has_streams and now >= reported_at + REPORT_SECONDS:
                reported_at = now
                report_wait(max(0.0, self.until - now))
            await trio.sleep(LOOK_SECONDS)
        await trio.lowlevel.checkpoint()

    async def _look(self, now: float) -> None:
        acted = 0
        # A copy: a connection that ends removes itself.
        for connection in tuple(self._running):
            # A goodbye was said: the connection ends by itself, within its deadline.
            if connection.session.state.is_closing:
                continue
            # The peer is told again if the drain was shortened: it knows the later time.
            until = connection.session.streams.drain.until
            if until is None or until > self.until:
                drain_connection(connection, self.until)
            elif now >= self.until or may_leave(connection, now, self._began):
                connection.leave("shutdown")
            else:
                continue
            acted += 1
            if acted % PER_PASS == 0:
                await trio.lowlevel.checkpoint()
