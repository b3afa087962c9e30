"""The elements that a slow reader of a network holds are bounded in bytes: over both protocols,
typed or not, in a pipe or not.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from penstock import (
    ConnectionLost,
    LimitExceeded,
    Limits,
    Service,
    Stream,
    Subscriber,
    Subscription,
    connect,
    remote,
    serve,
    subscribe,
)
from penstock.runtime import Peer

PROTOCOLS = ("rsio", "reactivesocket")
MIB = 1 << 20
ELEMENT = MIB
LIMITS = replace(Limits(), window_bytes=4 * MIB, unread_bytes=16 * MIB, max_element=2 * MIB)


LIGHT_ENDS = [b"", *(bytes(1000 + number % 300) for number in range(200)), b""] * 3


class LargeElements:
    """A service with large elements and small ones."""

    def __init__(self) -> None:
        self.service = Service()
        self.service.publish("large", lambda: self.elements(math.inf, 0))
        self.service.publish("text", self.texts, serializer="json")
        self.service.publish("then-large", lambda: self.elements(math.inf, 200))
        self.service.publish("small", lambda: self.elements(0, 2_000))
        self.service.publish("mixed", self.mixed)
        self.service.publish("light-ends", lambda: LIGHT_ENDS)

    async def elements(self, large: float, small: int) -> AsyncIterator[bytes]:
        for _ in range(small):
            yield b"small"
        element = bytes(ELEMENT)
        while large:
            yield element

    async def texts(self) -> AsyncIterator[str]:
        while True:
            yield "x" * ELEMENT

    async def mixed(self) -> AsyncIterator[bytes]:
        for number in range(3_000):
            yield bytes(ELEMENT) if number % 100 == 50 else b"small"


Opening = Callable[[str], AbstractAsyncContextManager[Stream[Any]]]

OPENINGS: dict[str, Opening] = {
    "by-url": lambda address: subscribe(f"{address}/large", limits=LIMITS),
    "typed": lambda address: subscribe(
        f"{address}/text", type=str, serializer="json", limits=LIMITS
    ),
    "in-a-pipe": lambda address: subscribe(remote(f"{address}/large", limits=LIMITS).map(len)),
    "declared": lambda address: subscribe(
        f"{address}/large", window_bytes=4 * MIB, limits=replace(LIMITS, window_bytes=64 * MIB)
    ),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)
async def test_a_slow_reader_of_large_elements_holds_its_window(
    opening: Opening, protocol: str, autojump_clock: MockClock
) -> None:
    """The first elements are asked for before their size is known: 4 of at most 2 MiB.
    From then on the window is kept.
    """
    large = LargeElements()
    async with (
        serve(large.service, "memory://b") as server,
        opening(f"{protocol}+{server.addresses[0]}") as stream,
    ):
        await trio.sleep(1)
        assert stream.statistics().buffered == 4
        held = []
        for _ in range(60):
            await anext(stream)
            await wait_all_tasks_blocked()
            held.append(stream.statistics().buffered * ELEMENT)
        assert max(held) <= LIMITS.window_bytes
        assert max(held) >= 2 * ELEMENT  # it still asks ahead


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_streams_of_one_connection_share_its_budget(
    protocol: str, autojump_clock: MockClock
) -> None:
    """Twelve streams with windows of 4 MiB, where a connection may hold 16 MiB:
    each goes on, and all keep within it.
    """
    large = LargeElements()
    limits = replace(LIMITS, unread_bytes=128 * MIB)
    async with (
        serve(large.service, "memory://s") as server,
        connect(f"{protocol}+{server.addresses[0]}", limits=limits) as peer,
    ):
        taken = 0

        async def read(peer: Peer) -> None:
            nonlocal taken
            async with peer.subscribe("large") as stream:
                async for _ in stream:
                    taken += 1
                    await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            for _ in range(12):
                nursery.start_soon(read, peer)
            await trio.sleep(20.5)
            shared = peer._connection.session.channel.budgets.unread
            shared.most = 16 * MIB
            await trio.sleep(20)
            assert shared.promised <= 16 * MIB + 12 * ELEMENT
            before = taken
            await trio.sleep(5)
            assert taken - before > 50
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_elements_that_become_large_end_their_stream_at_the_budget(
    protocol: str, autojump_clock: MockClock
) -> None:
    """Elements of 1 MiB follow small ones, and were asked for with them.
    The reader gets what is held, and then an error.
    """
    large = LargeElements()
    async with (
        serve(large.service, "memory://j") as server,
        connect(f"{protocol}+{server.addresses[0]}", limits=LIMITS) as peer,
    ):
        async with peer.subscribe("then-large") as stream:
            for _ in range(190):
                await anext(stream)
            await trio.sleep(1)
            assert stream.statistics().buffered <= 10 + LIMITS.unread_bytes // ELEMENT + 1
            with pytest.raises(
                LimitExceeded,
                match=r"Limits.unread_bytes\); read it faster, or open it with a smaller demand",
            ) as caught:
                async for _ in stream:
                    pass
            assert caught.value.limit == "unread_bytes"
        assert peer.is_connected  # only the stream ended


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_large_elements_among_small_ones_do_no_harm(
    protocol: str, autojump_clock: MockClock
) -> None:
    """Every hundredth has 1 MiB, and all arrive, also at a slow reader."""
    large = LargeElements()
    async with serve(large.service, "memory://m") as server:
        async with subscribe(f"{protocol}+{server.addresses[0]}/mixed", limits=LIMITS) as stream:
            got = 0
            async for batch in stream.batches():
                got += len(batch)
                await trio.sleep(0.1)
    assert got == 3_000


async def count(stream: Stream[Any]) -> int:
    return len([None async for _ in stream])


async def count_in_batches(stream: Stream[Any]) -> int:
    return sum([len(batch) async for batch in stream.batches()])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("read", [count, count_in_batches])
async def test_small_elements_use_the_whole_demand(
    read: Callable[[Stream[Any]], Awaitable[int]], protocol: str
) -> None:
    """After the first elements 256 are under way, as without a window: 2,000 elements take one
    request for each half of it.
    """
    large = LargeElements()
    async with (
        serve(large.service, "memory://f") as server,
        connect(f"{protocol}+{server.addresses[0]}", limits=LIMITS) as peer,
    ):
        async with peer.subscribe("small") as stream:
            assert stream.statistics().requested == 4
            for _ in range(9):
                await anext(stream)
            now = stream.statistics()
            assert now.buffered + now.outstanding >= 240
            assert await read(stream) == 2_000 - 9


async def test_a_window_has_at_least_one_byte() -> None:
    """Any other value is refused where it is given."""
    with pytest.raises(
        Exception,
        match=(
            "window_bytes=0; give how many bytes of elements may be asked for and unread at a time"
        ),
    ):
        subscribe("memory://w/large", window_bytes=0)


SMALL_BUDGET = replace(LIMITS, unread_bytes=2 * MIB, memory_budget=10 * MIB)
"""80 % of the budget are 8 MiB. The window and the unread bytes are less than what these tests
ask for.
"""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("by_url", [True, False], ids=["url", "peer"])
async def test_a_stream_that_requests_by_itself_is_bounded_by_its_requests_and_the_memory_budget(
    by_url: bool, protocol: str, autojump_clock: MockClock
) -> None:
    """With `demand=0` neither the window nor `unread_bytes` says how much may be asked for. At
    80 % of the budget the connection is cut.
    """
    large = LargeElements()
    async with serve(large.service, "memory://own") as server:
        address = f"{protocol}+{server.addresses[0]}"
        async with connect(address, limits=SMALL_BUDGET) as peer:
            opening = (
                subscribe(f"{address}/large", demand=0, limits=SMALL_BUDGET)
                if by_url
                else peer.subscribe("large", demand=0)
            )
            # The block of a URL has a separate connection, and raises the error that would be
            # reported for another one.
            with (
                pytest.raises(LimitExceeded, match=r"Limits\.memory_budget")
                if by_url
                else nullcontext()
            ):
                async with opening as stream:
                    stream.request(6)
                    await trio.sleep(1)
                    assert stream.statistics().buffered == 6
                    stream.request(6)
                    await trio.sleep(1)
                    assert stream.statistics().buffered < 12
                    with pytest.raises(ConnectionLost, match=r"Limits\.memory_budget"):
                        async for _ in stream:
                            pass


class Keeps(Subscriber[Any]):
    """A subscriber of a program: it requests some elements, and keeps what comes."""

    def __init__(self, demand: int) -> None:
        self.demand = demand
        self.kept: list[bytes] = []
        self.errors: list[BaseException] = []

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscription.request(self.demand)

    def on_next(self, element: bytes, /) -> None:
        self.kept.append(element)

    def on_error(self, error: BaseException, /) -> None:
        self.errors.append(error)

    def on_complete(self, /) -> None:
        raise AssertionError("the stream has no end")


class TellsWhatItKeeps(Keeps):
    """Offers `penstock.api.OptionalMethods`."""

    def held(self) -> int:
        return sum(map(len, self.kept))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_subscriber_without_a_stream_gets_what_it_requests_at_once(
    protocol: str, autojump_clock: MockClock
) -> None:
    """Nothing waits here: elements that the subscriber keeps belong to the program, and are bounded
    by its requests alone.
    """
    large = LargeElements()
    async with serve(large.service, "memory://callback") as server, trio.open_nursery() as nursery:
        async with connect(f"{protocol}+{server.addresses[0]}", limits=SMALL_BUDGET) as peer:
            keeps = Keeps(12)
            peer.source("large").publisher(nursery).subscribe(keeps)
            await trio.sleep(1)
            assert len(keeps.kept) == 12
            assert peer.is_connected
            assert not keeps.errors


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_subscriber_that_tells_what_it_keeps_is_within_the_memory_budget(
    protocol: str, autojump_clock: MockClock
) -> None:
    """At 80 % of the budget its connection is cut."""
    large = LargeElements()
    async with serve(large.service, "memory://tells") as server, trio.open_nursery() as nursery:
        async with connect(f"{protocol}+{server.addresses[0]}", limits=SMALL_BUDGET) as peer:
            keeps = TellsWhatItKeeps(100)
            peer.source("large").publisher(nursery).subscribe(keeps)
            await trio.sleep(1)
            assert len(keeps.kept) <= 10
            assert not peer.is_connected
            assert [type(error) for error in keeps.errors] == [ConnectionLost]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_all_bytes_of_elements_that_arrived_together_are_counted(protocol: str) -> None:
    """The first and the last may be empty: a peer could choose the lengths of an average."""
    large = LargeElements()
    async with (
        serve(large.service, "memory://b") as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        async with peer.subscribe("light-ends") as stream:
            got = [element async for element in stream]
            counted = stream.statistics().received_bytes
    assert got == LIGHT_ENDS
    assert counted == sum(map(len, got))
