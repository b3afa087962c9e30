"""From a time on: a log knows when each element was appended, and a subscriber begins there."""

from datetime import UTC, datetime

import trio

from penstock import Retention, RingLog, Service, position_at, serve, subscribe

TEN = datetime(2026, 7, 1, 10, tzinfo=UTC)


async def main() -> None:
    """Append an order a minute, and read those from five past ten on."""
    minutes = iter(range(10))
    log = RingLog(
        retention=Retention(max_count=1000),
        clock=lambda: TEN.timestamp() + 60 * next(minutes),  # without it: the clock of the machine
    )
    for number in range(10):
        await log.append([b"order %d" % number])
    print("in the process:", await log.position_at(TEN.replace(minute=5)))
    for start, stop, seconds in await log.times(start=8):
        print(start, "to", stop, "at", datetime.fromtimestamp(seconds, UTC).time())

    service = Service()
    service.publish("orders", log)
    async with serve(service, "memory://shop"):
        start = await position_at("memory://shop/orders", "2026-07-01T10:07:30Z")
        async with subscribe("memory://shop/orders", start=start, stop="latest") as stream:
            print("over a connection:", [order.decode() async for order in stream])


if __name__ == "__main__":
    trio.run(main)
