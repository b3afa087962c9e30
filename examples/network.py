"""A service and its client. The transport here is memory;
with the URL tcp://127.0.0.1:7000 it is TCP.
"""

from collections.abc import AsyncIterator

import trio

import penstock

exchange = penstock.Service()


@exchange.publisher("ticks/{symbol}", serializer="json")
async def ticks(symbol: str, step: int = 1) -> AsyncIterator[dict[str, object]]:
    """Prices of a symbol, without end; a subscriber may ask for `?step=5`."""
    made = 0
    try:
        while True:
            made += 1
            yield {"symbol": symbol, "price": 100 + made * step}
    finally:
        print(f"exchange: {symbol} closed, made {made}")


async def main() -> None:
    async with penstock.serve(exchange, "memory://exchange") as server:
        (url,) = server.addresses

        # One stream: its connection opens and closes with it.
        # With demand=1 the server makes one tick at a time.
        async with penstock.subscribe(
            f"{url}/ticks/EURUSD?step=5", serializer="json", demand=1
        ) as stream:
            async for tick in stream:
                print("trader:", tick)
                if tick["price"] == 120:
                    break

        # Several streams over one connection.
        async with penstock.connect(url) as peer:
            async with peer.subscribe("ticks/GBPUSD", serializer="json", demand=1) as stream:
                print("trader:", await anext(stream))
            try:
                async with peer.subscribe("tocks/EURUSD") as stream:
                    await anext(stream)
            except penstock.Rejected as refusal:
                print("trader:", refusal)


if __name__ == "__main__":
    trio.run(main)
