"""The control canary: a process that is not attacked, and wakes as often as a canary.
If it wakes late, the machine is busy.

Rules of this file:

* On a quiet machine the control canary is less than `TOLERATED_DELAY` late. If it is n times later,
  the deadlines of an attack, and the limits of the side that is attacked, are n times as long.
* The factor is measured before an attack, because the limits must be set then. If the attack fails
  and the control canary was later during the attack than before it, the attack proves nothing: it
  is run again with the larger factor.
* The control canary wakes in time although the machine is busy: a process that sleeps goes first.
  So a failed attack also asks how much of a processor this process gets, and is run again if that
  is too little.
* An attack that fails while the machine was quiet has failed, and is not run again.
"""

import os
import struct
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic, process_time, sleep
from typing import Final

TICK: Final = 0.01
"""Seconds between two wake-ups, and between two elements of a canary's stream."""
TOLERATED_DELAY: Final = 0.02
"""Seconds that the shortest of the scaled limits, 50 ms, leaves time for. Measured delays on two
cores, for 99 % of the wake-ups and at most: 0.3 ms and 3 ms if they are idle, 19 ms and 88 ms
beside four busy loops.
"""
MAX_STRETCH: Final = 20.0
LOOK_BACK: Final = 2.0
"""Seconds before an attack whose delays speak for the seconds to come."""
MAX_ATTEMPTS: Final = 4

WORK: Final = 0.02
"""Seconds of work, by the clock of the processor.
`slowdown` compares them with the time that the work takes.
"""
TOLERATED_SLOWDOWN: Final = 1.5
"""How many times as long the work may take if the machine is quiet.
Measured on two cores: 1.000 to 1.002 if they are idle, 1.9 to 3.1 beside four busy loops."""

RECORD: Final = struct.Struct("dd")
"""When the control canary woke, and how late that was. The clock is the system's:
all processes read the same time.
"""


class ControlCanary:
    """Starts the process, and reads from a file in `folder` how late it has been."""

    def __init__(self, folder: Path) -> None:
        path = folder / "delays"
        path.touch()
        self._process = subprocess.Popen(
            [sys.executable, "-S", __file__, str(path), str(os.getpid())]
        )
        self._file = os.open(path, os.O_RDONLY)
        while not os.fstat(self._file).st_size:
            assert self._process.poll() is None, "the control canary did not start"
            sleep(TICK)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._file)

    def longest_delay(self, since: float) -> float:
        """Return the longest delay, in seconds, of a wake-up after `since`. A wake-up that is
        overdue at this moment counts.
        """
        now, longest = monotonic(), 0.0
        at = os.fstat(self._file).st_size // RECORD.size * RECORD.size
        woke, _ = RECORD.unpack(os.pread(self._file, RECORD.size, at - RECORD.size))
        longest = now - woke - TICK
        while at:
            at -= RECORD.size
            woke, delay = RECORD.unpack(os.pread(self._file, RECORD.size, at))
            if woke < since:
                break
            longest = max(longest, delay)
        return longest

    def stretch(self, since: float) -> float:
        """Return the longest delay in units of `TOLERATED_DELAY`, between 1 and `MAX_STRETCH`."""
        return min(MAX_STRETCH, max(1.0, self.longest_delay(since) / TOLERATED_DELAY))

    def slowdown(self) -> float:
        """Work for `WORK` seconds, and return how long that took in units of the tolerated time,
        between 1 and `MAX_STRETCH`.
        """
        began, ends = monotonic(), process_time() + WORK
        while process_time() < ends:
            pass
        return min(MAX_STRETCH, max(1.0, (monotonic() - began) / (WORK * TOLERATED_SLOWDOWN)))

    async def judge(self, attempt: Callable[[float], Awaitable[None]]) -> None:
        """Run an attack and its assertions;
        `attempt` is called with the factor for all its deadlines.
        """
        stretch = self.stretch(monotonic() - LOOK_BACK)
        for _ in range(MAX_ATTEMPTS - 1):
            began = monotonic()
            try:
                return await attempt(stretch)
            except Exception:
                during = max(self.stretch(began), self.slowdown())
                if during <= stretch:
                    raise
                stretch = during
        return await attempt(stretch)


def _run(path: str, parent: int) -> None:
    """Wake every `TICK` and write down how late that was, until the parent process has gone."""
    with Path(path).open("ab", buffering=0) as file:
        while os.getppid() == parent:
            due = monotonic() + TICK
            sleep(TICK)
            woke = monotonic()
            file.write(RECORD.pack(woke, woke - due))


if __name__ == "__main__":
    _run(sys.argv[1], int(sys.argv[2]))
