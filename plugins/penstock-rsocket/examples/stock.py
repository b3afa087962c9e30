"""A service for Spring: `python stock.py rsocket+tcp://127.0.0.1:7000`."""

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import trio

import penstock
from penstock import PublicError, Source
from penstock.spi import PeerIdentity

REFUSED = 0x301  # RSocket leaves the codes from 0x301 on to programs


@dataclass
class Order:
    """The order of a customer."""

    symbol: str
    amount: int


@dataclass
class Receipt:
    """The answer of the service."""

    symbol: str
    total: float


@dataclass
class Tick:
    """An element of the stream."""

    symbol: str
    number: int


def authenticate(scheme: str, data: bytes, _peer: PeerIdentity) -> str | None:
    known = {("basic", b"ann:secret"), ("bearer", b"token")}
    return "ann" if (scheme, data) in known else None


service = penstock.Service(authenticate=authenticate)
notes = [""]


@service.request("buy")
async def buy(payload: Order) -> Receipt:
    if payload.amount < 1:
        raise PublicError("amount must be greater than 0", code=REFUSED)
    return Receipt(payload.symbol, payload.amount * 99.5)


@service.publisher("ticks/{symbol}")
async def ticks(symbol: str) -> AsyncIterator[Tick]:
    for number in range(1_000_000):
        yield Tick(symbol, number)


@service.publisher("totals")
async def totals(amounts: Source[int]) -> AsyncIterator[int]:
    total = 0
    async with penstock.subscribe(amounts) as stream:
        async for amount in stream:
            total += amount
            yield total


@service.request("note")
async def note(payload: str) -> str:
    notes.append(payload)
    return "noted"


@service.request("last-note")
async def last_note() -> str:
    return notes[-1]


async def main(url: str) -> None:
    async with penstock.serve(service, url) as server:
        print(server.addresses[0], flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
