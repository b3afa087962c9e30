"""A dataclass in, a dataclass out, over the network:
the return annotation on one side, `type=` on the other.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

import trio

import penstock


@dataclass(frozen=True)
class Quote:
    """A price at a place of trade."""

    symbol: str
    price: float
    venue: str | None = None


@dataclass(frozen=True)
class Trade:
    """A trade and its date."""

    quote: Quote
    side: Literal["buy", "sell"]
    on: date


service = penstock.Service()


@service.publisher("quotes/{symbol}")
async def quotes(symbol: str) -> AsyncIterator[Quote]:
    yield Quote(symbol, 1.25, "XETRA")


@service.publisher("trades")
async def trades(
    side: list[Literal["buy", "sell"]], since: date = date(2026, 1, 1)
) -> AsyncIterator[Trade]:
    for each in side:
        yield Trade(Quote("EURUSD", 1.25), each, since)


async def main() -> None:
    async with (
        penstock.serve(service, "tcp://127.0.0.1:0") as server,
        penstock.connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("quotes/EURUSD", type=Quote) as stream:
            async for quote in stream:
                print(quote)
        async with peer.subscribe(
            "trades?side=buy&side=sell&since=2026-02-01", type=Trade
        ) as stream:
            async for trade in stream:
                print(trade.side, trade.on.isoformat(), trade.quote.symbol)
        try:  # another type than the publisher's
            print(await penstock.first(peer.source("quotes/EURUSD", type=Trade)))
        except penstock.ProtocolError as error:
            print(error)


if __name__ == "__main__":
    trio.run(main)
