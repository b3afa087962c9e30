"""Observers get each connection and each stream, once when it begins and once when it ends."""

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import trio

from penstock.api import (
    ConnectionLost,
    ProtocolError,
    PublisherFailed,
    Rejected,
    Subscriber,
    Subscription,
    UsageError,
)
from penstock.runtime import Service, connect, serve, subscribe
from penstock.runtime.connection._event_reporting import (
    ConnectionEvents,
    ObservedStream,
    StreamReport,
)
from penstock.spi import (
    ConnectionOpened,
    Outcome,
    PeerIdentity,
    StreamEnded,
    build_registry,
    hookimpl,
)
from tests.runtime._observer import Observer
from tests.runtime._services import Census, named, numbers_service, raw_connection

WHOLE_STORY = ["ConnectionOpened", "StreamOpened", "StreamEnded", "ConnectionClosed"]


async def test_both_sides_report_a_connection_and_its_stream_in_order(url: str) -> None:
    """Opened, begun, ended, closed: each once, with the same numbers throughout."""
    here, there = Observer(), Observer()
    async with serve(numbers_service(), url, registry=there.registry()) as server:
        (address,) = server.addresses
        async with connect(address, registry=here.registry()) as peer:
            async with peer.subscribe("numbers/5", serializer="json", demand=2) as stream:
                assert [number async for number in stream] == [0, 1, 2, 3, 4]
    assert here.story() == there.story() == WHOLE_STORY
    assert (here.opened[0].accepted, there.opened[0].accepted) == (False, True)
    assert here.opened[0].address == there.opened[0].address == str(address)
    assert here.opened[0].dialect == "rsio"
    assert here.opened[0].peer == peer.identity
    for observer, outbound in ((here, False), (there, True)):
        number = observer.opened[0].connection
        assert number > 0
        assert (
            observer.begun[0].connection,
            observer.begun[0].stream,
            observer.begun[0].publisher,
        ) == (number, 0, "numbers/5")
        assert observer.begun[0].outbound is outbound
        (ended,) = observer.ended
        assert ended == StreamEnded(
            connection=number,
            stream=0,
            outbound=outbound,
            outcome=Outcome.COMPLETED,
            elements=5,
            error=None,
            publisher="numbers/5",
            peer=observer.opened[0].peer,
            duration=ended.duration,
            bytes=5,
            pattern="numbers/{count}" if outbound else "",
        )
        assert (
            observer.closed[0].connection,
            observer.closed[0].reason,
            observer.closed[0].error,
        ) == (number, "closed", None)
    assert here.opened[0].connection != there.opened[0].connection


async def test_the_pattern_of_a_stream_is_that_of_the_service_and_not_a_name_of_the_peer() -> None:
    """By subscribe, and by a request with and without a payload;
    a request whose data is not a name has no pattern.
    """
    service, observer = Service(), Observer()

    @service.publisher("ticks/{symbol}")
    async def ticks(symbol: str) -> AsyncIterator[bytes]:
        yield symbol.encode()

    @service.request("twice/{name}")
    async def twice(name: str, payload: bytes = b"") -> bytes:
        return payload + payload

    @service.request_response
    async def other(data: bytes) -> bytes:
        return data

    async with serve(service, "reactivesocket+memory://test", registry=observer.registry()):
        async with connect("reactivesocket+memory://test") as peer:
            async with peer.subscribe("ticks/EURUSD?") as stream:
                assert [element async for element in stream] == [b"EURUSD"]
            assert await peer.request("twice/a") == b""
            assert await peer.request("twice/b", b"x") == b"xx"
            assert await peer.request_response(b"any data") == b"any data"
    wanted = ["ticks/{symbol}", "twice/{name}", "twice/{name}", ""]
    assert (
        [event.pattern for event in observer.begun]
        == [event.pattern for event in observer.ended]
        == wanted
    )


async def test_batches_and_pieces_are_counted_in_elements() -> None:
    """Of fixed size, packed or taken apart."""
    service = Service()
    service.publish("packed", [b"aabb", b"cc"], element_size=2)
    here, there = Observer(), Observer()
    async with serve(service, "memory://test", registry=there.registry()) as server:
        async with connect(server.addresses[0], registry=here.registry()) as peer:
            async with peer.subscribe("packed") as stream:
                assert b"".join([piece async for piece in stream.buffers()]) == b"aabbcc"
            async with peer.subscribe("packed") as stream:
                assert [element async for element in stream] == [b"aa", b"bb", b"cc"]
    assert (
        [each.elements for each in here.ended] == [each.elements for each in there.ended] == [3, 3]
    )
    assert [each.bytes for each in here.ended] == [each.bytes for each in there.ended] == [6, 6]


@pytest.mark.parametrize("protocol", ["", "reactivesocket+"])
@pytest.mark.parametrize("element", [5, None, "text"])
async def test_an_element_that_is_no_bytes_gets_the_same_advice_beside_an_observer(
    protocol: str, element: object
) -> None:
    """A count of its bytes must not fail before the check: the elements before it arrive, and
    the report says what to do.
    """
    told: list[Exception] = []
    service, observer = Service(), Observer()

    @service.publisher("wrong")
    async def wrong() -> AsyncIterator[Any]:
        yield b"1"
        yield element

    async with serve(
        service, f"{protocol}memory://test", registry=observer.registry(), on_violation=told.append
    ) as server:
        async with subscribe(f"{server.addresses[0]}/wrong") as stream:
            assert await anext(stream) == b"1"
            with pytest.raises(PublisherFailed):
                await anext(stream)
    [error] = told
    assert isinstance(error, UsageError)
    assert "bytes" in str(error) or "None" in str(error)
    assert [each.bytes for each in observer.ended] == [1]


class Plain(Subscriber[Any]):
    """A subscriber with no methods for batches."""

    def __init__(self, most: int = 99) -> None:
        self.got: list[Any] = []
        self.over = trio.Event()
        self._most = most

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        subscription.request(99)

    def on_next(self, element: Any, /) -> None:
        self.got.append(element)
        if len(self.got) == self._most:
            self._subscription.cancel()
            self.over.set()

    def on_error(self, error: BaseException, /) -> None:
        self.over.set()

    def on_complete(self, /) -> None:
        self.over.set()


@pytest.mark.parametrize(("size", "most"), [(0, 99), (2, 99), (2, 1)])
async def test_an_observed_plain_subscriber_gets_single_elements(size: int, most: int) -> None:
    """And none after it has cancelled."""
    service = Service()
    service.publish("pairs", [b"aa", b"bb", b"cc"], element_size=size)
    here, plain = Observer(), Plain(most)
    async with (
        serve(service, "memory://test") as server,
        connect(server.addresses[0], registry=here.registry()) as peer,
    ):
        peer.source("pairs").attach(plain)
        await plain.over.wait()
    assert plain.got == [b"aa", b"bb", b"cc"][:most]
    assert [(each.elements, each.outcome) for each in here.ended] == [
        (len(plain.got), Outcome.CANCELLED if most == 1 else Outcome.COMPLETED)
    ]


async def test_each_side_reports_its_own_exception() -> None:
    """The publisher's side reports the raised exception; the other side that which crossed the
    wire.
    """
    here, there = Observer(), Observer()
    async with serve(
        numbers_service(), "memory://test", registry=there.registry(), on_violation=lambda _: None
    ) as server:
        async with connect(server.addresses[0], registry=here.registry()) as peer:
            with pytest.raises(PublisherFailed):
                async with peer.subscribe("failing", serializer="text") as stream:
                    assert [element async for element in stream]
    assert [(each.outcome, each.elements, type(each.error)) for each in here.ended] == [
        (Outcome.FAILED, 1, PublisherFailed)
    ]
    assert [(each.outcome, each.elements, type(each.error)) for each in there.ended] == [
        (Outcome.FAILED, 1, ValueError)
    ]


async def test_a_refusal_is_reported_by_the_asking_side_only() -> None:
    """On the other side the stream had not begun."""
    here, there = Observer(), Observer()
    async with serve(numbers_service(), "memory://test", registry=there.registry()) as server:
        async with connect(server.addresses[0], registry=here.registry()) as peer:
            with pytest.raises(Rejected):
                async with peer.subscribe("nobody") as stream:
                    await anext(stream)
    assert [(each.outcome, type(each.error)) for each in here.ended] == [(Outcome.FAILED, Rejected)]
    assert there.story() == ["ConnectionOpened", "ConnectionClosed"]


async def test_a_stream_that_its_subscriber_leaves_is_cancelled_on_both_sides() -> None:
    """With the number of elements until then."""
    census = Census()
    here, there = Observer(), Observer()
    async with serve(numbers_service(census), "memory://test", registry=there.registry()) as server:
        async with connect(server.addresses[0], registry=here.registry()) as peer:
            async with peer.subscribe("endless", demand=4) as stream:
                await anext(stream)
            await census.wait_closed()
    assert (
        [each.outcome for each in here.ended]
        == [each.outcome for each in there.ended]
        == [Outcome.CANCELLED]
    )
    assert 1 <= here.ended[0].elements <= there.ended[0].elements


async def test_a_stream_whose_connection_ends_is_lost_on_both_sides() -> None:
    """It is reported before the end of its connection."""
    here, there = Observer(), Observer()
    async with serve(numbers_service(), "memory://test", registry=there.registry()) as server:
        async with connect(server.addresses[0], registry=here.registry()) as peer:
            stream = await peer.subscribe("endless", demand=4).__aenter__()
            await anext(stream)
        with pytest.raises(ConnectionLost):
            while True:
                await anext(stream)
    assert (
        [each.outcome for each in here.ended]
        == [each.outcome for each in there.ended]
        == [Outcome.LOST]
    )
    assert here.story() == there.story() == WHOLE_STORY


async def test_a_goodbye_is_reported_with_its_reason_on_both_sides(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A server that shuts down gives `shutdown`."""
    here, there = Observer(), Observer()
    async with trio.open_nursery() as nursery:
        leaving = trio.Event()

        async def run_server() -> None:
            async with serve(numbers_service(), "memory://test", registry=there.registry()):
                await leaving.wait()

        nursery.start_soon(run_server)
        await trio.testing.wait_all_tasks_blocked()
        async with connect("memory://test", registry=here.registry()) as peer:
            await peer.wait_accepted()
            leaving.set()
            await trio.sleep(10)
    assert (
        [(each.reason, each.error) for each in here.closed]
        == [(each.reason, each.error) for each in there.closed]
        == [("shutdown", None)]
    )


async def test_a_cut_connection_is_reported_with_the_error() -> None:
    """It ended without a goodbye."""
    there = Observer()
    async with (
        trio.open_nursery() as nursery,
        serve(numbers_service(), "memory://test", registry=there.registry()) as server,
    ):
        raw = await raw_connection(nursery)
        await raw.send(bytes.fromhex("010000"))
        await raw.receive()
        await raw.abort()
        while server.peers:
            await trio.lowlevel.checkpoint()
    assert [(each.reason, type(each.error)) for each in there.closed] == [("lost", ConnectionLost)]


async def test_a_protocol_error_is_reported_with_its_reason(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A fixed token, and the error."""
    there = Observer()
    async with (
        trio.open_nursery() as nursery,
        serve(numbers_service(), "memory://test", registry=there.registry()) as server,
    ):
        raw = await raw_connection(nursery)
        await raw.send(bytes.fromhex("010000 010000"))
        while await raw.receive() is not None:
            pass
        await raw.abort()
        while server.peers:
            await trio.lowlevel.checkpoint()
    ((reason, error),) = [(each.reason, each.error) for each in there.closed]
    assert reason == "protocol:hello"
    assert "broke the protocol" in str(error)


async def test_a_client_without_a_hello_is_reported_as_refused_only(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Neither as opened nor as closed."""
    there = Observer()
    async with (
        trio.open_nursery() as nursery,
        serve(numbers_service(), "memory://test", registry=there.registry()),
    ):
        raw = await raw_connection(nursery)
        await raw.send(b"GET / HTTP/1.1\r\n\r\n")
        while await raw.receive() is not None:
            pass
        await raw.abort()
    assert there.story() == ["ConnectionRefused"]


async def test_a_stream_that_ends_before_the_hello_is_not_reported() -> None:
    """It was subscribed to and cancelled before the connection was open."""
    here = Observer()
    async with serve(numbers_service(), "memory://test") as server:
        async with connect(server.addresses[0], registry=here.registry()) as peer:
            peer.source("endless").attach(Fickle())
            late = Plain()
            source = peer.source("endless")
            source.attach(late)
            late._subscription.cancel()
            await peer.wait_accepted()
    assert here.story() == ["ConnectionOpened", "ConnectionClosed"]


class Fickle(Plain):
    """A subscriber that cancels inside on_subscribe."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscription.cancel()
        subscription.cancel()


async def test_after_a_decoder_fails_the_end_is_reported_once() -> None:
    """The decoder cancels and fails its subscriber. The run that arrived counts as a whole, with
    the element behind the bad one.
    """
    service = Service()

    @service.publisher("bad")
    async def bad() -> AsyncIterator[bytes]:
        for element in (b"1", b"x", b"2"):
            yield element
        await trio.sleep_forever()

    here = Observer()
    async with (
        serve(service, "memory://test") as server,
        connect(server.addresses[0], registry=here.registry()) as peer,
    ):
        with pytest.raises(ProtocolError):
            async with peer.subscribe("bad", serializer="json") as stream:
                await trio.testing.wait_all_tasks_blocked()
                assert [element async for element in stream]
    assert [(each.outcome, each.elements) for each in here.ended] == [(Outcome.CANCELLED, 3)]


async def test_an_element_that_is_not_loaded_behind_the_completion_fails_the_reader_alone() -> None:
    """The reader loads elements when it takes them.
    The publisher has completed before, and that is what is reported.
    """
    service = Service()
    service.publish("bad", [b"1", b"x", b"2"])
    here = Observer()
    async with (
        serve(service, "memory://test") as server,
        connect(server.addresses[0], registry=here.registry()) as peer,
    ):
        with pytest.raises(ProtocolError, match="element 1 "):
            async with peer.subscribe("bad", serializer="json") as stream:
                assert [element async for element in stream]
    assert [(each.outcome, each.elements) for each in here.ended] == [(Outcome.COMPLETED, 3)]


async def test_observers_of_connections_alone_cost_streams_nothing() -> None:
    """No object stands between a stream and its subscriber."""
    opened: list[str] = []

    class Meter:
        @hookimpl
        def penstock_connection_opened(self, event: ConnectionOpened) -> None:
            opened.append(event.address)

    registry = build_registry([Meter()])
    service = Service()
    seen: list[str] = []

    @service.publisher("who")
    async def who() -> AsyncIterator[bytes]:
        yield b"me"

    async with (
        serve(service, "memory://test", registry=registry) as server,
        connect(server.addresses[0]) as peer,
    ):
        plain = Plain()
        peer.source("who").attach(plain)
        seen.append(type(plain._subscription).__name__)
        await plain.over.wait()
    assert (opened, seen, plain.got) == (["memory://test"], ["ReceivingStream"], [b"me"])


async def test_an_observer_that_raises_harms_no_connection(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """On either side, at every hook: the elements arrive, the goodbye is sent, and the first
    failure of each hook is in the log.
    """

    class Broken(Observer):
        @hookimpl
        def penstock_connection_opened(self) -> None:
            raise RuntimeError("opened")

        @hookimpl
        def penstock_connection_closed(self) -> None:
            raise RuntimeError("closed")

        @hookimpl
        def penstock_stream_opened(self) -> None:
            raise RuntimeError("stream opened")

        @hookimpl
        def penstock_stream_ended(self) -> None:
            raise RuntimeError("stream ended")

    witness = Observer()
    registry = build_registry([Broken(), witness])
    assert registry.problems == ()
    with caplog.at_level(logging.ERROR, "penstock.spi"):
        async with serve(numbers_service(), url, registry=registry) as server:
            async with subscribe(
                named(server.addresses[0], "numbers/3"), serializer="json", registry=registry
            ) as stream:
                assert [number async for number in stream] == [0, 1, 2]
    assert sorted(witness.story()) == sorted(2 * WHOLE_STORY)
    assert {"opened", "closed", "stream opened", "stream ended"} == {
        str(record.exc_info[1]) for record in caplog.records if record.exc_info
    }
    assert len(caplog.records) == 4


class Batching(Plain):
    """A subscriber that takes elements that arrived together."""

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        self.got += [list(elements)]


@pytest.mark.parametrize(
    ("subscriber", "got"),
    [(Plain(), [b"a", b"b"]), (Batching(), [[b"a", b"b"]])],
    ids=["plain", "batching"],
)
def test_a_run_whose_bytes_are_told_is_counted_and_passed_on(
    subscriber: Plain, got: list[Any]
) -> None:
    """They also go to a subscriber for single elements."""
    here = Observer()
    watch = ConnectionEvents(here.registry().events, address="memory://test", accepted=False)
    watch.report_opened(PeerIdentity(address="memory://test"), "rsio")
    report = StreamReport(watch)
    observed = ObservedStream(subscriber, report)
    observed.on_subscribe(Upstream())
    watch.report_asked(report, observed, 7, "numbers")
    observed.on_next_sized([b"a", b"b"], 2)
    observed.on_complete()
    assert subscriber.got == got
    assert [each.elements for each in here.ended] == [2]


def test_after_its_end_an_observed_stream_passes_nothing_on() -> None:
    """Later signals of every kind are dropped, a second cancel too,
    and the end is reported once.
    """
    here = Observer()
    watch = ConnectionEvents(here.registry().events, address="memory://test", accepted=False)
    watch.report_opened(PeerIdentity(address="memory://test"), "rsio")
    plain, upstream = Plain(), Upstream()
    report = StreamReport(watch)
    subscribed = ObservedStream(plain, report)
    subscribed.on_subscribe(upstream)
    watch.report_asked(report, subscribed, 7, "numbers")
    subscribed.on_element_size(2)
    subscribed.on_next_packed(2, b"aabb")
    subscribed.cancel()
    subscribed.cancel()
    subscribed.on_next(b"cc")
    subscribed.on_next_many([b"cc"])
    subscribed.on_next_packed(1, b"cc")
    subscribed.on_complete()
    subscribed.on_error(ValueError())
    assert plain.got == [b"aa", b"bb"]
    assert upstream.calls == [99, "cancel"]
    assert [(each.stream, each.outcome, each.elements) for each in here.ended] == [
        (7, Outcome.CANCELLED, 2)
    ]
    assert len(here.begun) == 1


class Upstream(Subscription):
    """Keeps the calls that it gets."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def request(self, n: int, /) -> None:
        self.calls.append(n)

    def cancel(self, /) -> None:
        self.calls.append("cancel")


@pytest.mark.parametrize("serializer", ["bytes", "json"])
async def test_runs_are_counted_as_a_whole_on_both_sides(serializer: str) -> None:
    """With a cancel in the middle:
    the side that serves counts what it has sent, the other one what has arrived.
    """
    service = Service()

    @service.publisher("mixed", serializer=serializer)
    async def mixed() -> AsyncIterator[Any]:
        for number in range(1000):
            yield b"x" * (number % 40) if serializer == "bytes" else [number % 40] * (number % 40)

    here, there = Observer(), Observer()
    async with serve(service, "memory://test", registry=there.registry()) as server:
        async with connect(server.addresses[0], registry=here.registry()) as peer:
            async with peer.subscribe("mixed", serializer=serializer) as stream:
                assert [len(element) async for element in stream] == [
                    number % 40 for number in range(1000)
                ]
            async with peer.subscribe("mixed", serializer=serializer, demand=100) as stream:
                assert len(await anext(stream.batches())) <= 100
    assert [each.elements for each in here.ended] == [1000, here.ended[1].elements]
    assert [each.elements for each in there.ended] == [1000, there.ended[1].elements]
    assert here.ended[1].elements <= there.ended[1].elements <= 200
    assert [each.outcome for each in there.ended] == [Outcome.COMPLETED, Outcome.CANCELLED]
