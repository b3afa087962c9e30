"""The transports ``memory://`` and ``memory-framed://``."""

from dataclasses import replace

import pytest
import trio
from trio.testing import check_half_closeable_stream, wait_all_tasks_blocked

from penstock.api import ConnectionLost, LimitExceeded, UsageError
from penstock.spi import ConnectionFacts
from penstock.transports import FramedMemoryTransport, MemoryTransport
from tests.transports._helpers import (
    OPTIONS,
    both_sides,
    close,
    connect,
    exchange,
    listen,
    shake_hands,
    stream_of,
)

BYTES, MESSAGES = MemoryTransport(), FramedMemoryTransport()
BOTH = [(BYTES, "memory://here"), (MESSAGES, "memory-framed://here")]


@pytest.mark.parametrize(("transport", "url"), BOTH)
async def test_bytes_arrive_in_both_directions(
    transport: MemoryTransport, url: str, nursery: trio.Nursery
) -> None:
    """After `send_eof` in one direction the other direction still works."""
    client, server = await both_sides(transport, url, nursery)
    assert client.framed is server.framed is transport.framed
    await shake_hands(client, server)
    await exchange(client, server)
    await client.send_eof()
    assert await server.receive() is None
    await server.send(b"more")
    assert await client.receive() == b"more"
    await close(client, server)
    assert client.facts == ConnectionFacts(half_close=True, local=True)
    assert client.peer.address == url


async def test_its_stream_keeps_the_promises_of_trio_s_streams() -> None:
    """Closing, half-closing, conflicts, cancellation: trio's own check."""

    async def maker() -> tuple[trio.abc.HalfCloseableStream, trio.abc.HalfCloseableStream]:
        async with trio.open_nursery() as nursery:
            client, server = await both_sides(BYTES, "memory://here", nursery)
        return stream_of(client), stream_of(server)  # type: ignore[return-value]  # a MemoryStream can be half-closed

    await check_half_closeable_stream(maker, None)


async def test_messages_stay_whole(nursery: trio.Nursery) -> None:
    """Two messages are not joined, and an empty message is not the end."""
    client, server = await both_sides(MESSAGES, "memory-framed://here", nursery)
    for message in (b"one", b"", b"two"):
        await client.send(message)
    assert [await server.receive() for _ in range(3)] == [b"one", b"", b"two"]
    await client.aclose()
    assert await server.receive() is None
    with pytest.raises(trio.BrokenResourceError):
        await server.send(b"x")
    await server.abort()


async def test_a_message_above_max_message_is_refused(nursery: trio.Nursery) -> None:
    """The option of the receiving side counts."""
    listener = await listen(
        MESSAGES, "memory-framed://here", nursery, replace(OPTIONS, max_message=3)
    )
    client = await connect(MESSAGES, "memory-framed://here", nursery)
    server = await listener.accept()
    await client.send(b"abc")
    assert await server.receive() == b"abc"
    await client.send(b"abcd")
    with pytest.raises(
        LimitExceeded, match="a message of 4 bytes arrived; 3 are allowed"
    ) as caught:
        await server.receive()
    assert (caught.value.limit, caught.value.value) == ("max_message", 3)
    await close(client, server)
    await listener.aclose()


@pytest.mark.parametrize(("transport", "url"), BOTH)
async def test_sending_waits_for_a_peer_that_does_not_read(
    transport: MemoryTransport, url: str, nursery: trio.Nursery
) -> None:
    """A pipe holds 64 KiB. The memory streams of trio.testing have no bound."""
    client, server = await both_sides(transport, url, nursery)
    async with trio.open_nursery() as sending:
        for _ in range(4):
            await client.send(bytes(16 << 10))
        sending.start_soon(client.send, b"one more")
        await wait_all_tasks_blocked()
        assert len(sending.child_tasks) == 1
        await server.receive()
    await close(client, server)


@pytest.mark.parametrize(("transport", "url"), BOTH)
async def test_a_name_belongs_to_its_listener_until_this_is_closed(
    transport: MemoryTransport, url: str, nursery: trio.Nursery
) -> None:
    """A second listener gets a UsageError.
    Closing the first one twice does not take the name from its successor.
    """
    first = await listen(transport, f"{url}/ignored", nursery)
    assert [str(address) for address in first.addresses] == [url]
    with pytest.raises(UsageError, match=f"another listener has {url} in this run loop already"):
        await listen(transport, url, nursery)
    await first.aclose()
    second = await listen(transport, url, nursery)
    await first.aclose()
    with pytest.raises(UsageError):
        await listen(transport, url, nursery)
    await second.aclose()


async def test_memory_and_memory_framed_have_separate_names(nursery: trio.Nursery) -> None:
    """A client of one transport never reaches a listener of the other."""
    listener = await listen(BYTES, "memory://here", nursery)
    with pytest.raises(
        ConnectionLost, match="no listener at memory-framed://here in this run loop"
    ):
        await connect(MESSAGES, "memory-framed://here", nursery)
    await listener.aclose()


def test_a_name_belongs_to_its_run() -> None:
    """A listener that one trio run has left open does not exist in the next run."""

    async def leave_open() -> None:
        async with trio.open_nursery() as nursery:
            await listen(BYTES, "memory://here", nursery)

    trio.run(leave_open)
    trio.run(leave_open)


async def test_closing_ends_the_waiting_connections(nursery: trio.Nursery) -> None:
    """A queued client receives the end, a client that waits for room gets ConnectionLost, and
    `accept` raises ClosedResourceError.
    """
    listener = await listen(BYTES, "memory://here", nursery, replace(OPTIONS, backlog=1))
    queued = await connect(BYTES, "memory://here", nursery)
    refused = []

    async def connect_second() -> None:
        with pytest.raises(ConnectionLost, match="closed before it accepted"):
            await connect(BYTES, "memory://here", nursery)
        refused.append(True)

    async with trio.open_nursery() as connecting:
        connecting.start_soon(connect_second)
        await wait_all_tasks_blocked()
        assert refused == []
        await listener.aclose()
    assert refused == [True]
    assert await queued.receive() is None
    with pytest.raises(trio.ClosedResourceError):
        await listener.accept()


async def test_a_cancelled_aclose_ends_every_waiting_connection(nursery: trio.Nursery) -> None:
    """The part that closes them is shielded."""
    listener = await listen(BYTES, "memory://here", nursery)
    queued = [await connect(BYTES, "memory://here", nursery) for _ in range(3)]
    with trio.CancelScope() as scope:
        scope.cancel()
        await listener.aclose()
    assert [await connection.receive() for connection in queued] == [None, None, None]


@pytest.mark.parametrize(
    "url", ["memory:", "memory://", "memory://here:7", "memory:///here", "memory://here/path#name"]
)
async def test_a_url_without_a_plain_name_is_refused(nursery: trio.Nursery, url: str) -> None:
    """The message shows the form."""
    for attempt in (listen, connect):
        with pytest.raises(UsageError, match="is not of the form memory://name/publisher"):
            await attempt(BYTES, url, nursery)
