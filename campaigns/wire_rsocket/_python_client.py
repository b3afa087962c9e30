"""What `penstock tck --client` checks, by rsocket-py: a client that does its tasks at a port,
connection after connection.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Any

from reactivestreams.subscriber import DefaultSubscriber
from rsocket.extensions.composite_metadata import CompositeMetadata
from rsocket.extensions.helpers import composite, require_route, route
from rsocket.extensions.mimetypes import WellKnownMimeTypes
from rsocket.frame import MAX_REQUEST_N
from rsocket.helpers import create_future, single_transport_provider
from rsocket.payload import Payload
from rsocket.request_handler import BaseRequestHandler
from rsocket.rsocket_client import RSocketClient
from rsocket.streams.stream_from_async_generator import StreamFromAsyncGenerator
from rsocket.transports.tcp import TransportTCP

WORDS = [b"one", b"two", b"three", b"four", b"five"]
LARGE = bytes(index % 251 for index in range(200_000))
TURN = 0.02


def named(name: str, data: bytes = b"") -> Payload:
    return Payload(data, composite(route(name)))


class Handler(BaseRequestHandler):
    """What the client answers."""

    async def request_response(self, payload: Payload) -> Awaitable[Payload]:
        return create_future(Payload(bytes(payload.data or b"")))

    async def request_stream(self, payload: Payload) -> Any:
        metadata = CompositeMetadata()
        metadata.parse(payload.metadata)
        assert require_route(metadata) == "numbers"

        async def numbers() -> AsyncIterator[tuple[Payload, bool]]:
            for number in count():
                yield Payload(b"%d" % number), False

        return StreamFromAsyncGenerator(numbers)


class Reader(DefaultSubscriber):
    """Reads in portions; cancels after `most` elements, if there are so many."""

    def __init__(self, portion: int, most: int = 0) -> None:
        super().__init__()
        self.portion = portion
        self.most = most
        self.got: list[bytes] = []
        self.outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def on_next(self, value: Payload, is_complete: bool = False) -> None:
        self.got.append(bytes(value.data or b""))
        if self.most and len(self.got) == self.most:
            self.subscription.cancel()
            self.end("cancelled")
        elif is_complete:
            self.end("complete")
        elif self.portion and len(self.got) % self.portion == 0:
            self.subscription.request(self.portion)

    def on_complete(self) -> None:
        self.end("complete")

    def on_error(self, exception: Exception) -> None:
        self.end(f"error {exception}")

    def end(self, word: str) -> None:
        if not self.outcome.done():
            self.outcome.set_result(word)

    async def text(self) -> bytes:
        word = await self.outcome
        return b"elements %s %s" % (b",".join(self.got), word.encode())


async def value(client: RSocketClient, data: bytes) -> bytes:
    try:
        found = await client.request_response(named("echo", data))
    except Exception as error:  # boundary: what the library raises
        return f"error {error}".encode()
    # The library does not tell an end without a value from a value without bytes.
    return b"value " + found.data if found.data else b"empty"


async def perform(client: RSocketClient, name: str, rest: str) -> bytes:
    if name in ("request", "large"):
        return await value(client, LARGE if name == "large" else rest.encode())
    if name in ("stream", "unbounded", "cancel"):
        most = int(rest) if name == "cancel" else 0
        demand = MAX_REQUEST_N if name == "unbounded" else 2 * most or int(rest)
        reader = Reader(0 if name == "unbounded" else demand, most)
        client.request_stream(named("numbers")).initial_request_n(demand).subscribe(reader)
        return await reader.text()
    if name == "channel":

        async def words() -> AsyncIterator[tuple[Payload, bool]]:
            for word in WORDS[1:]:
                yield Payload(word), word is WORDS[-1]

        reader = Reader(2)
        channel = client.request_channel(
            named("channel", WORDS[0]), StreamFromAsyncGenerator(words)
        )
        channel.initial_request_n(2).subscribe(reader)
        return await reader.text()
    if name == "forget":
        await client.fire_and_forget(named("echo", rest.encode()))
    elif name == "push":
        await client.metadata_push(rest.encode())
    elif name not in ("nothing", "serve"):
        return b"unsupported"
    return b"done"


async def converse(client: RSocketClient) -> None:
    task = bytes((await client.request_response(named("tck"))).data or b"").decode()
    name, _, rest = task.partition(" ")
    await client.request_response(named("tck-done", await perform(client, name, rest)))
    await asyncio.Event().wait()


async def ended(reader: asyncio.StreamReader) -> None:
    while not reader.at_eof() and reader.exception() is None:  # noqa: ASYNC110 (the reader has no event for its end)
        await asyncio.sleep(TURN)


async def connect(port: int) -> None:
    """Do a task on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with RSocketClient(
        single_transport_provider(TransportTCP(reader, writer)),
        handler_factory=Handler,
        metadata_encoding=WellKnownMimeTypes.MESSAGE_RSOCKET_COMPOSITE_METADATA,
        data_encoding=WellKnownMimeTypes.APPLICATION_OCTET_STREAM,
        keep_alive_period=timedelta(seconds=0.5),
        max_lifetime_period=timedelta(seconds=10),
        fragment_size_bytes=4096,
    ) as client:
        tasks = [asyncio.create_task(converse(client)), asyncio.create_task(ended(reader))]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()


async def main(port: int) -> None:
    """Connect again and again."""
    while True:
        with suppress(Exception):  # boundary: what the library raises
            await connect(port)
        await asyncio.sleep(TURN)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
