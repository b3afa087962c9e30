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
* The time that request() and cancel() take does not count either, up to `call_seconds` for each
  call: a publisher that is as slow as it has declared is not endless.
* A task that is never blocked keeps virtual time from passing, and every check from settling. So it
  is not given all the seconds: if the run loop comes round and round for `_SPINNING_ALARMS` alarms
  without a signal, a call or a tick of the clock, and its thread has used `_SPINNING_SECONDS` of a
  processor meanwhile, the check is ended. Beside ten other programs an honest check uses some
  hundredths of a second between four alarms, and may well signal nothing in them.
* Elsewhere a check that still uses the processor, and has used less of it than its seconds, gets
  more time: `_MOST_TIMES` as much in all. A check that uses none ends at once.
* Alarms need SIGALRM and the main thread.
  Elsewhere faulthandler prints every stack and ends the process.
"""

import faulthandler
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, process_time, thread_time
from types import FrameType
from typing import Final

import trio

_AGAIN_SECONDS: Final = 0.25

_SPINNING_SHARE: Final = 5
"""A look for a task that spins begins after this part of the seconds: one of five."""

_SPINNING_ALARMS: Final = 4

_SPINNING_SECONDS: Final = 0.5
"""Of a processor: half of what a thread gets between so many alarms if nothing runs beside it."""

_BUSY_SHARE: Final = 0.5
"""A thread that waits for something else uses less of its own time on the processor."""

_BUSY_SECONDS: Final = 0.01
"""At the least, between two alarms: on a busy machine its own time may be next to nothing."""

_SCHEDSTAT: Final = Path("/proc/thread-self/schedstat")

_MOST_TIMES: Final = 20
"""How often its seconds a check may take on a busy machine that does not tell how busy it is."""

_WAITING_SHARE: Final = 0.01
"""A check that has used less than this part of the time on the processor waits. One that
computes gets a tenth of it beside 20 others.
"""


class WatchdogExpired(BaseException):
    """A check ran longer than its real time allows."""


def _no_seconds() -> float:
    return 0.0


class Watchdog:
    """Armed during one run. `expired` says whether an alarm came."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.expired = False
        self._began, self._used_before = monotonic(), process_time()
        self._waited_before = _waited()
        self._scope: trio.CancelScope | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._excused: Callable[[], float] = _no_seconds
        self._progress: Callable[[], object] | None = None
        self._seen: object = None
        self._has_come_round = False
        self._spinning = 0
        """Alarms in a row at which the loop had come round, and nothing had happened."""
        self._spun = 0.0
        """Seconds of a processor that the thread has used between these alarms."""
        self._used_by_thread = thread_time()
        self._looked_at = self._own_seconds()

    def cancel_on_alarm(
        self,
        scope: trio.CancelScope,
        *,
        excused: Callable[[], float] = _no_seconds,
        progress: Callable[[], object] | None = None,
    ) -> None:
        """Set the scope to cancel at the first alarm. Called inside the run.

        `excused` returns seconds that do not count. `progress` returns what changes as long as
        anything happens; None: nobody looks for a task that spins.
        """
        self._scope = scope
        self._token = trio.lowlevel.current_trio_token()
        self._excused, self._progress = excused, progress

    def alarm(self, signum: int, frame: FrameType | None) -> None:
        """Cancel the scope at the first alarm at which the check has had its time, or spins; raise
        at each later one.
        """
        if not self.expired and not self._spins() and self._is_slowed():
            return
        first, self.expired = not self.expired, True
        # A signal handler may run in the middle of any trio call.
        # `run_sync_soon` is safe there, `cancel` is not.
        if first and self._scope is not None and self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._scope.cancel)
            return
        raise WatchdogExpired(f"the check did not end within {self.seconds:g} seconds of its own")

    def explanation(self) -> str:
        """Return what was seen when the watchdog had expired."""
        if self._has_spun:
            return (
                f"a task spins: for {self._spinning * _AGAIN_SECONDS:g} s it was never blocked, "
                "and nothing was signalled. A task that has nothing to do must wait, for example "
                "for an event that request() and cancel() set"
            )
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

    def _spins(self) -> bool:
        """Return whether the run loop has come round since several alarms, and nothing has
        happened.
        """
        if self._progress is None or self._token is None:
            return False
        seen, used, own = self._progress(), thread_time(), self._own_seconds()
        least = max(_BUSY_SECONDS, _BUSY_SHARE * (own - self._looked_at))
        is_idle = used - self._used_by_thread < least
        if seen != self._seen or is_idle or not self._has_come_round:
            self._spinning, self._spun = 0, 0.0
        else:
            self._spinning += 1
            self._spun += used - self._used_by_thread
        self._seen, self._has_come_round = seen, False
        self._used_by_thread, self._looked_at = used, own
        # A loop that computes, and does not come round, runs this no more than one that is blocked
        # for long: it may collect garbage in a large process.
        # The alarm may come while the run ends: an exception in that code would break trio.
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._come_round)
        return self._has_spun

    @property
    def _has_spun(self) -> bool:
        return self._spinning >= _SPINNING_ALARMS and self._spun >= _SPINNING_SECONDS

    def _come_round(self) -> None:
        self._has_come_round = True

    def _own_seconds(self) -> float:
        """Return the seconds since the beginning in which the check had a processor."""
        return monotonic() - self._began - (self._waited() or 0.0)

    def _is_slowed(self) -> bool:
        """Return whether the check may go on: it has not had its seconds, or other programs slow
        it.
        """
        took, used = monotonic() - self._began, process_time() - self._used_before
        waited, excused = self._waited(), self._excused()
        if took - excused < self.seconds:
            return True
        if waited is not None:
            return took - waited - excused < self.seconds
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
    before = signal.setitimer(signal.ITIMER_REAL, seconds / _SPINNING_SHARE, _AGAIN_SECONDS)
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
