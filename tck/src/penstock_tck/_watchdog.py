"""The watchdog: real time for one run of one check, because virtual time does not pass in an endless loop.

Rules of this file

* The first alarm asks politely: it cancels the run's scope from within the run loop. That ends tasks that wait for ever, and tasks
  that only checkpoint (under which an autojump clock stands still).
* The second alarm raises `WatchdogExpired` in whatever runs: that ends a loop which never gives the run loop its turn.
  It derives from BaseException, and comes again and again, so that no `except` keeps a loop alive.
* Alarms need SIGALRM and the main thread. Elsewhere faulthandler prints every stack and ends the process: rough, but not endless.
"""

import faulthandler
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import trio

_AGAIN_SECONDS: Final = 0.25


class WatchdogExpired(BaseException):
    """A check ran longer than its real time allows."""


class Watchdog:
    """Armed around one run; `expired` tells whether it had to act."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.expired = False
        self._scope: trio.CancelScope | None = None
        self._token: trio.lowlevel.TrioToken | None = None

    def guard(self, scope: trio.CancelScope) -> None:
        """Tell which scope to cancel when time is up. Called from within the run."""
        self._scope = scope
        self._token = trio.lowlevel.current_trio_token()

    def alarm(self, signum: int, frame: FrameType | None) -> None:
        """Act: politely at first, by force from then on."""
        first, self.expired = not self.expired, True
        if first and self._scope is not None and self._token is not None:
            self._token.run_sync_soon(self._scope.cancel)
            return
        raise WatchdogExpired(f"the check did not end within {self.seconds:g} seconds of real time")


@contextmanager
def watchdog(seconds: float) -> Iterator[Watchdog]:
    """Watch over the block: a run of one check."""
    dog = Watchdog(seconds)
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        with _last_resort(seconds):
            yield dog
        return
    handler = signal.signal(signal.SIGALRM, dog.alarm)
    before = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_SECONDS)
    try:
        yield dog
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
        signal.signal(signal.SIGALRM, handler)


@contextmanager
def _last_resort(seconds: float) -> Iterator[None]:
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
