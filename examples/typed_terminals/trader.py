"""The client: it gets the elements as objects of the same class."""

import trio
from market import Quote

import penstock

URL = "tcp://127.0.0.1:7000/quotes/EURUSD?since=2026-03-02&side=ask"


async def main() -> None:
    async with penstock.subscribe(URL, type=Quote) as stream:
        async for quote in stream:
            print(f"{quote.day:%A}: {quote.symbol} costs {quote.price}")


if __name__ == "__main__":
    trio.run(main)
