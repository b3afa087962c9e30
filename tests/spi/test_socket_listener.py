"""`SocketListener` accepts one connection at a time, loses none,
and keeps one client's errors away from the others.
"""

import errno
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest
import trio

from penstock.spi import (
    ByteConnection,
    Connection,
    PeerIdentity,
    SocketListener,
    TransportOptions,
    parse_url,
)
from penstock.spi._socket_listener import GONE_PER_TURN
from tests.transports._helpers import exchange

OPTIONS = TransportOptions()


def _connection(stream: trio.SocketStream, address: Any) -> Connection:
    return ByteConnection(stream, peer=PeerIdentity(address=f"port {address[1]}"), options=OPTIONS)


def _listening() -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.bind(("127.0.0.1", 0))
    sock.listen(1024)
    return sock


def _listener(count: int = 1, **more: Any) -> SocketListener:
    sockets = [_listening() for _ in range(count)]
    return SocketListener(
        sockets, [parse_url("tcp://x:1")], more.pop("make_connection", _connection), **more
    )


async def _dial(listener: SocketListener, which: int = 0) -> ByteConnection:
    stream = await trio.open_tcp_stream(*listener._sockets[which].getsockname())
    return ByteConnection(stream, peer=PeerIdentity(address="server"), options=OPTIONS)


@pytest.mark.parametrize("count", [1, 2])
async def test_accept_returns_each_client(count: int) -> None:
    """The client may connect before `accept` is called or while it waits;
    the listener may have one socket or two.
    """
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


async def test_no_connection_is_lost_if_two_sockets_become_ready_at_once() -> None:
    """Both clients are accepted, one by each call."""
    listener = _listener(2)
    accepted = []

    async def accept_one() -> None:
        accepted.append(await listener.accept())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept_one)
        await trio.testing.wait_all_tasks_blocked()
        # No checkpoint in between.
        clients = [socket.create_connection(sock.getsockname()) for sock in listener._sockets]
    await accept_one()
    ports = {connection.peer.address for connection in accepted}
    assert ports == {f"port {client.getsockname()[1]}" for client in clients}
    for client in clients:
        client.close()
    for connection in accepted:
        await connection.aclose()
    await listener.aclose()


@pytest.mark.parametrize("count", [1, 2])
async def test_a_cancelled_accept_has_accepted_no_connection(count: int) -> None:
    """A client that connects just before the cancellation is returned by the next `accept`."""
    listener = _listener(count)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.accept)
        await trio.testing.wait_all_tasks_blocked()
        # No checkpoint before the cancellation.
        client = socket.create_connection(listener._sockets[0].getsockname())
        nursery.cancel_scope.cancel()
    server = await listener.accept()
    assert server.peer.address == f"port {client.getsockname()[1]}"
    client.close()
    await server.aclose()
    await listener.aclose()


@pytest.mark.parametrize("count", [1, 2])
async def test_closing_wakes_a_waiting_accept(count: int) -> None:
    """The waiting call and every later one raise ClosedResourceError,
    without an exception group.
    """
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


async def test_closing_twice_calls_on_close_once() -> None:
    """The second `aclose` does nothing."""
    closed = []
    listener = _listener(on_close=lambda: closed.append(1))
    await listener.aclose()
    await listener.aclose()
    assert closed == [1]


class Failing:
    """A listening socket whose `accept` fails with the given errors, then works."""

    def __init__(self, real: socket.socket, *errors: int) -> None:
        self._real = real
        self._errors = list(errors)

    def accept(self) -> Any:
        if self._errors:
            raise OSError(self._errors.pop(0), "injected")
        return self._real.accept()

    def fileno(self) -> int:
        return self._real.fileno()

    def close(self) -> None:
        self._real.close()


def _failing(*errors: int) -> tuple[SocketListener, Callable[[], Any]]:
    real = _listening()
    sockets = [Failing(real, *errors)]
    listener = SocketListener(sockets, [parse_url("tcp://x:1")], _connection)  # type: ignore[arg-type]  # a fake on purpose
    return listener, real.getsockname


@pytest.mark.parametrize(
    "number", [errno.ECONNABORTED, errno.ECONNRESET, errno.EPROTO, errno.EPERM, errno.ENETDOWN]
)
async def test_an_error_of_one_client_is_dropped(number: int) -> None:
    """The next client is accepted."""
    listener, name = _failing(number, number)
    client = await trio.open_tcp_stream(*name())
    server = await listener.accept()
    await client.aclose()
    await server.aclose()
    await listener.aclose()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
async def test_a_lack_of_files_or_memory_is_raised(number: int) -> None:
    """The caller can pause and call again: the listener still works, and the client still waits."""
    listener, name = _failing(number)
    client = await trio.open_tcp_stream(*name())
    with pytest.raises(OSError, match="injected"):
        await listener.accept()
    server = await listener.accept()
    await client.aclose()
    await server.aclose()
    await listener.aclose()


async def test_a_client_whose_connection_cannot_be_made_is_skipped() -> None:
    """`make_connection` raises OSError for a dead socket:
    that client is closed, and the next one is accepted.
    """
    calls = []

    def make_connection(stream: trio.SocketStream, address: Any) -> Connection:
        calls.append(address)
        if len(calls) == 1:
            raise OSError(errno.EINVAL, "gone")
        return _connection(stream, address)

    listener = _listener(make_connection=make_connection)
    first, second = await _dial(listener), await _dial(listener)
    server = await listener.accept()
    assert await first.receive() is None
    await exchange(second, server)
    for connection in (first, second, server):
        await connection.aclose()
    await listener.aclose()


async def test_a_bug_in_make_connection_is_raised_and_the_socket_closed() -> None:
    """Any exception other than OSError reaches the caller of `accept`."""

    def make_connection(stream: trio.SocketStream, address: Any) -> Connection:
        raise ZeroDivisionError

    listener = _listener(make_connection=make_connection)
    client = await _dial(listener)
    with pytest.raises(ZeroDivisionError):
        await listener.accept()
    assert await client.receive() is None
    await client.aclose()
    await listener.aclose()


async def test_accept_checkpoints_even_if_a_client_waits() -> None:
    """Otherwise a flood of clients would starve the other tasks."""
    listener = _listener()
    client = await _dial(listener)
    with trio.testing.assert_checkpoints():
        server = await listener.accept()
    await client.aclose()
    await server.aclose()
    await listener.aclose()


async def test_accept_nowait_returns_a_client_that_waits_and_none_if_no_client_does() -> None:
    """It does not wait, and a closed listener raises as in `accept`."""
    listener = _listener()
    client = await _dial(listener)
    server = listener.accept_nowait()
    assert server is not None
    assert listener.accept_nowait() is None
    await client.aclose()
    await server.aclose()
    await listener.aclose()
    with pytest.raises(trio.ClosedResourceError):
        listener.accept_nowait()


def _reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


@pytest.mark.parametrize("leave", [_reset, socket.socket.close], ids=["reset", "closed"])
@pytest.mark.parametrize("count", [1, 2])
async def test_a_client_that_left_before_it_sent_a_byte_is_skipped(
    count: int, leave: Callable[[socket.socket], None]
) -> None:
    """`accept` returns the next client, and closes the files of those that have left: they must
    not use up a server's rate.
    """
    made: list[int] = []

    def make_connection(stream: trio.SocketStream, address: Any) -> Connection:
        made.append(address[1])
        return _connection(stream, address)

    listener = _listener(count, make_connection=make_connection)
    for number in range(2 * GONE_PER_TURN):
        leave(socket.create_connection(listener._sockets[number % count].getsockname()))
    client = socket.create_connection(listener._sockets[0].getsockname())
    server = await listener.accept()
    assert made == [client.getsockname()[1]]
    client.close()
    await server.aclose()
    await listener.aclose()


async def test_a_client_that_sent_a_byte_before_it_left_is_accepted() -> None:
    """Its bytes are read, and then its end."""
    listener = _listener()
    with socket.create_connection(listener._sockets[0].getsockname()) as client:
        client.sendall(b"bye")
    server = await listener.accept()
    assert await server.receive() == b"bye"
    assert await server.receive() is None
    await server.aclose()
    await listener.aclose()
