"""A wire that can be cut: the transport ``cut://name``, offered through the door for plugins, over the pipes of the memory transport.

Rules of this file:

* A cut happens where its bytes are read: the reader gets exactly `Cut.after` bytes of that way, and at its next look the wire is cut.
* Only the first connection is cut: whoever connects anew finds a whole wire.
* What each side sees of a cut is what a socket would show it: see `How`.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final

import trio

from penstock.builtin import MemoryTransport
from penstock.builtin._memory_pipe import BytePipe
from penstock.plugins import ByteConnection, Bytes, Connection, ConnectionFacts, PeerIdentity, Transport, TransportOptions, hookimpl


class Way(Enum):
    """A direction of a connection."""

    TO_SERVER = "to the server"
    TO_CLIENT = "to the client"


class How(Enum):
    """What is left of a cut connection."""

    FIN = "FIN"
    """The other way still brings what is under way in it; then both ways end in good order. Sending fails."""
    RST = "RST"
    """Everything fails at once, on both sides, and what is under way is lost."""
    SILENCE = "silence"
    """Nobody is told: nothing arrives any more, and what is sent waits for ever. A cable that was pulled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where a connection is cut, and how."""

    way: Way
    after: int
    how: How

    def __str__(self) -> str:
        return f"cut ({self.how.value}) after {self.after} bytes {self.way.value}"


class Wire:
    """Every connection of a run: what is to be done to the first of them, and what it carried."""

    def __init__(self, cut: Cut | None = None, *, capacity: int = 1 << 16) -> None:
        self.cut = cut
        self.capacity = capacity
        self.carried = dict.fromkeys(Way, 0)
        """Bytes that were read from the first connection, each way."""
        self.connections = 0
        self.cut_at: float | None = None


WIRE: Final[trio.lowlevel.RunVar[Wire]] = trio.lowlevel.RunVar("the wire of this run")


class CutTransport(MemoryTransport):
    """The memory transport, over the wire of the run."""

    schemes: ClassVar[tuple[str, ...]] = ("cut",)

    def _pair(self, peer: PeerIdentity, ours: TransportOptions, theirs: TransportOptions) -> tuple[Connection, Connection]:
        wire = WIRE.get()
        wire.connections += 1
        cable = Cable(wire, counts=wire.connections == 1)
        facts = ConnectionFacts(half_close=True, local=True)
        return (
            ByteConnection(cable.ends[0], peer=peer, options=ours, facts=facts),
            ByteConnection(cable.ends[1], peer=peer, options=theirs, facts=facts),
        )


class Cuts:
    """The plugin that brings it."""

    @hookimpl
    def penstock_transports(self) -> list[Transport]:
        """``cut``."""
        return [CutTransport()]


class Cable:
    """One connection: two pipes, and how they fare."""

    def __init__(self, wire: Wire, *, counts: bool) -> None:
        self.wire = wire
        self.cut = wire.cut if counts else None
        self.counts = counts
        self.state: How | None = None
        there, back = BytePipe(wire.capacity), BytePipe(wire.capacity)
        self.pipes = there, back
        self.ends = CableEnd(self, Way.TO_CLIENT, there, back), CableEnd(self, Way.TO_SERVER, back, there)

    def fall(self) -> None:
        """It is cut now."""
        assert self.cut is not None
        self.state = self.cut.how
        self.wire.cut_at = trio.current_time()
        if self.state is How.SILENCE:
            return
        for pipe in self.pipes:
            pipe.close_sender()
            if self.state is How.RST:
                pipe.close_reader()


class CableEnd(trio.abc.HalfCloseableStream):
    """One side of a connection."""

    def __init__(self, cable: Cable, reads: Way, outgoing: BytePipe, incoming: BytePipe) -> None:
        self._cable = cable
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
        most = self._room(1 << 16 if max_bytes is None else max_bytes)
        try:
            await self._check(reading=True)
            if self._cable.state is How.FIN and most <= 0:
                await trio.lowlevel.checkpoint()
                return b""
            data = await self._incoming.receive_some(most)
        except (trio.ClosedResourceError, trio.BrokenResourceError) as error:
            await self._check(error, reading=True)
            raise
        if not data:
            await self._check(reading=True)  # the other side may have closed what is cut already
        self._received += len(data)
        if self._cable.counts:
            self._cable.wire.carried[self._reads] += len(data)
        return data

    async def send_eof(self) -> None:
        if self._cable.state is None:
            await self._outgoing.send_eof()
        else:
            await self._check()

    async def aclose(self) -> None:
        self._closed.set()
        self._outgoing.close_sender()
        self._incoming.close_reader()
        await trio.lowlevel.checkpoint()

    def _room(self, most: int) -> int:
        """Return how many bytes may be read still; where that is none, the cable is cut."""
        cable = self._cable
        if cable.cut is None or cable.cut.way is not self._reads:
            return most
        left = cable.cut.after - self._received
        if left <= 0 and cable.state is None and not self._closed.is_set():
            cable.fall()
        return min(most, left)

    async def _check(self, error: Exception | None = None, *, reading: bool = False) -> None:
        """Do what a cut cable does, unless this side has closed it."""
        if self._closed.is_set() or self._cable.state is None:
            return
        if self._cable.state is How.SILENCE:
            await self._closed.wait()
            raise trio.ClosedResourceError("this side of the cable was closed")
        if self._cable.state is How.RST or not reading:
            raise trio.BrokenResourceError("the cable was cut") from error
