"""Transports whose connections are cut after a number of bytes, and a service whose answers show
each lost and each repeated element.
"""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import trio

import penstock
from penstock.spi import (
    Connection,
    ConnectionFacts,
    Registry,
    Transport,
    TransportOptions,
    Url,
    build_registry,
    hookimpl,
    parse_url,
)
from penstock.transports import MemoryTransport


class CutConnection(Connection):
    """A connection that is cut after a number of bytes in one direction."""

    framed = False

    def __init__(self, connection: Connection, *, sent: int = -1, received: int = -1) -> None:
        """`sent` and `received` are the bytes that pass in a direction; below 0 for all."""
        self.peer, self.facts = connection.peer, ConnectionFacts()
        self._connection = connection
        self._sent = sent
        self._received = received

    async def send(self, data: Any, /) -> None:
        if 0 <= self._sent < len(data):
            if self._sent:
                await self._connection.send(bytes(data[: self._sent]))
            await self._connection.abort()
            raise trio.BrokenResourceError("cut")
        self._sent -= len(data) if self._sent >= 0 else 0
        await self._connection.send(data)

    async def receive(self) -> bytes | bytearray | None:
        if not self._received:
            await self._connection.abort()
            raise trio.BrokenResourceError("cut")
        data = await self._connection.receive()
        if data is None or self._received < 0:
            return data
        data = data[: self._received]
        self._received -= len(data)
        return data

    async def send_eof(self) -> None:
        await self._connection.send_eof()

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def abort(self) -> None:
        await self._connection.abort()


class CuttingTransport(Transport):
    """Connects over memory. Each connection is cut as the next of `cuts` says: after the bytes
    that are sent, and after those that are received.
    """

    schemes = ("cutting",)

    def __init__(self) -> None:
        self.cuts: list[tuple[int, int]] = []
        self.made = 0

    async def connect(
        self, url: Url, /, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        self.made += 1
        where = parse_url("memory://tests")
        connection = await MemoryTransport().connect(where, options=options, nursery=nursery)
        sent, received = self.cuts.pop(0) if self.cuts else (-1, -1)
        return CutConnection(connection, sent=sent, received=received)

    async def listen(self, *_: Any, **_options: Any) -> Any:
        raise AssertionError("only clients are cut")


def cutting() -> tuple[Registry, CuttingTransport]:
    """Return a registry with the transport ``cutting``."""
    transport = CuttingTransport()

    @hookimpl
    def penstock_transports() -> list[Transport]:
        return [transport]

    return build_registry([SimpleNamespace(penstock_transports=penstock_transports)]), transport


def service_of() -> penstock.Service:
    """Return a service with a stream, a request and a channel."""
    service = penstock.Service()

    @service.publisher("numbers/{count}/{size}")
    async def numbers(count: int, size: int) -> AsyncIterator[bytes]:
        for number in range(count):
            yield b"%d" % number + bytes(size)

    @service.request("reverse")
    async def reverse(payload: bytes) -> bytes:
        return payload[::-1]

    @service.publisher("echo")
    async def echo(elements: penstock.Source[bytes]) -> AsyncIterator[bytes]:
        async with penstock.subscribe(elements, demand=2) as stream:
            async for element in stream:
                yield element

    return service
