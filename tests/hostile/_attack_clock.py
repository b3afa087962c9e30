"""The clock that judges an attack: wall time, less the time
that the system kept this thread waiting for a processor.

On a machine that runs other programs, a late answer may be the fault of those programs. Linux
counts for each thread how long it was ready to run and did not (the second figure of
``schedstat``). The rest of the wall time is what this process did with its turn, and how long it
slept: work that was not cut into turns, a late wake-up, a lock.

If the system does not count that, the clock adds the processor time of this thread and the time
that trio slept until the next event.
A call that blocks without using the processor then does not count, which is looser; the delay of a
wake-up counts, which is stricter.

The attacker runs in the same loop as the server and the canary, and its work counts too. That makes
each bound stricter, never looser.
"""

import os
from contextlib import suppress
from pathlib import Path
from time import monotonic, thread_time

import trio

SCHEDSTAT = Path("/proc/thread-self/schedstat")


class AttackClock(trio.abc.Instrument):
    """Seconds that this process is responsible for. Make, read and close it in one run of trio.

    `stretch` is the factor for this attack's deadlines and pauses, from the control canary.
    """

    def __init__(self, stretch: float = 1.0, *, schedstat: Path = SCHEDSTAT) -> None:
        self.stretch = stretch
        self._slept = self._asleep_since = 0.0
        self._file: int | None = None
        with suppress(OSError):
            self._file = os.open(schedstat, os.O_RDONLY)
        if self._file is None:
            trio.lowlevel.add_instrument(self)

    def now(self) -> float:
        if self._file is None:
            return self._slept + thread_time()
        return monotonic() - int(os.pread(self._file, 100, 0).split()[1]) / 1e9

    def close(self) -> None:
        if self._file is None:
            trio.lowlevel.remove_instrument(self)
        else:
            os.close(self._file)

    def before_io_wait(self, timeout: float) -> None:
        self._asleep_since = monotonic()

    def after_io_wait(self, timeout: float) -> None:
        self._slept += monotonic() - self._asleep_since
