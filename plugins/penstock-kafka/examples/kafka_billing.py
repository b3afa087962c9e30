"""A consumer group: each order is billed at least once, those of a customer in order, and one that
cannot be billed becomes a dead letter.
"""

import os

import trio
from penstock_kafka import KafkaGroup, KafkaLog, KafkaRecord, handle, send

import penstock
from penstock.spi import Record

BROKERS = os.environ.get("KAFKA_BROKERS", "127.0.0.1:9092")
ORDERS = [Record(b"10 EUR", b"alice"), Record(b"broken", b"bob"), Record(b"20 EUR", b"alice")]


async def main() -> None:
    """Both topics exist: billing.orders and billing.dead."""
    async with (
        KafkaLog(BROKERS, "billing.orders", records=True) as orders,
        KafkaLog(BROKERS, "billing.dead", records=True) as dead,
        KafkaGroup(BROKERS, "billing.orders", group="billing", acknowledge="by hand") as new,
    ):
        async with penstock.subscribe(ORDERS) as stream:
            print(await send(stream.batches(), orders), "orders")

        async def bill(record: KafkaRecord) -> None:
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
