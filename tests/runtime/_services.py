"""Services for tests, a count of their generators, and raw connections."""

from collections.abc import AsyncIterator

import trio

from penstock.api import PublicError
from penstock.runtime import Service
from penstock.spi import Connection, PeerIdentity, TransportOptions, Url, build_registry, parse_url


class Census:
    """Counts the generators of a service that were opened and closed."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.changed = trio.Event()

    async def wait_closed(self) -> None:
        while self.closed < self.opened or not self.opened:
            await self.changed.wait()

    def close(self) -> None:
        self.closed += 1
        self.changed.set()
        self.changed = trio.Event()


def numbers_service(census: Census | None = None) -> Service:
    service = Service()
    watch = census or Census()

    @service.publisher("numbers/{count}", serializer="json")
    async def numbers(count: int, step: int = 1) -> AsyncIterator[int]:
        watch.opened += 1
        try:
            for number in range(0, count * step, step):
                yield number
        finally:
            watch.close()

    @service.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        watch.opened += 1
        try:
            while True:
                yield b"x" * 100
        finally:
            watch.close()

    @service.publisher("failing", serializer="text")
    async def failing() -> AsyncIterator[str]:
        yield "one"
        raise ValueError("a secret")

    @service.publisher("honest", serializer="text")
    async def honest() -> AsyncIterator[str]:
        yield "one"
        raise PublicError("out of stock")

    @service.publisher("who", serializer="text")
    async def who(peer: PeerIdentity) -> AsyncIterator[str]:
        yield peer.address

    return service


def named(address: str | Url, name: str) -> str:
    return f"{address}#{name}" if str(address).startswith("unix") else f"{address}/{name}"


async def raw_connection(nursery: trio.Nursery, url: str | Url = "memory://test") -> Connection:
    """Return a connection on which no protocol is spoken yet."""
    transport = build_registry().transport(parse_url(url).transport)
    return await transport.connect(parse_url(url), options=TransportOptions(), nursery=nursery)
