"""A plugin that counts connections and streams. An installed one is found by itself;
here the program passes it in.
"""

from collections import Counter

import trio

import penstock
from penstock.spi import (
    ConnectionClosed,
    ConnectionOpened,
    StreamEnded,
    StreamOpened,
    build_registry,
    hookimpl,
)


class Meter:
    """Counts what is open now, and how each stream ended."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()

    @hookimpl
    def penstock_connection_opened(self, event: ConnectionOpened) -> None:
        """Both sides have said hello."""
        self.now["connections"] += 1

    @hookimpl
    def penstock_connection_closed(self, event: ConnectionClosed) -> None:
        """The connection has ended, and so have its tasks."""
        self.now["connections"] -= 1
        print(f"meter: a connection ended ({event.reason})")

    @hookimpl
    def penstock_stream_opened(self, event: StreamOpened) -> None:
        """A subscription has begun."""
        self.now["streams"] += 1

    @hookimpl
    def penstock_stream_ended(self, event: StreamEnded) -> None:
        """The stream has ended, in one of four ways."""
        self.now["streams"] -= 1
        self.ended[event.outcome.value] += 1
        print(f"meter: a stream {event.outcome.value} after {event.elements} elements")


service = penstock.Service()
service.publish("numbers", range(5), serializer="json")


async def main() -> None:
    meter = Meter()
    registry = build_registry([meter])
    async with (
        penstock.serve(service, "memory://numbers", registry=registry),
        penstock.connect("memory://numbers") as peer,
    ):
        async with peer.subscribe("numbers", serializer="json") as stream:
            print([number async for number in stream])
        async with peer.subscribe("numbers", serializer="json", demand=1) as stream:
            print(await anext(stream), "and no more")
        await trio.sleep(1)  # until the server has received the cancel
        print("open:", dict(meter.now))
    print("open:", dict(meter.now), "ended:", dict(meter.ended))


if __name__ == "__main__":
    trio.run(main)
