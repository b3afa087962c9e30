"""Accepting on sockets: one at a time, none lost, nobody's fault but the client's own."""

import errno
import socket
from collections.abc import Callable
from typing import Any

import pytest
import trio

from penstock.builtin._socket_listener import SocketListener, close_all
from penstock.plugins import ByteConnection, Connection, PeerIdentity, TransportOptions, parse_url
from tests.builtin._helpers import exchange

OPTIONS = TransportOptions()


def _welcome(stream: trio.SocketStream, address: Any) -> Connection:
    return ByteConnection(stream, peer=PeerIdentity(address=f"port {address[1]}"), options=OPTIONS)


def _listening() -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    return sock


def _listener(count: int = 1, **more: Any) -> SocketListener:
    sockets = [_listening() for _ in range(count)]
    return SocketListener(sockets, [parse_url("tcp://x:1")], more.pop("welcome", _welcome), **more)


async def _dial(listener: SocketListener, which: int = 0) -> ByteConnection:
    stream = await trio.open_tcp_stream(*listener._sockets[which].getsockname())
    return ByteConnection(stream, peer=PeerIdentity(address="server"), options=OPTIONS)


@pytest.mark.parametrize("count", [1, 2])
async def test_who_comes_is_welcomed(count: int) -> None:
    """Whether the client was there first or the listener waited; on one socket or on several."""
    listener = _listener(count)
    for which in (0, count - 1):
        client = await _dial(listener, which)
        server = await listener.accept()
        await exchange(client, server)
        await client.aclose()
        await server.aclose()
    async with trio.open_nursery() as nursery:
        accepted = []

        async def accept() -> None:
            accepted.append(await listener.accept())

        nursery.start_soon(accept)
        await trio.testing.wait_all_tasks_blocked()
        client = await _dial(listener)
    await client.aclose()
    await accepted[0].aclose()
    await listener.aclose()


async def test_no_connection_is_lost_when_two_come_at_once() -> None:
    """Two sockets become ready in the same moment: both clients are accepted, each socket in its turn."""
    listener = _listener(2)
    accepted = []

    async def accept_one() -> None:
        accepted.append(await listener.accept())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept_one)
        await trio.testing.wait_all_tasks_blocked()
        clients = [socket.create_connection(sock.getsockname()) for sock in listener._sockets]  # no checkpoint in between
    await accept_one()
    ports = {connection.peer.address for connection in accepted}
    assert ports == {f"port {client.getsockname()[1]}" for client in clients}
    for client in clients:
        client.close()
    for connection in accepted:
        await connection.aclose()
    await listener.aclose()


@pytest.mark.parametrize("count", [1, 2])
async def test_a_cancelled_accept_has_taken_nobody(count: int) -> None:
    """The client that came in that moment is the next one's."""
    listener = _listener(count)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.accept)
        await trio.testing.wait_all_tasks_blocked()
        client = socket.create_connection(listener._sockets[0].getsockname())  # no checkpoint before the cancellation
        nursery.cancel_scope.cancel()
    server = await listener.accept()
    assert server.peer.address == f"port {client.getsockname()[1]}"
    client.close()
    await server.aclose()
    await listener.aclose()


@pytest.mark.parametrize("count", [1, 2])
async def test_closing_wakes_who_waits(count: int) -> None:
    """A waiting accept, and every later one, raises ClosedResourceError, bare."""
    listener = _listener(count)
    raised = []

    async def accept() -> None:
        try:
            await listener.accept()
        except trio.ClosedResourceError as error:
            raised.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        await trio.testing.wait_all_tasks_blocked()
        await listener.aclose()
    with pytest.raises(trio.ClosedResourceError, match="this listener is closed"):
        await listener.accept()
    assert len(raised) == 1


async def test_closing_twice_is_closing_once() -> None:
    """What is to be done on closing is done once."""
    closed = []
    listener = _listener(on_close=lambda: closed.append(1))
    await listener.aclose()
    await listener.aclose()
    assert closed == [1]


class Failing:
    """A listening socket whose accept fails as it is told, then works."""

    def __init__(self, real: socket.socket, *errors: int) -> None:
        self._real = real
        self._errors = list(errors)

    def accept(self) -> Any:
        if self._errors:
            raise OSError(self._errors.pop(0), "as told")
        return self._real.accept()

    def fileno(self) -> int:
        return self._real.fileno()

    def close(self) -> None:
        self._real.close()


def _failing(*errors: int) -> tuple[SocketListener, Callable[[], Any]]:
    real = _listening()
    listener = SocketListener([Failing(real, *errors)], [parse_url("tcp://x:1")], _welcome)  # type: ignore[list-item]  # a fake on purpose
    return listener, real.getsockname


@pytest.mark.parametrize("number", [errno.ECONNABORTED, errno.ECONNRESET, errno.EPROTO, errno.EPERM, errno.ENETDOWN])
async def test_what_happened_to_one_client_is_not_the_listener_s(number: int) -> None:
    """Its error is dropped, and the next client is accepted."""
    listener, name = _failing(number, number)
    client = await trio.open_tcp_stream(*name())
    server = await listener.accept()
    await client.aclose()
    await server.aclose()
    await listener.aclose()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
async def test_a_process_out_of_something_is_told(number: int) -> None:
    """Only the caller can pause; the listener itself is well, and the client still waits."""
    listener, name = _failing(number)
    client = await trio.open_tcp_stream(*name())
    with pytest.raises(OSError, match="as told"):
        await listener.accept()
    server = await listener.accept()
    await client.aclose()
    await server.aclose()
    await listener.aclose()


async def test_a_client_that_is_gone_before_it_is_welcomed_is_passed_over() -> None:
    """An option that cannot be set on a dead socket raises OSError: the next client is accepted, the dead one closed."""
    calls = []

    def welcome(stream: trio.SocketStream, address: Any) -> Connection:
        calls.append(address)
        if len(calls) == 1:
            raise OSError(errno.EINVAL, "gone")
        return _welcome(stream, address)

    listener = _listener(welcome=welcome)
    first, second = await _dial(listener), await _dial(listener)
    server = await listener.accept()
    assert await first.receive() is None
    await exchange(second, server)
    for connection in (first, second, server):
        await connection.aclose()
    await listener.aclose()


async def test_a_mistake_in_the_welcome_is_told_and_leaves_nothing_open() -> None:
    """A bug is a bug; the socket is closed all the same."""

    def welcome(stream: trio.SocketStream, address: Any) -> Connection:
        raise ZeroDivisionError

    listener = _listener(welcome=welcome)
    client = await _dial(listener)
    with pytest.raises(ZeroDivisionError):
        await listener.accept()
    assert await client.receive() is None
    await client.aclose()
    await listener.aclose()


async def test_accepting_checkpoints_also_when_somebody_waits() -> None:
    """A flood of clients cannot starve the other tasks."""
    listener = _listener()
    client = await _dial(listener)
    with trio.testing.assert_checkpoints():
        server = await listener.accept()
    await client.aclose()
    await server.aclose()
    await listener.aclose()


def test_sockets_are_closed_together() -> None:
    """All of them."""
    sockets = [_listening(), _listening()]
    close_all(sockets)
    assert [sock.fileno() for sock in sockets] == [-1, -1]
