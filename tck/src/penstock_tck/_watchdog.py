"""The watchdog: real time for one run of one check,
because virtual time does not pass in an endless loop.

Rules of this file

* The first alarm cancels the run's cancel scope from within the run loop. That ends tasks that wait
  for an event that never comes, and tasks that only checkpoint (while they do, an autojump clock
  stands still).
* Later alarms raise `WatchdogExpired` in the code that runs at the moment. That ends a loop that
  never returns to the run loop.
  It derives from BaseException and is raised every `_AGAIN_SECONDS`, so
  that an `except` in a loop cannot keep it alive.
* On a busy machine a check waits for the processor. Linux tells how long
  (/proc/thread-self/schedstat), and that time does not count: it ends when its own seconds are
  over, however many programs run beside it. A check that waits for something that never comes
  uses up its own seconds as well.
* Elsewhere a check that still uses the processor, and has used less of it than its seconds, gets
  more time: `_MOST_TIMES` as much in all. A check that uses none ends at once.
* Alarms need SIGALRM and the main thread.
  Elsewhere faulthandler prints every stack and ends the process.
"""

import faulthandler
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, process_time
from types import FrameType
from typing import Final

import trio

_AGAIN_SECONDS: Final = 0.25

_SCHEDSTAT: Final = Path("/proc/thread-self/schedstat")

_MOST_TIMES: Final = 20
"""How often its seconds a check may take on a busy machine that does not tell how busy it is."""

_WAITING_SHARE: Final = 0.01
"""A check that has used less than this part of the time on the processor waits. One that
computes gets a tenth of it beside 20 others.
"""


class WatchdogExpired(BaseException):
    """A check ran longer than its real time allows."""


class Watchdog:
    """Armed during one run. `expired` says whether an alarm came."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.expired = False
        self._began, self._used_before = monotonic(), process_time()
        self._waited_before = _waited()
        self._scope: trio.CancelScope | None = None
        self._token: trio.lowlevel.TrioToken | None = None

    def cancel_on_alarm(self, scope: trio.CancelScope) -> None:
        """Set the scope to cancel at the first alarm. Called inside the run."""
        self._scope = scope
        self._token = trio.lowlevel.current_trio_token()

    def alarm(self, signum: int, frame: FrameType | None) -> None:
        """Cancel the scope at the first alarm; raise at each later one."""
        if not self.expired and self._is_slowed():
            return
        first, self.expired = not self.expired, True
        # A signal handler may run in the middle of any trio call.
        # `run_sync_soon` is safe there, `cancel` is not.
        if first and self._scope is not None and self._token is not None:
            self._token.run_sync_soon(self._scope.cancel)
            return
        raise WatchdogExpired(f"the check did not end within {self.seconds:g} seconds of its own")

    def explanation(self) -> str:
        """Return what was seen when the watchdog had expired."""
        took, waited = monotonic() - self._began, self._waited()
        if waited is None or waited < took / 2:
            return (
                f"it did not end within {self.seconds:g} seconds of real time: something in it is "
                "endless"
            )
        return (
            f"it did not end within {self.seconds:g} seconds of its own ({took:.0f} s passed, and "
            f"for {waited:.0f} s of them other programs had the processor): something in it is "
            "endless, or the machine is too busy; declare a larger watchdog_seconds to find out"
        )

    def _is_slowed(self) -> bool:
        """Return whether other programs slow the check, so that it may need more time."""
        took, used = monotonic() - self._began, process_time() - self._used_before
        waited = self._waited()
        if waited is not None:
            return took - waited < self.seconds
        return took * _WAITING_SHARE <= used < self.seconds and took < _MOST_TIMES * self.seconds

    def _waited(self) -> float | None:
        """Return the seconds for which the check could run and had no processor, or None."""
        now = _waited()
        return None if now is None or self._waited_before is None else now - self._waited_before


def seconds_waited() -> float:
    """Return the seconds for which this thread has waited for a processor, 0 if nothing tells."""
    return _waited() or 0.0


def _waited() -> float | None:
    try:
        return int(_SCHEDSTAT.read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


@contextmanager
def start_watchdog(seconds: float) -> Iterator[Watchdog]:
    """Watch over the block: a run of one check."""
    watchdog = Watchdog(seconds)
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        with _end_process_after(seconds):
            yield watchdog
        return
    handler = signal.signal(signal.SIGALRM, watchdog.alarm)
    before = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_SECONDS)
    try:
        yield watchdog
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
        signal.signal(signal.SIGALRM, handler)


@contextmanager
def _end_process_after(seconds: float) -> Iterator[None]:
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
