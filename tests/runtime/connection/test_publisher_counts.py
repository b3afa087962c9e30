"""Streams are counted by publisher if a plugin reads that; how each has ended, since the beginning."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import NotAvailable, PublisherFailed, Rejected
from penstock.protocols import rsio
from penstock.runtime import Peer, Service, connect, serve
from penstock.spi import Fact, Outcome, Registry, StreamEnded, build_registry, hookimpl
from penstock.testing import ManualSubscriber
from tests.runtime._services import raw_connection


class Reader:
    """A plugin that reads the numbers of each publisher."""

    @hookimpl
    def penstock_reads(self) -> list[Fact]:
        return [Fact.PUBLISHERS]


class Ends:
    """A plugin that observes how streams end."""

    def __init__(self) -> None:
        self.ended: list[StreamEnded] = []

    @hookimpl
    def penstock_stream_ended(self, event: StreamEnded) -> None:
        self.ended.append(event)


def reading() -> Registry:
    """Return a registry in which a plugin reads them."""
    return build_registry([Reader()])


def service_of_all_ends() -> Service:
    """Return a service whose publishers end in each way."""
    service = Service()

    @service.publisher("two/{letter}")
    async def two(letter: str) -> AsyncIterator[bytes]:
        yield letter.encode()
        yield b"second"

    @service.publisher("failing")
    async def failing() -> AsyncIterator[bytes]:
        yield b"one"
        raise ValueError("secret")

    @service.publisher("denied")
    async def denied() -> AsyncIterator[bytes]:
        raise NotAvailable("not for you")
        yield b""

    @service.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        yield b"one"
        await trio.sleep_forever()

    @service.request("twice")
    async def twice(payload: bytes) -> bytes:
        return payload * 2

    @service.request_response
    async def other(data: bytes) -> bytes:
        return data

    return service


async def test_each_end_is_counted_under_the_name_of_its_publisher(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A request whose data is not a name has no count. A denied stream has failed."""
    async with serve(service_of_all_ends(), "memory://test", registry=reading()) as server:
        async with connect("memory://test") as peer:
            for letter in "ab":
                async with peer.subscribe(f"two/{letter}") as stream:
                    assert len([element async for element in stream]) == 2
            with suppress(PublisherFailed):
                async with peer.subscribe("failing") as stream:
                    assert len([element async for element in stream]) == 1
            with pytest.raises(Rejected):
                async with peer.subscribe("denied") as stream:
                    assert [element async for element in stream] == []
            assert await peer.request("twice", b"x") == b"xx"
            assert await peer.request_response(b"\xff") == b"\xff"
            async with peer.subscribe("endless") as stream:
                assert await anext(stream) == b"one"
            await trio.testing.wait_all_tasks_blocked()
            idle, reader = ManualSubscriber(), ManualSubscriber()
            source: Any = peer.source("endless")
            source.attach(idle)
            source.attach(reader)
            reader.request(1)
            await trio.testing.wait_all_tasks_blocked()
            assert server.statistics().publishers["endless"].streams == 2
            idle.cancel()
            await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        found = server.statistics().publishers
    assert {
        name: (each.streams, {how: n for how, n in each.ended.items() if n}, each.elements)
        for name, each in found.items()
    } == {
        "two/{letter}": (0, {Outcome.COMPLETED: 2}, 4),
        "failing": (0, {Outcome.FAILED: 1}, 1),
        "denied": (0, {Outcome.FAILED: 1}, 0),
        "twice": (0, {Outcome.COMPLETED: 1}, 1),
        "": (0, {Outcome.COMPLETED: 1}, 1),
        "endless": (0, {Outcome.CANCELLED: 2, Outcome.LOST: 1}, 2),
    }
    assert found["two/{letter}"].element_bytes == len("a" + "second" + "b" + "second")


async def test_a_publisher_that_has_failed_is_not_lost_with_its_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The error waits for the elements before it, and the peer goes without reading them."""
    service, told, observer = Service(), list[Exception](), Ends()

    @service.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        yield b"small"  # after it, more than one element is asked for
        yield bytes(1 << 20)
        raise ValueError("secret")

    registry = build_registry([Reader(), observer])
    async with (
        serve(service, "memory://test", registry=registry, on_violation=told.append) as server,
        trio.open_nursery() as nursery,
    ):
        raw = await raw_connection(nursery)
        await raw.send(
            rsio.encode(rsio.ClientHello())
            + rsio.encode(rsio.Subscribe(publisher="large", subscriber=0, demand=5))
        )
        await trio.testing.wait_all_tasks_blocked()
        assert [str(error) for error in told] == ["secret"]
        assert server.statistics().publishers["large"].streams == 1
        await raw.abort()
        await trio.testing.wait_all_tasks_blocked()
        ended = server.statistics().publishers["large"].ended
    assert {how for how, count in ended.items() if count} == {Outcome.FAILED}
    assert [(each.outcome, str(each.error)) for each in observer.ended] == [
        (Outcome.FAILED, "secret")
    ]


async def test_durations_are_added_up_from_the_first_look_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Before that no clock is read."""
    async with serve(service_of_all_ends(), "memory://test", registry=reading()) as server:
        async with connect("memory://test") as peer:
            await _leave_after(peer, 3)
            assert server.statistics().publishers["endless"].seconds == 0
            await _leave_after(peer, 4)
            found = server.statistics().publishers["endless"]
    assert found.seconds == pytest.approx(4)
    assert found.ended[Outcome.CANCELLED] == 2


async def test_nothing_is_counted_if_no_plugin_reads_it() -> None:
    """Neither at the server nor at the client."""
    registry = build_registry(environ={"PENSTOCK_DISABLE_PLUGINS": "metrics"})
    async with serve(service_of_all_ends(), "memory://test", registry=registry) as server:
        async with connect("memory://test", registry=registry) as peer:
            assert await peer.request("twice", b"x") == b"xx"
            assert server.statistics().publishers == peer.statistics().publishers == {}


async def _leave_after(peer: Peer, seconds: float) -> None:
    async with peer.subscribe("endless") as stream:
        assert await anext(stream) == b"one"
        await trio.sleep(seconds)
    await trio.testing.wait_all_tasks_blocked()
