"""Streams that belong to a server:
places, memory, elements that cannot be sent, observers, and the shutdown.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import LimitExceeded, Limits, NotAvailable, PublicError, PublisherFailed
from penstock.runtime import Service
from penstock.runtime.connection import ConnectionSettings, MemoryBudget
from penstock.runtime.connection._memory_budget import FULL_FOR_ADDRESS
from penstock.runtime.server._hosted_streams import HostedStreams
from penstock.session import OBJECT_BYTES
from penstock.spi import (
    ConnectionClosed,
    ConnectionOpened,
    HostedSubscription,
    PeerIdentity,
    Reservation,
    StreamEnded,
    StreamOpened,
    build_registry,
)
from tests.runtime._observer import Observer
from tests.runtime._plain_subscriber import PlainSubscriber
from tests.runtime.server._knock import STRANGER


class Collecting(PlainSubscriber):
    """Collects elements that were not signalled, when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.signals: list[list[bytes]] = []

    def on_next_many(self, elements: Sequence[bytes]) -> None:
        self.signals.append(list(elements))
        self.elements += elements

    def collect(self) -> list[bytes]:
        assert isinstance(self.subscription, HostedSubscription)
        return list(self.subscription.collect())


class Holding(PlainSubscriber):
    """Tells that it holds the bytes of its elements."""

    def held(self) -> int:
        return sum(map(len, self.elements))


class Fixture:
    def __init__(self, nursery: trio.Nursery, *observers: object, **limits: Any) -> None:
        self.told: list[Exception] = []
        self.service = Service()
        self.limits = Limits(**limits)
        self.budget = MemoryBudget(self.limits.memory_budget)
        self.streams = HostedStreams(
            ConnectionSettings(
                service=self.service,
                registry=build_registry(observers),
                limits=self.limits,
                on_violation=self.told.append,
                budget=self.budget,
            ),
            self.limits.max_connections,
        )
        self.streams.start(nursery)

        @self.service.publisher("endless")
        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 1000

    async def open(
        self,
        name: str,
        subscriber: PlainSubscriber | None = None,
        peer: PeerIdentity = STRANGER,
        reservation: Reservation | None = None,
    ) -> PlainSubscriber:
        subscriber = subscriber or PlainSubscriber()
        await self.streams.open(
            name,
            peer,
            subscriber,
            protocol="knock",
            address="knock://test",
            collects=isinstance(subscriber, Collecting),
            reservation=reservation,
        )
        return subscriber

    def reserve(
        self,
        held: Callable[[], int] = lambda: 0,
        on_cut: Callable[[str], None] = lambda _: None,
        peer: PeerIdentity = STRANGER,
    ) -> Reservation:
        return self.streams.reserve(peer, held, on_cut, address="knock://test")


def client(number: int) -> PeerIdentity:
    return PeerIdentity(address="a", host=f"192.0.2.{number}")


async def test_a_client_has_a_bounded_number_of_streams(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Counted by principal, or by address; a stream that has ended makes room;
    another client is not affected.
    """
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, max_subscriptions=2)
        first, _ = [await fixture.open("endless") for _ in range(2)]
        with pytest.raises(LimitExceeded, match="2"):
            await fixture.open("endless")
        await fixture.open("endless", peer=PeerIdentity(address="a", host="192.0.2.2"))
        for principal in ("alice", "bob"):
            await fixture.open(
                "endless", peer=PeerIdentity(address="a", host="192.0.2.1", principal=principal)
            )
        first.cancel()
        await trio.testing.wait_all_tasks_blocked()
        await fixture.open("endless")
        with pytest.raises(LimitExceeded):
            await fixture.open("endless")
        fixture.streams.stop()
    assert fixture.told == []
    assert not fixture.streams.is_used


async def test_all_clients_together_have_a_bounded_number_of_streams(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """`Limits.max_connections`: a client with many addresses gets no more."""
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, max_connections=3)
        for number in range(3):
            await fixture.open("endless", peer=PeerIdentity(address="a", host=f"192.0.2.{number}"))
        with pytest.raises(LimitExceeded):
            await fixture.open("endless", peer=PeerIdentity(address="a", host="192.0.2.9"))
        fixture.streams.stop()


async def test_the_stream_that_holds_most_ends_when_the_memory_is_full(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its subscriber gets the reason, its publisher is cancelled, and the other stream goes on."""
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, memory_budget=100_000)
        greedy, modest = (
            await fixture.open("endless", Holding()),
            await fixture.open("endless", Holding()),
        )
        modest.request(3)
        greedy.request(1000)
        await trio.testing.wait_all_tasks_blocked()
        assert isinstance(greedy.error, PublisherFailed)
        assert str(greedy.error) == FULL_FOR_ADDRESS
        assert len(greedy.elements) < 100
        assert (len(modest.elements), modest.error) == (3, None)
        [told] = fixture.told
        assert isinstance(told, LimitExceeded)
        fixture.streams.stop()


@pytest.mark.parametrize("observers", [(), (Observer(),)], ids=["alone", "observed"])
@pytest.mark.parametrize("element", [5, "text", [1], b"x" * 101])
async def test_an_element_that_cannot_be_sent_ends_its_stream(
    element: object, observers: tuple[object, ...], autojump_clock: trio.testing.MockClock
) -> None:
    """The elements before it arrive;
    the type and the size are reported here, and the client is told less.
    """
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, *observers, max_element=100)
        fixture.service.publish("wrong", [b"1", bytearray(b"2"), element, b"4"])
        subscriber = await fixture.open("wrong")
        subscriber.request(10)
        await trio.testing.wait_all_tasks_blocked()
        assert subscriber.elements == [b"1", b"2"]
        assert str(subscriber.error) == "the publisher failed"
        assert ["has published" in str(error) for error in fixture.told] == [True]


async def test_a_shutdown_ends_each_stream(autojump_clock: trio.testing.MockClock) -> None:
    """Its subscriber gets an error, and a stream that comes later is refused."""
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery)
        subscriber = await fixture.open("endless")
        assert fixture.streams.is_used
        fixture.streams.stop()
        assert str(subscriber.error) == "the server shuts down"
        with pytest.raises(NotAvailable):
            await fixture.open("endless")
    assert not fixture.streams.is_used


async def test_a_name_that_is_too_long_leads_nowhere(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is not looked up. A factory that fails tells the client its public text only."""
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, max_name=64)

        @fixture.service.publisher("echo/{text}")
        def echo(text: str) -> list[bytes]:
            raise PublicError("out of order")

        with pytest.raises(PublisherFailed, match="out of order"):
            await fixture.open("echo/" + "x" * 59)
        with pytest.raises(NotAvailable):
            await fixture.open("echo/" + "x" * 60)
        assert not fixture.streams.is_used


async def test_what_outlives_its_stream_is_counted(autojump_clock: trio.testing.MockClock) -> None:
    """It takes a slot of its client, and goes when the memory is full.
    A reservation that has ended counts no more.
    """
    async with trio.open_nursery() as nursery:
        # A quarter of it is for the address of the client.
        fixture = Fixture(nursery, memory_budget=400_000, max_subscriptions=2)
        sizes, gone = {"large": 60_000, "small": 1_000}, list[str]()

        def reserve(name: str) -> Reservation:
            def on_cut(why: str) -> None:
                gone.append(name)
                assert why == FULL_FOR_ADDRESS
                sizes[name] = 0

            made = fixture.reserve(lambda: sizes[name], on_cut)
            made.note_asked()
            return made

        small = reserve("small")
        reserve("large")
        with pytest.raises(LimitExceeded, match="2"):
            reserve("third")
        assert fixture.streams.held() == fixture.budget.held() == 61_000
        fixture.budget.measure()
        assert gone == []
        sizes["large"] = 99_000
        fixture.budget.measure()
        assert gone == ["large"]
        for _ in range(2):
            small.end()
        sizes["small"] = 99_000
        assert fixture.streams.held() == fixture.budget.held() == 0
        reserve("small")
        with pytest.raises(LimitExceeded):
            reserve("third")
        nursery.cancel_scope.cancel()


async def test_a_client_that_reads_keeps_its_elements_beside_slow_ones(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Of its own address: those that have taken nothing for a second go first, however much it
    holds.
    """
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, memory_budget=400_000)
        sizes, gone = dict.fromkeys(range(10), 9_000), list[int]()

        def reserve(number: int) -> Reservation:
            def on_cut(_why: str) -> None:
                gone.append(number)
                sizes[number] = 0

            made = fixture.reserve(lambda: sizes[number], on_cut)
            made.note_asked()
            made.taken_at = trio.current_time()
            return made

        fast, *_slow = [reserve(number) for number in sizes]
        await trio.sleep(1.5)
        fast.taken_at = trio.current_time()
        sizes |= dict.fromkeys(range(1, 10), 12_000) | {0: 50_000}
        fixture.budget.measure()
        assert 0 not in gone
        assert len(gone) == 5
        await trio.sleep(1.5)
        sizes[0] = 100_000
        fixture.budget.measure()
        assert gone[-1] == 0
        nursery.cancel_scope.cancel()


async def test_elements_that_wait_in_a_stream_go_with_the_reservation_of_their_client(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The stream of a client that reads is cut after that of one that does not, also if it holds
    more.
    """
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, memory_budget=400_000)

        @fixture.service.publisher("some/{count}")
        async def some(count: int) -> AsyncIterator[bytes]:
            for _ in range(count):
                yield b"x" * 2000
            await trio.sleep_forever()

        reservations = [fixture.reserve() for _ in range(2)]
        for each in reservations:
            each.taken_at = trio.current_time()
        fast, slow = [
            await fixture.open(name, Collecting(), reservation=each)
            for name, each in zip(("some/25", "some/22"), reservations, strict=True)
        ]
        await trio.sleep(1.5)
        reservations[0].taken_at = trio.current_time()
        for subscriber in (slow, fast):
            for count in (1, 1000):
                subscriber.request(count)
                await trio.testing.wait_all_tasks_blocked()
        fixture.budget.measure()
        assert (str(slow.error), fast.error) == (FULL_FOR_ADDRESS, None)
        nursery.cancel_scope.cancel()


async def test_the_oldest_that_has_asked_for_nothing_gives_way(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is the oldest of the same client if that has too many, else of all. Subscriptions that
    have asked keep their place, and then the newcomer is refused. Each of them is counted.
    """
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, max_connections=4, max_subscriptions=2)
        told: list[tuple[str, str | None]] = []
        fixture.streams.on_refused = lambda reason, peer, _: told.append((reason, peer.host))
        gone: list[tuple[int, str]] = []

        def reserve(number: int, host: int) -> Reservation:
            return fixture.reserve(on_cut=lambda why: gone.append((number, why)), peer=client(host))

        gave_way = "another client needed the place: no element was asked for"
        first, second = reserve(1, 1), reserve(2, 1)
        third, fourth = reserve(3, 2), reserve(4, 3)
        first.note_asked()
        # This client has two: its own second one goes, and not the oldest of all.
        fifth = reserve(5, 1)
        assert gone == [(2, gave_way)]
        # All four places are taken.
        sixth = reserve(6, 4)
        assert gone[1:] == [(3, gave_way)]
        for each in (second, third, fourth, fifth, sixth):
            each.note_asked()
        with pytest.raises(LimitExceeded, match="all clients together") as refused:
            reserve(7, 5)
        assert refused.value.limit == "max_connections"
        with pytest.raises(LimitExceeded, match="a client has") as refused:
            reserve(8, 1)
        assert refused.value.limit == "max_subscriptions"
        assert len(gone) == 2
        assert told == [
            ("places:unasked", "192.0.2.1"),
            ("places:unasked", "192.0.2.2"),
            ("places:streams", "192.0.2.5"),
            ("places:client", "192.0.2.1"),
        ]
        for each in (first, second, third, fourth, fifth, sixth):
            each.end()
        assert not any(vars(fixture.streams)[table] for table in TABLES)
        nursery.cancel_scope.cancel()


TABLES = ("_reservations", "_reserved", "_unasked", "_unasked_of")
"""The tables of reservations in the server."""


async def test_a_server_that_stops_holds_nothing_for_clients() -> None:
    """The transport need not end each of its reservations. It may end them later, which changes
    nothing.
    """
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery)
        reservation = fixture.reserve(lambda: 5_000)
        assert fixture.streams.held() == 5_000
        fixture.streams.stop()
        for _ in range(2):
            assert fixture.streams.held() == 0
            assert not any(vars(fixture.streams)[table] for table in TABLES)
            reservation.end()


async def test_observers_see_a_stream_as_a_connection_of_its_own(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is opened before its stream and closed after it, with the numbers of elements and
    bytes. One that is refused is not reported.
    """
    observer = Observer()
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, observer)
        fixture.service.publish("three", [b"1", b"22", b"333"])
        with pytest.raises(NotAvailable):
            await fixture.open("nowhere")
        subscriber = await fixture.open("three")
        subscriber.request(10)
        await trio.testing.wait_all_tasks_blocked()
        assert subscriber.is_completed
    opened, began, ended, closed = observer.events
    assert isinstance(opened, ConnectionOpened)
    assert (opened.dialect, opened.address, opened.accepted) == ("knock", "knock://test", True)
    assert isinstance(began, StreamOpened)
    assert (began.publisher, began.pattern, began.outbound) == ("three", "three", True)
    assert isinstance(ended, StreamEnded)
    assert (ended.elements, ended.bytes, ended.outcome.value) == (3, 6, "completed")
    assert isinstance(closed, ConnectionClosed)
    assert opened.connection == began.connection == ended.connection == closed.connection


async def test_elements_that_are_at_hand_come_in_batches(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Also through the observers: a call for each element would cost more than the element."""

    class Batches(PlainSubscriber):
        calls = 0

        def on_next_many(self, elements: list[bytes]) -> None:
            self.calls += 1
            self.elements.extend(elements)

    async with trio.open_nursery() as nursery:
        for observers in ((), (Observer(),)):
            fixture = Fixture(nursery, *observers)
            fixture.service.publish("many", [b"x"] * 1000)
            subscriber = Batches()
            await fixture.open("many", subscriber)
            subscriber.request(1000)
            await trio.testing.wait_all_tasks_blocked()
            assert len(subscriber.elements) == 1000
            assert subscriber.calls < 40


async def test_elements_wait_until_they_are_collected(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The first one is signalled, and so is the first one after each look. All of them are counted,
    also those that wait at the end.
    """
    observer = Observer()
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, observer, max_element=100)
        go_on = [trio.Event(), trio.Event()]

        @fixture.service.publisher("bursts")
        async def bursts() -> AsyncIterator[bytes]:
            for number, size in ((0, 3), (1, 2)):
                for _ in range(size):
                    yield b"%d" % number
                await go_on[number].wait()

        subscriber = Collecting()
        await fixture.open("bursts", subscriber)
        subscriber.request(10)
        before = fixture.budget.held()
        await trio.testing.wait_all_tasks_blocked()
        assert subscriber.signals == [[b"0"]]
        assert fixture.budget.held() == before + 2 * (1 + OBJECT_BYTES)
        assert subscriber.collect() == [b"0", b"0"]
        assert subscriber.collect() == []
        assert fixture.budget.held() == before
        go_on[0].set()
        await trio.testing.wait_all_tasks_blocked()
        assert subscriber.signals == [[b"0"], [b"1"]]
        go_on[1].set()
        await trio.testing.wait_all_tasks_blocked()
        assert (subscriber.signals, subscriber.is_completed) == ([[b"0"], [b"1"], [b"1"]], True)
        assert subscriber.collect() == []
    [ended] = [event for event in observer.events if isinstance(event, StreamEnded)]
    assert (ended.elements, ended.bytes) == (5, 5)


async def test_a_batch_is_signalled_when_all_that_was_requested_has_come(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Two signals for any number of small elements: the subscriber requests more inside the
    second one.
    """
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery)
        subscriber = Collecting()
        await fixture.open("endless", subscriber)
        for signals in (2, 4):
            subscriber.request(20)
            await trio.testing.wait_all_tasks_blocked()
            assert len(subscriber.signals) == signals
            assert len(subscriber.elements) == 10 * signals
        fixture.streams.stop()


@pytest.mark.parametrize("bad", ["text", b"x" * 101])
async def test_an_element_that_cannot_be_sent_comes_after_those_in_the_batch(
    bad: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """One that is longer than usual is signalled in its order; one that is too long, or no bytes,
    ends the stream.
    """
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, max_element=100)

        @fixture.service.publisher("mixed")
        async def mixed() -> AsyncIterator[Any]:
            for element in (b"1", b"2", b"3" * 90, bytearray(b"4"), b"5", bad, b"7"):
                yield element

        subscriber = Collecting()
        await fixture.open("mixed", subscriber)
        subscriber.request(10)
        await trio.testing.wait_all_tasks_blocked()
        assert subscriber.elements == [b"1", b"2", b"3" * 90, b"4", b"5"]
        assert str(subscriber.error) == "the publisher failed"


async def test_the_elements_of_a_batch_count_against_the_memory(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A publisher that fills a batch, and waits then, is found when its stream is looked at."""
    async with trio.open_nursery() as nursery:
        fixture = Fixture(nursery, memory_budget=100_000)

        @fixture.service.publisher("waits")
        async def waits() -> AsyncIterator[bytes]:
            for _ in range(30):  # fewer than a burst of the pump
                yield b"x" * 3000
            await trio.sleep_forever()

        subscriber = Collecting()
        await fixture.open("waits", subscriber)
        subscriber.request(1)
        await trio.testing.wait_all_tasks_blocked()
        subscriber.request(1000)
        await trio.testing.wait_all_tasks_blocked()
        assert fixture.budget.held() > 80_000
        fixture.budget.note_bytes(25_000)
        assert str(subscriber.error) == FULL_FOR_ADDRESS
        assert len(subscriber.elements) == 1
        assert fixture.budget.held() == 0
        fixture.streams.stop()
