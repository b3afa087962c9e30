"""A log, published: each subscriber chooses where it starts,
and goes on after restarts of the server.
"""

import trio

from penstock import (
    PublisherFailed,
    Reconnect,
    Rejected,
    Retention,
    RingLog,
    Service,
    connect,
    request,
    serve,
    subscribe,
)


async def restarting_server(service: Service) -> None:
    """Serve for one second, again and again."""
    while True:
        async with serve(service, "memory://shop"):
            await trio.sleep(1)
        print("the server restarts")


async def append_orders(log: RingLog) -> None:
    """Append an order every 0.35 seconds."""
    for number in range(6):
        await log.append([b"order %d" % number])
        await trio.sleep(0.35)


async def main() -> None:
    """Read while the server restarts, then replay a range, and ask for a position
    that does not exist.
    """
    log = RingLog(retention=Retention(max_count=1000))
    service = Service()
    service.publish("orders", log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(restarting_server, service)
        nursery.start_soon(append_orders, log)

        async with subscribe(
            "memory://shop/orders", start=0, stop=6, reconnect=Reconnect(most=0.1)
        ) as stream:
            async for order in stream:
                print(order.decode(), "- the next one has position", stream.position)
        nursery.cancel_scope.cancel()

    async with serve(service, "memory://shop"), connect("memory://shop") as peer:
        async with peer.subscribe("orders?start=2&stop=4") as stream:
            print([order.decode() async for order in stream])
        print(await request("memory://shop/orders?positions"))
        try:
            async with peer.subscribe("orders", start=500) as stream:
                await anext(stream)
        except (Rejected, PublisherFailed) as error:
            print(error)


if __name__ == "__main__":
    trio.run(main)
