"""The time that is ours: time as the clock on the wall has it, less what the system kept this thread waiting for a processor.

How long a canary waits says nothing on a machine that runs other things too: the wait may be theirs. Linux counts, for each thread, the
time that it was ready to run and did not (the second figure of ``schedstat``). What is left after that is what this process did with its
turn, and how long it slept: work that was not cut into turns, a wake-up that came late, a lock. All of these are ours, so the bound of
100 ms is kept without a second try, however busy the machine. Where the system does not count, the clock on the wall is all there is.

The attacker runs in the same loop as server and canary. What it costs is counted, too: that makes the bound stricter, never looser.
"""

import os
from contextlib import suppress
from pathlib import Path
from time import monotonic


class OwnTime:
    """Seconds of our own. Of the thread that made it: made and read in one."""

    def __init__(self) -> None:
        self._file: int | None = None
        with suppress(OSError):
            self._file = os.open(Path("/proc/thread-self/schedstat"), os.O_RDONLY)

    def now(self) -> float:
        return monotonic() - self._kept_waiting()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _kept_waiting(self) -> float:
        return 0.0 if self._file is None else int(os.pread(self._file, 100, 0).split()[1]) / 1e9
