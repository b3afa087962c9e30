"""`Server.drain`: new streams go elsewhere, running ones end, and clients
that reconnect notice nothing.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import trio

import penstock
from penstock.api import ConnectionLost, PublisherFailed, Rejected
from penstock.extensions import Drain

PROTOCOLS = ["", "reactivesocket+"]
LIMITS = penstock.Limits()
STREAMS_END = LIMITS.drain - LIMITS.goodbye_timeout - LIMITS.linger


def service_of(name: str = "a", seconds: float = 0.0) -> penstock.Service:
    service = penstock.Service()

    @service.publisher("count/{most}")
    async def count(most: int) -> AsyncIterator[bytes]:
        for number in range(most):
            yield b"%d" % number
            await trio.sleep(1)

    @service.request("who")
    async def who() -> bytes:
        await trio.sleep(seconds)
        return name.encode()

    return service


async def start_drain(server: Any, nursery: trio.Nursery) -> trio.Event:
    """Begin to drain, and return the event of its end."""
    done = trio.Event()

    async def drain() -> None:
        await server.drain()
        done.set()

    nursery.start_soon(drain)
    await trio.sleep(0.1)
    return done


@pytest.mark.parametrize("extensions", [None, ()], ids=["told", "not told"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_running_streams_end_and_new_ones_are_refused(
    autojump_clock: object, protocol: str, extensions: Any
) -> None:
    """To each peer, with the extension and without; the connection ends when nothing runs."""
    async with penstock.serve(service_of(), "memory://a") as server, trio.open_nursery() as nursery:
        async with (
            penstock.connect(f"{protocol}memory://a", extensions=extensions) as peer,
            peer.subscribe("count/5") as stream,
        ):
            assert await anext(stream) == b"0"
            done = await start_drain(server, nursery)
            with pytest.raises((Rejected, PublisherFailed), match="draining") as refused:
                async with peer.subscribe("count/5") as other:
                    await anext(other)
            assert isinstance(refused.value, Rejected) is (protocol == "" or extensions is None)
            is_safe = isinstance(refused.value, Rejected) and not refused.value.processed
            assert is_safe is (extensions is None)
            assert [element async for element in stream] == [b"1", b"2", b"3", b"4"]
            assert not done.is_set()
            await done.wait()
            assert not peer.is_connected
            assert trio.current_time() < 8


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_streams_that_do_not_end_get_the_goodbye_shutdown_at_the_deadline(
    autojump_clock: object, protocol: str
) -> None:
    """`Limits.drain` has the goodbyes in it."""
    async with penstock.serve(service_of(), "memory://a") as server, trio.open_nursery() as nursery:
        async with penstock.subscribe(f"{protocol}memory://a#count/1000") as stream:
            await anext(stream)
            began = trio.current_time()
            done = await start_drain(server, nursery)
            with pytest.raises(ConnectionLost, match="shutdown"):
                async for _ in stream:
                    pass
            assert trio.current_time() - began == pytest.approx(STREAMS_END, abs=0.2)
            await done.wait()
            assert trio.current_time() - began < LIMITS.drain


async def test_the_time_of_a_drain_can_only_be_shortened(autojump_clock: object) -> None:
    """By a second call; the peers are told again."""
    async with penstock.serve(service_of(), "memory://a") as server, trio.open_nursery() as nursery:
        async with penstock.subscribe("memory://a#count/1000") as stream:
            await anext(stream)
            await start_drain(server, nursery)
            began = trio.current_time()
            nursery.start_soon(server.drain, 100)
            nursery.start_soon(server.drain, 3)
            with pytest.raises(ConnectionLost):
                async for _ in stream:
                    pass
            assert trio.current_time() - began == pytest.approx(3, abs=0.2)


async def test_a_drain_reports_what_it_waits_for(autojump_clock: object) -> None:
    """At the beginning and every 5 s, as long as a stream runs."""
    reports: list[tuple[dict[str, int], int]] = []
    async with penstock.serve(service_of(), "memory://a") as server, trio.open_nursery() as nursery:
        async with penstock.subscribe("memory://a#count/9") as stream:
            await anext(stream)
            nursery.start_soon(
                partial(
                    server.drain,
                    on_waiting=lambda streams, left: reports.append((dict(streams), round(left))),
                )
            )
            async for _ in stream:
                pass
    assert reports == [({"count/{most}": 1}, 22), ({"count/{most}": 1}, 17)]


async def test_a_server_that_drains_accepts_no_connection(autojump_clock: object) -> None:
    """Its addresses are free for the next one, and `wait_over` returns when it is empty."""
    async with penstock.serve(service_of(), "memory://a") as server:
        await server.drain()
        await server.wait_over()
        with pytest.raises(ConnectionLost):
            async with penstock.connect("memory://a"):
                pass
        async with penstock.serve(service_of("b"), "memory://a"):
            assert await penstock.request("memory://a#who") == b"b"


async def test_a_connection_without_the_extension_is_left_as_soon_as_nothing_runs(
    autojump_clock: object,
) -> None:
    """One with it has the time of a round trip to leave by itself."""
    for extensions, seconds in (((), 0.0), ((Drain(),), 2.0)):
        async with penstock.serve(service_of(), "memory://a") as server:
            async with penstock.connect("memory://a", extensions=extensions) as peer:
                await peer.wait_accepted()
                began = trio.current_time()
                await server.drain()
                assert trio.current_time() - began == pytest.approx(seconds, abs=0.2)
                assert not peer.is_connected


async def test_a_drain_that_is_cancelled_ends_with_the_block_of_the_server(
    autojump_clock: object,
) -> None:
    """Streams that run get their goodbye then."""
    async with penstock.serve(service_of(), "memory://a") as server:
        async with penstock.subscribe("memory://a#count/1000") as stream:
            await anext(stream)
            with trio.move_on_after(1):
                await server.drain()
            assert server.waits_for() == {"count/{most}": 1}
    assert trio.current_time() < 5


# --- clients that reconnect


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_a_client_asks_for_goes_over_the_next_connection(
    autojump_clock: object, protocol: str
) -> None:
    """A running stream goes on over the old connection."""
    async with trio.open_nursery() as nursery:
        async with penstock.serve(service_of("a"), "memory://a") as old:
            async with penstock.connect(
                f"{protocol}memory://a", reconnect=penstock.Reconnect()
            ) as peer:
                assert await peer.request("who") == b"a"
                async with peer.subscribe("count/5") as stream:
                    assert await anext(stream) == b"0"
                    await start_drain(old, nursery)
                    async with penstock.serve(service_of("b"), "memory://a"):
                        assert await peer.request("who") == b"b"
                        assert [element async for element in stream] == [b"1", b"2", b"3", b"4"]
                        async with peer.subscribe("count/1") as other:
                            assert [element async for element in other] == [b"0"]
                        await old.wait_over()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_crosses_the_drain_is_asked_again(autojump_clock: object, protocol: str) -> None:
    """A request, a stream of a block and one of a source,
    sent before the client hears of the drain.
    """
    answers: list[Any] = []
    async with trio.open_nursery() as nursery:
        async with penstock.serve(service_of("a"), "memory://a") as old:
            async with penstock.connect(
                f"{protocol}memory://a", reconnect=penstock.Reconnect()
            ) as peer:
                assert await peer.request("who") == b"a"
                # In one pass of the run loop: the server begins to refuse,
                # and the client has not read the message.
                for connection in old._connections.running:
                    connection.session.streams.drain.begin(trio.current_time(), 1000.0)

                async def ask() -> None:
                    answers.append(await peer.request("who"))

                async def read(publisher: Any) -> None:
                    async with publisher as stream:
                        answers.append([element async for element in stream])

                for _ in range(3):
                    nursery.start_soon(ask)
                nursery.start_soon(read, peer.subscribe("count/2"))
                nursery.start_soon(read, penstock.subscribe(peer.source("count/2")))
                await trio.testing.wait_all_tasks_blocked()
                assert answers == []
                nursery.start_soon(old.drain)
                await trio.sleep(0.1)
                async with penstock.serve(service_of("b"), "memory://a"):
                    await trio.sleep(60)
                    assert sorted(map(repr, answers)) == sorted(
                        map(repr, [b"b"] * 3 + [[b"0", b"1"]] * 2)
                    )
                    await old.wait_over()


async def test_a_stream_that_no_connection_comes_for_gets_the_end_of_the_attempts(
    autojump_clock: object,
) -> None:
    """The policy gives up."""
    async with penstock.serve(service_of("a"), "memory://a") as old, trio.open_nursery() as nursery:
        async with penstock.connect("memory://a", reconnect=penstock.Reconnect(attempts=2)) as peer:
            await peer.wait_accepted()
            for connection in old._connections.running:
                connection.session.streams.drain.begin(trio.current_time(), 1000.0)
            nursery.start_soon(old.drain)
            with pytest.raises(ConnectionLost, match="no further attempt"):
                async with peer.subscribe("count/1") as stream:
                    await anext(stream)


async def test_leaving_the_block_leaves_a_server_that_drains(autojump_clock: object) -> None:
    """And the streams on it."""
    async with penstock.serve(service_of("a"), "memory://a") as old, trio.open_nursery() as nursery:
        async with (
            penstock.connect("memory://a", reconnect=penstock.Reconnect()) as peer,
            peer.subscribe("count/1000") as stream,
        ):
            await anext(stream)
            done = await start_drain(old, nursery)
        await done.wait()
        assert trio.current_time() < 5
