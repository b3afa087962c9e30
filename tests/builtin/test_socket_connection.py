"""A connection over a plain socket: what it does apart from its stream keeps the same promises."""

import socket
from typing import Any

import pytest
import trio
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from penstock.builtin._socket_connection import SocketConnection
from penstock.plugins import ConnectionFacts, PeerIdentity, TransportOptions


def pair(**options: Any) -> tuple[SocketConnection, trio.SocketStream]:
    """A connection, and the bare stream at its other end."""
    ours, theirs = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in socket.socketpair())
    return SocketConnection(
        ours, peer=PeerIdentity(address="there"), options=TransportOptions(**options), facts=ConnectionFacts(half_close=True)
    ), theirs


async def test_a_small_message_goes_at_once() -> None:
    """Without waiting, and all of it."""
    connection, there = pair()
    assert connection.send_now(b"hello") == 5
    assert connection.send_now(bytearray(b"again")) == 5
    assert await there.receive_some() == b"helloagain"
    await there.aclose()
    await connection.aclose()


async def test_what_finds_no_room_is_left_to_the_caller() -> None:
    """A socket whose peer does not read takes a part, then nothing; what it took arrives, once."""
    connection, there = pair()
    sent = 0
    while taken := connection.send_now(bytes(1 << 20)):
        assert taken < 1 << 20
        sent += taken
    assert connection.send_now(b"x") == 0
    got = 0
    while got < sent:
        got += len(await there.receive_some(1 << 20))
    assert (got, connection.send_now(b"x")) == (sent, 1)
    await there.aclose()
    await connection.aclose()


async def test_sending_at_once_after_the_end_sends_nothing() -> None:
    """`send` says what is wrong with that."""
    connection, there = pair()
    await connection.send_eof()
    assert connection.send_now(b"x") == 0
    with pytest.raises(trio.ClosedResourceError):
        await connection.send(b"x")
    await there.aclose()
    await connection.aclose()


async def test_a_peer_that_is_gone_breaks_what_is_sent_at_once() -> None:
    """As it breaks `send`; and on a closed connection it is the closing that is told."""
    connection, there = pair()
    await there.aclose()
    with pytest.raises(trio.BrokenResourceError):
        connection.send_now(b"x")
    await connection.aclose()
    with pytest.raises(trio.ClosedResourceError):
        connection.send_now(b"x")


@pytest.mark.parametrize("said", [b"ab", b"abcd", b"abcdefg"])
async def test_every_byte_is_received_whatever_the_chunks(said: bytes) -> None:
    """Fewer than a chunk, exactly one, and more: then what is left is read without waiting for what may never come."""
    connection, there = pair(receive_chunk=4)
    got = bytearray()
    await there.send_all(said)
    while len(got) < len(said):
        with assert_checkpoints():
            got += await connection.receive() or b""
    await there.aclose()
    for _ in range(2):
        with assert_checkpoints():
            assert await connection.receive() is None
    assert got == said
    await connection.aclose()


async def test_a_cancelled_receive_has_taken_nothing() -> None:
    """What comes afterwards is whole."""
    connection, there = pair()
    with trio.CancelScope() as waiting:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.receive)
            await wait_all_tasks_blocked()
            waiting.cancel()
    await there.send_all(b"whole")
    with trio.CancelScope() as scope:
        scope.cancel()
        await connection.receive()
    assert await connection.receive() == b"whole"
    await there.aclose()
    await connection.aclose()


@pytest.mark.parametrize("waits", [True, False])
async def test_receiving_on_a_closed_connection_is_told(nursery: trio.Nursery, waits: bool) -> None:
    """Whether it was closed before or meanwhile."""
    connection, there = pair()
    if waits:

        async def close() -> None:
            await wait_all_tasks_blocked()
            await connection.aclose()

        nursery.start_soon(close)
    else:
        await connection.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await connection.receive()
    await there.aclose()


async def test_a_reset_breaks_what_is_received() -> None:
    """Also where the reader was waiting for it: the system tells it once, to the first who asks."""
    listening = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listening.getsockname())
    accepted, _ = listening.accept()
    accepted.setblocking(False)
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
    connection = SocketConnection(stream, peer=PeerIdentity(address="there"), options=TransportOptions(), facts=ConnectionFacts())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    client.close()
    with pytest.raises(trio.BrokenResourceError):
        await connection.receive()
    await connection.aclose()
    listening.close()


async def test_a_socket_that_was_only_said_to_be_readable_is_waited_for(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may wake a reader for nothing."""
    connection, there = pair()

    async def at_once(_: object) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(trio.lowlevel, "wait_readable", at_once)

    async def speak() -> None:
        await wait_all_tasks_blocked()
        await there.send_all(b"late")

    nursery.start_soon(speak)
    assert await connection.receive() == b"late"
    await there.aclose()
    await connection.aclose()


async def awake(connection: SocketConnection, there: trio.SocketStream) -> None:
    """Let something be read, so that it looks for more."""
    await there.send_all(b"first")
    assert await connection.receive() == b"first"


async def test_a_connection_that_is_to_stay_awake_sees_what_comes_without_being_woken() -> None:
    """For a while after each read; others have their turns meanwhile."""
    connection, there = pair(busy_poll=0.1)
    await awake(connection, there)
    turns = 0

    async def neighbour() -> None:
        nonlocal turns
        for turns in range(5):  # noqa: B007  # counted outside
            await trio.lowlevel.checkpoint()
        await there.send_all(b"more")

    waits: list[object] = []
    wait_readable = trio.lowlevel.wait_readable
    async with trio.open_nursery() as nursery:
        nursery.start_soon(neighbour)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trio.lowlevel, "wait_readable", lambda sock: waits.append(sock) or wait_readable(sock))
            assert await connection.receive() == b"more"
    assert (turns, waits) == (4, [])
    await there.aclose()
    assert await connection.receive() is None
    await connection.aclose()


async def test_where_nothing_comes_it_sleeps_in_the_end() -> None:
    """Nobody can use up a processor for longer than that; before the first read it sleeps at once."""
    connection, there = pair(busy_poll=0.001)
    got: list[object] = []

    async def receive() -> None:
        got.append(await connection.receive())

    for data in (b"first", b"second"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await wait_all_tasks_blocked()
            await there.send_all(data)
    assert got == [b"first", b"second"]
    await there.aclose()
    await connection.aclose()


async def test_what_ends_a_connection_that_is_awake_is_told_as_ever() -> None:
    """Closed here, or reset there."""
    connection, there = pair(busy_poll=0.1)
    await awake(connection, there)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.aclose)
        with pytest.raises(trio.ClosedResourceError):
            await connection.receive()
    await there.aclose()

    connection, there = pair(busy_poll=0.1)
    await awake(connection, there)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.read", reset)
        with pytest.raises(trio.BrokenResourceError):
            await connection.receive()
    await there.aclose()
    await connection.aclose()


def reset(descriptor: int, most: int) -> bytes:
    """As a system reads from a socket whose peer has reset it."""
    raise ConnectionResetError
