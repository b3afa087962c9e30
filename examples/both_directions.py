"""Both directions on one connection:
the client opens it, and the server reads a publisher of the client over it.
"""

from collections.abc import AsyncIterator

import trio

import penstock

exchange = penstock.Service()
trader = penstock.Service()


@exchange.publisher("prices", serializer="json")
async def prices() -> AsyncIterator[int]:
    """Publish four prices, one second apart: the publisher of the server."""
    for price in (101, 99, 97, 103):
        yield price
        await trio.sleep(1)


orders = penstock.Topic[str]()
trader.publish("orders", orders, serializer="text")  # the publisher of the client


async def trade(peer: penstock.Peer) -> None:
    """The client: read the prices, and order at each price below 100."""
    await orders.wait_subscribers()
    async with peer.subscribe("prices", serializer="json", demand=1) as stream:
        async for price in stream:
            print("trader:   price", price)
            if price < 100:
                await orders.publish(f"buy at {price}")
    orders.complete()


async def take_orders(server: penstock.Server) -> None:
    """The server: subscribe to the orders of its client."""
    (client,) = server.peers
    async with client.subscribe("orders", serializer="text") as stream:
        async for order in stream:
            print("exchange: order,", order)
    print("exchange: no more orders")


async def main() -> None:
    async with (
        penstock.serve(exchange, "memory://exchange") as server,
        penstock.connect(server.addresses[0], service=trader) as peer,
        trio.open_nursery() as nursery,
    ):
        await peer.wait_accepted()
        nursery.start_soon(trade, peer)
        nursery.start_soon(take_orders, server)


if __name__ == "__main__":
    trio.run(main)
