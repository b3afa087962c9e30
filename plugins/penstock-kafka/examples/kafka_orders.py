"""A topic of Kafka as a log: append to it, read a part of it, and serve it."""

import os

import trio
from penstock_kafka import KafkaLog

import penstock

BROKERS = os.environ.get("KAFKA_BROKERS", "127.0.0.1:9092")


async def main() -> None:
    """The topic exists: kafka-topics.sh --create --topic orders --partitions 2"""
    async with KafkaLog(BROKERS, "orders") as log:
        place = log.partition_of("customer-7")
        first = (await log.append([b"ordered", b"paid"], key="customer-7")).start
        print(await penstock.collect(log.source(place, first, first + 2)))

        service = penstock.Service()
        service.publish("orders", log)
        async with penstock.serve(service, "tcp://127.0.0.1:0") as server:
            name = f"{server.addresses[0]}/orders?partition={place}&start={first + 1}&stop=latest"
            print(await penstock.collect(penstock.remote(name)))


if __name__ == "__main__":
    trio.run(main)
