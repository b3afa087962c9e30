"""A group of readers: each order is billed at least once, those of a customer in order, and one that
cannot be billed becomes a dead letter.
"""

import os

import trio
from penstock_nats import GroupRecord, JetStreamGroup, JetStreamLog, handle, send

import penstock
from penstock import Retention
from penstock.spi import Record

URL = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")
ORDERS = [Record(b"10 EUR", b"alice"), Record(b"broken", b"bob"), Record(b"20 EUR", b"alice")]
KEEP = Retention(max_count=1_000_000)


async def main() -> None:
    """Each program of the group does this. They divide the four partitions among them."""
    async with (
        JetStreamLog(URL, "billing", retention=KEEP, partitions=["0", "1", "2", "3"]) as orders,
        JetStreamLog(URL, "billing-dead", retention=KEEP) as dead,
        JetStreamGroup(URL, "billing", group="bills", acknowledge="by hand", records=True) as new,
    ):
        async with penstock.subscribe(ORDERS) as stream:
            print(await send(stream.batches(), orders), "orders")

        async def bill(record: GroupRecord) -> None:
            amount, currency = record.value.split()
            print(record.key, int(amount), currency)

        async with trio.open_nursery() as nursery:
            # It runs until it is cancelled.
            work = trio.CancelScope()

            async def handle_all() -> None:
                with work:
                    await handle(new, bill, attempts=2, dead_letters=dead)

            nursery.start_soon(handle_all)
            letter = Record.unpack(await penstock.first(dead.source(start="latest")))
            print(letter.value, dict(letter.headers)["penstock-error"])
            work.cancel()


if __name__ == "__main__":
    trio.run(main)
