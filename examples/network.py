"""A service and its client over a network: both directions on one connection. Here it is memory; make it tcp://host:port, and it is TCP."""

from collections.abc import AsyncIterator

import trio

import penstock

exchange = penstock.Service()
trader = penstock.Service()


@exchange.publisher("ticks/{symbol}", serializer="json")
async def ticks(symbol: str, step: int = 1) -> AsyncIterator[dict[str, object]]:
    """Prices, for ever; `step` may be given behind a '?'."""
    price = 100
    try:
        while True:
            yield {"symbol": symbol, "price": price}
            price += step
    finally:
        print(f"exchange: {symbol} closed")


@trader.publisher("orders", serializer="text")
async def orders() -> AsyncIterator[str]:
    """What the client publishes to the server, over the connection that the client has opened."""
    yield "buy 5"
    await trio.sleep(1)
    yield "sell 5"


async def main() -> None:
    async with penstock.serve(exchange, "memory://exchange") as server, penstock.connect(server.addresses[0], service=trader) as peer:
        async with peer.subscribe("ticks/EURUSD?step=5", serializer="json", demand=1) as stream:
            async for tick in stream:
                print("trader:", tick)
                if tick["price"] == 110:
                    break

        (client,) = server.peers
        async with client.subscribe("orders", serializer="text") as stream:
            async for order in stream:
                print("exchange:", order)

        try:
            async with peer.subscribe("tocks/EURUSD") as stream:
                await anext(stream)
        except penstock.Rejected as refusal:
            print("trader:", refusal)


if __name__ == "__main__":
    trio.run(main)
