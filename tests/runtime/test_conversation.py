"""A connection from end to end: over memory and over TCP, in both directions, well and badly."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import trio

import penstock
from penstock.api import ConnectionLost, Limits, ProtocolError, PublicError, PublisherFailed, Rejected, UsageError
from penstock.builtin import Keepalive
from penstock.plugins import Peer as Identity
from penstock.plugins import build_registry
from penstock.runtime import Service, connect, remote, serve, subscribe

URLS = ["memory://test", "tcp://127.0.0.1:0", "unix"]


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "unix":
        return f"unix://{tmp_path_factory.mktemp('s')}/p.sock"
    return str(request.param)


class Census:
    """What became of the generators of a service."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.changed = trio.Event()

    async def wait_closed(self) -> None:
        while self.closed < self.opened or not self.opened:
            await self.changed.wait()

    def close(self) -> None:
        self.closed += 1
        self.changed.set()
        self.changed = trio.Event()


def numbers_service(census: Census | None = None) -> Service:
    service = Service()
    watch = census or Census()

    @service.publisher("numbers/{count}", serializer="json")
    async def numbers(count: int, step: int = 1) -> AsyncIterator[int]:
        watch.opened += 1
        try:
            for number in range(0, count * step, step):
                yield number
        finally:
            watch.close()

    @service.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        watch.opened += 1
        try:
            while True:
                yield b"x" * 100
        finally:
            watch.close()

    @service.publisher("failing", serializer="text")
    async def failing() -> AsyncIterator[str]:
        yield "one"
        raise ValueError("a secret")

    @service.publisher("honest", serializer="text")
    async def honest() -> AsyncIterator[str]:
        yield "one"
        raise PublicError("out of stock")

    @service.publisher("who", serializer="text")
    async def who(peer: Identity) -> AsyncIterator[str]:
        yield peer.address

    return service


def named(address: str, name: str) -> str:
    return f"{address}#{name}" if address.startswith("unix") else f"{address}/{name}"


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


async def test_either_side_publishes(url: str) -> None:
    """The server subscribes to what its client offers, over the same connection."""
    seen: list[Any] = []
    service = Service()

    async with serve(service, url) as server, connect(server.addresses[0], service=numbers_service()) as peer:
        await peer.wait_accepted()
        (theirs,) = server.peers
        async with theirs.subscribe("numbers/4", serializer="json") as stream:
            seen += [number async for number in stream]
    assert seen == [0, 1, 2, 3]


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


async def test_a_publishers_failure_is_raised_from_the_loop_and_keeps_its_secrets() -> None:
    """Its text crosses only where it was meant to; on its own side everything is told."""
    told: list[Exception] = []
    async with serve(numbers_service(), "memory://test", on_violation=told.append) as server, connect(server.addresses[0]) as peer:
        with pytest.raises(PublisherFailed, match="^the publisher failed$"):
            async with peer.subscribe("failing", serializer="text") as stream:
                assert [element async for element in stream]
        assert [str(each) for each in told] == ["a secret"]
        with pytest.raises(PublisherFailed, match="^out of stock$"):
            async with peer.subscribe("honest", serializer="text") as stream:
                assert [element async for element in stream]


@pytest.mark.parametrize("name", ["nobody", "numbers", "numbers/x", "numbers/1?stop=3", "numbers/1/2", "numbers/1?count=2"])
async def test_names_that_lead_nowhere_are_all_refused_in_the_same_words(name: str) -> None:
    """Nobody can probe for names."""
    async with serve(numbers_service(), "memory://test") as server, connect(server.addresses[0]) as peer:
        with pytest.raises(Rejected, match="refused this stream: no such publisher$"):
            async with peer.subscribe(name, serializer="json") as stream:
                await anext(stream)


async def test_a_publisher_may_know_who_asks() -> None:
    """By annotation."""
    async with serve(numbers_service(), "memory://test") as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("who", serializer="text") as stream:
            assert "memory" in await anext(stream)


async def test_a_server_that_leaves_says_goodbye(url: str) -> None:
    """The subscriber learns why; the block of the server ends, though somebody still reads."""
    reading = trio.Event()
    left = trio.Event()

    async def serve_until_read() -> None:
        async with serve(numbers_service(), url) as server:
            nursery.start_soon(read, server.addresses[0])
            await reading.wait()
        left.set()

    async def read(address: str) -> None:
        with pytest.raises(ConnectionLost, match="shutdown"):
            async with connect(address) as peer, peer.subscribe("endless", demand=2) as stream:
                async for _ in stream:
                    reading.set()
                    await trio.lowlevel.checkpoint()

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_until_read)
            await left.wait()


async def test_a_cancelled_server_ends_within_its_deadline(autojump_clock: trio.testing.MockClock) -> None:
    """Even where a peer never answers its goodbye: in virtual time, to the second."""
    census = Census()
    registry = build_registry()
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with serve(numbers_service(census), "memory://test"):
                raw = await registry.transport("memory").connect(
                    penstock.plugins.parse_url("memory://test"), options=penstock.plugins.TransportOptions(), nursery=nursery
                )
                await raw.send(bytes.fromhex("010000") + b"\x10\x07endless\x00\x05")
                while not census.opened:
                    await trio.sleep(0.1)
                scope.cancel()
        assert trio.current_time() < 10
        assert census.closed == census.opened == 1
        await raw.abort()


async def test_nobody_there_is_a_lost_connection() -> None:
    """Raised from the block's entry, bare."""
    with pytest.raises(ConnectionLost, match="nobody listens"):
        async with connect("memory://nobody"):
            pass
    with pytest.raises(ConnectionLost, match="nobody listens"):
        async with subscribe("memory://nobody/x") as stream:
            await anext(stream)


async def test_mistakes_are_told_at_the_call() -> None:
    """Before anything is opened."""
    with pytest.raises(UsageError, match="names a publisher"):
        connect("tcp://127.0.0.1:1/name")
    with pytest.raises(UsageError, match="names no publisher"):
        subscribe("tcp://127.0.0.1:1")
    with pytest.raises(UsageError, match="no transport 'carrier-pigeon'"):
        subscribe("carrier-pigeon://x/y")
    with pytest.raises(UsageError, match="no URL"):
        serve(Service())
    with pytest.raises(UsageError, match="only a URL"):
        subscribe([1], serializer="json")  # type: ignore[call-overload]


async def test_an_exception_from_the_body_leaves_every_block_bare() -> None:
    """Through a stream, a connection and a server."""
    with pytest.raises(KeyError, match="mine"):
        async with serve(numbers_service(), "memory://test") as server, connect(server.addresses[0]) as peer:
            async with peer.subscribe("endless") as stream:
                async for _ in stream:
                    raise KeyError("mine")


async def test_a_remote_publisher_is_a_source_like_any_other() -> None:
    """In a pipe, and in a sink."""
    async with serve(numbers_service(), "memory://test") as server:
        source = remote(f"{server.addresses[0]}/numbers/10", serializer="json")
        assert await penstock.collect(penstock.pipe(source, penstock.ops.filter(lambda n: n % 2), penstock.ops.take(3))) == [1, 3, 5]


async def test_a_wrong_serializer_fails_that_stream_only() -> None:
    """The connection goes on."""
    async with serve(numbers_service(), "memory://test") as server, connect(server.addresses[0]) as peer:
        with pytest.raises(ProtocolError, match="not JSON"):
            async with peer.subscribe("endless", serializer="json") as stream:
                await anext(stream)
        async with peer.subscribe("numbers/2", serializer="json") as stream:
            assert [number async for number in stream] == [0, 1]


async def test_a_peer_that_asks_for_everything_and_reads_nothing_costs_little(autojump_clock: trio.testing.MockClock) -> None:
    """Demand without bound permits sending, not buffering; and a stalled write ends the connection."""
    census = Census()
    limits = replace(Limits(), write_stall=3.0)
    registry = build_registry()
    async with trio.open_nursery() as nursery:
        async with serve(numbers_service(census), "memory://test", limits=limits):
            raw = await registry.transport("memory").connect(
                penstock.plugins.parse_url("memory://test"), options=penstock.plugins.TransportOptions(), nursery=nursery
            )
            await raw.send(bytes.fromhex("010000") + b"\x10\x07endless\x00" + b"\xff" * 8 + b"\x7f")
            with trio.fail_after(10):
                await census.wait_closed()
        await raw.abort()


async def test_keepalive_finds_a_peer_that_is_gone(autojump_clock: trio.testing.MockClock) -> None:
    """A peer that says nothing any more, without closing, is given up; whoever answers is kept."""
    registry = build_registry()
    limits = replace(Limits(), keepalive=5.0, keepalive_timeout=5.0, idle_connection=1e9)
    async with trio.open_nursery() as nursery:
        async with serve(numbers_service(), "memory://test", limits=limits, extensions=[Keepalive()]) as server:
            raw = await registry.transport("memory").connect(
                penstock.plugins.parse_url("memory://test"), options=penstock.plugins.TransportOptions(), nursery=nursery
            )
            await raw.send(bytes.fromhex("01000101"))
            async with connect(server.addresses[0], extensions=[Keepalive()], limits=limits) as peer:
                await trio.sleep(60)
                assert peer.is_connected
                assert len(server.peers) == 1
        await raw.abort()


async def test_elements_of_fixed_size_can_be_read_as_memory(url: str) -> None:
    """Packed there, packed here, counted as elements; or taken apart for who reads one by one."""
    service = Service()

    @service.publisher("ints", element_size=4)
    async def ints() -> AsyncIterator[bytes]:
        for number in range(0, 1000, 10):
            yield b"".join(each.to_bytes(4, "big") for each in range(number, number + 10))

    expected = b"".join(each.to_bytes(4, "big") for each in range(1000))
    async with serve(service, url) as server:
        async with subscribe(named(server.addresses[0], "ints"), demand=64) as stream:
            got = b""
            async for piece in stream.buffers():
                assert len(piece) <= 64 * 4
                got += piece
            assert got == expected
            assert stream.statistics().taken == 1000
        async with connect(server.addresses[0]) as peer, peer.subscribe("ints", demand=7) as by_element:
            assert b"".join([each async for each in by_element]) == expected
            assert by_element.element_size == 4


async def test_memory_of_a_stream_without_a_fixed_size_is_a_mistake() -> None:
    """Nobody could tell where an element ends."""
    async with serve(numbers_service(), "memory://test") as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("endless") as stream:
            with pytest.raises(UsageError, match="no fixed size"):
                await anext(stream.buffers())
