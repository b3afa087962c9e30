"""A log in ten lines: run it twice, or end it at any time, and it goes on where it was."""

import trio

from penstock import DiskLog, Retention, collect


async def main() -> None:
    """Append one order, and read all that were ever appended."""
    async with DiskLog("orders.log", retention=Retention(max_bytes=1_000_000)) as log:
        await log.append([b"order %d" % log.latest()["0"]])
        print(await collect(log.source(stop="latest")))


for _ in range(2):
    trio.run(main)
