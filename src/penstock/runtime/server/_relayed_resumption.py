"""A client that comes back to another worker than the one that holds its lost connection.

Rules of this file:

* The worker that the client has reached answers its hello, and examines its credentials. The worker
  that holds the connection decides whether it goes on, as for a client of its own.
* The bytes behind the answer pass through the first worker, unread. TLS and WebSocket end there, so
  a message between the two is a chunk of bytes, or a message of the transport.
* A principal never leaves its process: its text does, and only if that has everything of it.
* If one of the two workers dies, the client has lost a transport again.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import msgspec
import trio

from penstock.api import ConnectionLost, Limits, ProtocolError
from penstock.runtime.connection import DeadlineSender
from penstock.runtime.server._resumable import ResumableConnections
from penstock.spi import (
    Connection,
    ConnectionFacts,
    ConnectionHost,
    MessageConnection,
    PeerIdentity,
    WorkerGroup,
)

PURPOSE: Final = "resume"

_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, ConnectionLost)


class _Asked(msgspec.Struct):
    token: bytes
    position: int
    principal: str | None


class _Answered(msgspec.Struct):
    number: int
    token: bytes
    received: int


class _Given(msgspec.Struct):
    framed: bool
    address: str
    host: str | None
    port: int | None
    protocol: str | None
    half_close: bool
    local: bool
    secure: bool


class RelayedResumption:
    """A lost connection that another worker holds. A `LostConnection`."""

    def __init__(
        self, group: WorkerGroup, worker: str, limits: Limits, relays: set[trio.CancelScope]
    ) -> None:
        """`relays` has a scope for each connection whose bytes pass through this process."""
        self._group = group
        self._worker = worker
        self._limits = limits
        self._relays = relays
        self._stream: MessageConnection | None = None

    async def take_over(
        self, token: bytes, position: int, principal: object
    ) -> tuple[int, bytes, int]:
        """Ask the worker that holds the connection."""
        try:
            self._stream = stream = await self._group.open(self._worker, PURPOSE)
            with trio.fail_after(self._limits.handshake_timeout):
                await stream.send(
                    msgspec.msgpack.encode(_Asked(token, position, text_of_principal(principal)))
                )
                data = await stream.receive()
        except (*_GONE, trio.TooSlowError):
            data = None
        if data is None:
            await self.release()
            raise ConnectionLost(
                f"a client came back with a token of worker {self._worker}, which is over, does "
                "not know it, or does not answer"
            )
        answered = msgspec.msgpack.decode(data, type=_Answered)
        return answered.number, answered.token, answered.received

    async def go_on(self, number: int, connection: Connection, position: int) -> None:
        """Pass on the bytes between the client and the other worker, until one of them ends."""
        stream = self._stream
        if stream is None:
            return
        scope = trio.CancelScope()
        self._relays.add(scope)
        try:
            with scope, suppress(*_GONE):
                await stream.send(msgspec.msgpack.encode(_given(connection)))
                await _pass_on(connection, stream, DeadlineSender(connection, self._limits))
        finally:
            self._relays.discard(scope)
            with trio.move_on_after(self._limits.goodbye_timeout, shield=True):
                await connection.aclose()
            await self.release()

    async def release(self) -> None:
        """Let the other worker go."""
        stream, self._stream = self._stream, None
        if stream is not None:
            with trio.CancelScope(shield=True):
                await stream.abort()

    def fail(self, wrong: ProtocolError) -> None:
        """Do nothing: the worker that holds the connection has ended it."""


async def _pass_on(
    connection: Connection, stream: MessageConnection, to_client: DeadlineSender
) -> None:
    async with trio.open_nursery() as nursery:

        async def to_worker() -> None:
            try:
                while (data := await connection.receive()) is not None:
                    await stream.send(data)
                await stream.send_eof()
            except _GONE:
                nursery.cancel_scope.cancel()

        nursery.start_soon(to_worker)
        # Caught here, and not outside of the nursery, which would make groups of them. One of the
        # two sides has ended without a goodbye; the caller tells the other one.
        # A client that does not read is given up as by the worker that holds its connection, which
        # cannot tell it: this task would wait in its send.
        with suppress(*_GONE, trio.TooSlowError):
            while (data := await stream.receive()) is not None:
                await to_client.send(data)
        # The worker has closed the connection: nothing of the client is read any more.
        nursery.cancel_scope.cancel()


def _given(connection: Connection) -> _Given:
    peer, facts = connection.peer, connection.facts
    return _Given(
        framed=connection.framed,
        address=peer.address,
        host=peer.host,
        port=peer.port,
        protocol=facts.protocol,
        half_close=facts.half_close,
        local=facts.local,
        secure=facts.secure,
    )


def answer_resumptions(
    table: ResumableConnections, limits: Limits
) -> Callable[[MessageConnection, ConnectionHost], Awaitable[None]]:
    """Return the handler of clients that have come back to another worker."""

    async def answer(stream: MessageConnection, _host: ConnectionHost) -> None:
        data = await stream.receive()
        asked = msgspec.msgpack.decode(data or b"", type=_Asked)
        resumption = table.find_here(asked.token)
        if resumption is None:
            return
        principal = resumption.principal
        if asked.principal is None or asked.principal != text_of_principal(principal):
            return
        try:
            number, following, received = await resumption.take_over(
                asked.token, asked.position, principal
            )
        except ProtocolError as wrong:
            resumption.fail(wrong)
            return
        except ConnectionLost:
            return
        await stream.send(msgspec.msgpack.encode(_Answered(number, following, received)))
        with trio.fail_after(limits.handshake_timeout):
            data = await stream.receive()
        given = msgspec.msgpack.decode(data or b"", type=_Given)
        # Each message of the stream is a chunk, or a message of the transport: it is that
        # connection from now on.
        stream.framed = given.framed
        stream.peer = PeerIdentity(address=given.address, host=given.host, port=given.port)
        stream.facts = ConnectionFacts(
            protocol=given.protocol,
            half_close=given.half_close,
            local=given.local,
            secure=given.secure,
        )
        await resumption.go_on(number, stream, asked.position)

    async def answer_quietly(stream: MessageConnection, host: ConnectionHost) -> None:
        try:
            await answer(stream, host)
        except (*_GONE, trio.TooSlowError, msgspec.DecodeError):
            pass  # the other worker, or its client, has gone

    return answer_quietly


def text_of_principal(principal: object) -> str | None:
    """Return a text that only equal principals have; None if its type has none.

    The text of another object may leave out the difference between two of them.
    """
    if isinstance(principal, tuple) and type(principal) is tuple:
        texts = [text_of_principal(each) for each in principal]
        return None if None in texts else f"({','.join(map(str, texts))})"
    if principal is None or type(principal) in (str, int, bytes, bool):
        return f"{type(principal).__name__} {principal!r}"
    return None
