"""A transport of an outside plugin that attends its connections:
the first line of a client says what it wants.

``read NAME``: the elements of a publisher, each as a line, ended by ``end`` or ``failed TEXT``.
``session``: RS.io on this connection. ``split``: RS.io on two connections that share this one.
``stay``: nothing, until the server shuts down.
"""

from collections.abc import Sequence
from typing import ClassVar

import attrs
import trio

from penstock.api import UNBOUNDED, AuthRefused, PenstockError, Subscriber, Subscription
from penstock.spi import (
    ByteConnection,
    Connection,
    ConnectionHost,
    Listener,
    PeerIdentity,
    RequestTransport,
    Transport,
    TransportOptions,
    Url,
    hookimpl,
)
from penstock.transports import MemoryTransport


class KnockTransport(RequestTransport):
    schemes: ClassVar[tuple[str, ...]] = ("knock",)

    def __init__(self) -> None:
        self.hosts: list[ConnectionHost] = []
        self.ended: list[str] = []
        self.parts: list[Connection] = []

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        connection = await MemoryTransport().connect(
            attrs.evolve(url, transport="memory"), options=options, nursery=nursery
        )
        await connection.send(b"session\n")
        return connection

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        return await MemoryTransport().listen(
            attrs.evolve(url, transport="memory"), options=options, nursery=nursery
        )

    async def serve_connection(
        self, connection: Connection, host: ConnectionHost, /
    ) -> Connection | None:
        self.hosts.append(host)
        try:
            line = await _line(connection)
            return await self._act(line, connection, host)
        finally:
            self.ended.append("attended")

    async def _act(
        self, line: str, connection: Connection, host: ConnectionHost
    ) -> Connection | None:
        word, _, rest = line.partition(" ")
        if word == "session":
            return connection
        host.recognise()
        host.write_access(connection.peer, "knock", f"word={word}")
        if word == "read":
            await self._read(rest, connection, host)
        elif word == "split":
            answers = []
            for _ in range(2):
                mine, theirs = trio.testing.memory_stream_pair()
                part = ByteConnection(theirs, peer=connection.peer, options=TransportOptions())
                answers.append(host.adopt(part) or "adopted")
                self.parts.append(
                    ByteConnection(mine, peer=connection.peer, options=TransportOptions())
                )
            await connection.send(f"{' '.join(answers)}\n".encode())
            await host.wait_draining()
        elif word == "stay":
            await host.wait_draining()
            self.ended.append("drained")
        elif word == "stubborn":
            await trio.sleep_forever()
        else:
            raise ValueError(word)
        return None

    async def _read(self, name: str, connection: Connection, host: ConnectionHost) -> None:
        lines = Lines()
        try:
            user, _, name = name.rpartition("@")
            peer = await host.authenticate("basic" if user else "", user.encode(), connection.peer)
            await host.open(name, peer, lines, protocol="knock")
        except (PenstockError, AuthRefused) as error:
            await connection.send(f"refused {type(error).__name__} {error}\n".encode())
            return
        async for line in lines.out:
            await connection.send(line)


class Lines(Subscriber[bytes]):
    def __init__(self) -> None:
        self.into, self.out = trio.open_memory_channel[bytes](1000)
        self.batches = 0

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscription.request(UNBOUNDED)

    def on_next(self, element: bytes, /) -> None:
        self.on_next_many([element])

    def on_next_many(self, elements: Sequence[bytes], /) -> None:
        self.batches += 1
        for element in elements:
            self.into.send_nowait(element + b"\n")

    def on_error(self, error: BaseException, /) -> None:
        self.into.send_nowait(f"failed {error}\n".encode())
        self.into.close()

    def on_complete(self, /) -> None:
        self.into.send_nowait(b"end\n")
        self.into.close()


class KnockPlugin:
    def __init__(self) -> None:
        self.transport = KnockTransport()

    @hookimpl
    def penstock_transports(self) -> list[Transport]:
        return [self.transport]


async def _line(connection: Connection) -> str:
    """Read byte by byte: bytes behind the line belong to the session."""
    assert isinstance(connection, ByteConnection)
    line = b""
    while not line.endswith(b"\n"):
        byte = await connection.stream.receive_some(1)
        if not byte:
            raise trio.BrokenResourceError
        line += byte
    return line.decode().strip()


STRANGER = PeerIdentity(address="knock://stranger", host="192.0.2.1")
