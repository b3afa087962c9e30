"""`SocketConnection` reads and writes the descriptor itself,
and keeps the promises of trio's stream in doing so.
"""

import socket
from typing import Any

import pytest
import trio
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from penstock.spi import ConnectionFacts, PeerIdentity, SocketConnection, TransportOptions
from penstock.spi._socket_connection import MAX_EARLY_READS, MAX_POLLING, SHORT_WAIT, SMALL_READ


def pair(**options: Any) -> tuple[SocketConnection, trio.SocketStream]:
    """A connection, and the trio stream at its other end."""
    own, other = (
        trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in socket.socketpair()
    )
    return SocketConnection(
        own,
        peer=PeerIdentity(address="peer"),
        options=TransportOptions(**options),
        facts=ConnectionFacts(half_close=True),
    ), other


async def test_send_now_sends_a_small_message_completely() -> None:
    """It does not wait, and returns the number of bytes."""
    connection, peer = pair()
    assert connection.send_now(b"hello") == 5
    assert connection.send_now(bytearray(b"again")) == 5
    assert await peer.receive_some() == b"helloagain"
    await peer.aclose()
    await connection.aclose()


async def test_send_now_returns_the_part_that_the_socket_accepts() -> None:
    """If the peer does not read, the socket accepts a part and then nothing.
    The accepted bytes arrive once.
    """
    connection, peer = pair()
    sent = 0
    while taken := connection.send_now(bytes(1 << 20)):
        assert taken < 1 << 20
        sent += taken
    assert connection.send_now(b"x") == 0
    got = 0
    while got < sent:
        got += len(await peer.receive_some(1 << 20))
    assert (got, connection.send_now(b"x")) == (sent, 1)
    await peer.aclose()
    await connection.aclose()


async def test_send_now_after_send_eof_sends_nothing() -> None:
    """`send` raises the error."""
    connection, peer = pair()
    await connection.send_eof()
    assert connection.send_now(b"x") == 0
    with pytest.raises(trio.ClosedResourceError):
        await connection.send(b"x")
    await peer.aclose()
    await connection.aclose()


async def test_send_now_raises_as_send_does() -> None:
    """BrokenResourceError if the peer has closed, ClosedResourceError if this side has."""
    connection, peer = pair()
    await peer.aclose()
    with pytest.raises(trio.BrokenResourceError):
        connection.send_now(b"x")
    await connection.aclose()
    with pytest.raises(trio.ClosedResourceError):
        connection.send_now(b"x")


@pytest.mark.parametrize("data", [b"ab", b"abcd", b"abcdefg"])
async def test_every_byte_is_received_for_any_chunk_size(data: bytes) -> None:
    """Less than a chunk, exactly one, and more:
    the rest is read without waiting for further bytes.
    """
    connection, peer = pair(receive_chunk=4)
    got = bytearray()
    await peer.send_all(data)
    while len(got) < len(data):
        with assert_checkpoints():
            got += await connection.receive() or b""
    await peer.aclose()
    for _ in range(2):
        with assert_checkpoints():
            assert await connection.receive() is None
    assert got == data
    await connection.aclose()


async def test_a_cancelled_receive_loses_no_bytes() -> None:
    """The next `receive` returns all of them."""
    connection, peer = pair()
    with trio.CancelScope() as waiting:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.receive)
            await wait_all_tasks_blocked()
            waiting.cancel()
    await peer.send_all(b"whole")
    with trio.CancelScope() as scope:
        scope.cancel()
        await connection.receive()
    assert await connection.receive() == b"whole"
    await peer.aclose()
    await connection.aclose()


@pytest.mark.parametrize("waits", [True, False])
async def test_receive_on_a_closed_connection_raises_closed_resource_error(
    nursery: trio.Nursery, waits: bool
) -> None:
    """Both if it was closed before the call and if it is closed while the call waits."""
    connection, peer = pair()
    if waits:

        async def close() -> None:
            await wait_all_tasks_blocked()
            await connection.aclose()

        nursery.start_soon(close)
    else:
        await connection.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await connection.receive()
    await peer.aclose()


async def test_a_reset_raises_broken_resource_error() -> None:
    """The system reports a reset once only, to the first read."""
    listening = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listening.getsockname())
    accepted, _ = listening.accept()
    accepted.setblocking(False)
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
    connection = SocketConnection(
        stream,
        peer=PeerIdentity(address="peer"),
        options=TransportOptions(),
        facts=ConnectionFacts(),
    )
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    client.close()
    with pytest.raises(trio.BrokenResourceError):
        await connection.receive()
    await connection.aclose()
    listening.close()


async def test_a_spurious_wake_up_waits_again(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may report a socket as readable although it has no bytes."""
    connection, peer = pair()

    async def at_once(_: object) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(trio.lowlevel, "wait_readable", at_once)

    async def speak() -> None:
        await wait_all_tasks_blocked()
        await peer.send_all(b"late")

    nursery.start_soon(speak)
    assert await connection.receive() == b"late"
    await peer.aclose()
    await connection.aclose()


async def receive_first(connection: SocketConnection, peer: trio.SocketStream) -> None:
    """Let one read happen: polling begins after the first one."""
    await peer.send_all(b"first")
    assert await connection.receive() == b"first"


async def test_busy_poll_receives_without_waiting_for_readability() -> None:
    """For `busy_poll` seconds after each read; other tasks run between two polls."""
    connection, peer = pair(busy_poll=0.1)
    await receive_first(connection, peer)
    turns = 0

    async def neighbour() -> None:
        nonlocal turns
        for turns in range(5):  # noqa: B007  # counted outside
            await trio.lowlevel.checkpoint()
        await peer.send_all(b"more")

    waits: list[object] = []
    wait_readable = trio.lowlevel.wait_readable
    async with trio.open_nursery() as nursery:
        nursery.start_soon(neighbour)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                trio.lowlevel,
                "wait_readable",
                lambda sock: waits.append(sock) or wait_readable(sock),
            )
            assert await connection.receive() == b"more"
    assert (turns, waits) == (4, [])
    await peer.aclose()
    assert await connection.receive() is None
    await connection.aclose()


async def test_busy_poll_ends_after_its_time() -> None:
    """After `busy_poll` seconds the reader sleeps. Before the first read it sleeps at once."""
    connection, peer = pair(busy_poll=0.001)
    got: list[object] = []

    async def receive() -> None:
        got.append(await connection.receive())

    for data in (b"first", b"second"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await wait_all_tasks_blocked()
            await peer.send_all(data)
    assert got == [b"first", b"second"]
    await peer.aclose()
    await connection.aclose()


async def test_busy_poll_reports_the_end_of_a_connection() -> None:
    """ClosedResourceError if it is closed here, BrokenResourceError if the peer resets it."""
    connection, peer = pair(busy_poll=0.1)
    await receive_first(connection, peer)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.aclose)
        with pytest.raises(trio.ClosedResourceError):
            await connection.receive()
    await peer.aclose()

    connection, peer = pair(busy_poll=0.1)
    await receive_first(connection, peer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.read", reset)
        with pytest.raises(trio.BrokenResourceError):
            await connection.receive()
    await peer.aclose()
    await connection.aclose()


class Clock:
    """The clock of the polls. It stands still, so that a poll never ends by itself,
    unless a test moves it.
    """

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("penstock.spi._socket_connection.monotonic", clock)
    return clock


async def receive_late(
    connection: SocketConnection, peer: trio.SocketStream, data: bytes = b"more"
) -> bool:
    """Receive what the peer sends after five scheduler passes.
    Return whether the reader polled, and did not sleep.
    """
    slept: list[object] = []
    wait_readable = trio.lowlevel.wait_readable

    async def speak() -> None:
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        await peer.send_all(data)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(speak)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                trio.lowlevel,
                "wait_readable",
                lambda sock: slept.append(sock) or wait_readable(sock),
            )
            assert await connection.receive() == data
    return not slept


async def test_a_reader_polls_by_default_while_its_waits_are_short(clock: Clock) -> None:
    """Not before the first read, and no longer than a short wait takes."""
    connection, peer = pair()
    assert not await receive_late(connection, peer)
    assert await receive_late(connection, peer)
    assert await receive_late(connection, peer)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.receive)
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        assert SocketConnection.polling == 1
        clock.now += SHORT_WAIT
        await wait_all_tasks_blocked()  # the reader sleeps
        assert SocketConnection.polling == 0
        await peer.send_all(b"late")
    await peer.aclose()
    await connection.aclose()


async def test_a_reader_sleeps_at_once_after_a_long_wait(clock: Clock) -> None:
    """A short wait makes it poll again."""
    connection, peer = pair()
    await receive_first(connection, peer)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.receive)
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        clock.now += 2 * SHORT_WAIT
        await wait_all_tasks_blocked()
        await peer.send_all(b"late")
    assert not await receive_late(connection, peer)
    assert await receive_late(connection, peer)
    await peer.aclose()
    await connection.aclose()


async def test_a_reader_sleeps_at_once_after_a_large_read(clock: Clock) -> None:
    """The peer sends in bulk: a reader that sleeps finds more at a time."""
    connection, peer = pair()
    await receive_first(connection, peer)
    assert await receive_late(connection, peer, bytes(SMALL_READ + 1))
    assert not await receive_late(connection, peer, bytes(SMALL_READ))
    assert await receive_late(connection, peer)
    await peer.aclose()
    await connection.aclose()


async def test_few_readers_poll_at_a_time(clock: Clock) -> None:
    """Further ones sleep, until one of the others has ended its poll.
    A reader that is cancelled gives its place back.
    """
    pairs = [pair() for _ in range(MAX_POLLING)]
    connection, peer = pair()
    await receive_first(connection, peer)
    for each in pairs:
        await receive_first(*each)
    async with trio.open_nursery() as nursery:
        for each, _ in pairs:
            nursery.start_soon(each.receive)
        await trio.lowlevel.checkpoint()
        assert not await receive_late(connection, peer)
        nursery.cancel_scope.cancel()
    assert await receive_late(connection, peer)
    for own, other in [*pairs, (connection, peer)]:
        await other.aclose()
        await own.aclose()


async def receive_at_first_look(
    connection: SocketConnection, peer: trio.SocketStream, data: bytes = b"again"
) -> None:
    """Let the first poll of a wait find bytes: the peer is ahead."""
    await peer.send_all(data)
    assert await connection.receive() == data


async def test_a_reader_that_is_behind_reads_without_a_pass(clock: Clock) -> None:
    """A few times in a row, then other tasks run;
    and not before a poll has found its bytes at once.
    """
    connection, peer = pair()
    await peer.send_all(b"first")
    assert connection.receive_now() is None
    assert await connection.receive() == b"first"
    await receive_at_first_look(connection, peer)
    for _ in range(2):
        for _ in range(MAX_EARLY_READS):
            await peer.send_all(b"more")
            assert connection.receive_now() == b"more"
        await peer.send_all(b"last")
        assert connection.receive_now() is None
        with assert_checkpoints():
            assert await connection.receive() == b"last"
    await peer.aclose()
    await connection.aclose()


async def test_a_reader_that_is_ahead_reads_in_its_turn(clock: Clock) -> None:
    """If nothing was there, or a poll found nothing at first, no read is tried in advance."""
    connection, peer = pair()
    await receive_first(connection, peer)
    await receive_at_first_look(connection, peer)
    assert connection.receive_now() is None
    await peer.send_all(b"late")
    assert connection.receive_now() is None
    assert await connection.receive() == b"late"
    assert await receive_late(connection, peer)
    await peer.send_all(b"late")
    assert connection.receive_now() is None
    assert await connection.receive() == b"late"
    await peer.aclose()
    await connection.aclose()


async def test_bulk_is_not_read_in_advance(clock: Clock) -> None:
    """A large read is the last one before a pass: decoding it takes long enough."""
    connection, peer = pair()
    await receive_first(connection, peer)
    await receive_at_first_look(connection, peer)
    await peer.send_all(bytes(SMALL_READ + 1))
    assert connection.receive_now() == bytes(SMALL_READ + 1)
    await peer.send_all(b"more")
    assert connection.receive_now() is None
    assert await connection.receive() == b"more"
    await peer.aclose()
    await connection.aclose()


async def test_the_end_and_a_reset_are_found_by_receive(clock: Clock) -> None:
    """`receive_now` has no result for the end of the stream,
    and raises for a reset as `receive` does.
    """
    connection, peer = pair()
    await receive_first(connection, peer)
    await receive_at_first_look(connection, peer)
    await peer.aclose()
    assert connection.receive_now() is None
    assert await connection.receive() is None
    await connection.aclose()

    connection, peer = pair()
    await receive_first(connection, peer)
    await receive_at_first_look(connection, peer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.read", reset)
        with pytest.raises(trio.BrokenResourceError):
            connection.receive_now()
    await peer.aclose()
    await connection.aclose()
    with pytest.raises(trio.ClosedResourceError):
        connection.receive_now()


async def test_a_reader_never_polls_with_busy_poll_0(clock: Clock) -> None:
    """For a program that would rather wait than occupy a processor."""
    connection, peer = pair(busy_poll=0)
    for _ in range(3):
        assert not await receive_late(connection, peer)
    await peer.aclose()
    await connection.aclose()


def reset(descriptor: int, most: int) -> bytes:
    """`os.read` on a socket that the peer has reset."""
    raise ConnectionResetError
