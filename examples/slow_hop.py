"""A slow hop among three services: the records of their streams lead to it."""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock.spi import LiveStream

prices, rates, orders = penstock.Service(), penstock.Service(), penstock.Service()


@prices.publisher("prices")
async def every_price() -> AsyncIterator[bytes]:
    """Prices as fast as they are requested."""
    while True:
        yield b"100"


@rates.publisher("rates")
async def every_rate() -> AsyncIterator[bytes]:
    """Rates out of prices. Each takes a minute, which nobody has noticed."""
    async with penstock.subscribe("memory://prices/prices", demand=4) as stream:
        async for price in stream:
            await trio.sleep(60)
            yield price


@orders.publisher("orders")
async def every_order() -> AsyncIterator[bytes]:
    """Orders out of rates."""
    async with penstock.subscribe("memory://rates/rates") as stream:
        async for rate in stream:
            yield rate


def chain(servers: tuple[penstock.Server, ...], name: str) -> list[LiveStream]:
    """Return a stream that the servers publish, and those that it waits on, one after the other."""
    streams = [each for server in servers for each in server.streams()]
    published = {each.name: each for each in streams if each.outbound}
    by_key = {each.key: each for each in streams}
    found = [published[name]]
    while found[-1].waits_on:
        read = by_key[found[-1].waits_on[0]]
        # The other side of the same stream, which another service publishes.
        found += [read, published[read.name]]
    return found


async def main() -> None:
    """Read orders, and find out why none comes."""
    async with (
        penstock.serve(prices, "memory://prices") as first,
        penstock.serve(rates, "memory://rates") as second,
        penstock.serve(orders, "memory://orders") as third,
        penstock.subscribe("memory://orders/orders"),
    ):
        await trio.sleep(30)
        for each in chain((first, second, third), "orders"):
            way = "publishes" if each.outbound else "reads"
            place = f" at {each.place}" if each.place else ""
            print(f"{way} {each.name}, which waits for its {each.waits_for.value}{place}")


if __name__ == "__main__":
    trio.run(main)
