"""A publisher of the fleet: `python publisher.py EURUSD`. Any number of them may run."""

import sys
import time

import trio
from service import Price, prices

from penstock.api import LogError


async def main(symbol: str) -> None:
    # The numbers go on where they were if the publisher is started again.
    number = int(time.time() * 1_000)
    async with prices:
        while True:
            number += 1
            try:
                await prices.publish(Price(symbol, number, 10_000 + number * 7 % 101))
            except LogError as error:  # the broker is away, or has forgotten what it had
                print(error, file=sys.stderr)
            await trio.sleep(0.02)


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
