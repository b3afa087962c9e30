"""The transports ``memory://name`` (bytes) and ``memory-framed://name`` (whole messages):
connections inside one process.

Rules of this file:

* A name belongs to the trio run: two runs in one process have separate names,
  and no listener outlives its run.
* They behave like a network: `send` waits if the peer does not read,
  and a listener has a bounded queue.
"""

from typing import ClassVar, Final

import trio

from penstock.api import ConnectionLost, LimitExceeded, UsageError
from penstock.spi import (
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
from penstock.transports._memory_pipe import DEFAULT_CAPACITY, MessagePipe, memory_stream_pair

_Table = dict[tuple[str, str], "MemoryListener"]
_CLOSE_SECONDS: Final = 1.0
_LISTENERS: Final[trio.lowlevel.RunVar[_Table]] = trio.lowlevel.RunVar("penstock.transports.memory")


class MemoryTransport(Transport):
    """Bytes inside the process, over pipes that hold 64 KiB in each direction."""

    schemes: ClassVar[tuple[str, ...]] = ("memory",)

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        name = _name_in(url)
        listener = _listeners().get((url.transport, name))
        if listener is None:
            await trio.lowlevel.checkpoint()
            raise ConnectionLost(f"no listener at {url.address} in this run loop")
        client, server = self._pair(
            PeerIdentity(address=str(url.address)), options, listener.options
        )
        try:
            await listener.enqueue(server)
        except trio.BrokenResourceError:
            raise ConnectionLost(
                f"the listener at {url.address} was closed before it accepted"
            ) from None
        return client

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        key = url.transport, _name_in(url)
        await trio.lowlevel.checkpoint()
        if key in _listeners():
            raise UsageError(
                f"another listener has {url.address} in this run loop already; choose another name"
            )
        listener = MemoryListener(url, key, options)
        _listeners()[key] = listener
        return listener

    def _pair(
        self, peer: PeerIdentity, of_client: TransportOptions, of_server: TransportOptions
    ) -> tuple[Connection, Connection]:
        client, server = memory_stream_pair()
        facts = ConnectionFacts(half_close=True, local=True)
        return (
            ByteConnection(client, peer=peer, options=of_client, facts=facts),
            ByteConnection(server, peer=peer, options=of_server, facts=facts),
        )


class FramedMemoryTransport(MemoryTransport):
    """Whole messages inside the process: for tests of code that runs on a framed transport."""

    schemes: ClassVar[tuple[str, ...]] = ("memory-framed",)
    framed: ClassVar[bool] = True

    def _pair(
        self, peer: PeerIdentity, of_client: TransportOptions, of_server: TransportOptions
    ) -> tuple[Connection, Connection]:
        to_server, to_client = MessagePipe(DEFAULT_CAPACITY), MessagePipe(DEFAULT_CAPACITY)
        return (
            MemoryMessageConnection(to_server, to_client, peer, of_client.max_message),
            MemoryMessageConnection(to_client, to_server, peer, of_server.max_message),
        )


class MemoryMessageConnection(MessageConnection):
    """One side of a connection of whole messages."""

    def __init__(
        self, outgoing: MessagePipe, incoming: MessagePipe, peer: PeerIdentity, max_message: int
    ) -> None:
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
                (
                    f"a message of {len(message)} bytes arrived; {self._max_message} are allowed. "
                    "Send it in parts, or raise max_message"
                ),
                limit="max_message",
                value=self._max_message,
            )
        return message

    async def send_eof(self) -> None:
        await trio.lowlevel.checkpoint()
        self._outgoing.close_sender()

    async def aclose(self) -> None:
        self._outgoing.close_sender()
        self._incoming.close_reader()
        await trio.lowlevel.checkpoint()

    async def abort(self) -> None:
        await self.aclose()


class MemoryListener(Listener):
    """Holds a name and a queue of connections to accept, until it is closed."""

    def __init__(self, url: Url, key: tuple[str, str], options: TransportOptions) -> None:
        self.addresses = (url.address,)
        self.options = options
        self._key = key
        self._queue_in, self._queue_out = trio.open_memory_channel[Connection](options.backlog)
        # In the queue, or waiting for room in it; in order.
        self._waiting: dict[Connection, None] = {}

    async def enqueue(self, connection: Connection) -> None:
        """Put a client's connection into the queue; waits while the queue is full. If cancelled,
        the connection is not in the queue.
        """
        self._waiting[connection] = None
        try:
            await self._queue_in.send(connection)
        except BaseException:
            # A cancellation above all: the connection leaves the count, and the exception goes on.
            self._waiting.pop(connection, None)
            raise

    async def accept(self) -> Connection:
        connection = await self._queue_out.receive()
        del self._waiting[connection]
        return connection

    async def aclose(self) -> None:
        if _listeners().get(self._key) is self:
            del _listeners()[self._key]
            self._queue_out.close()
            # Shielded: every waiting connection is closed, even if this task is cancelled.
            with trio.move_on_after(_CLOSE_SECONDS, shield=True):
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
