"""A server that goes away and comes back, and a subscriber with a policy for that. Without one, a lost connection is an error at once."""

from collections.abc import AsyncIterator

import trio

import penstock

URL = "memory://weather/readings"
service = penstock.Service()
# How often in a row, and how long to wait: up to 1 s, 2 s, 4 s, each a random part of it. Here "random" is always the half.
POLICY = penstock.Reconnect(attempts=4, first=1.0, most=8.0, chance=lambda: 0.5)


@service.publisher("readings", serializer="json")
async def readings() -> AsyncIterator[int]:
    """A new subscription begins at the beginning: only you know whether that is right for your stream."""
    for number in range(100):
        yield number
        await trio.sleep(1)


async def serve_now_and_then() -> None:
    """Come late, serve for two and a half seconds, be gone for two, come back once, and be gone for good."""
    for away in (0.2, 2.2):
        await trio.sleep(away)
        async with penstock.serve(service, "memory://weather"):
            await trio.sleep(2.5)


async def main() -> None:
    began = trio.current_time()

    def say(what: object) -> None:
        print(f"{trio.current_time() - began:5.2f} s  {what}")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_now_and_then)
        try:
            async with penstock.subscribe(URL, serializer="json", demand=1, reconnect=POLICY) as stream:
                async for reading in stream:
                    say(f"reading {reading}")
        except penstock.ConnectionLost as lost:
            say(lost)


if __name__ == "__main__":
    trio.run(main)
