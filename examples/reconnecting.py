"""A server that stops and starts again, and a subscriber with a `Reconnect` policy. Without a
policy a lost connection raises at once.
"""

import logging
from collections.abc import AsyncIterator

import trio

import penstock

URL = "memory://weather/readings"
service = penstock.Service()
# At most four attempts in a row, with waits of up to 1 s, 2 s and 4 s between them. `chance` picks
# the part of each wait: here, half.
POLICY = penstock.Reconnect(attempts=4, first=1.0, most=8.0, healthy=0.5, chance=lambda: 0.5)


@service.publisher("readings", serializer="json")
async def readings() -> AsyncIterator[int]:
    """Readings from 0. A new subscription begins at 0 again:
    only you know whether that is right for your stream.
    """
    for number in range(100):
        yield number
        await trio.sleep(1)


async def serve_now_and_then() -> None:
    """Start after 0.2 s, serve for 2.5 s, stop for 2.2 s, serve for 2.5 s again,
    and stop for good.
    """
    for away in (0.2, 2.2):
        await trio.sleep(away)
        async with penstock.serve(service, "memory://weather"):
            await trio.sleep(2.5)


async def main() -> None:
    # The log says once that the readings begin again. Here the output shows it.
    logging.getLogger("penstock").setLevel(logging.ERROR)
    began = trio.current_time()

    def say(what: object) -> None:
        print(f"{trio.current_time() - began:5.2f} s  {what}")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_now_and_then)
        try:
            async with penstock.subscribe(
                URL, serializer="json", demand=1, reconnect=POLICY
            ) as stream:
                async for reading in stream:
                    say(f"reading {reading}")
        except penstock.ConnectionLost as lost:
            say(lost)


if __name__ == "__main__":
    trio.run(main)
