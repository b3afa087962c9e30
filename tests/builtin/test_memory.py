"""The transports ``memory://`` and ``memory-framed://``."""

from dataclasses import replace

import pytest
import trio
from trio.testing import check_half_closeable_stream, wait_all_tasks_blocked

from penstock.api import ConnectionLost, LimitExceeded, UsageError
from penstock.builtin import FramedMemoryTransport, MemoryTransport
from penstock.plugins import ConnectionFacts
from tests.builtin._helpers import OPTIONS, both_sides, close, connect, exchange, listen, shake_hands, stream_of

BYTES, MESSAGES = MemoryTransport(), FramedMemoryTransport()
BOTH = [(BYTES, "memory://here"), (MESSAGES, "memory-framed://here")]


@pytest.mark.parametrize(("transport", "url"), BOTH)
async def test_a_word_each_way_arrives(transport: MemoryTransport, url: str, nursery: trio.Nursery) -> None:
    """And the end of one half is not the end of the other."""
    client, server = await both_sides(transport, url, nursery)
    assert client.framed is server.framed is transport.framed
    await shake_hands(client, server)
    await exchange(client, server)
    await client.send_eof()
    assert await server.receive() is None
    await server.send(b"still here")
    assert await client.receive() == b"still here"
    await close(client, server)
    assert client.facts == ConnectionFacts(half_close=True, local=True)
    assert client.peer.address == url


async def test_its_stream_keeps_every_promise_of_trio_s_streams() -> None:
    """By way of a listener, too."""

    async def maker() -> tuple[trio.abc.HalfCloseableStream, trio.abc.HalfCloseableStream]:
        async with trio.open_nursery() as nursery:
            client, server = await both_sides(BYTES, "memory://here", nursery)
        return stream_of(client), stream_of(server)  # type: ignore[return-value]  # a MemoryStream can

    await check_half_closeable_stream(maker, None)


async def test_messages_stay_whole(nursery: trio.Nursery) -> None:
    """Two are not joined, and an empty one is not the end."""
    client, server = await both_sides(MESSAGES, "memory-framed://here", nursery)
    for message in (b"one", b"", b"two"):
        await client.send(message)
    assert [await server.receive() for _ in range(3)] == [b"one", b"", b"two"]
    await client.aclose()
    assert await server.receive() is None
    with pytest.raises(trio.BrokenResourceError):
        await server.send(b"x")
    await server.abort()


async def test_a_message_above_the_bound_is_refused(nursery: trio.Nursery) -> None:
    """By the side that receives, whose bound it is."""
    listener = await listen(MESSAGES, "memory-framed://here", nursery, replace(OPTIONS, max_message=3))
    client = await connect(MESSAGES, "memory-framed://here", nursery)
    server = await listener.accept()
    await client.send(b"abc")
    assert await server.receive() == b"abc"
    await client.send(b"abcd")
    with pytest.raises(LimitExceeded, match="a message of 4 bytes arrived; 3 are allowed") as caught:
        await server.receive()
    assert (caught.value.limit, caught.value.value) == ("max_message", 3)
    await close(client, server)
    await listener.aclose()


@pytest.mark.parametrize(("transport", "url"), BOTH)
async def test_sending_waits_for_a_peer_that_does_not_read(transport: MemoryTransport, url: str, nursery: trio.Nursery) -> None:
    """64 KiB are held, and no more: as with a socket, and unlike the memory streams of trio.testing."""
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
async def test_a_name_is_free_again_when_its_listener_is_closed(transport: MemoryTransport, url: str, nursery: trio.Nursery) -> None:
    """While it is open nobody else gets it; closing twice does not take it from the next one."""
    first = await listen(transport, f"{url}/ignored", nursery)
    assert [str(address) for address in first.addresses] == [url]
    with pytest.raises(UsageError, match=f"somebody listens at {url} in this run loop already"):
        await listen(transport, url, nursery)
    await first.aclose()
    second = await listen(transport, url, nursery)
    await first.aclose()
    with pytest.raises(UsageError):
        await listen(transport, url, nursery)
    await second.aclose()


async def test_bytes_and_messages_have_names_of_their_own(nursery: trio.Nursery) -> None:
    """Nobody speaks the one to a listener of the other."""
    listener = await listen(BYTES, "memory://here", nursery)
    with pytest.raises(ConnectionLost, match="nobody listens at memory-framed://here in this run loop"):
        await connect(MESSAGES, "memory-framed://here", nursery)
    await listener.aclose()


def test_a_name_belongs_to_its_run_loop() -> None:
    """A listener that one run left open does not exist for the next."""

    async def leave_open() -> None:
        async with trio.open_nursery() as nursery:
            await listen(BYTES, "memory://here", nursery)

    trio.run(leave_open)
    trio.run(leave_open)


async def test_closing_turns_away_who_waits(nursery: trio.Nursery) -> None:
    """Who was in the queue finds the connection ended, who waited for a place in it hears that it is closed; accept says so, too."""
    listener = await listen(BYTES, "memory://here", nursery, replace(OPTIONS, backlog=1))
    queued = await connect(BYTES, "memory://here", nursery)
    refused = []

    async def knock() -> None:
        with pytest.raises(ConnectionLost, match="closed before it accepted"):
            await connect(BYTES, "memory://here", nursery)
        refused.append(True)

    async with trio.open_nursery() as knocking:
        knocking.start_soon(knock)
        await wait_all_tasks_blocked()
        assert refused == []
        await listener.aclose()
    assert refused == [True]
    assert await queued.receive() is None
    with pytest.raises(trio.ClosedResourceError):
        await listener.accept()


async def test_closing_in_a_hurry_forgets_nobody(nursery: trio.Nursery) -> None:
    """Also in a cancelled task each waiting connection is ended."""
    listener = await listen(BYTES, "memory://here", nursery)
    queued = [await connect(BYTES, "memory://here", nursery) for _ in range(3)]
    with trio.CancelScope() as scope:
        scope.cancel()
        await listener.aclose()
    assert [await connection.receive() for connection in queued] == [None, None, None]


@pytest.mark.parametrize("url", ["memory:", "memory://", "memory://here:7", "memory:///here", "memory://here/path#name"])
async def test_what_is_no_name_is_refused(nursery: trio.Nursery, url: str) -> None:
    """The message shows what is."""
    for attempt in (listen, connect):
        with pytest.raises(UsageError, match="is not of the form memory://name/publisher"):
            await attempt(BYTES, url, nursery)
