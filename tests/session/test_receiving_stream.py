"""A receiving stream, and the copies of an error for its subscribers."""

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.api import UNBOUNDED, ByteWindow, ConnectionLost, ProtocolError, Rejected, Role
from penstock.protocols import rsio
from penstock.session import ConnectionState, own_copy
from tests.session._pair import (
    Pair,
    RawPeer,
    RecordingSubscriber,
    limits_with,
    open_stream,
    subscribe_to,
)

# --- the stream


def test_a_cancel_stops_the_publisher_and_late_elements_are_dropped() -> None:
    """An element that crossed the cancel is delimited and dropped,
    and the connection stays open.
    """
    pair = Pair()
    source, subscriber = open_stream(pair)
    source.emit(b"x")
    subscriber.cancel()
    pair.settle()
    assert source.cancels == 1
    assert subscriber.elements == []
    assert pair.client.session.state is ConnectionState.OPEN


OVERRUNS: list[tuple[str, int, list[rsio.Message]]] = [
    ("beyond demand", 0, [rsio.OnNext(subscriber=0, element=b"a")] * 3),
    ("packed beyond demand", 1, [rsio.OnNextPacked(subscriber=0, count=3, elements=b"abc")]),
    (
        "a part beyond demand",
        0,
        [
            *[rsio.OnNext(subscriber=0, element=b"a")] * 2,
            rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64),
        ],
    ),
    (
        "too many open elements",
        0,
        [rsio.OnNextPart(subscriber=0, element=each, data=b"x" * 64) for each in range(3)],
    ),
    (
        "a joined element of another size",
        2,
        [rsio.OnNextLastPart(subscriber=0, element=0, data=b"x")],
    ),
    (
        "an element that is too large",
        0,
        [rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 600)] * 2,
    ),
]


@pytest.mark.parametrize(
    ("size", "messages"), [case[1:] for case in OVERRUNS], ids=[case[0] for case in OVERRUNS]
)
def test_a_peer_that_breaks_the_contract_of_a_stream_loses_it(
    size: int, messages: list[rsio.Message]
) -> None:
    """The peer gets a cancel, the subscriber a ProtocolError, and the connection stays open."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_partials=2, max_element=1000)).handshake()
    subscriber = subscribe_to(raw, 2, size)
    raw.send(*messages)
    assert isinstance(subscriber.ends[0], ProtocolError)
    assert raw.receive() == [rsio.Cancel(subscriber=0)]
    assert raw.session.state is ConnectionState.OPEN
    assert (
        raw.session.channel.budgets.partials.count
        == raw.session.channel.budgets.partials.bytes
        == 0
    )


class _Counting(RecordingSubscriber):
    """Takes runs, and the bytes that their decoder tells."""

    def __init__(self, demand: int) -> None:
        super().__init__(demand)
        self.told: list[tuple[int, int]] = []

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        self.told.append((len(elements), -1))

    def on_next_sized(self, elements: Sequence[Any], size: int, /) -> None:
        self.told.append((len(elements), size))


@pytest.mark.parametrize(("count", "told"), [(15, [(15, -1)]), (16, [(16, sum(range(16)))])])
def test_a_stage_that_counts_bytes_is_told_those_of_a_long_run(
    count: int, told: list[tuple[int, int]]
) -> None:
    """Not with short runs: to look for such a stage would cost them too much."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = _Counting(99)
    raw.session.subscribe("s", subscriber)
    raw.send(rsio.OnSubscribe(subscriber=0, element_size=0))
    raw.send(
        b"".join(
            rsio.encode(rsio.OnNext(subscriber=0, element=bytes(number))) for number in range(count)
        )
    )
    assert subscriber.told == told


class _InOneCall(RecordingSubscriber):
    """Takes runs and packed elements in one call, which it notes."""

    def __init__(self, demand: int) -> None:
        super().__init__(demand)
        self.taken: list[str] = []

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        self.taken.append("run")
        self.elements += elements

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        self.taken.append("packed")
        size = len(elements) // count
        self.elements += [elements[at : at + size] for at in range(0, len(elements), size)]


RUN = b"".join(
    rsio.encode(rsio.OnNext(subscriber=0, element=element)) for element in (b"aa", b"bb")
)
SIZED_RUN = b"\x21\x00aa\x21\x00bb"
PACKED = rsio.encode(rsio.OnNextPacked(subscriber=0, count=2, elements=b"aabb"))
WAYS = [("run", 0, RUN), ("run", 2, SIZED_RUN), ("packed", 2, PACKED)]


def _stream_in_one_call(
    demand: int, size: int, window: ByteWindow | None = None
) -> tuple[RawPeer, _InOneCall]:
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = _InOneCall(demand)
    raw.session.streams.subscribe("s", subscriber, window)
    raw.send(rsio.OnSubscribe(subscriber=0, element_size=size))
    raw.receive()
    return raw, subscriber


@pytest.mark.parametrize(("way", "size", "data"), WAYS)
def test_elements_in_one_call_take_demand_and_count_in_the_window(
    way: str, size: int, data: bytes
) -> None:
    """Two take two of three, and their bytes are told; two more are one too many (rule 1.1)."""
    window = ByteWindow(1_000, 100)
    raw, subscriber = _stream_in_one_call(3, size, window)
    raw.send(data)
    assert (subscriber.taken, window.received) == ([way], 4)
    raw.send(data)
    # A run gives the elements that were requested; of packed ones none is taken.
    assert subscriber.elements == [b"aa", b"bb", *([b"aa"] if way == "run" else [])]
    assert subscriber.taken == [way]
    assert isinstance(subscriber.ends[0], ProtocolError)


@pytest.mark.parametrize(("way", "size", "data"), WAYS)
def test_an_extension_changes_each_element_of_one_call(way: str, size: int, data: bytes) -> None:
    """Elements that it changes come one by one, and never as they arrived."""
    raw, subscriber = _stream_in_one_call(9, size)
    raw.session.channel.incoming = bytes.upper
    raw.send(data)
    assert (subscriber.taken, subscriber.elements) == ([], [b"AA", b"BB"])


def test_an_element_in_a_single_part_is_never_unfinished() -> None:
    """It takes none of the places of unfinished elements."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_partials=1)).handshake()
    subscriber = subscribe_to(raw, 2)
    begun, alone = (
        kind(subscriber=0, element=at, data=b"x" * 64)
        for at, kind in enumerate((rsio.OnNextPart, rsio.OnNextLastPart))
    )
    raw.send(begun, alone)
    assert subscriber.elements == [b"x" * 64]
    assert subscriber.ends == []


def test_completion_within_an_element_is_an_error() -> None:
    """No element is delivered in part."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 2)
    raw.send(
        rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64), rsio.OnComplete(subscriber=0)
    )
    assert subscriber.elements == []
    assert isinstance(subscriber.ends[0], ProtocolError)


def test_an_unfinished_element_frees_its_bytes_after_partial_age() -> None:
    """The stream ends, because the last part has not come."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 2)
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64))
    assert raw.session.tick(1.0) == 30.0
    raw.session.tick(30.0)
    assert "unfinished for more than 30 s" in str(subscriber.ends[0])
    assert raw.session.channel.budgets.partials.bytes == 0


def test_elements_of_a_cancelled_stream_of_fixed_size_are_still_delimited() -> None:
    """The element size is kept until the peer ends the stream, also
    if onSubscribe comes after the cancel.
    """
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = RecordingSubscriber(5)
    raw.session.subscribe("s", subscriber)
    subscriber.cancel()
    raw.receive()
    raw.send(
        rsio.OnSubscribe(subscriber=0, element_size=3),
        b"\x21\x00abc",
        b"\x22\x00\x02abcdef",
        rsio.OnComplete(subscriber=0),
    )
    assert raw.session.state is ConnectionState.OPEN
    assert raw.session.streams.opened == {}
    raw.send(rsio.OnComplete(subscriber=0))
    assert raw.goodbye_reason() == "protocol:stream 0"


def test_after_a_cancel_nothing_is_requested_or_delivered() -> None:
    """Rules 3.6 and 1.7: a request and a second cancel send nothing to the peer."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 1)
    subscriber.cancel()
    assert raw.receive() == [rsio.Cancel(subscriber=0)]
    subscriber.cancel()
    subscriber.request(5)
    assert raw.receive() == []
    raw.send(
        rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64),
        *[rsio.OnNext(subscriber=0, element=b"x")] * 9,
    )
    assert (subscriber.elements, subscriber.ends) == ([], [])


def test_unbounded_demand_stays_unbounded() -> None:
    """Rule 3.17: elements take nothing from it, whether whole, packed or in parts,
    and the peer gets one request.
    """
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, UNBOUNDED, 2)
    subscriber.request(1)
    assert raw.receive() == []
    raw.send(
        rsio.OnNextPacked(subscriber=0, count=2, elements=b"aabb"),
        rsio.OnNextPart(subscriber=0, element=0, data=b"c"),
        rsio.OnNextLastPart(subscriber=0, element=0, data=b"c"),
        b"\x21\x00dd",
    )
    assert subscriber.elements == [b"aa", b"bb", b"cc", b"dd"]


def test_unfinished_elements_are_bounded_in_bytes_over_the_connection() -> None:
    """The bound counts all streams together."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_bytes=100)).handshake()
    subscriber = subscribe_to(raw, 2)
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=bytes(101)))
    assert "unfinished elements hold 101 bytes" in str(subscriber.ends[0])
    assert raw.session.channel.budgets.partials.bytes == 0


def test_each_tiny_part_costs_a_token() -> None:
    """A tiny part is legal, and the cheapest flood."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(glitches=2)).handshake()
    subscribe_to(raw, 2)
    raw.send(*[rsio.OnNextPart(subscriber=0, element=0, data=b"x")] * 3)
    assert raw.goodbye_reason() == "limit:glitches"


PARTS: list[tuple[str, list[rsio.Message], int]] = [
    ("tiny", [rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 63)], 1),
    ("empty", [rsio.OnNextPart(subscriber=0, element=0, data=b"")], 10),
    ("an empty last one", [rsio.OnNextLastPart(subscriber=0, element=0, data=b"")], 1),
    ("a tiny last one", [rsio.OnNextLastPart(subscriber=0, element=0, data=b"x")], 0),
    ("large enough", [rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64)], 0),
]


@pytest.mark.parametrize(
    ("messages", "weight"), [case[1:] for case in PARTS], ids=[case[0] for case in PARTS]
)
def test_the_cost_of_a_part_depends_on_its_use(messages: list[rsio.Message], weight: int) -> None:
    """An honest part costs nothing, a tiny one costs one token, and one
    that neither adds nor ends anything costs ten.
    """
    raw = RawPeer(Role.CLIENT, limits=limits_with(glitches=10)).handshake()
    subscribe_to(raw, 2)
    raw.send(*messages)
    assert raw.session.state is ConnectionState.OPEN
    left = sum(raw.session.channel.budgets.oddities.spend(1, raw.now) for _ in range(20))
    assert left == 10 - weight


def test_parts_of_one_element_are_bounded_in_number() -> None:
    """Their size does not matter."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_parts=3)).handshake()
    subscriber = subscribe_to(raw, 2)
    raw.send(*[rsio.OnNextPart(subscriber=0, element=0, data=bytes(64))] * 3)
    assert subscriber.ends == []
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=bytes(64)))
    assert "in 4 parts" in str(subscriber.ends[0])


def test_unfinished_elements_are_bounded_in_number_over_the_connection() -> None:
    """The bound is two here: one in each of two streams is taken, and the third ends its stream."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_partials_in_all=2)).handshake()
    subscribers = [RecordingSubscriber(2) for _ in range(3)]
    for each, subscriber in enumerate(subscribers):
        raw.session.subscribe("s", subscriber)
        raw.send(
            rsio.OnSubscribe(subscriber=each),
            rsio.OnNextPart(subscriber=each, element=0, data=bytes(64)),
        )
    assert [len(subscriber.ends) for subscriber in subscribers] == [0, 0, 1]
    assert raw.session.channel.budgets.partials.count == 2


def test_an_unsplit_element_is_bounded_by_max_element() -> None:
    """It is refused on its length, before its bytes have come."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_element=100)).handshake()
    subscribe_to(raw, 2)
    raw.send(b"\x21\x00" + rsio.encode_varint(101))
    assert raw.goodbye_reason() == "limit:frame 101 > 100"


def test_each_stream_of_a_lost_connection_gets_an_exception_of_its_own() -> None:
    """One exception raised in a thousand tasks would collect a thousand tracebacks. The copies
    keep the text and the cause.
    """
    raw = RawPeer(Role.CLIENT).handshake()
    subscribers = [RecordingSubscriber(1) for _ in range(3)]
    for subscriber in subscribers:
        raw.session.subscribe("s", subscriber)
    lost = Rejected("not now", processed=False)
    lost.__cause__ = cause = OSError()
    raw.session.end_of_input(lost)
    ends = [subscriber.ends[0] for subscriber in subscribers]
    assert len({id(end) for end in [lost, *ends]}) == 4
    assert [(type(end), str(end), end.processed, end.__cause__) for end in ends] == [
        (Rejected, "not now", False, cause)
    ] * 3


def test_an_exception_that_cannot_be_copied_is_shared() -> None:
    """A plugin may raise such an exception, and the streams must end."""

    class Odd(ConnectionLost):
        def __init__(self, first: int, second: int) -> None:
            super().__init__(f"{first} {second}")

    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 1)
    raw.session.end_of_input(odd := Odd(1, 2))
    assert subscriber.ends == [odd]


class KnowsSize(RecordingSubscriber):
    """A subscriber that is told the size of its elements."""

    def __init__(self) -> None:
        super().__init__(1)
        self.sizes: list[int] = []

    def on_element_size(self, size: int, /) -> None:
        self.sizes.append(size)


@pytest.mark.parametrize(("size", "told"), [(4, [4]), (0, [])])
def test_a_subscriber_is_told_the_size_of_its_elements(size: int, told: list[int]) -> None:
    """Once, and only if all of its elements have one size."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = KnowsSize()
    raw.session.subscribe("s", subscriber)
    raw.send(rsio.OnSubscribe(subscriber=0, element_size=size))
    assert subscriber.sizes == told


@pytest.mark.parametrize("demand", [1, 5, UNBOUNDED])
def test_an_answer_is_the_only_element_and_the_end(demand: int) -> None:
    """The rest of the demand never comes, so one element counts as received."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = RecordingSubscriber(demand)
    stream = raw.session.subscribe("s", subscriber)
    assert stream.receive_answer(b"value")
    assert (subscriber.elements, subscriber.ends) == ([b"value"], ["complete"])
    left = 0 if demand == UNBOUNDED else demand
    assert raw.session.channel.budgets.received.requested == 1
    assert stream.receive_answer(b"again") is (left != 0 or demand == UNBOUNDED)
    assert subscriber.elements == [b"value"]


def test_an_answer_that_needs_another_path_is_not_taken() -> None:
    """It is not taken without demand, after a part of an element, and if an extension changes
    elements.
    """
    raw = RawPeer(Role.CLIENT).handshake()
    none, parts, changed = (RecordingSubscriber(demand) for demand in (0, 2, 2))
    streams = [raw.session.subscribe("s", subscriber) for subscriber in (none, parts, changed)]
    raw.send(
        rsio.OnSubscribe(subscriber=1), rsio.OnNextPart(subscriber=1, element=0, data=b"x" * 64)
    )
    assert not streams[0].receive_answer(b"value")
    assert not streams[1].receive_answer(b"value")
    raw.session.channel.incoming = bytes.upper
    assert not streams[2].receive_answer(b"value")
    assert [(each.elements, each.ends) for each in (none, parts, changed)] == [([], [])] * 3


# --- copies of an error


class Unlike(Exception):
    """An exception whose constructor copy() cannot call."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def _raise(error: Exception) -> Exception:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def test_a_copy_has_the_facts_and_the_cause_and_no_traceback() -> None:
    """The original has no traceback either, however often a copy is raised."""
    error = Rejected("not you", processed=False)
    error.__cause__ = KeyError("why")
    raised = [_raise(own_copy(error)) for _ in range(2)]
    assert [str(each) for each in raised] == ["not you"] * 2
    assert [each.__cause__ for each in raised] == [error.__cause__] * 2
    assert [each.processed for each in raised if isinstance(each, Rejected)] == [False, False]
    assert error.__traceback__ is None


def test_an_exception_that_cannot_be_copied_loses_the_frames_of_its_last_raise() -> None:
    """It is the same object, so it is all that can be done."""
    error = _raise(Unlike(1, 2))
    assert error.__traceback__ is not None
    assert own_copy(error) is error
    assert error.__traceback__ is None
