"""What `penstock tck` needs, served by rsocket-py. Prints its port."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from penstock_tck.wire import large_element
from reactivestreams.publisher import DefaultPublisher
from reactivestreams.subscriber import DefaultSubscriber
from reactivestreams.subscription import DefaultSubscription
from rsocket.extensions.composite_metadata import CompositeMetadata
from rsocket.extensions.helpers import require_route
from rsocket.helpers import create_future
from rsocket.payload import Payload
from rsocket.request_handler import BaseRequestHandler
from rsocket.rsocket_server import RSocketServer
from rsocket.streams.stream_from_async_generator import StreamFromAsyncGenerator
from rsocket.transports.tcp import TransportTCP

FIRST = {"channel": 4, "pair": 2, "greedy": 1 << 30}
MORE = {"channel": 1, "pair": 0, "greedy": 1 << 30}
FIXED = {
    "three": [b"one", b"two", b"three"],
    "one": [b"one"],
    "large": [large_element(number) for number in range(5)],
}


def route_of(payload: Payload) -> str:
    metadata = CompositeMetadata()
    metadata.parse(payload.metadata)
    return require_route(metadata)


class Channel(DefaultPublisher, DefaultSubscriber, DefaultSubscription):
    """Both directions of a channel: it answers each element with itself, as demand comes."""

    def __init__(self, name: str, first: bytes) -> None:
        self.name = name
        self.left = 2 if name == "pair" else -1
        self.waiting: list[bytes] = []
        self.demand = 0
        self.is_complete = False
        self.is_over = False
        self.target: Any = None
        self.source: Any = None
        self.keep(first)

    def keep(self, element: bytes) -> None:
        if self.name != "greedy":
            self.waiting.append(element)
        self.left -= 1
        if self.left == 0:
            self.is_complete = True

    def subscribe(self, subscriber: Any) -> None:
        self.target = subscriber
        subscriber.on_subscribe(self)

    def on_subscribe(self, subscription: Any) -> None:
        self.source = subscription
        subscription.request(FIRST[self.name])

    def on_next(self, value: Payload, is_complete: bool = False) -> None:
        self.keep(bytes(value.data or b""))
        self.is_complete |= is_complete
        if MORE[self.name] and not is_complete:
            self.source.request(MORE[self.name])
        self.send()

    def on_complete(self) -> None:
        self.is_complete = True
        self.send()

    def on_error(self, exception: Exception) -> None:
        self.is_over = True

    def request(self, n: int) -> None:
        self.demand += n
        self.send()

    def cancel(self) -> None:
        self.is_over = True

    def send(self) -> None:
        while self.waiting and self.demand and not self.is_over:
            self.demand -= 1
            self.target.on_next(Payload(self.waiting.pop(0)))
        if self.is_complete and not self.waiting and not self.is_over:
            self.is_over = True
            self.target.on_complete()


class Handler(BaseRequestHandler):
    """The routes."""

    async def on_setup(
        self, data_encoding: bytes, metadata_encoding: bytes, payload: Payload
    ) -> None:
        if payload.data == b"refuse me":
            raise RuntimeError("refused")

    async def request_response(self, payload: Payload) -> Awaitable[Payload]:
        if route_of(payload) != "echo":
            raise RuntimeError("no such route")
        return create_future(Payload(bytes(payload.data or b"")))

    async def request_fire_and_forget(self, payload: Payload) -> None:
        pass

    async def on_metadata_push(self, metadata: Payload) -> None:
        pass

    async def request_stream(self, payload: Payload) -> Any:
        name = route_of(payload)
        if name not in ("numbers", "empty", "failing", "slow", *FIXED):
            raise RuntimeError("no such route")

        async def elements() -> AsyncIterator[tuple[Payload, bool]]:
            if name == "slow":
                await asyncio.sleep(0.25)
                yield Payload(b"late"), True
            elif name == "failing":
                yield Payload(b"one"), False
                raise RuntimeError("failed on purpose")
            elif name == "numbers":
                while True:
                    yield Payload(b"a number"), False
            elif name in FIXED:
                last = len(FIXED[name]) - 1
                for index, element in enumerate(FIXED[name]):
                    yield Payload(element), index == last

        return StreamFromAsyncGenerator(elements)

    async def request_channel(self, payload: Payload) -> Any:
        name = route_of(payload)
        if name not in FIRST:
            raise RuntimeError("no such route")
        channel = Channel(name, bytes(payload.data or b""))
        return channel, channel


async def main() -> None:
    def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        RSocketServer(
            TransportTCP(reader, writer), handler_factory=Handler, fragment_size_bytes=4096
        )

    server = await asyncio.start_server(session, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
