"""A log on disk: elements that were appended are there after a crash,
and each subscriber reads them from where it likes.
"""

import trio

from penstock import DiskLog, PositionNotRetained, Retention, collect

KEPT = Retention(max_count=16)


async def main() -> None:
    """Append in one run of the program, replay in the next one."""
    async with DiskLog("orders.log", retention=KEPT) as log:
        print("appended at", await log.append([b"first", b"second", b"third"]))

    async with DiskLog("orders.log", retention=KEPT) as log:  # as after a restart
        print("from 1 to the end:", await collect(log.source(start=1, stop="latest")))
        for _ in range(2):
            batch = log.transaction("batch 7")
            await batch.stage([b"fourth"])
            print("published:", await batch.publish())
        for number in range(5, 21):
            await log.append([b"order %d" % number])
        print("the log has", log.earliest()["0"], "to", log.latest()["0"])
        try:
            await collect(log.source(start=0, stop=3))
        except PositionNotRetained as error:
            print(error)


if __name__ == "__main__":
    trio.run(main)
