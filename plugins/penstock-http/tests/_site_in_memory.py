"""The transport over memory, for tests on virtual time: the same connections, the same site."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import ClassVar

import attrs
import trio
from penstock_http._relay import Answers, Relays
from penstock_http._settings import settings_of
from penstock_http._site import Site
from penstock_http._transport import HttpTransport, SiteConnection, _answer_relayed
from penstock_http.multiplex import Mount, subprotocols_of

from penstock import Limits, PublicError, Server, Service, serve
from penstock.spi import (
    ByteConnection,
    Connection,
    ConnectionHost,
    Listener,
    Transport,
    TransportOptions,
    Url,
    WorkerGroup,
    build_registry,
    hookimpl,
    parse_url,
)
from penstock.transports import MemoryTransport


class _Listener(Listener):
    def __init__(self, below: Listener, site: Site, options: TransportOptions) -> None:
        self.addresses = below.addresses
        self._below = below
        self._site = site
        self._options = options
        self._place = Mount(protocols=subprotocols_of(options.protocols))

    async def accept(self) -> Connection:
        connection = await self._below.accept()
        assert isinstance(connection, ByteConnection)
        return SiteConnection(
            connection, self._site, self._options, place=self._place, ping=20.0, is_loopback=True
        )

    async def aclose(self) -> None:
        await self._below.aclose()


class MemoryHttp(HttpTransport):
    schemes: ClassVar[tuple[str, ...]] = ("memory-http",)
    site: Site
    host: ConnectionHost
    """That of the last connection."""

    def __init__(self, group: WorkerGroup | None = None) -> None:
        super().__init__()
        self._group = group

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        self.site = site = Site(settings_of(options), secure=False, group=self._group)
        if self._group is not None:
            site.relays = Relays(self._group, "http")
            self._group.answer("http", Answers(partial(_answer_relayed, site)).handle)
        below = await MemoryTransport().listen(
            attrs.evolve(url, transport="memory"), options=options, nursery=nursery
        )
        return _Listener(below, self.site, options)

    async def serve_connection(
        self, connection: Connection, host: ConnectionHost, /
    ) -> Connection | None:
        self.host = host
        return await super().serve_connection(connection, host)


class Plugin:
    def __init__(self, group: WorkerGroup | None = None) -> None:
        self.transport = MemoryHttp(group)

    @hookimpl
    def penstock_transports(self) -> list[Transport]:
        return [self.transport]


class Answer:
    """One answer, as it came."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split(" ")[1]) if first else 0
        self.headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }


class Client:
    """A connection that sends any bytes."""

    def __init__(self, connection: ByteConnection) -> None:
        self.connection = connection
        self.rest = b""

    async def send(self, data: bytes) -> None:
        await self.connection.stream.send_all(data)

    async def ask(self, line: str, *headers: str, body: bytes = b"") -> Answer:
        """Send a request and return the whole answer, which has a length."""
        await self.send(
            "\r\n".join([f"{line} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode() + body
        )
        return await self.answer(is_head=line.startswith("HEAD"))

    async def answer(self, *, is_head: bool = False) -> Answer:
        data = self.rest
        while b"\r\n\r\n" not in data:
            data += await self._more(data)
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            (
                int(line[16:])
                for line in head.split(b"\r\n")
                if line.startswith(b"Content-Length: ")
            ),
            0,
        )
        length = 0 if is_head else length
        while len(body) < length:
            body += await self._more(body)
        self.rest = body[length:]
        return Answer(head + b"\r\n\r\n" + body[:length])

    async def _more(self, so_far: bytes) -> bytes:
        data = await self.connection.stream.receive_some(1 << 16)
        if not data:
            raise EOFError(so_far)
        return bytes(data)

    async def all(self) -> bytes:
        """Return everything up to the end of the connection."""
        data = self.rest
        while more := await self.connection.stream.receive_some(1 << 16):
            data += more
        return data

    async def abort(self) -> None:
        await self.connection.abort()


def service() -> Service:
    numbered = Service()

    @numbered.publisher("numbers/{count}", serializer="json")
    async def numbers(count: int) -> AsyncIterator[int]:
        for number in range(count):
            yield number

    @numbered.publisher("slow/{seconds}", serializer="json")
    async def slow(seconds: float) -> AsyncIterator[int]:
        for number in range(3):
            await trio.sleep(seconds)
            yield number

    @numbered.publisher("failing", serializer="json")
    async def failing() -> AsyncIterator[int]:
        yield 0
        raise PublicError("out of stock")

    @numbered.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100_000

    return numbered


class World:
    """A server, and connections to it."""

    server: Server

    def __init__(self, plugin: Plugin, told: list[Exception], name: str) -> None:
        self.plugin = plugin
        self.name = name
        self.told = told
        self.clients: list[Client] = []

    @property
    def site(self) -> Site:
        return self.plugin.transport.site

    async def connect(self, nursery: trio.Nursery) -> Client:
        connection = await MemoryTransport().connect(
            parse_url(f"memory://{self.name}"), options=TransportOptions(), nursery=nursery
        )
        assert isinstance(connection, ByteConnection)
        client = Client(connection)
        self.clients.append(client)
        return client

    async def subscribe(self, client: Client, name: str, demand: int = 0, *headers: str) -> str:
        """Return the path of a new subscription."""
        created = await client.ask(f"PUT /p/{name}?request={demand}", *headers)
        assert created.status == 201, created.raw
        return "/" + created.headers["location"].replace("../", "")


@asynccontextmanager
async def world(
    served: Service | None = None,
    *,
    limits: Limits | None = None,
    name: str = "site",
    group: WorkerGroup | None = None,
    **extra: object,
) -> AsyncIterator[tuple[World, trio.Nursery]]:
    """Serve, and yield the server and a nursery for connections. `group` has the workers of which
    this server is one. Options are those of the plugin: ``hold=3``.
    """
    plugin, told = Plugin(group), list[Exception]()
    options = TransportOptions(extra={f"http.{name}": value for name, value in extra.items()})
    async with trio.open_nursery() as nursery:
        made = World(plugin, told, name)
        async with serve(
            served or service(),
            f"memory-http://{name}",
            registry=build_registry([plugin]),
            limits=limits,
            options=options,
            on_violation=told.append,
        ) as made.server:
            yield made, nursery
        for client in made.clients:
            await client.abort()
