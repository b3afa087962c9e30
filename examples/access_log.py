"""The access log of a server, and the three ways in which a service says no."""

import logging
import sys
from collections.abc import AsyncIterator

import trio

import penstock
from penstock.spi import PeerIdentity

OWNERS = {7: "alice", 8: "bob"}


def may_open(name: object, peer: PeerIdentity) -> bool:
    """Decide before any publisher runs: nothing below admin/ is for clients."""
    return peer.is_loopback or not str(name).startswith("admin/")


service = penstock.Service(may_open=may_open)
service.publish("admin/users", [b"alice", b"bob"])


@service.publisher("orders/{number}", serializer="text")
async def orders(number: int) -> AsyncIterator[str]:
    """The lines of an order."""
    if OWNERS.get(number) != "alice":
        raise penstock.NotAvailable(f"order {number} belongs to {OWNERS.get(number)}")
    yield "ten pencils"
    await trio.sleep(1.5)
    raise penstock.PublicError("the printer is out of paper")


async def main() -> None:
    logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stdout)
    logging.getLogger("penstock.access").setLevel(logging.INFO)  # it is off without this line
    async with penstock.serve(service, "memory://shop"):
        async with penstock.connect("memory://shop") as peer:
            for name in ("admin/users", "orders/8", "orders/x", "order/7", "orders/7"):
                try:
                    async with peer.subscribe(name, serializer="text") as stream:
                        print("client:", name, [line async for line in stream])
                except penstock.PenstockError as error:
                    print("client:", name, "-", str(error)[:49])
        await trio.sleep(1)  # until the server has the client's goodbye


if __name__ == "__main__":
    trio.run(main)
