"""rsocket-py as a server and as a client: ``_python_peer.py server SCHEME``, ``lease-server
SCHEME``, ``client SCHEME PORT``. A scheme is ``tcp`` or ``ws``.

A server prints its port. A client prints a line for each row: its name, and ``ok`` or what went
wrong. The rows and the routes are those of `__main__.py`.
"""

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import websockets
from reactivestreams.publisher import DefaultPublisher
from reactivestreams.subscriber import DefaultSubscriber
from reactivestreams.subscription import DefaultSubscription
from rsocket.awaitable.awaitable_rsocket import AwaitableRSocket
from rsocket.extensions.composite_metadata import CompositeMetadata
from rsocket.extensions.helpers import authenticate_bearer, composite, require_route, route
from rsocket.extensions.mimetypes import WellKnownMimeTypes
from rsocket.helpers import create_future, single_transport_provider
from rsocket.lease import DefinedLease, LeasePublisher
from rsocket.payload import Payload
from rsocket.request_handler import BaseRequestHandler
from rsocket.rsocket_client import RSocketClient
from rsocket.rsocket_server import RSocketServer
from rsocket.streams.stream_from_async_generator import StreamFromAsyncGenerator
from rsocket.transports.tcp import TransportTCP
from rsocket.transports.transport import Transport
from rsocket.transports.websockets_transport import WebsocketsTransport

DEMANDS = (1, 7, 2, 30)


def route_of(payload: Payload) -> str:
    metadata = CompositeMetadata()
    metadata.parse(payload.metadata)
    return require_route(metadata)


class Doubling(DefaultPublisher, DefaultSubscriber, DefaultSubscription):
    """The answer of the route ``double``: each element twice, as demand comes."""

    def __init__(self, first: bytes) -> None:
        self._waiting = [first * 2]
        self._demand = 0
        self._is_complete = False
        self._target: Any = None
        self._source: Any = None

    def subscribe(self, subscriber: Any) -> None:
        self._target = subscriber
        subscriber.on_subscribe(self)

    def on_subscribe(self, subscription: Any) -> None:
        self._source = subscription
        subscription.request(4)

    def on_next(self, value: Payload, is_complete: bool = False) -> None:
        self._waiting.append(bytes(value.data) * 2)
        self._is_complete = self._is_complete or is_complete
        self._send()
        if not is_complete:
            self._source.request(1)

    def on_complete(self) -> None:
        self._is_complete = True
        self._send()

    def on_error(self, exception: Exception) -> None:
        self._target.on_error(exception)

    def request(self, n: int) -> None:
        self._demand += n
        self._send()

    def cancel(self) -> None:
        if self._source is not None:
            self._source.cancel()

    def _send(self) -> None:
        while self._waiting and self._demand:
            self._demand -= 1
            self._target.on_next(Payload(self._waiting.pop(0)))
        if self._is_complete and not self._waiting:
            self._is_complete = False
            self._target.on_complete()


class Handler(BaseRequestHandler):
    """The routes that a peer of penstock has."""

    seen: bytes = b"nothing"

    async def on_setup(
        self, data_encoding: bytes, metadata_encoding: bytes, payload: Payload
    ) -> None:
        self.data_type = bytes(data_encoding)

    async def request_response(self, payload: Payload) -> Awaitable[Payload]:
        name = route_of(payload)
        if name == "fail":
            raise RuntimeError("boom")
        if name == "seen":
            return create_future(Payload(self.seen))
        if name == "type":
            return create_future(Payload(self.data_type))
        return create_future(Payload(bytes(payload.data or b"")))

    async def request_fire_and_forget(self, payload: Payload) -> None:
        type(self).seen = b"%d" % len(payload.data or b"")

    async def request_stream(self, payload: Payload) -> Any:
        name = route_of(payload)
        count = int(name.rpartition(".")[2])

        async def numbers() -> AsyncIterator[tuple[Payload, bool]]:
            for number in range(count):
                yield Payload(b"%d" % number), number == count - 1

        return StreamFromAsyncGenerator(numbers)

    async def request_channel(self, payload: Payload) -> Any:
        doubling = Doubling(bytes(payload.data))
        return doubling, doubling


class Leases(LeasePublisher):
    """3 requests at a time, again after a second."""

    def subscribe(self, subscriber: Any) -> None:
        self._task = asyncio.create_task(self._send(subscriber))

    async def _send(self, subscriber: Any) -> None:
        while True:
            subscriber.on_next(DefinedLease(3, timedelta(seconds=10)))
            await asyncio.sleep(1)


async def serve(scheme: str, *, leases: bool) -> None:
    def session(transport: Transport) -> None:
        RSocketServer(
            transport,
            handler_factory=Handler,
            lease_publisher=Leases() if leases else None,
        )

    async def over_websocket(websocket: Any) -> None:
        transport = WebsocketsTransport()
        session(transport)
        await transport.handler(websocket)

    server: Any = (
        await websockets.serve(over_websocket, "127.0.0.1", 0, max_size=None)
        if scheme == "ws"
        else await asyncio.start_server(
            lambda reader, writer: session(TransportTCP(reader, writer)), "127.0.0.1", 0
        )
    )
    print(next(iter(server.sockets)).getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def named(name: str, data: bytes = b"") -> Payload:
    return Payload(data, composite(route(name)))


class Unevenly(DefaultSubscriber):
    """Reads with demands of different sizes, each when the last one is used up, and cancels after
    `most` elements.
    """

    def __init__(self, most: int) -> None:
        self.got: list[bytes] = []
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._most = most
        self._demands = itertools.cycle(DEMANDS)
        self._left = next(self._demands)
        self._source: Any = None

    def on_subscribe(self, subscription: Any) -> None:
        self._source = subscription

    def on_next(self, value: Payload, is_complete: bool = False) -> None:
        if not self._left:
            self.over.set_exception(RuntimeError("an element without demand"))
            return
        self._left -= 1
        self.got.append(bytes(value.data))
        if is_complete:
            self.over.set_result(None)
        elif len(self.got) == self._most:
            self._source.cancel()
            self.over.set_result(None)
        elif not self._left:
            self._left = next(self._demands)
            self._source.request(self._left)

    def on_complete(self) -> None:
        self.over.set_result(None)

    def on_error(self, exception: Exception) -> None:
        self.over.set_exception(exception)


class Checks:
    """The checks of a server, one for each row."""

    def __init__(self, client: RSocketClient) -> None:
        self.client = client
        self.peer = AwaitableRSocket(client)

    async def echo(self) -> bool:
        return bytes((await self.peer.request_response(named("echo", b"x"))).data) == b"x"

    async def fragments(self) -> bool:
        data = bytes(range(256)) * 1000
        return bytes((await self.peer.request_response(named("echo", data))).data) == data

    async def error(self) -> bool:
        try:
            await self.peer.request_response(named("fail"))
        except Exception as failed:  # boundary: what the library raises
            return "boom" in str(failed)
        return False

    async def message(self) -> bool:
        await self.peer.fire_and_forget(named("note", bytes(10_000)))
        for _ in range(100):
            if bytes((await self.peer.request_response(named("seen"))).data) == b"10000":
                return True
        return False

    async def stream(self) -> bool:
        got = await self._read("count/2000")
        return got == [b"%d" % n for n in range(2000)]

    async def cancel(self) -> bool:
        got = await self._read("count/100000", most=5)
        return len(got) == 5 and await self.echo()

    async def _read(self, name: str, most: int = sys.maxsize) -> list[bytes]:
        reading = Unevenly(most)
        stream = self.client.request_stream(named(name)).initial_request_n(DEMANDS[0])
        stream.subscribe(reading)
        await reading.over
        return reading.got

    async def channel(self) -> bool:
        async def numbers() -> AsyncIterator[tuple[Payload, bool]]:
            for number in range(1, 50):
                yield Payload(b"%d" % number), number == 49

        got = await self.peer.request_channel(
            named("double", b"0"), StreamFromAsyncGenerator(numbers), limit_rate=5
        )
        return [bytes(each.data) for each in got] == [b"%d" % n * 2 for n in range(50)]


@asynccontextmanager
async def client_of(
    scheme: str, port: int, *, honor_lease: bool = False
) -> AsyncIterator[RSocketClient]:
    async with AsyncExitStack() as stack:
        transport: Any
        if scheme == "ws":
            url = f"ws://127.0.0.1:{port}"
            websocket = await stack.enter_async_context(websockets.connect(url, max_size=None))
            transport = WebsocketsTransport()
            carrying = asyncio.create_task(transport.handler(websocket))
            stack.callback(carrying.cancel)
        else:
            transport = TransportTCP(*await asyncio.open_connection("127.0.0.1", port))
        client = RSocketClient(
            single_transport_provider(transport),
            metadata_encoding=WellKnownMimeTypes.MESSAGE_RSOCKET_COMPOSITE_METADATA,
            data_encoding=WellKnownMimeTypes.APPLICATION_OCTET_STREAM,
            setup_payload=Payload(b"hi", composite(authenticate_bearer("token"))),
            keep_alive_period=timedelta(seconds=2),
            fragment_size_bytes=4096,
            honor_lease=honor_lease,
        )
        yield await stack.enter_async_context(client)


async def ask_with_leases(scheme: str, port: int) -> bool:
    """Ask more at once than penstock permits before it renews the lease."""
    async with client_of(scheme, port, honor_lease=True) as client:
        peer = AwaitableRSocket(client)
        asked = (peer.request_response(named("echo", b"%d" % n)) for n in range(40))
        return len(await asyncio.gather(*asked)) == 40


async def ask(scheme: str, port: int) -> None:
    async with client_of(scheme, port) as client:
        checks = Checks(client)
        rows: dict[str, Callable[[], Awaitable[bool]]] = {
            "request-response": checks.echo,
            "fragments": checks.fragments,
            "error": checks.error,
            "fire-and-forget": checks.message,
            "stream": checks.stream,
            "cancel": checks.cancel,
            "channel": checks.channel,
            "leases": partial(ask_with_leases, scheme, port),
        }
        for name, row in rows.items():
            try:
                good = await asyncio.wait_for(row(), 20)
                print(f"{name}\t{'ok' if good else 'wrong answer'}", flush=True)
            except Exception as failed:  # boundary: a row that fails must not hide the others
                print(f"{name}\t{failed!r}", flush=True)


if __name__ == "__main__":
    role, scheme = sys.argv[1:3]
    asyncio.run(
        ask(scheme, int(sys.argv[3]))
        if role == "client"
        else serve(scheme, leases=role == "lease-server")
    )
