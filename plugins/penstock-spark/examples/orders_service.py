"""Serve a log of orders: start this first, and then read_orders.py."""

import itertools
import json
import sys

import trio

from penstock import Retention, RingLog, Service, serve

CUSTOMERS = itertools.cycle(["ann", "bob", "eve"])


async def main(uri: str = "tcp://127.0.0.1:7000") -> None:
    log = RingLog(retention=Retention(max_count=1_000_000), partitions=["0", "1"])
    service = Service()
    service.publish("orders", log)
    async with serve(service, uri) as server:
        for partition in log.partitions:
            orders = [
                json.dumps({"customer": next(CUSTOMERS), "amount": amount / 4}).encode()
                for amount in range(1_000)
            ]
            await log.append(orders, partition=partition)
        print(server.addresses[0], flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
