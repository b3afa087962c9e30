"""A server of streams without a service, a client that sends any frames,
and both ends of a connection in memory.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import attrs
import pytest
import trio
from _raw_http2 import RawClient
from penstock_http.multiplex import Http2Transport
from penstock_http.multiplex._multiplexer import Multiplexer
from penstock_http.multiplex._requests import Agreed, answer_headers, request_headers
from penstock_http.multiplex._stream import Http2Stream
from trio.testing import lockstep_stream_pair, wait_all_tasks_blocked

import penstock
from penstock import Service
from penstock.api import ConnectionLost, Limits
from penstock.spi import (
    ByteConnection,
    Connection,
    ConnectionHost,
    Listener,
    PeerIdentity,
    TransportOptions,
    Url,
    open_tcp,
    parse_url,
)

TRANSPORT = Http2Transport()
LIMITS = Limits(goodbye_timeout=0.5, linger=0.3)
OPTIONS = TransportOptions(protocols=("rsio/0", "reactivesocket/0"), close_timeout=0.5)


class Host(ConnectionHost):
    """The server of one attended connection: it keeps what it adopts."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.limits = Limits()
        self.address = "h2://test"
        self.adopted: list[Connection] = []
        self.is_recognised = False
        self.refusal: str | None = None
        self.draining = trio.Event()
        self._nursery = nursery
        self._adopted = trio.Event()

    @property
    def is_draining(self) -> bool:
        return self.draining.is_set()

    async def wait_draining(self) -> None:
        await self.draining.wait()

    def recognise(self) -> None:
        self.is_recognised = True

    def adopt(self, connection: Connection) -> str | None:
        if self.refusal is None:
            self.adopted.append(connection)
            self._nursery.start_soon(connection.handshake, self._nursery)
            self._adopted.set()
        return self.refusal

    async def wait_adopted(self, count: int = 1) -> Connection:
        """Return the connection number `count` once there is one."""
        while len(self.adopted) < count:
            self._adopted = trio.Event()
            await self._adopted.wait()
        return self.adopted[count - 1]

    async def authenticate(self, *_: Any) -> Any:
        """Not called: this transport opens no stream of the service itself."""

    async def open(self, *_: Any, **__: Any) -> None:
        """Not called, as above."""

    def reserve(
        self, peer: PeerIdentity, held: Callable[[], int], on_full: Callable[[], None]
    ) -> Callable[[], None]:
        """Refuse: a stream of this transport is a connection and reserves nothing."""
        raise AssertionError("not used here")

    def start_soon(self, *_: Any, **__: Any) -> None:
        """Not called, as above."""

    @property
    def logs_access(self) -> bool:
        return False

    def write_access(self, *_: Any) -> None:
        """Not called, as above."""


@attrs.define
class Served:
    """A listener whose connections are attended, each with its own host."""

    address: Url
    hosts: list[Host]
    ended: list[Host]

    async def host(self, count: int = 1) -> Host:
        """Return the host of the connection number `count`, counted from 1."""
        while len(self.hosts) < count:
            await trio.lowlevel.checkpoint()
        return self.hosts[count - 1]


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture
def serve(nursery: trio.Nursery) -> Serve:
    """A function that listens at a URL and attends each connection."""

    async def start(url: str = "h2://127.0.0.1:0", options: TransportOptions = OPTIONS) -> Served:
        listener = await TRANSPORT.listen(parse_url(url), options=options, nursery=nursery)
        served = Served(listener.addresses[0], [], [])
        nursery.start_soon(_accept, listener, served, nursery)
        return served

    return start


async def _accept(listener: Listener, served: Served, nursery: trio.Nursery) -> None:
    try:
        while True:
            nursery.start_soon(_attend, await listener.accept(), served)
    finally:
        with trio.CancelScope(shield=True):
            await listener.aclose()


async def _attend(connection: Connection, served: Served) -> None:
    try:
        async with trio.open_nursery() as nursery:
            host = Host(nursery)
            with suppress(trio.BrokenResourceError, ConnectionLost):
                await connection.handshake(nursery)
                served.hosts.append(host)
                await TRANSPORT.serve_connection(connection, host)
            served.ended.append(host)
    finally:
        with trio.CancelScope(shield=True):
            await connection.abort()


Connect = Callable[..., Awaitable[RawClient]]


@pytest.fixture
async def raw() -> AsyncIterator[Connect]:
    """A function that connects a `RawClient` to a URL, by TCP alone; with settings as keywords."""
    clients = []

    async def connect(url: Url | str, *, begins: bool = True, **settings: int) -> RawClient:
        url = parse_url(url) if isinstance(url, str) else url
        stream, _ = await open_tcp(attrs.evolve(url, path="", publisher=None), TransportOptions())
        client = RawClient(stream, **settings)
        clients.append(client)
        if begins:
            await client.begin()
        return client

    yield connect
    for client in clients:
        await client.stream.aclose()


@pytest.fixture
def options() -> TransportOptions:
    """The options of both sides."""
    return OPTIONS


@pytest.fixture
def transport() -> Http2Transport:
    """The transport."""
    return TRANSPORT


@pytest.fixture
def host_type() -> type[Host]:
    """The class of the hosts."""
    return Host


@pytest.fixture
def serving() -> Callable[..., object]:
    """A function that serves `numbers/{count}`, `big` and `echo` at a URL, with short deadlines."""
    service = Service()

    @service.publisher("numbers/{count}", serializer="json")
    async def numbers(count: int) -> AsyncIterator[int]:
        for number in range(count):
            yield number

    @service.publisher("big")
    async def big() -> AsyncIterator[bytes]:
        while True:
            yield bytes(100_000)

    @service.request("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    @asynccontextmanager
    async def start(
        url: str = "h2://127.0.0.1:0", **changes: object
    ) -> AsyncIterator[penstock.Server]:
        given: dict[str, Any] = {"limits": LIMITS, "on_violation": lambda _: None} | changes
        async with penstock.serve(service, url, **given) as server:
            yield server

    return start


# --- both ends in memory

PEER = PeerIdentity(address="memory")
POST = request_headers(scheme="http", host="x", path="/", subprotocol="rsio.v0")


class Ends:
    """Both sides of one connection, below penstock's connections."""

    def __init__(self, options: TransportOptions) -> None:
        one, two = lockstep_stream_pair()
        self.options = options
        self.requests: list[Http2Stream] = []
        self.below = [ByteConnection(stream, peer=PEER, options=options) for stream in (one, two)]
        self.client = Multiplexer(self.below[0], is_client=True, ping=20.0)
        self.server = Multiplexer(
            self.below[1], is_client=False, ping=20.0, on_request=self._accept
        )

    def _accept(self, stream: Http2Stream, headers: Any) -> None:
        self.requests.append(stream)
        self.server.streams.answer(stream, answer_headers(Agreed(None)))

    async def open(self, *, hello: bool = True) -> tuple[Http2Stream, Http2Stream]:
        """Open a stream and return both of its ends;
        with `hello`, the windows are the full ones.
        """
        stream = self.client.streams.open(POST)
        await stream.answered.wait()
        if hello:
            self.server.streams.trust(self.requests[-1])
            await wait_all_tasks_blocked()
        return stream, self.requests[-1]


@pytest.fixture
async def ends(
    options: TransportOptions, autojump_clock: trio.testing.MockClock
) -> AsyncIterator[Ends]:
    """Both sides, with their tasks."""
    both = Ends(options)
    async with trio.open_nursery() as nursery:
        for side in (both.client, both.server):
            side.begin()
            nursery.start_soon(side.run)
        yield both
        nursery.cancel_scope.cancel()


@pytest.fixture
def ends_type() -> type[Ends]:
    """The class of both sides, for tests that run them in another way."""
    return Ends
