"""A sending stream: its publisher, its demand, its elements, its failures and its end, seen from the publisher and on the wire."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import (
    PRIVATE,
    TAKEN,
    UNBOUNDED,
    AlreadySubscribed,
    PublicError,
    PublisherFailed,
    Subscriber,
)
from penstock.session import SendingEvent, SendingStream
from penstock.session._outbox import MAX_LARGE
from penstock.session._reasons import explain_stream_end
from penstock.session._sending_stream import HEADER_ALLOWANCE, LEAST_PULL
from tests.session._pair import (
    Pair,
    RawPeer,
    RecordingSubscriber,
    ScriptedPublisher,
    limits_with,
    open_stream,
)

# --- the publisher and the end


def test_a_lazy_publisher_is_attached_with_the_first_demand() -> None:
    """An idle stream of a generator costs an object, not a subscription."""
    pair = Pair()
    source, subscriber = open_stream(pair, 0, idle_until_demand=True)
    assert source.subscriber is None
    subscriber.request(1)
    pair.settle()
    assert source.demand == 1


def test_only_the_text_of_a_public_error_is_sent() -> None:
    """The delegate gets the exception itself."""
    pair = Pair()
    source, subscriber = open_stream(pair)
    secret = ValueError("the password is 123")
    source.fail(secret)
    pair.settle()
    assert str(subscriber.ends[0]) == explain_stream_end(PRIVATE)
    assert pair.server.failures == [secret]
    source, subscriber = open_stream(pair)
    source.fail(PublicError("no such symbol"))
    pair.settle()
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert str(subscriber.ends[0]) == "no such symbol"


def test_a_publisher_that_had_its_one_subscriber_sends_a_token() -> None:
    """The text of the error names an object of the program, and stays there."""
    pair = Pair()
    source, subscriber = open_stream(pair)
    refusal = AlreadySubscribed("read_secrets has a subscriber")
    source.fail(refusal)
    pair.settle()
    assert str(subscriber.ends[0]) == explain_stream_end(TAKEN)
    assert pair.server.failures == [refusal]


def test_an_element_that_is_not_bytes_fails_its_stream_only() -> None:
    """A publisher without a serializer must publish bytes, a bytearray or a memoryview."""
    pair = Pair()
    source, subscriber = open_stream(pair)
    source.emit(bytearray(b"a"), memoryview(b"b"))
    source.emit("text")
    pair.settle()
    assert subscriber.elements == [b"a", b"b"]
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert "serializer" in str(pair.server.failures[0])
    assert source.cancels == 1


def test_signals_after_the_end_are_not_sent() -> None:
    """Rule 1.7, also for an element of the last one's length."""
    pair = Pair()
    source, subscriber = open_stream(pair, 10)
    source.emit(b"abc")
    pair.settle()
    subscriber.cancel()
    pair.settle()
    source.emit(b"abc", b"abcd")
    source.complete()
    source.fail(ValueError())
    assert bytes(pair.server.session.take()) == b""


def test_the_budget_hears_of_elements_before_the_publisher_is_asked() -> None:
    """The publisher may give them inside request(): they would be held before they are counted."""
    pair = Pair()
    source, subscriber = open_stream(pair, 1)
    source.emit(b"x" * 100)
    pair.settle()
    told: list[str] = []
    channel = pair.server.session.channel
    channel.on_buffered = lambda size: told.append(f"{size} bytes")
    source.request = lambda n: told.append(f"request {n}")  # type: ignore[method-assign]  # seen in order
    subscriber.request(3)
    pair.settle()
    assert told == ["300 bytes", "request 3"]


def test_the_budget_hears_at_once_of_an_element_that_is_longer_than_those_before() -> None:
    """It has heard of the expected length only."""
    pair = Pair()
    source, _ = open_stream(pair, UNBOUNDED)
    source.emit(b"x" * 10)
    pair.settle()
    source.emit(b"x" * 10)
    told: list[int] = []
    pair.server.session.channel.on_buffered = told.append
    source.emit(b"x" * 1_000)
    assert told == [1_000]


def test_a_stream_that_ends_owes_nothing_more() -> None:
    """What its publisher was asked for leaves the room of the outbox to the others."""
    pair = Pair()
    source, subscriber = open_stream(pair, UNBOUNDED)
    source.emit(b"x" * 100)
    pair.settle()
    outbox = pair.server.session.outbox
    assert (outbox.owing, outbox.owed > 0) == (1, True)
    subscriber.cancel()
    pair.settle()
    assert (outbox.owing, outbox.owed) == (0, 0)


def test_an_element_above_max_element_fails_its_stream() -> None:
    """It fails on this side, before a byte is sent."""
    pair = Pair(limits=limits_with(max_element=100))
    source, subscriber = open_stream(pair, 5)
    source.emit(bytes(101))
    pair.settle()
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert "101 bytes" in str(pair.server.failures[0])


def test_a_publisher_that_subscribes_after_the_end_is_cancelled() -> None:
    """The peer cancelled while the publisher was being attached."""
    pair = Pair()
    source, subscriber = open_stream(pair, 0)
    subscriber.cancel()
    pair.settle()
    before = source.cancels
    pair.server.served[0].on_subscribe(source)
    assert source.cancels == before + 1


class AcceptedCall(ScriptedPublisher):
    """The call of a handler in the place of a publisher: it answers when the test says so."""

    def attach(self, subscriber: Subscriber[Any]) -> None:
        raise AssertionError("a call is accepted at once, and never attached")


def accept_call(
    pair: Pair, demand: int = 1
) -> tuple[AcceptedCall, SendingStream, RecordingSubscriber]:
    """Open a stream that is answered by a call."""
    call, subscriber = AcceptedCall(), RecordingSubscriber(demand)
    pair.server.calls["call"] = call
    pair.client.session.subscribe("call", subscriber)
    pair.settle()
    return call, pair.server.served[-1], subscriber


def test_an_answer_and_its_end_cross_in_one_go() -> None:
    """The id is free, and `when_over` is called once."""
    pair = Pair()
    call, stream, subscriber = accept_call(pair)
    over: list[tuple[bool, SendingEvent]] = []
    stream.when_over = lambda ended, event: over.append((ended.is_ended, event))
    stream.answer(b"value")
    pair.settle()
    assert (subscriber.elements, subscriber.ends) == ([b"value"], ["complete"])
    assert (call.requests, call.cancels, over) == ([1], 0, [(True, SendingEvent.FLUSHED)])
    assert not pair.server.session.streams.serving


def test_an_answer_after_the_cancel_is_not_sent() -> None:
    """Rule 1.8: the call was told to stop, and its late answer is dropped."""
    pair = Pair()
    call, stream, subscriber = accept_call(pair)
    subscriber.cancel()
    pair.settle()
    stream.answer(b"late")
    assert bytes(pair.server.session.take()) == b""
    assert call.cancels == 1


@pytest.mark.parametrize(
    "value", [bytearray(b"abc"), bytes(200_000)], ids=["a bytearray", "a large element"]
)
def test_an_answer_that_is_not_small_bytes_arrives_too(value: bytes | bytearray) -> None:
    """It takes the path of elements: copied, or in parts."""
    pair = Pair()
    _, stream, subscriber = accept_call(pair)
    stream.answer(value)  # type: ignore[arg-type]  # a handler may return any bytes-like object
    pair.settle()
    assert (subscriber.elements, subscriber.ends) == ([bytes(value)], ["complete"])


def test_an_answer_above_max_element_fails_its_stream() -> None:
    """It fails even if it would fit into one message."""
    pair = Pair(limits=limits_with(max_element=100))
    _, stream, subscriber = accept_call(pair)
    stream.answer(bytes(101))
    pair.settle()
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert "101 bytes" in str(pair.server.failures[0])


def test_an_answer_passes_through_the_change_of_an_extension() -> None:
    """A change of elements applies to answers too."""
    pair = Pair()
    _, stream, subscriber = accept_call(pair)
    pair.server.session.streams.change_outgoing(lambda element: element[::-1])
    stream.answer(b"abc")
    pair.settle()
    assert (subscriber.elements, subscriber.ends) == ([b"cba"], ["complete"])


def test_a_call_begins_when_the_outbox_has_room() -> None:
    """Until then nothing is asked of it."""
    pair = Pair()
    pair.server.session.outbox.hold()
    call, _, _ = accept_call(pair)
    assert call.requests == []
    pair.server.session.outbox.resume()
    assert call.requests == [1]


def test_a_call_without_demand_begins_with_the_first_demand() -> None:
    """A request for one value may come without demand in protocols that permit it."""
    pair = Pair()
    call, _, subscriber = accept_call(pair, demand=0)
    assert call.requests == []
    subscriber.request(3)
    pair.settle()
    assert call.requests == [1]


def test_a_publisher_that_waits_for_demand_is_attached_when_there_is_room() -> None:
    """It takes its turn among the streams whose next element may be large."""
    pair = Pair()
    source, subscriber = open_stream(pair, 0, idle_until_demand=True)
    outbox = pair.server.session.outbox
    outbox.large_elements = MAX_LARGE
    subscriber.request(1)
    pair.settle()
    assert source.subscriber is None
    outbox.large_elements = 0
    assert outbox.needs_turn
    outbox.take_turn()
    assert source.demand == 1


# --- demand


def stream_without_demand() -> SendingStream:
    return SendingStream(RawPeer().session.channel, 0, "s", 0)


def test_no_more_is_reserved_than_was_granted() -> None:
    """Of 100 wanted elements, the five granted ones are reserved."""
    ledger = stream_without_demand()
    ledger.grant(5)
    assert ledger.reserve(100) == 5
    assert ledger.reserve(1) == 0
    assert (ledger.available, ledger.reserved) == (0, 5)


def test_rolled_back_elements_are_available_again() -> None:
    """Five are reserved, two are sent, three are rolled back."""
    ledger = stream_without_demand()
    ledger.grant(5)
    ledger.reserve(5)
    ledger.commit(2)
    ledger.roll_back(3)
    assert (ledger.available, ledger.reserved) == (3, 0)


def test_unbounded_demand_stays_unbounded() -> None:
    """Rule 3.17: a reservation takes nothing from unbounded demand,
    and a grant does not overflow it.
    """
    ledger = stream_without_demand()
    ledger.grant(UNBOUNDED - 1)
    ledger.grant(5)
    assert ledger.available == UNBOUNDED
    ledger.commit(ledger.reserve(1000))
    assert ledger.available == UNBOUNDED
    ledger.grant(UNBOUNDED)
    assert ledger.available == UNBOUNDED


@given(
    moves=st.lists(
        st.tuples(st.sampled_from(["grant", "reserve", "commit", "roll_back"]), st.integers(1, 9)),
        max_size=60,
    )
)
def test_nothing_is_sent_that_was_not_granted(moves: list[tuple[str, int]]) -> None:
    """In every order of moves: granted = available + reserved + sent."""
    ledger = stream_without_demand()
    granted = sent = 0
    for move, n in moves:
        used = min(n, ledger.reserved)
        if move == "grant":
            ledger.grant(n)
            granted += n
        elif move == "reserve":
            ledger.reserve(n)
        elif move == "commit":
            ledger.commit(used)
            sent += used
        else:
            ledger.roll_back(used)
        assert granted == ledger.available + ledger.reserved + sent
        assert min(ledger.available, ledger.reserved) >= 0


# --- elements


def test_one_element_is_requested_until_its_size_is_known() -> None:
    """Without this a publisher of 4 MiB elements would get a request for 1,000 of them,
    for room of 128 KiB.
    """
    pair = Pair()
    source, _ = open_stream(pair, 1000)
    assert source.requests == [1]
    source.emit(bytes(1000))
    assert source.requests == [1, 129]


def test_the_publisher_gets_exactly_the_demand_of_the_subscriber() -> None:
    """The sum of the requests to the publisher is the sum that the subscriber requested."""
    pair = Pair()
    source, subscriber = open_stream(pair, 3)
    assert source.demand <= 3
    source.emit(b"a", *[b"b"] * (source.demand - 1))
    subscriber.request(4)
    pair.settle()
    while source.demand > len(subscriber.elements):
        source.emit(b"c" * 1)
        pair.settle()
    assert source.demand == len(subscriber.elements) == 7


def test_elements_of_one_length_go_out_together_and_in_order() -> None:
    """They are gathered until the writer comes, and count as waiting bytes. An element of
    another length, and the end, come after them.
    """
    pair = Pair()
    source, subscriber = open_stream(pair, UNBOUNDED)
    source.emit(b"1")
    pair.settle()
    source.emit(b"4", b"5", b"66", b"7")
    source.complete()
    pair.settle()
    assert subscriber.elements == [b"1", b"4", b"5", b"66", b"7"]
    assert subscriber.ends == ["complete"]
    assert pair.server.session.outbox.gathered == 0


def test_a_run_takes_room_of_the_outbox() -> None:
    """Gathered elements will be sent, so publishers are asked only for elements that still fit."""
    pair = Pair(limits=limits_with(outbound_high=200))
    source, _ = open_stream(pair, UNBOUNDED)
    source.emit(bytes(10))
    pair.settle()
    emitted = 1
    while source.demand > emitted:
        source.emit(bytes(10))
        emitted += 1
        assert emitted < 100
    # The rest of the room is enough for one element, which is not asked for by itself.
    assert 10 + HEADER_ALLOWANCE <= pair.server.session.outbox.room() < 200 // LEAST_PULL
    assert pair.server.session.held() >= 100
    assert source.requests == [1, 10]
    pair.settle()
    assert source.requests == [1, 10, 11]  # all the room at once


@pytest.mark.parametrize(("size", "is_sent"), [(9, False), (10, True)])
def test_a_run_that_fills_half_of_the_outbox_is_sent_at_once(size: int, is_sent: bool) -> None:
    """The peer reads it while the publisher makes the next one; a shorter one waits for the writer."""
    pair = Pair(limits=limits_with(outbound_high=200))
    source, subscriber = open_stream(pair, UNBOUNDED)
    source.emit(bytes(10))
    pair.settle()
    pair.server.session.channel.urge = pair.settle
    assert source.requests == [1, 10]
    source.emit(*[bytes(size)] * 9)
    assert len(subscriber.elements) == 1
    source.emit(bytes(size))
    assert len(subscriber.elements) == (11 if is_sent else 1)
    # There is room again, and the publisher was asked for many in the same call.
    assert (source.requests[-1] > 1) == is_sent


def test_elements_that_are_longer_than_the_room_are_asked_for() -> None:
    """Nothing of the stream waits for the writer then, so nothing would free more room."""
    pair = Pair(limits=limits_with(outbound_high=200))
    source, subscriber = open_stream(pair, UNBOUNDED)
    for number in range(1, 6):
        assert source.demand == number
        source.emit(bytes(300))
        pair.settle()
    assert len(subscriber.elements) == 5


def test_a_peer_that_never_reads_costs_a_fixed_number_of_bytes() -> None:
    """Unbounded demand permits sending, not buffering."""
    pair = Pair(limits=limits_with(outbound_high=10_000))
    source, _ = open_stream(pair, UNBOUNDED)
    emitted = 0
    while source.demand > emitted:
        source.emit(bytes(1000))
        emitted += 1
        assert emitted < 100
    assert pair.server.session.outbox.waiting < 20_000
    pair.settle()
    assert source.demand > emitted
