"""The transports ``memory://name`` (bytes) and ``memory-framed://name`` (whole messages): connections inside one process.

Rules of this file:

* A name belongs to the run loop: two runs in one process do not see each other's, and nothing outlives a run.
* They behave as the network does: what is sent waits when it is not read, and a listener has a bounded queue.
"""

from typing import ClassVar, Final

import trio

from penstock.api import ConnectionLost, LimitExceeded, UsageError
from penstock.builtin._memory_pipe import DEFAULT_CAPACITY, MessagePipe, memory_stream_pair
from penstock.plugins import (
    ByteConnection,
    Bytes,
    Connection,
    ConnectionFacts,
    Listener,
    MessageConnection,
    PeerIdentity,
    Transport,
    TransportOptions,
    Url,
)

_Table = dict[tuple[str, str], "MemoryListener"]
_CLOSE_SECONDS: Final = 1.0
_LISTENERS: Final[trio.lowlevel.RunVar[_Table]] = trio.lowlevel.RunVar("penstock.builtin.memory")


class MemoryTransport(Transport):
    """Bytes inside the process, over pipes that hold 64 KiB each way."""

    schemes: ClassVar[tuple[str, ...]] = ("memory",)

    async def connect(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Connection:
        name = _name_in(url)
        listener = _listeners().get((url.transport, name))
        if listener is None:
            await trio.lowlevel.checkpoint()
            raise ConnectionLost(f"nobody listens at {url.address} in this run loop")
        ours, theirs = self._pair(PeerIdentity(address=str(url.address)), options, listener.options)
        try:
            await listener.knock(theirs)
        except trio.BrokenResourceError:
            raise ConnectionLost(f"the listener at {url.address} was closed before it accepted") from None
        return ours

    async def listen(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Listener:
        place = url.transport, _name_in(url)
        await trio.lowlevel.checkpoint()
        if place in _listeners():
            raise UsageError(f"somebody listens at {url.address} in this run loop already; choose another name")
        listener = MemoryListener(url, place, options)
        _listeners()[place] = listener
        return listener

    def _pair(self, peer: PeerIdentity, ours: TransportOptions, theirs: TransportOptions) -> tuple[Connection, Connection]:
        here, there = memory_stream_pair()
        facts = ConnectionFacts(half_close=True, local=True)
        return (
            ByteConnection(here, peer=peer, options=ours, facts=facts),
            ByteConnection(there, peer=peer, options=theirs, facts=facts),
        )


class FramedMemoryTransport(MemoryTransport):
    """Whole messages inside the process: what a framed transport is like, for tests of what runs on one."""

    schemes: ClassVar[tuple[str, ...]] = ("memory-framed",)
    framed: ClassVar[bool] = True

    def _pair(self, peer: PeerIdentity, ours: TransportOptions, theirs: TransportOptions) -> tuple[Connection, Connection]:
        there, back = MessagePipe(DEFAULT_CAPACITY), MessagePipe(DEFAULT_CAPACITY)
        return MemoryMessages(there, back, peer, ours.max_message), MemoryMessages(back, there, peer, theirs.max_message)


class MemoryMessages(MessageConnection):
    """One side of a connection of whole messages."""

    def __init__(self, outgoing: MessagePipe, incoming: MessagePipe, peer: PeerIdentity, max_message: int) -> None:
        super().__init__(peer=peer, facts=ConnectionFacts(half_close=True, local=True))
        self._outgoing = outgoing
        self._incoming = incoming
        self._max_message = max_message

    async def send(self, data: Bytes, /) -> None:
        await self._outgoing.send(data)

    async def receive(self) -> bytes | None:
        message = await self._incoming.receive()
        if message is not None and len(message) > self._max_message:
            raise LimitExceeded(
                f"a message of {len(message)} bytes arrived; {self._max_message} are allowed. Send it in parts, or raise max_message",
                limit="max_message",
                value=self._max_message,
            )
        return message

    async def send_eof(self) -> None:
        await trio.lowlevel.checkpoint()
        self._outgoing.end()

    async def aclose(self) -> None:
        self._outgoing.end()
        self._incoming.abandon()
        await trio.lowlevel.checkpoint()

    async def abort(self) -> None:
        await self.aclose()


class MemoryListener(Listener):
    """Holds a name until it is closed, and the connections that wait to be accepted."""

    def __init__(self, url: Url, place: tuple[str, str], options: TransportOptions) -> None:
        self.addresses = (url.address,)
        self.options = options
        self._place = place
        self._door, self._queue = trio.open_memory_channel[Connection](options.backlog)
        self._waiting: dict[Connection, None] = {}  # in the queue, or waiting for a place in it

    async def knock(self, connection: Connection) -> None:
        """Wait for a place in the queue. Cancelled, nobody has come."""
        self._waiting[connection] = None
        try:
            await self._door.send(connection)
        except BaseException:
            self._waiting.pop(connection, None)
            raise

    async def accept(self) -> Connection:
        connection = await self._queue.receive()
        del self._waiting[connection]
        return connection

    async def aclose(self) -> None:
        if _listeners().get(self._place) is self:
            del _listeners()[self._place]
            self._queue.close()
            with trio.move_on_after(_CLOSE_SECONDS, shield=True):  # none is forgotten, also when this task is cancelled meanwhile
                for connection in tuple(self._waiting):
                    await connection.abort()
        await trio.lowlevel.checkpoint()


def _listeners() -> _Table:
    try:
        return _LISTENERS.get()
    except LookupError:
        table: _Table = {}
        _LISTENERS.set(table)
        return table


def _name_in(url: Url) -> str:
    if not url.host or url.path or url.port is not None:
        raise UsageError(f"{url.address} is not of the form {url.scheme}://name/publisher")
    return url.host
