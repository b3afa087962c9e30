"""A memory transport whose connections can be cut:
the scheme `cut`, registered as a plugin registers its transport.

Rules of this file:

* The reader of a cut direction receives exactly `Cut.after` bytes.
  Its next read cuts the connection.
* Only the first connection of a run is cut, unless its `Network` says otherwise. A reconnecting
  client gets an undamaged connection.
* Each side observes a cut as a socket would report it: see `CutMode`.
"""

from enum import Enum
from typing import ClassVar, Final

import attrs
import trio

from penstock.spi import (
    ByteConnection,
    Bytes,
    Connection,
    ConnectionFacts,
    PeerIdentity,
    Transport,
    TransportOptions,
    hookimpl,
)
from penstock.transports import MemoryTransport
from penstock.transports._memory_pipe import BytePipe


class Direction(Enum):
    """A direction of a connection."""

    TO_SERVER = "to the server"
    TO_CLIENT = "to the client"


class CutMode(Enum):
    """The errors that each side of a cut connection observes."""

    FIN = "FIN"
    """The other direction still delivers its buffered bytes.
    Then both directions report the end of input. Sending fails.
    """
    RST = "RST"
    """Reading and sending fail at once on both sides. Buffered bytes are lost."""
    SILENCE = "silence"
    """Neither side gets an error: reads and sends block until this side closes.
    This is an unplugged cable.
    """


@attrs.frozen(kw_only=True)
class Cut:
    """The place of a cut: the direction, the number of bytes that are delivered before it,
    and its mode.
    """

    direction: Direction
    after: int
    mode: CutMode

    def __str__(self) -> str:
        return f"cut ({self.mode.value}) after {self.after} bytes {self.direction.value}"


class Network:
    """All connections of a run: the cut for the first of them, and the bytes that it delivered."""

    def __init__(self, cut: Cut | None = None, *, capacity: int = 1 << 16) -> None:
        self.cut = cut
        self.capacity = capacity
        self.delivered = dict.fromkeys(Direction, 0)
        """Bytes that were read from the first connection, for each direction."""
        self.connections = 0

    def cut_of(self, number: int) -> Cut | None:
        """Return the cut of a connection, by its number from 1."""
        return self.cut if number == 1 else None


NETWORK: Final[trio.lowlevel.RunVar[Network]] = trio.lowlevel.RunVar("the network of this run")


class CutTransport(MemoryTransport):
    """The memory transport, over the network of the run."""

    schemes: ClassVar[tuple[str, ...]] = ("cut",)

    def _pair(
        self, peer: PeerIdentity, of_client: TransportOptions, of_server: TransportOptions
    ) -> tuple[Connection, Connection]:
        network = NETWORK.get()
        network.connections += 1
        connection = CuttableConnection(network, is_first=network.connections == 1)
        facts = ConnectionFacts(half_close=True, local=True)
        return (
            ByteConnection(connection.client, peer=peer, options=of_client, facts=facts),
            ByteConnection(connection.server, peer=peer, options=of_server, facts=facts),
        )


class CutPlugin:
    """The plugin that registers `CutTransport`."""

    @hookimpl
    def penstock_transports(self) -> list[Transport]:
        """Return the transport `cut`."""
        return [CutTransport()]


class CuttableConnection:
    """Two byte pipes, one for each direction, and the mode in which they were cut."""

    def __init__(self, network: Network, *, is_first: bool) -> None:
        self.network = network
        self.cut = network.cut_of(network.connections)
        self.is_first = is_first
        self.cut_mode: CutMode | None = None  # None until the cut has happened
        to_server, to_client = BytePipe(network.capacity), BytePipe(network.capacity)
        self.pipes = to_server, to_client
        self.client = CuttableStream(self, Direction.TO_CLIENT, to_server, to_client)
        self.server = CuttableStream(self, Direction.TO_SERVER, to_client, to_server)

    def apply_cut(self) -> None:
        """Cut both directions now."""
        assert self.cut is not None
        self.cut_mode = self.cut.mode
        if self.cut_mode is CutMode.SILENCE:
            return
        for pipe in self.pipes:
            pipe.close_sender()
            if self.cut_mode is CutMode.RST:
                pipe.close_reader()


class CuttableStream(trio.abc.HalfCloseableStream):
    """One side of a connection."""

    def __init__(
        self,
        connection: CuttableConnection,
        reads: Direction,
        outgoing: BytePipe,
        incoming: BytePipe,
    ) -> None:
        self._connection = connection
        self._reads = reads
        self._outgoing = outgoing
        self._incoming = incoming
        self._received = 0
        self._closed = trio.Event()

    async def send_all(self, data: Bytes) -> None:
        try:
            await self._check()
            await self._outgoing.send_all(data)
        except (trio.ClosedResourceError, trio.BrokenResourceError) as error:
            await self._check(error)
            raise

    async def wait_send_all_might_not_block(self) -> None:
        await self._outgoing.wait_room()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        allowed = self._limit_read(1 << 16 if max_bytes is None else max_bytes)
        try:
            await self._check(reading=True)
            if self._connection.cut_mode is CutMode.FIN and allowed <= 0:
                await trio.lowlevel.checkpoint()
                return b""
            data = await self._incoming.receive_some(allowed)
        except (trio.ClosedResourceError, trio.BrokenResourceError) as error:
            await self._check(error, reading=True)
            raise
        if not data:
            # The other side may have closed its stream after the cut.
            await self._check(reading=True)
        self._received += len(data)
        if self._connection.is_first:
            self._connection.network.delivered[self._reads] += len(data)
        return data

    async def send_eof(self) -> None:
        if self._connection.cut_mode is None:
            await self._outgoing.send_eof()
        else:
            await self._check()

    async def aclose(self) -> None:
        self._closed.set()
        self._outgoing.close_sender()
        self._incoming.close_reader()
        await trio.lowlevel.checkpoint()

    def _limit_read(self, max_bytes: int) -> int:
        """Return how many bytes this read may return. If the cut is reached, apply it."""
        connection = self._connection
        if connection.cut is None or connection.cut.direction is not self._reads:
            return max_bytes
        left = connection.cut.after - self._received
        if left <= 0 and connection.cut_mode is None and not self._closed.is_set():
            connection.apply_cut()
        return min(max_bytes, left)

    async def _check(self, error: Exception | None = None, *, reading: bool = False) -> None:
        """Block or raise as `CutMode` says.
        Do nothing if this side is closed or the connection is not cut.
        """
        if self._closed.is_set() or self._connection.cut_mode is None:
            return
        if self._connection.cut_mode is CutMode.SILENCE:
            await self._closed.wait()
            raise trio.ClosedResourceError("this side of the connection was closed")
        if self._connection.cut_mode is CutMode.RST or not reading:
            raise trio.BrokenResourceError("the connection was cut") from error
