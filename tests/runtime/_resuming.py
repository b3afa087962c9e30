"""Servers and clients whose connections are cut, and a client
that speaks the messages of *resume* by hand.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import trio
import trio.testing

from penstock.api import Limits
from penstock.protocols import rsio
from penstock.runtime import Peer, Service
from penstock.spi import Connection, TransportOptions, build_registry, parse_url
from penstock.testing import MessageList

URL: Final = "rsio+memory://resumed"
RESUME, RESUMING = 5, 8
TOKEN, ACKNOWLEDGE, ASK, ANSWER = 0x48, 0x49, 0x4A, 0x4B
LIMITS: Final = replace(Limits(), resume_timeout=30.0)


def numbers_service(count: int = 100, on_end: Callable[[], Any] | None = None) -> Service:
    """Return a service with the publisher ``numbers``."""
    service = Service()

    @service.publisher("numbers")
    async def numbers() -> AsyncIterator[bytes]:
        try:
            for number in range(count):
                yield b"%d" % number
        finally:
            if on_end is not None:
                on_end()

    @service.request("ask")
    async def ask() -> str:
        return "answer"

    return service


async def cut(peer: Peer) -> None:
    """End the transport of a client, and let both sides notice."""
    await peer._connection.connection.abort()
    await trio.testing.wait_all_tasks_blocked()


class RawClient:
    """A client that says what the test says."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.messages = MessageList()
        self._decoder = rsio.RsioDecoder(self.messages, self.messages.streams)
        self.received = 0
        self.sent = 0
        self.is_over = False

    async def send(self, *messages: rsio.Message | bytes) -> None:
        """Send messages."""
        data = b"".join(each if isinstance(each, bytes) else rsio.encode(each) for each in messages)
        self.sent += len(data)
        await self.connection.send(data)

    async def read(self) -> list[rsio.Message]:
        """Return what comes until the server has nothing to say."""
        self.messages.messages.clear()
        while True:
            data: bytes | bytearray | None = None
            with trio.move_on_after(0.5) as waiting:
                data = await self.connection.receive()
            if waiting.cancelled_caught or not data:
                self.is_over = not waiting.cancelled_caught
                return list(self.messages.messages)
            self.received += len(data)
            self._decoder.feed(bytes(data))

    async def until_goodbye(self) -> str:
        """Return the reason of the server's goodbye."""
        *_, last = await self.read()
        assert isinstance(last, rsio.Goodbye), last
        return last.reason

    async def begin(self, *more: rsio.Message | bytes) -> bytes:
        """Say hello, and return the token."""
        await self.send(rsio.ClientHello(extensions=(RESUME,)), *more)
        (token,) = [
            each.body[:32]
            for each in await self.read()
            if isinstance(each, rsio.ExtensionMessage) and each.type == TOKEN
        ]
        return token

    async def ask(self, token: bytes, received: int) -> list[rsio.Message]:
        """Say hello as a client that resumes, and ask.
        Return the messages of the server after its hello.
        """
        await self.send(rsio.ClientHello(extensions=(RESUMING,)))
        await self.read()
        await self.send(rsio.ExtensionMessage(type=ASK, body=token + received.to_bytes(8)))
        return await self.read()


def body_of(messages: list[rsio.Message], kind: int) -> bytes:
    """Return the body of the only message of an extension with that type."""
    (body,) = [
        each.body
        for each in messages
        if isinstance(each, rsio.ExtensionMessage) and each.type == kind
    ]
    return body


@asynccontextmanager
async def raw_clients(at: str = URL) -> AsyncIterator[Callable[[], Awaitable[RawClient]]]:
    """Return a function that connects a `RawClient`."""
    url = parse_url(at)
    transport = build_registry().transport(url.transport)
    async with trio.open_nursery() as nursery:

        async def connect() -> RawClient:
            return RawClient(
                await transport.connect(url, options=TransportOptions(), nursery=nursery)
            )

        yield connect
        nursery.cancel_scope.cancel()
