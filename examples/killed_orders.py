"""A log on disk in ten lines, in a program that is killed with SIGKILL:
the next run goes on where the log ends.
"""

import os
import signal
import subprocess
import sys

import trio

from penstock import DiskLog, Retention, collect


async def main() -> None:
    """Append one order, print all that were ever appended, and die without a chance to clean up."""
    async with DiskLog("orders.log", retention=Retention(max_bytes=1_000_000)) as log:
        await log.append([b"order %d" % log.latest()["0"]])
        print(await collect(log.source(stop="latest")), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


if "--killed" in sys.argv:
    trio.run(main)
else:
    for _ in range(3):
        run = subprocess.run([sys.executable, __file__, "--killed"], check=False)
        print("ended with", signal.Signals(-run.returncode).name, flush=True)
