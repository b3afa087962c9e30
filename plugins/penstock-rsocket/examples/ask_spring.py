"""Ask the Spring service of the page: `python ask_spring.py rsocket+tcp://127.0.0.1:7000`."""

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import trio
from penstock_rsocket import SetupData

import penstock
from penstock import Credentials, PublisherFailed, Rejected


@dataclass
class Order:
    """The order of a customer."""

    symbol: str
    amount: int


@dataclass
class Receipt:
    """The answer of the shop."""

    symbol: str
    total: float


@dataclass
class Tick:
    """A price at a time."""

    symbol: str
    number: int
    price: float


async def amounts() -> AsyncIterator[int]:
    for amount in (1, 2, 3, 4):
        yield amount


async def main(url: str) -> None:
    json = SetupData(data_type="application/json")
    user = Credentials.basic("ann", "secret")
    async with penstock.connect(url, setup=json, credentials=user) as shop:
        print(await shop.request("buy", Order("AAPL", 3), type=Receipt))

        try:
            await shop.request("buy", Order("AAPL", 0), type=Receipt)
        except PublisherFailed as failed:
            print(f"{failed.code:#x}: {failed}")

        # A demand of 2, and more of it as the ticks are read. Leaving the block cancels.
        async with shop.subscribe("ticks.AAPL", type=Tick, demand=2) as ticks:
            async for tick in ticks:
                print(tick)
                if tick.number == 2:
                    break

        async with shop.request_channel(amounts(), name="totals", type=int) as totals:
            print([total async for total in totals])

        await shop.fire_and_forget("see you", name="note")
        print(await shop.request("last-note", type=str))

    wrong = Credentials.bearer("a guess")
    try:
        async with penstock.connect(url, setup=json, credentials=wrong) as shop:
            await shop.wait_accepted()
    except Rejected as refused:
        print(refused)


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
