"""Named readers: a log keeps how far each of them has come, and what the slowest one needs. One that
never comes back is dropped.
"""

import logging
import sys

import trio

from penstock import Rejected, Retention, RingLog, Service, collect, remote, request, serve

NIGHTLY = "memory://shop/orders?reader=nightly"


async def append(log: RingLog, start: int, stop: int) -> None:
    """Append some orders."""
    await log.append([b"order %d" % number for number in range(start, stop)])


async def main() -> None:
    """Read as `nightly` over a connection, and be too late once."""
    log = RingLog(retention=Retention(max_count=80, acknowledged=True))
    await log.add_reader("nightly", max_count=10)
    await log.add_reader("invoices", max_count=60)
    service = Service()
    service.publish("orders", log)
    async with serve(service, "memory://shop"):
        await append(log, 0, 4)
        print([order.decode() for order in await collect(remote(NIGHTLY, stop="latest"))])
        print("acknowledged:", await request(f"{NIGHTLY}&acknowledge=3"))
        await append(log, 4, 6)
        print([order.decode() for order in await collect(remote(NIGHTLY, stop="latest"))])

        invoices = log.reader("invoices")
        await append(log, 6, 20)
        await invoices.acknowledge({"0": 20})
        print("dropped:", log.reader("nightly").dropped(), "the log begins at", log.earliest())
        try:
            await collect(remote(NIGHTLY, stop="latest"))
        except Rejected as error:
            print(error)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, format="the log of penstock: %(message)s")
    trio.run(main)
