"""Requests by name: many handlers, each with its own types of payload and answer,
over both protocols.
"""

from dataclasses import dataclass
from functools import partial

import trio

import penstock


@dataclass
class Order:
    """The payload of a request."""

    lots: int
    note: str = ""


@dataclass
class Price:
    """The answer to an order."""

    pair: str
    cents: int


exchange = penstock.Service()
rates = {"EURUSD": 125, "EURGBP": 85}


@exchange.request("price/{pair}")
async def price(payload: Order, pair: str, discount: int = 0) -> Price:
    """`payload` is what the caller sends; the other parameters come from the name."""
    if pair not in rates:
        # The caller gets this text; the server reports it, too.
        raise penstock.PublicError(f"{pair} is not traded here")
    return Price(pair, rates[pair] * payload.lots - discount)


@exchange.request("shout")
async def shout(payload: str = "nothing to say") -> str:
    """A payload with a default may be left out."""
    return payload.upper()


async def main() -> None:
    async with penstock.serve(
        exchange, "tcp://127.0.0.1:0", on_violation=partial(print, "report:")
    ) as server:
        for protocol in ("rsio", "reactivesocket"):
            async with penstock.connect(f"{protocol}+{server.addresses[0]}") as peer:
                found = await peer.request("price/EURUSD?discount=5", Order(3), type=Price)
                print(f"{protocol}:", found, await peer.request("shout", "sold!", type=str))
                try:
                    await peer.request("price/EURXYZ", Order(1), type=Price)
                except penstock.PublisherFailed as failed:
                    print(f"{protocol}: {failed}")
        print("by URL:", await penstock.request(f"{server.addresses[0]}/shout", type=str))


if __name__ == "__main__":
    trio.run(main)
