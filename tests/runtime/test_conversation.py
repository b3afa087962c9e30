"""A connection from end to end: over each transport, in both directions, well and badly."""

from dataclasses import replace

import trio

from penstock.api import Limits
from penstock.builtin import Keepalive
from penstock.runtime import connect, serve, subscribe
from tests.runtime._services import Census, named, numbers_service, raw_connection


async def test_elements_come_over_every_transport(url: str) -> None:
    """A name, a parameter, a serializer; a stream that completes ends the loop."""
    async with serve(numbers_service(), url) as server:
        async with subscribe(named(server.addresses[0], "numbers/5"), serializer="json", demand=2) as stream:
            assert [number async for number in stream] == [0, 1, 2, 3, 4]
        async with subscribe(named(server.addresses[0], "numbers/3?step=10"), serializer="json") as stream:
            assert [number async for number in stream] == [0, 10, 20]


async def test_many_streams_share_a_connection(url: str) -> None:
    """Each has its own demand, and its own end."""
    async with serve(numbers_service(), url) as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("numbers/100", serializer="json", demand=3) as one:
            async with peer.subscribe("numbers/3", serializer="json") as other:
                assert [number async for number in other] == [0, 1, 2]
            assert len([number async for number in one]) == 100


async def test_leaving_a_stream_early_closes_the_generator_over_there(url: str) -> None:
    """As soon as word arrives."""
    census = Census()
    async with serve(numbers_service(census), url) as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("endless", demand=5) as stream:
            async for _ in stream:
                break
        with trio.fail_after(5):
            await census.wait_closed()
    assert census.opened == census.closed == 1


async def test_leaving_the_connection_closes_every_generator_over_there(url: str) -> None:
    """Goodbye ends the streams of both directions."""
    census = Census()
    async with serve(numbers_service(census), url) as server:
        async with connect(server.addresses[0]) as peer:
            streams = [peer.subscribe("endless", demand=5) for _ in range(3)]
            for each in streams:
                stream = await each.__aenter__()
                await anext(stream)
        with trio.fail_after(5):
            await census.wait_closed()
        for each in streams:
            await each.__aexit__(None, None, None)
    assert census.opened == census.closed == 3


async def test_a_peer_that_asks_for_everything_and_reads_nothing_costs_little(autojump_clock: trio.testing.MockClock) -> None:
    """Demand without bound permits sending, not buffering; and a stalled write ends the connection."""
    census = Census()
    limits = replace(Limits(), write_stall=3.0)
    async with trio.open_nursery() as nursery:
        async with serve(numbers_service(census), "memory://test", limits=limits):
            raw = await raw_connection(nursery)
            await raw.send(bytes.fromhex("010000") + b"\x10\x07endless\x00" + b"\xff" * 8 + b"\x7f")
            with trio.fail_after(10):
                await census.wait_closed()
        await raw.abort()


async def test_keepalive_finds_a_peer_that_is_gone(autojump_clock: trio.testing.MockClock) -> None:
    """A peer that says nothing any more, without closing, is given up; whoever answers is kept."""
    limits = replace(Limits(), keepalive=5.0, keepalive_timeout=5.0, idle_connection=1e9)
    async with trio.open_nursery() as nursery:
        async with serve(numbers_service(), "memory://test", limits=limits, extensions=[Keepalive()]) as server:
            raw = await raw_connection(nursery)
            await raw.send(bytes.fromhex("01000101"))
            async with connect(server.addresses[0], extensions=[Keepalive()], limits=limits) as peer:
                await trio.sleep(60)
                assert peer.is_connected
                assert len(server.peers) == 1
        await raw.abort()
