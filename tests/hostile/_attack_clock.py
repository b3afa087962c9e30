"""The clock that judges an attack: wall time, less the time that the system kept this thread waiting for a processor.

On a machine that runs other programs, a late answer may be the fault of those programs. Linux counts for each thread how long it was
ready to run and did not (the second figure of ``schedstat``). The rest of the wall time is what this process did with its turn, and how
long it slept: work that was not cut into turns, a late wake-up, a lock. If the system does not count, the clock is the wall clock, and
the control canary alone speaks for the machine (`_control_canary.py`).

The attacker runs in the same loop as the server and the canary, and its work counts too. That makes each bound stricter, never looser.
"""

import os
from contextlib import suppress
from pathlib import Path
from time import monotonic


class AttackClock:
    """Seconds that this process is responsible for. Make and read it in one thread.

    `stretch` is the factor for this attack's deadlines and pauses, from the control canary.
    """

    def __init__(self, stretch: float = 1.0) -> None:
        self.stretch = stretch
        self._file: int | None = None
        with suppress(OSError):
            self._file = os.open(Path("/proc/thread-self/schedstat"), os.O_RDONLY)

    def now(self) -> float:
        return monotonic() - self._waited_for_processor()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _waited_for_processor(self) -> float:
        return 0.0 if self._file is None else int(os.pread(self._file, 100, 0).split()[1]) / 1e9
