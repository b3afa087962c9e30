"""A peer that sends and reads single frames, over memory. Tests use the fixture `autojump_clock`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import penstock_rsocket as rsocket
import trio
from penstock_rsocket import decode, encode

import penstock
from penstock.spi import Connection, TransportOptions, parse_url
from penstock.transports import MemoryTransport

URL = "rsocket+memory://tests"
SETUP = rsocket.Setup(
    keepalive=20_000,
    lifetime=90_000,
    metadata_type=rsocket.COMPOSITE,
    data_type="application/octet-stream",
)


def route(name: str) -> bytes:
    return rsocket.encode_composite([(rsocket.ROUTING, rsocket.encode_route(name))])


class Raw:
    """One side of a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._buffer = b""

    async def send(self, *frames: rsocket.Frame) -> Self:
        await self._connection.send(b"".join(map(encode, frames)))
        return self

    async def send_bytes(self, data: bytes) -> Self:
        await self._connection.send(data)
        return self

    async def next(self, *, keepalives: bool = False) -> rsocket.Frame | None:
        """Return the next frame, or None at the end of the connection."""
        while True:
            size = int.from_bytes(self._buffer[:3]) + 3
            if len(self._buffer) >= max(size, 9):
                data, self._buffer = self._buffer[3:size], self._buffer[size:]
                frame = decode(data)
                if keepalives or not isinstance(frame, rsocket.Keepalive):
                    return frame
                continue
            chunk = await self._connection.receive()
            if not chunk:
                return None
            self._buffer += chunk

    async def all(self) -> list[rsocket.Frame]:
        """Return all frames up to the end of the connection."""
        found: list[rsocket.Frame] = []
        while (frame := await self.next()) is not None:
            found.append(frame)
        return found

    async def close(self) -> None:
        await self._connection.abort()


async def connect_raw(nursery: trio.Nursery, *first: rsocket.Frame) -> Raw:
    """Connect to the server at `URL`, and send the first frames."""
    connection = await MemoryTransport().connect(
        parse_url("memory://tests"), options=TransportOptions(), nursery=nursery
    )
    return await Raw(connection).send(*first)


@asynccontextmanager
async def raw_client(
    service: penstock.Service, *first: rsocket.Frame, **options: Any
) -> AsyncIterator[Raw]:
    """Serve `service`, and connect to it with single frames, a SETUP first."""
    async with trio.open_nursery() as nursery:
        async with penstock.serve(service, URL, **options):
            raw = await connect_raw(nursery, *(first or (SETUP,)))
            try:
                with trio.fail_after(100):
                    yield raw
            finally:
                await raw.close()


@asynccontextmanager
async def raw_listener() -> AsyncIterator[tuple[trio.Nursery, Any]]:
    """Listen at `URL`; the second value has `accept()`."""
    async with trio.open_nursery() as nursery:
        listener = await MemoryTransport().listen(
            parse_url("memory://tests"), options=TransportOptions(), nursery=nursery
        )
        with trio.fail_after(100):
            yield nursery, listener
        await listener.aclose()


@asynccontextmanager
async def raw_server(**options: Any) -> AsyncIterator[tuple[penstock.Peer, Raw]]:
    """Connect penstock to a server that sends single frames. Its SETUP and its first KEEPALIVE
    were read, and the KEEPALIVE was answered.
    """
    async with raw_listener() as (_, listener), penstock.connect(URL, **options) as peer:
        raw = Raw(await listener.accept())
        assert isinstance(await raw.next(keepalives=True), rsocket.Setup)
        assert await raw.next(keepalives=True) == rsocket.Keepalive(respond=True)
        await raw.send(rsocket.Keepalive())
        yield peer, raw
        await raw.close()
