"""Structs of msgspec as elements: their fields are the schema, and a timestamp arrives as a
datetime. Run it: it prints what it reads.
"""

import datetime as dt
from collections.abc import AsyncIterator

import msgspec
import trio

import penstock


class Quote(msgspec.Struct):
    """A price of a symbol. A subscriber checks each field."""

    symbol: str
    cents: int
    at: dt.datetime


class Trade(msgspec.Struct):
    """The class that a mistaken subscriber expects."""

    symbol: str
    volume: int


service = penstock.Service()
NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)


@service.publisher("quotes", type=Quote, serializer="msgpack")
async def quotes() -> AsyncIterator[Quote]:
    """Three quotes, a second after another."""
    for number in range(3):
        yield Quote("EURUSD", 108 + number, NOON + dt.timedelta(seconds=number))


async def main() -> None:
    """Read the quotes as structs, as dicts, and as a class that does not fit."""
    async with penstock.serve(service, "tcp://127.0.0.1:0") as server:
        url = f"{server.addresses[0]}/quotes"
        async with penstock.subscribe(url, type=Quote, serializer="msgpack") as stream:
            async for quote in stream:
                print(quote.symbol, quote.cents, quote.at.time())
        # Without a type the publisher announces the serializer, and elements are dicts.
        async with penstock.subscribe(url) as stream:
            print(await anext(stream))
        try:
            async with penstock.subscribe(url, type=Trade, serializer="msgpack") as stream:
                await anext(stream)
        except penstock.PenstockError as refused:
            print(refused)


if __name__ == "__main__":
    trio.run(main)
