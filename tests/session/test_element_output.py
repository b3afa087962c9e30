"""The three forms in which elements of a sent stream wait: a run, packed, large."""

from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UNBOUNDED, BytesList, PublisherFailed, UsageError
from penstock.core import Scope
from penstock.protocols import rsio
from penstock.session import SendingStream
from penstock.session._budgets import OBJECT_BYTES
from penstock.session._sending_stream import longest_and_sum, longest_beside
from penstock.streams import generate
from penstock.testing import MessageList, run_virtual
from tests.session._pair import Pair, ScriptedPublisher, limits_with, open_stream

# --- runs


class GeneratorPublisher(ScriptedPublisher):
    """Attaches a generator through the pump of `penstock.core`."""

    def __init__(self, generator: Any, scope: Scope) -> None:
        super().__init__()
        self._source = generate(generator)
        self._scope = scope

    def attach(self, subscriber: Any) -> None:
        self._source.attach(subscriber, self._scope)


def run_of(pair: Pair) -> Any:
    """Return the run of the first stream that is served."""
    run = pair.server.served[0].run
    assert run is not None
    return run


def test_elements_of_a_run_are_counted_when_the_stream_is_asked() -> None:
    """An element that the pump appended counts at once in `outstanding` and `weight`, although
    no method was called for it.
    """
    pair = Pair()
    source, _ = open_stream(pair, 10)
    source.emit(b"a", b"b")
    stream, run = pair.server.served[0], run_of(pair)
    assert (source.demand, stream.outstanding, stream.reserved) == (10, 8, 9)
    run.elements += [b"c", b"d"]
    assert stream.outstanding == 6
    assert stream.weight == 3 + 3 * OBJECT_BYTES
    pair.settle()
    assert (stream.outstanding, stream.reserved) == (6, 6)


def test_a_run_of_all_reserved_elements_is_followed_by_a_request() -> None:
    """on_reservation_used() requests as much as the peer has requested meanwhile."""
    pair = Pair()
    source, subscriber = open_stream(pair, 4)
    source.emit(b"a", b"b")
    run_of(pair).elements += [b"c", b"d"]
    subscriber.request(3)
    pair.server.served[0].on_reservation_used()
    pair.settle()
    assert subscriber.elements == [b"a", b"b", b"c", b"d"]
    assert (source.demand, pair.server.served[0].outstanding) == (7, 3)


def test_a_stream_whose_announced_bytes_cut_its_connection_asks_for_nothing() -> None:
    """The memory budget hears of elements before they are requested, and may cut this connection
    then: the publisher that has just signalled an element must not get the fault.
    """
    pair = Pair()
    source, _ = open_stream(pair, 10)
    session = pair.server.session
    session.channel.on_buffered = lambda _: session.end_of_input()
    source.emit(b"a", b"b")
    assert pair.server.served[0].is_ended
    assert source.cancels == 1


@pytest.mark.parametrize("high", [20, 40, 80])
@pytest.mark.parametrize("is_written", [False, True])
def test_the_last_reserved_element_is_followed_by_a_request(high: int, *, is_written: bool) -> None:
    """The element may begin a run. Without that request the stream would stall, although there is
    demand.
    """
    pair = Pair(limits=limits_with(outbound_high=high))
    source, subscriber = open_stream(pair, 20)
    for number in range(20):
        assert source.demand > number
        source.emit(b"x")
        if is_written or source.demand == number + 1:
            pair.settle()
    assert (len(subscriber.elements), source.demand) == (20, 20)


@pytest.mark.parametrize(
    "how", ["written", "another message", "the end", "cancelled", "outgoing change"]
)
def test_a_run_is_closed_by_every_move_that_elements_must_not_pass(how: str) -> None:
    """A pump that still refers to the run sees that -1 is the longest element that fits."""
    pair = Pair()
    source, subscriber = open_stream(pair, 10)
    source.emit(b"a", b"b")
    run = run_of(pair)
    assert run.longest >= 1
    if how == "written":
        pair.settle()
    elif how == "another message":
        pair.server.session.channel.send(pair.server.session.channel.dialect.begin(7, 0))
    elif how == "the end":
        source.complete()
    elif how == "cancelled":
        pair.server.served[0].receive_cancel()
    else:
        pair.server.session.streams.change_outgoing(bytes.upper)
        source.emit(b"c")
        pair.settle()
        assert subscriber.elements == [b"a", b"b", b"C"]
    assert run.longest == -1


def test_a_held_element_closes_the_run() -> None:
    """Small elements after it wait for it."""
    pair = Pair(limits=limits_with(split_outbound_at=100))
    source, subscriber = open_stream(pair, 10)
    source.emit(b"a", b"b")
    run = run_of(pair)
    source.emit(bytes(101))
    assert run.longest == -1
    source.emit(b"c")
    pair.settle()
    assert subscriber.elements == [b"a", b"b", bytes(101), b"c"]


async def test_a_buffer_that_changes_after_its_yield_was_sent_unchanged() -> None:
    """Only bytes wait without a copy. A bytearray is copied at once."""
    buffer = bytearray(b"00")

    async def counting() -> Any:
        for number in range(4):
            buffer[:] = b"%2d" % number
            yield buffer
            yield bytes(buffer)

    pair = Pair()
    async with trio.open_nursery() as nursery:
        pair.server.publishers["s"] = GeneratorPublisher(counting, Scope(nursery))
        subscriber = pair.subscribe("s", 100)
        for _ in range(100):
            pair.settle()
            await trio.lowlevel.checkpoint()
        assert subscriber.ends == ["complete"]
    assert [int(element) for element in subscriber.elements] == [0, 0, 1, 1, 2, 2, 3, 3]


async def test_elements_reach_the_peer_while_the_generator_waits() -> None:
    """The writer is woken for the first element after each of its turns."""
    steps = [trio.Event() for _ in range(3)]

    async def waiting() -> Any:
        for step in steps:
            yield b"x"
            yield b"y"
            await step.wait()

    pair = Pair()
    async with trio.open_nursery() as nursery:
        pair.server.publishers["s"] = GeneratorPublisher(waiting, Scope(nursery))
        subscriber = pair.subscribe("s", 100)
        pair.settle()
        for count, step in enumerate(steps, start=1):
            woken = pair.server.wakes
            for _ in range(5):
                await trio.testing.wait_all_tasks_blocked()
                pair.settle()
            assert len(subscriber.elements) == 2 * count
            assert pair.server.wakes > woken
            step.set()
        await trio.testing.wait_all_tasks_blocked()
        pair.settle()
    assert subscriber.ends == ["complete"]


async def test_elements_before_one_of_a_wrong_type_are_delivered() -> None:
    """The stream then fails, and the delegate gets the reason."""

    async def wrong() -> Any:
        for _ in range(5):
            yield b"x"
        yield "y"
        yield b"x"

    pair = Pair()
    async with trio.open_nursery() as nursery:
        pair.server.publishers["s"] = GeneratorPublisher(wrong, Scope(nursery))
        subscriber = pair.subscribe("s", 100)
        pair.settle()
        await trio.testing.wait_all_tasks_blocked()
        pair.settle()
        await trio.testing.wait_all_tasks_blocked()
        pair.settle()
    assert subscriber.elements == [b"x"] * 5
    assert len(subscriber.ends) == 1
    assert "an element of type str was published" in str(pair.server.failures[0])


STEPS = st.lists(
    st.one_of(
        st.sampled_from(
            [b"", b"a", b"b", b"cc", bytes(99), bytes(150), bytearray(b"d"), memoryview(b"e")]
        ),
        st.just("wait"),
    ),
    max_size=40,
)


@given(steps=STEPS, demands=st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_elements_of_any_lengths_arrive_in_order_and_within_demand(
    steps: list[Any], demands: list[int]
) -> None:
    """Of one length or not, with and without a wait: nothing is lost, doubled or sent beyond
    demand, and the counts are right.
    """

    async def main() -> None:
        pair = Pair(limits=limits_with(split_outbound_at=100))

        async def stepping() -> Any:
            for step in steps:
                if isinstance(step, str):
                    await trio.sleep(1)
                else:
                    yield step

        expected = [bytes(step) for step in steps if not isinstance(step, str)]
        async with trio.open_nursery() as nursery:
            pair.server.publishers["s"] = GeneratorPublisher(stepping, Scope(nursery))
            subscriber, asked = pair.subscribe("s", demands[0]), demands[0]
            for turn in range(1, 1000):
                if subscriber.ends:
                    break
                pair.settle()
                await trio.sleep(0.3)
                assert len(subscriber.elements) <= asked
                if turn % 3 == 0:
                    more = demands[turn % len(demands)]
                    asked += more
                    subscriber.request(more)
        assert (subscriber.elements, subscriber.ends) == (expected, ["complete"])
        session, stream = pair.server.session, pair.server.served[0]
        assert (
            session.channel.budgets.requests.requested,
            session.outbox.gathered,
            stream.weight,
        ) == (len(expected), 0, 0)

    run_virtual(main)


def test_elements_of_all_lengths_go_into_one_run() -> None:
    """Empty ones too. One that is much longer than those before is weighed at once,
    and goes into the same run.
    """
    pair = Pair()
    source, subscriber = open_stream(pair, 100)
    elements = [b"first", b"a", b"", bytes(40), bytes(9000), b"b"]
    source.emit(*elements)
    run = run_of(pair)
    assert run.elements == elements[1:]
    assert pair.server.session.outbox.gathered >= 9000
    pair.settle()
    assert subscriber.elements == elements


def test_an_element_above_the_limit_of_unsplit_ones_does_not_go_into_a_run() -> None:
    """It goes in parts, between the elements before it and those after it."""
    pair = Pair(limits=limits_with(split_outbound_at=100))
    source, subscriber = open_stream(pair, 100)
    elements = [b"a", b"b", bytes(100), bytes(101), b"c", b"d", b"", b"e"]
    source.emit(*elements)
    assert max(map(len, run_of(pair).elements)) == 100
    pair.settle()
    assert subscriber.elements == elements


def test_elements_that_are_no_bytes_go_into_the_run_as_bytes() -> None:
    """A copy, because the publisher may change them."""
    pair = Pair()
    source, subscriber = open_stream(pair, 100)
    buffer = bytearray(b"c")
    source.emit(b"a", b"b", buffer, memoryview(b"d"))
    buffer[:] = b"x"
    assert run_of(pair).elements == [b"b", b"c", b"d"]
    pair.settle()
    assert subscriber.elements == [b"a", b"b", b"c", b"d"]


def test_the_publisher_is_asked_for_fewer_elements_when_they_grow() -> None:
    """The mean of a run is followed at once if it is larger than expected, and by halves
    if it is smaller.
    """
    pair = Pair(limits=limits_with(outbound_high=1000))
    source, _ = open_stream(pair, 1000)
    source.emit(bytes(10))
    assert source.requests[-1] == (1000 - 12) // 18
    for element in [bytes(2)] * 5 + [bytes(190)] * (source.demand - 6):
        source.emit(element)
    pair.settle()
    large = source.requests[-1]
    assert large <= 1000 // 150
    for _ in range(large):
        source.emit(b"")
    pair.settle()
    assert large < source.requests[-1] < 2 * large + 2


def test_a_run_accepts_elements_of_four_times_the_expected_length() -> None:
    """Longer ones are signalled, so the bytes that were appended without a call are at most four
    times the outbox's room.
    """
    assert [longest_beside(expected, 1000) for expected in (0, 16, 17, 100, 251)] == [
        64,
        64,
        68,
        400,
        1000,
    ]


@pytest.mark.parametrize("how", ["cancel", "complete", "fail"])
def test_the_end_in_the_middle_of_a_run_comes_behind_its_elements(how: str) -> None:
    """A cancel too: the elements were signalled before it came."""
    pair = Pair()
    source, subscriber = open_stream(pair, 100)
    source.emit(b"a", b"bb", b"")
    stream = pair.server.served[0]
    if how == "cancel":
        stream.receive_cancel()
    elif how == "complete":
        source.complete()
    else:
        source.fail(ValueError("no"))
    source.emit(b"late")
    pair.settle()
    assert subscriber.elements == [b"a", b"bb", b""]
    assert (stream.sent, stream.weight, pair.server.session.outbox.gathered) == (3, 0, 0)


# --- elements that the publisher has at hand


def emit_many(source: ScriptedPublisher, *elements: Any) -> None:
    subscriber = source.subscriber
    assert isinstance(subscriber, SendingStream)
    subscriber.on_next_many(elements)


def test_a_list_goes_into_the_run() -> None:
    """One call for all of it, whether a run is open or not. The reservation is used exactly."""
    pair = Pair()
    source, subscriber = open_stream(pair, 6)
    source.emit(b"a")
    assert source.demand == 6
    emit_many(source, b"b", b"", b"ccc")
    assert run_of(pair).elements == [b"b", b"", b"ccc"]
    emit_many(source, b"d", b"ee")
    stream = pair.server.served[0]
    assert (stream.outstanding, stream.reserved, stream.sent) == (0, 0, 6)
    subscriber.request(2)
    pair.settle()
    assert subscriber.elements == [b"a", b"b", b"", b"ccc", b"d", b"ee"]
    assert source.demand == 8


@pytest.mark.parametrize("odd", [bytearray(b"odd"), bytes(500), bytes(20_000)])
def test_a_list_with_an_odd_element_is_sent_in_order(odd: Any) -> None:
    """Another type, an element that is much longer than the others, and one that goes in parts."""
    pair = Pair()
    source, subscriber = open_stream(pair, 100)
    source.emit(b"a", b"b")
    emit_many(source, b"c", odd, b"d")
    pair.settle()
    assert subscriber.elements == [b"a", b"b", b"c", bytes(odd), b"d"]


def test_a_list_with_an_element_of_a_wrong_type_fails_behind_those_before_it() -> None:
    """As `on_next` with each of them does."""
    pair = Pair()
    source, subscriber = open_stream(pair, 100)
    source.emit(b"a")
    emit_many(source, b"b", "c", b"d")
    pair.settle()
    assert subscriber.elements == [b"a", b"b"]
    assert "an element of type str was published" in str(pair.server.failures[0])


def test_a_list_for_a_stream_of_fixed_size_is_packed() -> None:
    """It never goes into a run."""
    pair = Pair()
    source, subscriber = open_stream(pair, 100, element_size=2)
    source.emit(b"aa")
    emit_many(source, b"bb", b"cc")
    assert pair.server.served[0].run is None
    pair.settle()
    assert subscriber.elements == [b"aa", b"bb", b"cc"]


LENGTHS = st.lists(st.sampled_from([0, 1, 2, 31, 64, 65, 99, 100, 101, 300]), max_size=60)


@given(
    lengths=LENGTHS,
    pieces=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    cut=st.integers(1, 700),
)
def test_runs_of_all_lengths_cross_every_cut(
    lengths: list[int], pieces: list[int], cut: int
) -> None:
    """As single elements and as lists; the demand is used exactly, and all counts end at 0."""
    pair = Pair(limits=limits_with(split_outbound_at=100, outbound_high=400))
    source, subscriber = open_stream(pair, len(lengths) + 1)
    elements = [bytes([number]) * length for number, length in enumerate(lengths, start=1)]
    source.emit(b"first")
    left, turn = list(elements), 0
    while left:
        n = min(pieces[turn % len(pieces)], source.demand - (len(elements) + 1 - len(left)))
        now, left = left[:n], left[n:]
        if turn % 2:
            source.emit(*now)
        elif now:
            emit_many(source, *now)
        if turn % 3 == 0 or not n:
            pair.settle(cut=cut)
        turn += 1
        assert turn < 1000
    pair.settle(cut=cut)
    assert subscriber.elements == [b"first", *elements]
    stream = pair.server.served[0]
    assert (stream.sent, stream.reserved, stream.available, stream.weight) == (
        len(elements) + 1,
        0,
        0,
        0,
    )
    assert pair.server.session.outbox.gathered == 0


def test_the_types_of_known_bytes_are_not_examined() -> None:
    """A list that a log has examined goes into the run unexamined; any other list is examined."""
    pair = Pair()
    source, _ = open_stream(pair, 10)
    source.emit(b"a")
    subscriber = source.subscriber
    assert isinstance(subscriber, SendingStream)
    subscriber.on_next_many(BytesList([b"b", b"cc"]))
    changing = bytearray(b"d")
    subscriber.on_next_many(BytesList([b"e", changing]))  # type: ignore[list-item]  # so that a look would be seen
    assert run_of(pair).elements[-1] is changing
    subscriber.on_next_many([b"f", changing])
    assert run_of(pair).elements[-1] is not changing


@pytest.mark.parametrize(
    "elements",
    [
        [b"a"],
        [b"aa", b"bb", b"cc"],
        [b"aa", b"b", b"cc"],
        [b"aa", b"bb", b"c"],
        [b"aa", b"b", b"cc", b"dd"],
    ],
)
def test_lists_are_weighed(elements: list[bytes]) -> None:
    """Of one length or of several, wherever the other length stands."""
    assert longest_and_sum(elements) == (max(map(len, elements)), sum(map(len, elements)))


# --- elements of a fixed size


def test_elements_of_fixed_size_go_packed() -> None:
    """Three elements have one header. A block of two elements counts as two."""
    pair = Pair()
    source, subscriber = open_stream(pair, 6, element_size=4)
    source.emit(b"aaaabbbb", b"cccc")
    data = bytes(pair.server.session.take())
    assert data == bytes([0x22, 0, 3]) + b"aaaabbbbcccc"
    pair.client.session.receive(data, 0.0)
    assert subscriber.elements == [b"aaaa", b"bbbb", b"cccc"]


def test_a_block_after_single_elements_uses_their_reservations() -> None:
    """The peer requested all of these elements at once.
    None may wait for a request that will never come.
    """
    pair = Pair()
    source, subscriber = open_stream(pair, 9, element_size=2)
    source.emit(b"aa")
    assert source.demand == 9
    source.emit(b"bbccdd", b"ee", b"ffgg")
    source.complete()
    pair.settle()
    assert subscriber.elements == [b"aa", b"bb", b"cc", b"dd", b"ee", b"ff", b"gg"]
    assert subscriber.ends == ["complete"]


def test_blocks_after_single_elements_keep_to_demand() -> None:
    """A block that was pulled before waits for demand, in order,
    and nothing is pulled meanwhile.
    """
    pair = Pair()
    source, subscriber = open_stream(pair, 4, element_size=2)
    source.emit(b"aa")
    source.emit(b"bbccdd", b"eeff", b"gg")
    pair.settle()
    assert subscriber.elements == [b"aa", b"bb", b"cc", b"dd"]
    assert source.demand == 4
    subscriber.request(2)
    pair.settle()
    assert subscriber.elements[4:] == [b"ee", b"ff"]
    assert source.demand == 4
    subscriber.request(2)
    pair.settle()
    assert subscriber.elements[6:] == [b"gg"]
    assert source.demand == 5


def test_a_block_larger_than_the_demand_waits_for_demand() -> None:
    """The rest is kept, nothing is pulled meanwhile, and the completion comes after it."""
    pair = Pair()
    source, subscriber = open_stream(pair, 1, element_size=2)
    source.emit(b"aabbcc")
    source.complete()
    pair.settle()
    assert subscriber.elements == [b"aa"]
    asked = source.demand
    subscriber.request(1)
    pair.settle()
    assert subscriber.elements == [b"aa", b"bb"]
    assert subscriber.ends == []
    subscriber.request(5)
    pair.settle()
    assert subscriber.elements == [b"aa", b"bb", b"cc"]
    assert subscriber.ends == ["complete"]
    assert source.demand == asked


def test_blocks_beyond_the_high_water_mark_wait_for_the_writer() -> None:
    """Demand permits sending, not gathering: a large block goes one full outbox at a time, and
    nothing is pulled meanwhile.
    """
    pair = Pair(limits=limits_with(outbound_high=100))
    source, subscriber = open_stream(pair, UNBOUNDED, element_size=4)
    source.emit(bytes(1000))
    asked = source.demand
    source.complete()
    for _ in range(3):
        subscriber.request(1)  # more demand makes no more room, and does not queue the stream twice
    taken = []
    while data := bytes(pair.server.session.take()):
        pair.client.session.receive(data, 0.0)
        taken.append(len(data))
    assert max(taken) < 150
    assert (len(subscriber.elements), subscriber.ends) == (250, ["complete"])
    assert source.demand == asked


def test_no_packed_message_is_longer_than_max_frame() -> None:
    """Gathered elements beyond that go as several messages.
    One message above Limits.max_frame would end the connection.
    """
    pair = Pair(limits=limits_with(outbound_high=1000, max_frame=100))
    source, subscriber = open_stream(pair, 300, element_size=4)
    source.emit(bytes(800))
    pair.settle()
    assert subscriber.elements == [bytes(4)] * 200
    assert pair.client.ended == []


@pytest.mark.parametrize("element", [b"", b"abc"], ids=["empty", "one byte too long"])
def test_an_element_of_another_size_fails_its_stream(element: bytes) -> None:
    """The peer could not delimit the elements after it."""
    pair = Pair()
    source, subscriber = open_stream(pair, 5, element_size=2)
    source.emit(element)
    pair.settle()
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert source.cancels == 1
    assert isinstance(pair.server.failures[0], UsageError)


def test_the_memory_budget_hears_of_blocks() -> None:
    """A single element was heard of when it was pulled. A block brings more than that."""
    pair = Pair()
    heard: list[int] = []
    source, _ = open_stream(pair, 9, element_size=4)
    pair.server.session.channel.on_buffered = heard.append
    source.emit(b"aaaabbbb")
    assert heard[0] == 8
    heard.clear()
    source.emit(b"cccc")
    assert 4 not in heard


def test_an_element_larger_than_the_room_goes_alone() -> None:
    """It must be sent at some time, and a second one has no room."""
    pair = Pair(limits=limits_with(outbound_high=3))
    source, _ = open_stream(pair, 3, element_size=4)
    source.emit(b"aaaabbbbcccc")
    taken = [bytes(pair.server.session.take())[-4:] for _ in range(3)]
    assert taken == [b"aaaa", b"bbbb", b"cccc"]


def test_a_publisher_of_single_elements_is_asked_for_as_many_as_fit() -> None:
    """Their length is known from the ones before. 100 of them would fill the outbox."""
    pair = Pair(limits=limits_with(outbound_high=10_000))
    source, subscriber = open_stream(pair, UNBOUNDED, element_size=100)
    for _ in range(12):
        source.emit(*[bytes(100)] * source.requests[-1])
        pair.settle()
    assert source.requests[0] == 1
    assert 80 <= max(source.requests) <= 100
    assert len(subscriber.elements) == sum(source.requests[:-1])


# --- large elements


def test_large_elements_are_split_and_take_turns() -> None:
    """A smaller element of another stream is whole before the large one."""
    pair = Pair(limits=limits_with(split_outbound_at=100))
    large, subscriber = open_stream(pair, 5)
    small = pair.server.publishers["t"] = ScriptedPublisher()
    other = pair.subscribe("t", 5)
    pair.settle()
    large.emit(bytes(1000))
    small.emit(bytes(101))
    small.complete()
    first = bytes(pair.server.session.take())
    messages = MessageList()
    for stream in (0, 1):
        messages.receive_on_subscribe(stream, 0)
    rsio.RsioDecoder(messages, messages.streams).feed(first)
    order = [
        message.subscriber
        for message in messages.messages[2:]
        if isinstance(message, rsio.OnNextPart | rsio.OnNextLastPart)
    ]
    assert order[:4] == [0, 1, 0, 1]
    pair.client.session.receive(first, 0.0)
    pair.settle()
    assert subscriber.elements == [bytes(1000)]
    assert other.elements == [bytes(101)]
    assert other.ends == ["complete"]


def test_small_elements_wait_behind_a_large_one_of_their_stream() -> None:
    """The order within a stream is kept, and the completion comes last."""
    pair = Pair(limits=limits_with(split_outbound_at=100))
    source, subscriber = open_stream(pair, 5)
    source.emit(bytes(250), b"a", bytes(101))
    source.complete()
    pair.settle()
    assert subscriber.elements == [bytes(250), b"a", bytes(101)]
    assert subscriber.ends == ["complete"]


def test_large_elements_of_all_streams_together_have_a_hard_bound() -> None:
    """The bound is the high-water mark plus one element. Above it no publisher is asked, and
    each goes on when there is room again.
    """
    pair = Pair(limits=limits_with(split_outbound_at=100, outbound_high=500, max_element=1000))
    scripts = [ScriptedPublisher() for _ in range(5)]
    subscribers = []
    for each, script in enumerate(scripts):
        pair.server.publishers[f"s{each}"] = script
        subscribers.append(pair.subscribe(f"s{each}", 0))
    pair.settle()
    server = pair.server.session
    for script, subscriber in zip(scripts, subscribers, strict=True):
        subscriber.request(3)
        server.receive(bytes(pair.client.session.take()), 0.0)
        if script.demand:
            script.emit(bytes(800))
    assert [script.demand for script in scripts] == [1, 1, 0, 0, 0]
    assert server.outbox.large == server.channel.held_by_streams() == 1600
    pair.settle()
    assert server.outbox.large == 0
    assert [len(subscriber.elements) for subscriber in subscribers] == [1, 1, 0, 0, 0]
    assert all(script.demand for script in scripts)


def test_large_elements_of_a_stream_that_ends_hold_nothing() -> None:
    """The stream is cancelled within an element, with another element after it."""
    pair = Pair(limits=limits_with(split_outbound_at=100, outbound_high=250))
    source, subscriber = open_stream(pair, 5)
    source.emit(bytes(1000), b"small", bytes(500))
    pair.client.session.receive(bytes(pair.server.session.take()), 0.0)
    assert 0 < pair.server.session.outbox.large < 1505
    # The whole of the first is held until its last part is written.
    assert pair.server.session.channel.held_by_streams() == 1505
    subscriber.cancel()
    pair.settle()
    assert pair.server.session.outbox.large == 0


@pytest.mark.parametrize("bound", [{"max_partials_in_all": 2}, {"partial_bytes": 2000}])
def test_no_more_elements_begin_than_a_peer_with_the_same_limits_takes(
    bound: dict[str, int],
) -> None:
    """Ten streams have large elements at once. All arrive, and no stream ends because of the
    others' unfinished elements.
    """
    pair = Pair(limits=limits_with(split_outbound_at=100, **bound))
    for number in range(10):
        pair.server.publishers[f"s{number}"] = ScriptedPublisher()
    subscribers = [pair.subscribe(f"s{number}", 5) for number in range(10)]
    pair.settle()
    for source in pair.server.publishers.values():
        source.emit(bytes(900), bytes(200))
        source.complete()
    pair.settle()
    assert [(subscriber.elements, subscriber.ends) for subscriber in subscribers] == [
        ([bytes(900), bytes(200)], ["complete"])
    ] * 10


def test_a_stream_that_ends_with_large_elements_waiting_lets_the_others_go_on() -> None:
    """They wait for room, and dropped elements make room:
    the writer sends nothing that would tell them.
    """
    pair = Pair(limits=limits_with(max_element=200_000))
    large, reader = open_stream(pair, 100)
    small, waiting = open_stream(pair, 0)
    # More than the outbox takes beside one element: from here on no stream is asked for elements.
    large.emit(*[bytes(200_000)] * 3)
    waiting.request(1)
    pair.server.session.receive(bytes(pair.client.session.take()), 0.0)
    assert small.demand == 0
    reader.cancel()
    pair.server.session.receive(bytes(pair.client.session.take()), 0.0)
    assert small.demand == 1


def test_two_large_elements_wait_whatever_the_number_of_streams() -> None:
    """Streams are asked again in turn as elements are written, and each gets its elements."""
    pair = Pair(limits=limits_with(split_outbound_at=100, outbound_high=500))
    scripts = {f"s{each}": ScriptedPublisher() for each in range(20)}
    pair.server.publishers.update(scripts)
    subscribers = [pair.subscribe(name, 1) for name in scripts]
    pair.settle()
    for script in scripts.values():
        script.emit(bytes(900))
    pair.settle()
    server = pair.server.session
    for subscriber in subscribers:
        subscriber.request(3)
    server.receive(bytes(pair.client.session.take()), 0.0)
    most, emitted = 0, dict.fromkeys(scripts, 1)
    for _ in range(2000):
        for name, script in scripts.items():
            if script.demand > emitted[name]:
                script.emit(bytes(900))
                emitted[name] += 1
        most = max(most, server.outbox.large_elements)
        if server.outbox.is_empty and server.outbox.needs_turn:
            server.outbox.take_turn()
        else:
            pair.client.session.receive(bytes(server.take()), 0.0)
    assert most == 2
    assert [len(subscriber.elements) for subscriber in subscribers] == [4] * 20
    assert server.outbox.large_elements == 0
