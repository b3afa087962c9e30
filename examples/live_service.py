"""A service to try the command line with:
`penstock serve examples.live_service:service tcp://127.0.0.1:7000`.

Run as a program, this file reads its own service over memory.
"""

from collections.abc import AsyncIterator

import trio

import penstock

service = penstock.Service(describe=True)  # `penstock ls URL` lists what is offered


@service.publisher("ticks/{symbol}", serializer="json")
async def ticks(symbol: str, every: float = 0.5) -> AsyncIterator[dict[str, object]]:
    """Prices of a symbol, without end, one every `every` seconds: `?every=0.1` sets it."""
    price = 100 + sum(symbol.encode()) % 50
    number = 0
    while True:
        number += 1
        price += (number * 7) % 11 - 5
        yield {"symbol": symbol, "tick": number, "price": price}
        await trio.sleep(every)


@service.publisher("blocks/{count}")
async def blocks(count: int, size: int = 64) -> AsyncIterator[bytes]:
    """`count` elements of `size` bytes, as fast as they are requested:
    this measures the machine.
    """
    block = bytes(size)
    for _ in range(count):
        yield block


@service.request("mean")
async def mean(payload: list[float]) -> float:
    """The mean of prices."""
    if not payload:
        raise penstock.PublicError("send at least one price")
    return sum(payload) / len(payload)


async def main() -> None:
    url = "memory://live/ticks/EURUSD?every=0.1"
    async with (
        penstock.serve(service, "memory://live"),
        penstock.subscribe(url, serializer="json", demand=1) as stream,
    ):
        async for tick in stream:
            print(tick)
            if tick["tick"] == 3:
                break


if __name__ == "__main__":
    trio.run(main)
