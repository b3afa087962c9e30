"""A writer: its batches are in the receiver's log once, also if the program is started again and
writes them again.
"""

import trio

from penstock import Retention, RingLog, Service, collect, open_writer, receive, serve

ORDERS = [[b"2 pumps", b"1 valve"], [b"7 pipes"]]


async def write() -> None:
    """Write all batches. A program that was killed does the same again."""
    async with open_writer("memory://shop", "orders", writer_id="nightly") as writer:
        for number, batch in enumerate(ORDERS):
            is_new = await writer.write(number, batch)
            print("batch", number, "appended" if is_new else "was there")


async def main() -> None:
    """Serve a receiver, and write twice."""
    log = RingLog(retention=Retention(max_count=1_000))
    service = Service()
    receive(service, "orders", log)
    async with serve(service, "memory://shop"):
        await write()
        await write()
    print("the log:", await collect(log.source(stop="latest")))


if __name__ == "__main__":
    trio.run(main)
