"""The elements that this side has received are counted without a step for each of them: over all
kinds of demand, delivery and end.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UNBOUNDED, Role
from penstock.protocols import rsio
from penstock.session import ReceivingStream, Session
from penstock.session._received_elements import ReceivedElements
from tests.session._pair import Pair, RawPeer, RecordingSubscriber, open_stream, subscribe_to


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
