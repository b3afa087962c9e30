"""A program that appends to a log and is killed, and the elements that its log has afterwards."""

import random
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from penstock.logs import DiskLog
from penstock.streams import collect
from tests._real_time import HANGS_AFTER
from tests.logs._opening import PLENTY

# Appends elements whose content is their position, from where the log ends,
# and prints each range when its append returned.
WRITER = """
import sys, trio
from penstock import DiskLog, Retention

async def append(log, size):
    while True:
        await log.append([b"%d" % size] * size)
        print(log.latest()["0"], flush=True)

async def main():
    async with DiskLog(sys.argv[1], retention=Retention(max_count=1_000_000)) as log, trio.open_nursery() as nursery:
        for size in (1, 7, 64):
            nursery.start_soon(append, log, size)

trio.run(main)
"""


class AfterKill(NamedTuple):
    """Positions after a kill: those that the program had printed as appended,
    and those in the log.
    """

    promised: int
    latest: int
    torn: int
    """Appends of which only a part is there."""


def kill_writer(path: Path, chance: random.Random) -> int:
    """Run the writer, kill it after a number of appends that `chance` gives,
    and return the last position that it printed.
    """
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        promised = 0
        for _ in range(chance.randint(1, 40)):
            promised = int(writer.stdout.readline())
        writer.kill()
        # The lines that it had printed until it was killed count as well.
        # The last line may have been cut.
        for line in writer.stdout.read().split("\n")[:-1]:
            promised = max(promised, int(line))
        writer.wait(HANGS_AFTER)
    return promised


async def after_kill(path: Path, promised: int) -> AfterKill:
    """Open the log again, and count the appends that are there in part."""
    async with DiskLog(path, retention=PLENTY) as log:
        elements = await collect(log.source("0", 0, "latest"), limit=1_000_000)
        latest = log.latest()["0"]
    torn = at = 0
    while at < len(elements):
        size = int(elements[at])
        torn += elements[at : at + size] != [b"%d" % size] * size
        at += size
    assert len(elements) == latest
    return AfterKill(promised, latest, torn)
