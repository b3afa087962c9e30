"""`Peer.statistics()`: both directions of one connection, and since
when its streams have not moved.
"""

from collections.abc import AsyncIterator

import pytest
import trio

from penstock.api import UNBOUNDED, UsageError
from penstock.runtime import Service, connect, serve
from penstock.runtime.connection import sum_of_directions
from penstock.spi import DirectionStatistics, PeerIdentity, StalledStream
from tests.runtime._services import numbers_service

PEER = PeerIdentity(address="test")


def echo_service() -> Service:
    service = Service()

    @service.publisher("slow")
    async def slow() -> AsyncIterator[bytes]:
        yield b"first"
        await trio.sleep_forever()

    @service.request("twice")
    async def twice(payload: bytes) -> bytes:
        return payload + payload

    return service


async def test_a_connection_counts_streams_elements_and_bytes_in_both_directions(url: str) -> None:
    """The numbers of the two sides agree: one has sent what the other has received."""
    async with serve(numbers_service(), url) as server:
        async with connect(server.addresses[0], service=numbers_service()) as peer:
            async with peer.subscribe("numbers/5", serializer="json", demand=2) as stream:
                assert [number async for number in stream] == [0, 1, 2, 3, 4]
            async with server.peers[0].subscribe("numbers/3", serializer="json") as stream:
                assert [number async for number in stream] == [0, 1, 2]
            here, there = peer.statistics(), server.peers[0].statistics()
    assert here.receiving == DirectionStatistics(opened=1, elements=5)
    assert there.sending == DirectionStatistics(opened=1, elements=5)
    assert here.sending == DirectionStatistics(opened=1, elements=3)
    assert there.receiving == DirectionStatistics(opened=1, elements=3)
    assert (here.protocol, there.protocol) == ("rsio", "rsio")
    assert here.transport == there.transport == str(server.addresses[0]).partition(":")[0]
    assert 30 < there.received_bytes <= here.sent_bytes
    assert 30 < here.received_bytes <= there.sent_bytes


async def test_an_open_stream_shows_its_demand_and_what_is_missing(autojump_clock) -> None:
    """Demand that is left on both sides;
    a stream whose demand has no bound is counted and not added up.
    """
    async with serve(echo_service(), "memory://test") as server, connect("memory://test") as peer:
        async with (
            peer.subscribe("slow", demand=8) as some,
            peer.subscribe("slow", demand=0) as all_of_them,
        ):
            all_of_them.request(UNBOUNDED)
            await anext(some)
            await anext(all_of_them)
            await trio.sleep(1)
            sending, receiving = server.peers[0].statistics().sending, peer.statistics().receiving
            assert (sending.streams, sending.demand, sending.unbounded, sending.elements) == (
                2,
                7,
                1,
                2,
            )
            assert (
                receiving.streams,
                receiving.demand,
                receiving.unbounded,
                receiving.elements,
            ) == (2, 7, 1, 2)
        await trio.sleep(1)
        assert server.peers[0].statistics().sending == DirectionStatistics(opened=2, elements=2)
        assert peer.statistics().receiving == DirectionStatistics(opened=2, elements=2)


async def test_requests_count_as_streams_of_one_element() -> None:
    """The answer is an element, in both protocols."""
    for protocol in ("rsio", "reactivesocket"):
        async with (
            serve(echo_service(), f"{protocol}+memory://test") as server,
            connect(f"{protocol}+memory://test") as peer,
        ):
            assert await peer.request("twice", b"x") == b"xx"
            assert await peer.request("twice", b"y") == b"yy"
            done = DirectionStatistics(opened=2, elements=2)
            assert (peer.statistics().receiving, server.peers[0].statistics().sending) == (
                done,
                done,
            )
            assert peer.statistics().protocol == protocol


async def test_the_age_begins_with_the_hellos(autojump_clock) -> None:
    """It is that of trio's clock, and stays readable after the end."""
    async with serve(numbers_service(), "memory://test"), connect("memory://test") as peer:
        assert (peer.statistics().age, peer.statistics().is_open) == (None, False)
        await peer.wait_accepted()
        await trio.sleep(5)
        assert (peer.statistics().age, peer.statistics().is_open) == (5, True)
    ended = peer.statistics()
    assert (ended.buffered_bytes, ended.receiving.streams, ended.is_open) == (0, 0, False)
    assert ended.age is not None
    assert ended.age >= 5


async def test_unread_elements_are_buffered_bytes(autojump_clock) -> None:
    """They are those that the memory budget counts."""
    async with serve(numbers_service(), "memory://test"), connect("memory://test") as peer:
        async with peer.subscribe("endless", demand=0) as stream:
            await trio.sleep(1)
            empty = peer.statistics().buffered_bytes
            stream.request(500)
            await trio.sleep(1)
            assert peer.statistics().buffered_bytes >= 500 * 100 > empty


async def test_a_stream_without_demand_is_named_with_its_age(autojump_clock) -> None:
    """A stream that never had demand is as old as the stream; the oldest one counts."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect("memory://test") as peer,
    ):
        async with (
            peer.subscribe("endless", demand=0) as first,
            peer.subscribe("numbers/3", demand=0),
        ):
            await trio.sleep(10)
            stalled = server.peers[0].statistics().sending.without_demand
            assert stalled == StalledStream(
                peer=server.peers[0].identity, stream=0, publisher="endless", demand=0, seconds=10
            )
            first.request(1)
            await trio.sleep(1)
            # It has moved: its time begins anew, and the other stream is the oldest now.
            stalled = server.peers[0].statistics().sending.without_demand
            assert stalled is not None
            assert (stalled.publisher, stalled.seconds) == ("numbers/3", 11)


async def test_a_stream_with_demand_and_without_elements_is_named(autojump_clock) -> None:
    """On both sides; the side that receives does not keep the name. The time begins when a call
    sees the stream standing still.
    """
    async with serve(echo_service(), "memory://test") as server, connect("memory://test") as peer:
        async with peer.subscribe("slow", demand=8) as stream:
            await anext(stream)
            await trio.sleep(100)
            for seconds in (0, 30):
                sending, receiving = (
                    server.peers[0].statistics().sending,
                    peer.statistics().receiving,
                )
                assert sending.without_demand is receiving.without_demand is None
                assert sending.without_elements is not None
                assert receiving.without_elements is not None
                assert (sending.without_elements.publisher, sending.without_elements.demand) == (
                    "slow",
                    7,
                )
                assert (
                    receiving.without_elements.publisher,
                    receiving.without_elements.demand,
                ) == ("", 7)
                assert (
                    sending.without_elements.seconds
                    == receiving.without_elements.seconds
                    == seconds
                )
                await trio.sleep(30)


def test_the_sum_of_directions_has_the_oldest_stalled_streams() -> None:
    """Of several connections; a connection without one changes nothing."""
    young, old = (
        StalledStream(peer=PEER, stream=each, publisher="", demand=each, seconds=each)
        for each in (1, 2)
    )
    parts = [
        DirectionStatistics(
            streams=1,
            opened=2,
            demand=3,
            unbounded=4,
            elements=5,
            without_demand=young,
            without_elements=old,
        ),
        DirectionStatistics(),
        DirectionStatistics(
            streams=1, opened=1, demand=1, unbounded=1, elements=1, without_demand=old
        ),
    ]
    wanted = DirectionStatistics(
        streams=2,
        opened=3,
        demand=4,
        unbounded=5,
        elements=6,
        without_demand=old,
        without_elements=old,
    )
    assert sum_of_directions(parts) == wanted


async def test_statistics_outside_of_trio_are_a_usage_error() -> None:
    """The clock of the run is needed, and another thread could read a table while it changes."""
    async with serve(numbers_service(), "memory://test"), connect("memory://test") as peer:
        with pytest.raises(UsageError, match="trio"):
            await trio.to_thread.run_sync(peer.statistics)
