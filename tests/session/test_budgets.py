"""The budgets of the peer, and the prices of the objects that it makes this side hold."""

import gc
import sys
import tracemalloc
from collections.abc import AsyncIterator, Iterator

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UNBOUNDED, Role
from penstock.protocols import rsio
from penstock.runtime import Service, serve
from penstock.session import (
    STREAM_BYTES,
    TASK_BYTES,
    ConnectionState,
    ReceivingStream,
    SendingStream,
    Session,
)
from penstock.session._budgets import (
    ReceivedElements,
    RequestClass,
    RequestRatio,
    StreamChurn,
)
from tests.runtime._services import raw_connection
from tests.session._pair import (
    LIMITS,
    Pair,
    RawPeer,
    RecordingSubscriber,
    ScriptedPublisher,
    limits_with,
    open_stream,
    subscribe_to,
)

# --- prices


COUNT = 500
HELLO = bytes.fromhex("010000")


@pytest.fixture(autouse=True)
def _tracemalloc() -> Iterator[None]:
    # The tracer of coverage allocates for each suspended frame,
    # which would count as the cost of a stream.
    tracer = sys.gettrace()
    sys.settrace(None)
    tracemalloc.start()
    yield
    tracemalloc.stop()
    sys.settrace(tracer)


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize(("demand", "price"), [(0, STREAM_BYTES), (5, STREAM_BYTES + TASK_BYTES)])
async def test_a_stream_costs_no_more_than_its_price(demand: int, price: int) -> None:
    """Without demand it has no task; with demand its generator waits in one."""
    service = Service()

    @service.publisher("waits")
    async def waits() -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield b""

    async with trio.open_nursery() as nursery, serve(service, "memory://test"):
        raw = await raw_connection(nursery)

        async def subscribe(first: int) -> None:
            streams = range(first, first + COUNT)
            await raw.send(
                b"".join(
                    rsio.encode(rsio.Subscribe(publisher="waits", subscriber=each, demand=demand))
                    for each in streams
                )
            )
            await trio.testing.wait_all_tasks_blocked()
            # With demand, the acceptance would go out with the first signal of the generator.
            if not demand:
                await raw.receive()

        await raw.send(HELLO)
        await subscribe(1000)  # tables and caches grow with the first streams
        before = _allocated()
        await subscribe(2000)
        cost = (_allocated() - before) / COUNT
        assert 0.5 * price <= cost <= price
        await raw.abort()


# --- requests in ratio to elements


def test_a_request_is_paid_free_or_excess_by_the_formula() -> None:
    """5 + 2 per stream, plus 1 (paid) or 20 (free) per element sent.
    Elements that have not come yet do not count.
    """
    ratio = RequestRatio()
    ratio.streams = 3
    ratio.requested = 10
    live = SendingStream(RawPeer().session.channel, 0, "s", 0)
    live.reserved = 8
    weights = [ratio.classify([live]) for _ in range(200)]
    assert weights.count(RequestClass.PAID) == 5 + 2 * 3 + 2
    assert weights.count(RequestClass.PAID) + weights.count(RequestClass.FREE) == 5 + 2 * 3 + 20 * 2
    ratio.requested = 11
    assert ratio.classify([live]) is RequestClass.EXCESS  # 201 requests are still more than 71


def test_two_cancels_for_each_stream_may_cross_its_end() -> None:
    """More than that cannot have crossed an end."""
    ratio = RequestRatio()
    ratio.streams = 3
    assert [ratio.count_late_cancel() for _ in range(8)] == [True] * 6 + [False] * 2


def test_a_subscriber_may_request_single_elements_at_any_rate() -> None:
    """200 requests for one element each meet no rate, because each element pays for its request."""
    raw, source = _subscribed(controls=10)
    for _ in range(200):
        raw.send(rsio.Request(subscriber=1, demand=1))
        source.emit(b"a")
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN


def test_requests_that_cross_the_end_of_their_stream_are_paid_by_its_elements() -> None:
    """A subscriber requests each of 500 elements by itself.
    The publisher has completed before it reads those requests.
    """
    raw, source = _subscribed(1, controls=1)
    raw.send(rsio.Request(subscriber=1, demand=500))
    source.emit(*[b"a"] * 500)
    source.complete()
    raw.receive()
    raw.send(*[rsio.Request(subscriber=1, demand=1)] * 500)
    assert raw.session.state is ConnectionState.OPEN


def test_short_streams_may_come_at_any_rate() -> None:
    """Each stream completes, and a request and a cancel for it cross its end."""
    raw = RawPeer(limits=limits_with(controls=10, glitches=1, churn=1)).handshake()
    for stream_id in range(200):
        source = raw.delegate.publishers["s"] = ScriptedPublisher()
        raw.send(rsio.Subscribe(publisher="s", subscriber=stream_id, demand=1))
        source.emit(b"a")
        source.complete()
        raw.send(rsio.Request(subscriber=stream_id, demand=1), rsio.Cancel(subscriber=stream_id))
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN


def _subscribed(
    glitches: int = 3, element_size: int = 0, **limits: float
) -> tuple[RawPeer, ScriptedPublisher]:
    raw = RawPeer(limits=limits_with(glitches=glitches, **limits)).handshake()
    source = raw.delegate.publishers["s"] = ScriptedPublisher(element_size=element_size)
    raw.send(rsio.Subscribe(publisher="s", subscriber=1))
    raw.receive()
    return raw, source


def test_requests_without_elements_end_the_connection() -> None:
    """Seven requests are free, three cost the tokens of the oddity budget,
    and the next one ends the connection.
    """
    raw, source = _subscribed()
    raw.send(*[rsio.Request(subscriber=1, demand=1)] * 10)
    assert raw.session.state is ConnectionState.OPEN
    assert source.demand == 1
    raw.send(rsio.Request(subscriber=1, demand=1))
    assert raw.goodbye_reason() == "limit:requests"


@pytest.mark.parametrize("size", [0, 2])
def test_ten_requests_per_element_are_free(size: int) -> None:
    """From the first element on, also with elements of fixed size, which come packed."""
    raw, source = _subscribed(3, element_size=size)
    for _ in range(200):
        raw.send(*[rsio.Request(subscriber=1, demand=1)] * 10)
        source.emit(b"ab")
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN


def test_elements_that_were_never_sent_do_not_count() -> None:
    """Elements that a cancelled stream never sent pay for no request on another stream."""
    raw, source = _subscribed(1)
    raw.send(rsio.Request(subscriber=1, demand=1000))
    source.emit(b"a")
    assert raw.session.channel.budgets.requests.requested == source.demand > 10
    source.emit(b"a")
    raw.send(rsio.Cancel(subscriber=1))
    assert raw.session.channel.budgets.requests.requested == 2


def test_a_block_counts_as_its_elements() -> None:
    """Elements of the block that wait for demand count when they are sent."""
    raw, source = _subscribed(1, element_size=2)
    raw.send(rsio.Request(subscriber=1, demand=3))
    source.emit(b"aabbccdd")
    assert raw.session.channel.budgets.requests.requested - raw.delegate.served[0].reserved == 3


# --- short streams


def test_short_streams_cost_tokens_and_long_ones_do_not() -> None:
    """The length is measured at the verdict, with a clock that was read after the streams ended."""
    churn = StreamChurn(limits_with(churn=2))
    for began in (0.0, 0.0, 9.5, 9.5):
        churn.count(began)
    assert churn.verdict(10.0) is None
    churn.count(9.5)
    assert churn.verdict(10.0) is not None
    assert churn.verdict(10.0) is None


def test_streams_that_lived_long_may_all_end_at_once() -> None:
    """Nothing has arrived since they were opened, so the session's clock still shows that time."""
    raw = RawPeer(limits=limits_with(churn=2)).handshake()
    sources = []
    for stream_id in range(10):
        source = raw.delegate.publishers["s"] = ScriptedPublisher()
        raw.send(rsio.Subscribe(publisher="s", subscriber=stream_id, demand=1))
        sources.append(source)
    for source in sources:
        source.complete()
    raw.now = 3600.0
    raw.send(rsio.Request(subscriber=99, demand=1))
    assert raw.session.state is ConnectionState.OPEN
    assert LIMITS.churn_burst > 2


# --- received elements


def received(session: Session) -> int:
    opened = session.streams.opened.values()
    return session.channel.budgets.received.total(
        stream.outstanding for stream in opened if isinstance(stream, ReceivingStream)
    )


def test_demand_without_bound_is_not_subtracted() -> None:
    """Its elements are added when they come; the demand that is left says nothing about them."""
    count = ReceivedElements()
    count.requested = 10
    assert count.total([3, UNBOUNDED, 2]) == 5


STEPS = st.lists(
    st.sampled_from(
        ["emit 1", "emit 3", "request 2", "request all", "subscribe", "cancel", "complete", "fail"]
    ),
    max_size=30,
)


@given(STEPS)
def test_the_count_is_the_number_of_elements_that_subscribers_got(steps: list[str]) -> None:
    """The streams of a connection may do all of this in any order."""
    pair = Pair()
    streams = [open_stream(pair)]
    subscribers = [streams[0][1]]
    for step in steps:
        source, subscriber = streams[-1]
        if step == "subscribe":
            streams.append(open_stream(pair))
            subscribers.append(streams[-1][1])
        elif step.startswith("emit"):
            wanted = int(step[-1])
            emitted = len(subscriber.elements)
            if (
                source.subscriber is not None
                and not source.cancels
                and not subscriber.ends
                and source.demand - emitted >= wanted
            ):
                source.emit(*[b"x"] * wanted)
        elif step == "request 2":
            subscriber.request(2)
        elif step == "request all":
            subscriber.request(UNBOUNDED)
        elif step == "cancel":
            subscriber.cancel()
        elif not source.cancels and not subscriber.ends:
            source.complete() if step == "complete" else source.fail(ValueError())
        pair.settle()
        assert received(pair.client.session) == sum(len(each.elements) for each in subscribers)


@pytest.mark.parametrize("demand", [2, 7, UNBOUNDED])
def test_packed_elements_and_parts_are_counted(demand: int) -> None:
    """A packed message counts its elements, and an element in parts counts once. An element that
    stays unfinished is taken off again.
    """
    raw = RawPeer(Role.CLIENT).handshake()
    packed, joined = subscribe_to(raw, demand, 1), RecordingSubscriber(demand)
    raw.session.subscribe("joined", joined)
    raw.send(rsio.OnNextPacked(subscriber=0, count=2, elements=b"ab"))
    assert (received(raw.session), len(packed.elements)) == (2, 2)
    raw.send(
        rsio.OnSubscribe(subscriber=1), rsio.OnNextPart(subscriber=1, element=0, data=b"x" * 64)
    )
    raw.send(rsio.OnNextLastPart(subscriber=1, element=0, data=b"x"))
    assert (received(raw.session), len(joined.elements)) == (3, 1)
    raw.send(rsio.OnNextPart(subscriber=1, element=1, data=b"x" * 64))
    joined.cancel()
    assert received(raw.session) == 3


def test_a_request_for_one_value_counts_its_answer() -> None:
    """Before the answer and after a failure it counts nothing."""
    raw = RawPeer(Role.CLIENT).handshake()
    answered, failed = (
        raw.session.streams.ask(
            "one",
            lambda channel, stream_id: ReceivingStream(
                channel, stream_id, RecordingSubscriber(), 1
            ),
        )
        for _ in range(2)
    )
    assert received(raw.session) == 0
    raw.send(
        rsio.OnSubscribe(subscriber=answered.id), rsio.OnNext(subscriber=answered.id, element=b"x")
    )
    assert received(raw.session) == 1
    raw.send(rsio.OnError(subscriber=failed.id, error="no"))
    assert received(raw.session) == 1


@pytest.mark.parametrize("demand", [1, 5, UNBOUNDED])
def test_an_answer_with_its_end_takes_off_the_rest_of_the_demand(demand: int) -> None:
    """The dialect may deliver the only element and the end in one call."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = RecordingSubscriber(demand)
    stream = raw.session.subscribe("one", subscriber)
    assert stream.receive_answer(b"x")
    del raw.session.streams.opened[stream.id]
    assert (received(raw.session), subscriber.elements) == (1, [b"x"])
