"""`Server.streams()`: what each open stream has moved, what waits, and what for."""

from collections.abc import AsyncIterator

import pytest
import trio

from penstock import Service, connect, ops, pipe, serve, subscribe
from penstock.api import UNBOUNDED, UsageError
from penstock.logs import Retention, RingLog
from penstock.runtime import Server
from penstock.spi import LiveStream, WaitsFor


def by_name(server: Server, *, outbound: bool = True) -> dict[str, LiveStream]:
    """The records of one direction, by the name of their publisher."""
    return {each.name: each for each in server.streams() if each.outbound is outbound}


def numbers() -> Service:
    """A service whose publishers wait in different places."""
    service = Service()

    @service.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"n"

    @service.publisher("silent")
    async def silent() -> AsyncIterator[bytes]:
        yield b"one"
        await trio.sleep_forever()

    return service


async def test_each_stream_says_what_it_waits_for(autojump_clock) -> None:
    """Its own demand, or its publisher; with the counts, the time, and the place in the code."""
    async with (
        serve(numbers(), "memory://a") as server,
        connect("memory://a") as peer,
        peer.subscribe("endless", demand=0) as first,
        peer.subscribe("silent", demand=7),
    ):
        first.request(3)
        await trio.sleep(5)
        server.streams()
        await trio.sleep(2)
        found = by_name(server)
        endless, silent = found["endless"], found["silent"]
        assert (endless.waits_for, endless.place) == (WaitsFor.DEMAND, "")
        assert (endless.requested, endless.delivered, endless.demand) == (3, 3, 0)
        assert silent.waits_for is WaitsFor.PUBLISHER
        assert (silent.requested, silent.delivered, silent.demand) == (7, 1, 6)
        assert silent.still >= 2
        # The line of the program, and not one of trio below it.
        assert silent.place.startswith("test_live_streams.py:")
        assert silent.place.endswith("numbers.<locals>.silent")
        assert (silent.protocol, silent.transport, silent.state) == ("rsio", "memory", "live")
        assert silent.parts[-1].label.endswith("silent")


async def test_the_streams_that_this_side_reads_are_listed_too(autojump_clock) -> None:
    """Those of connections that the process has opened itself, with what the reader has taken."""
    async with (
        serve(numbers(), "memory://a") as server,
        subscribe("memory://a/endless", demand=4) as stream,
    ):
        assert await anext(stream) == b"n"
        await trio.sleep(1)
        (read,) = by_name(server, outbound=False).values()
        assert (read.name, read.waits_for) == ("endless", WaitsFor.DEMAND)
        assert (read.requested, read.delivered, read.demand) == (4, 4, 0)
        (sent,) = by_name(server).values()
        # Both sides have the id of the connection; keys differ.
        assert sent.stream == read.stream
        assert sent.key != read.key


async def test_a_client_sees_the_streams_of_its_connection(autojump_clock) -> None:
    """`Peer.streams()`, without a server."""
    async with (
        serve(numbers(), "memory://a"),
        connect("memory://a") as peer,
        peer.subscribe("silent"),
    ):
        await trio.sleep(1)
        (read,) = peer.streams()
    assert (read.name, read.outbound, read.waits_for) == ("silent", False, WaitsFor.PUBLISHER)


async def test_a_request_is_a_stream_of_one_element(autojump_clock) -> None:
    """On both sides, while its handler runs."""
    service, seen = Service(), trio.Event()

    @service.request("slow")
    async def slow() -> bytes:
        await seen.wait()
        return b"done"

    async with serve(service, "memory://a") as server, connect("memory://a") as peer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.request, "slow")
            await trio.sleep(1)
            found = server.streams()
            seen.set()
    assert {(each.name, each.outbound) for each in found} == {("slow", True), ("slow", False)}
    assert {each.waits_for for each in found} == {WaitsFor.PUBLISHER}


async def test_operators_show_what_they_hold(autojump_clock) -> None:
    """The pipe behind a stream, from its subscriber up."""
    service = numbers()

    @service.publisher("held")
    async def some() -> AsyncIterator[bytes]:
        for _ in range(7):
            yield b"x"
        await trio.sleep_forever()

    service.publish("joined", pipe(some, ops.batch(100), ops.map(b"".join)))
    service.publish("ahead", pipe(some, ops.buffer(5)))
    async with (
        serve(service, "memory://a") as server,
        connect("memory://a") as peer,
        peer.subscribe("joined"),
        peer.subscribe("ahead", demand=0) as ahead,
    ):
        ahead.request(1)
        await trio.sleep(1)
        found = by_name(server)
    assert [tuple(part) for part in found["joined"].parts][:2] == [("map", 0), ("batch", 7)]
    assert found["ahead"].parts[0] == ("buffer", 5)


async def test_a_stream_of_a_log_has_its_position_and_its_lag(autojump_clock) -> None:
    """So a reader that falls behind is seen."""
    service, log = Service(), RingLog(retention=Retention(max_count=100))
    service.publish("log", log)
    await log.append([b"%d" % number for number in range(10)])
    async with (
        serve(service, "memory://a") as server,
        connect("memory://a") as peer,
        peer.subscribe("log", demand=0, start="earliest") as stream,
    ):
        stream.request(4)
        await trio.sleep(1)
        sent, read = by_name(server), by_name(server, outbound=False)
    (record,) = sent.values()
    assert (record.position, record.lag) == (4, 6)
    (record,) = read.values()
    assert record.position == 0


async def test_a_generator_joins_what_it_reads_and_what_it_publishes(autojump_clock) -> None:
    """By its task: with the stream that it awaits while it makes an element, and the other way
    round while it waits for demand.
    """
    service = Service()

    @service.publisher("relay/{name}")
    async def relay(name: str) -> AsyncIterator[bytes]:
        async with subscribe(f"memory://origin/{name}", demand=4) as stream:
            async for element in stream:
                yield element

    async with (
        serve(numbers(), "memory://origin"),
        serve(service, "memory://a") as server,
        connect("memory://a") as peer,
        peer.subscribe("relay/silent"),
        peer.subscribe("relay/endless", demand=0) as endless,
    ):
        endless.request(1)
        await trio.sleep(1)
        sent, read = (
            by_name(server),
            {
                each.name: each
                for each in server.streams()
                if not each.outbound and not each.name.startswith("relay")
            },
        )
    # It is awaited: the publisher waits for it.
    assert sent["relay/silent"].waits_on == (read["silent"].key,)
    assert sent["relay/silent"].place == ""
    # It is not: it waits for the demand of the stream that it feeds.
    assert sent["relay/endless"].waits_for is WaitsFor.DEMAND
    assert read["endless"].waits_for is WaitsFor.DEMAND
    assert read["endless"].waits_on == (sent["relay/endless"].key,)


async def test_operators_alone_join_streams_of_two_peers(autojump_clock) -> None:
    """The pipe leads from one to the other, without a task."""
    service = Service()
    async with (
        serve(numbers(), "memory://origin"),
        connect("memory://origin") as origin,
        serve(service, "memory://a") as server,
        connect("memory://a") as peer,
    ):
        service.publish("piped", origin.source("silent").map(bytes.upper))
        async with peer.subscribe("piped"):
            await trio.sleep(1)
            sent, read = by_name(server), by_name(server, outbound=False)
    assert sent["piped"].waits_on == (read["silent"].key,)


async def test_a_reader_that_waits_elsewhere_says_where(autojump_clock) -> None:
    """A stream of the peer whose reader does not read: the line of the program, or the request
    that it waits for.
    """
    service = numbers()

    @service.request("db")
    async def db() -> bytes:
        await trio.sleep_forever()
        return b""

    async def read_one(query: bool) -> None:
        async with connect("memory://a") as peer, peer.subscribe("endless", demand=2) as stream:
            async for _ in stream:
                if query:
                    await peer.request("db")
                await trio.sleep_forever()

    async with serve(service, "memory://a") as server, trio.open_nursery() as nursery:
        nursery.start_soon(read_one, False)
        nursery.start_soon(read_one, True)
        await trio.sleep(1)
        read = [each for each in server.streams() if not each.outbound]
        nursery.cancel_scope.cancel()
    (request,) = (each for each in read if each.name == "db")
    waits = sorted(
        (each.waits_on, each.place.rpartition(" ")[2]) for each in read if each.demand == 0
    )
    assert waits == [
        ((), "test_a_reader_that_waits_elsewhere_says_where.<locals>.read_one"),
        ((request.key,), ""),
    ]


async def test_demand_without_bound_stays_so(autojump_clock) -> None:
    """2^63-1 in the record, too."""
    async with (
        serve(numbers(), "memory://a") as server,
        connect("memory://a") as peer,
        peer.subscribe("silent", demand=0) as stream,
    ):
        stream.request(UNBOUNDED)
        await trio.sleep(1)
        (record,) = by_name(server).values()
    assert (record.requested, record.demand) == (UNBOUNDED, UNBOUNDED)


async def test_nothing_is_kept_before_the_first_look(autojump_clock) -> None:
    """A server at which nobody looks has no object for it."""
    async with (
        serve(numbers(), "memory://a") as server,
        connect("memory://a") as peer,
        peer.subscribe("silent"),
    ):
        await trio.sleep(1)
        (connection,) = server._connections.running
        assert connection.counts._streams is None
        server.streams()
        assert connection.counts._streams is not None


async def test_both_sides_of_a_socket_know_both_addresses() -> None:
    """So the records of two services can be joined: the peer of one is the local side of the
    other.
    """
    async with (
        serve(numbers(), "tcp://127.0.0.1:0") as server,
        connect(server.addresses[0]) as peer,
        peer.subscribe("silent") as stream,
    ):
        await anext(stream)
        (sent,), (read,) = by_name(server).values(), peer.streams()
        assert (sent.local, sent.peer.address) == (read.peer.address, read.local)
        assert sent.local == f"127.0.0.1:{server.addresses[0].port}"


async def test_a_long_name_is_cut() -> None:
    """A peer may ask for one of `Limits.max_name`."""
    service = Service()

    @service.publisher("{name}")
    async def any_name(name: str) -> AsyncIterator[bytes]:
        yield b"one"
        await trio.sleep_forever()

    async with (
        serve(service, "memory://a") as server,
        connect("memory://a") as peer,
        peer.subscribe("n" * 1000) as stream,
    ):
        await anext(stream)
        (name,) = by_name(server)
    assert len(name) == 200


def test_it_is_asked_in_the_run_of_trio() -> None:
    """Elsewhere there is no clock to compare with."""

    async def server_of() -> Server:
        async with serve(numbers(), "memory://a") as server:
            return server

    server = trio.run(server_of)
    with pytest.raises(UsageError, match=r"Server\.streams"):
        server.streams()
