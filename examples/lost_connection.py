"""A connection that is lost twice, with `resume=True` on both sides: its stream goes on, and no
reading is missing or comes twice.
"""

from collections.abc import AsyncIterator
from typing import Any

import trio

import penstock
from penstock.spi import Connection, ConnectionSuspended, Transport, build_registry, hookimpl
from penstock.transports import MemoryTransport

service = penstock.Service()


@service.publisher("readings", serializer="json")
async def readings() -> AsyncIterator[int]:
    for number in range(6):
        yield number
        await trio.sleep(1)


class Wire(MemoryTransport):
    """A transport that remembers its last connection, so that this example can cut it; and a
    plugin, which prints what happens then.
    """

    schemes = ("wire",)
    last: Connection

    async def connect(self, *arguments: Any, **options: Any) -> Connection:
        """Connect, and remember."""
        self.last = await super().connect(*arguments, **options)
        return self.last

    @hookimpl
    def penstock_transports(self) -> list[Transport]:
        """Offer this object."""
        return [self]

    @hookimpl
    def penstock_connection_suspended(self, event: ConnectionSuspended) -> None:
        """Both sides tell; the server's is printed."""
        if event.accepted:
            print("  suspended")


async def main() -> None:
    wire = Wire()
    both: Any = {"registry": build_registry([wire]), "resume": True}
    url = "wire://weather"
    async with (
        penstock.serve(service, url, **both) as server,
        penstock.subscribe(f"{url}/readings", serializer="json", **both) as stream,
    ):
        async for reading in stream:
            print(f"reading {reading}")
            if reading in (1, 3):
                await wire.last.abort()
        print(f"resumed {server.statistics().resumed} times")


if __name__ == "__main__":
    trio.run(main)
