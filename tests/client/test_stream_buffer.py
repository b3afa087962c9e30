"""The consumer's end of a stream without I/O: demand, lists, memory, decoding, ends. tests/tck
runs the rules of the kit over it.
"""

from typing import Any

import pytest

from penstock.api import (
    UNBOUNDED,
    ByteWindow,
    ConnectionLost,
    IllegalDemand,
    PluginError,
    PositionedName,
    Positions,
    ProtocolError,
    StreamState,
    Subscription,
    UsageError,
)
from penstock.client import StreamBuffer, StreamCut, StreamEnd, StreamPlace
from penstock.elements import JsonSerializer
from penstock.spi import Serializer


class Requests(Subscription):
    """Records what is requested."""

    def __init__(self) -> None:
        self.requested: list[int] = []
        self.is_cancelled = False

    def request(self, n: int, /) -> None:
        self.requested.append(n)

    def cancel(self, /) -> None:
        self.is_cancelled = True


def begun(**options: Any) -> tuple[StreamBuffer, Requests]:
    buffer, upstream = StreamBuffer(**options), Requests()
    buffer.on_subscribe(upstream)
    return buffer, upstream


def test_half_of_the_demand_is_renewed_when_it_was_taken() -> None:
    """Buffered and outstanding elements never exceed the demand."""
    buffer, upstream = begun(demand=8)
    assert upstream.requested == [8]
    buffer.on_next_many([b"%d" % number for number in range(8)])
    assert buffer.take_slice() == [b"0", b"1", b"2", b"3"]
    assert upstream.requested == [8]
    assert buffer.take_slice() == [b"4", b"5", b"6", b"7"]
    assert upstream.requested == [8, 4]
    assert buffer.take_slice() is None
    assert upstream.requested == [8, 4, 4]


def test_a_batch_is_everything_and_renews_at_once() -> None:
    """The publisher works while the reader does."""
    buffer, upstream = begun(demand=8)
    buffer.on_next_many([b"a"] * 8)
    assert buffer.take_batch() == [b"a"] * 8
    assert upstream.requested == [8, 8]


def test_with_a_demand_of_one_an_element_is_requested_when_the_reader_asks() -> None:
    """Not when it takes the one before."""
    buffer, upstream = begun(demand=1)
    buffer.on_next(b"a")
    assert buffer.take_batch() == [b"a"]
    assert upstream.requested == [1]
    assert buffer.take_batch() is None
    assert upstream.requested == [1, 1]


def test_large_elements_use_a_part_of_the_demand() -> None:
    """The window bounds what is asked for, by the size of the elements that came."""
    window = ByteWindow(4000, 1000)
    buffer, upstream = begun(demand=100, window=window)
    assert upstream.requested == [window.first]
    for _ in range(20):
        while sum(upstream.requested) > buffer.statistics().received:
            buffer.on_next(bytes(1000))
            window.received += 1000
        assert buffer.statistics().buffered <= window.first
        buffer.take_batch()
    assert sum(upstream.requested) - buffer.statistics().received <= 4
    assert buffer.statistics().received_bytes == window.received


def test_manual_demand_is_passed_on() -> None:
    """Also from before the subscription; a demand that is not a number is refused."""
    buffer, upstream = StreamBuffer(demand=0), Requests()
    buffer.request(2)
    buffer.on_subscribe(upstream)
    buffer.request(3)
    assert upstream.requested == [2, 3]
    with pytest.raises(IllegalDemand):
        buffer.request(0)
    with pytest.raises(UsageError, match="renews it by itself"):
        StreamBuffer(demand=4).request(1)
    buffer.cancel()
    buffer.request(1)
    assert upstream.requested == [2, 3]


@pytest.mark.parametrize("demand", [-1, True, 1.5, "4"])
def test_a_demand_that_is_no_number_is_refused(demand: Any) -> None:
    """The error shows it."""
    with pytest.raises(UsageError, match="demand="):
        StreamBuffer(demand=demand)


def test_elements_before_the_end_are_taken_before_it_is_raised() -> None:
    """The failure comes once; after it the stream has just ended."""
    buffer, _ = begun()
    buffer.on_next(b"a")
    buffer.on_error(ValueError("failed"))
    assert buffer.take_slice() == [b"a"]
    with pytest.raises(ValueError, match="failed"):
        buffer.take_slice()
    with pytest.raises(StreamEnd):
        buffer.take_slice()


def test_a_failure_that_would_end_a_loop_is_wrapped() -> None:
    """StopIteration from a publisher becomes RuntimeError, as PEP 479 does it for generators."""
    buffer, _ = begun()
    buffer.on_error(StopIteration())
    with pytest.raises(RuntimeError, match="StopIteration"):
        buffer.take_batch()


def test_cancel_drops_what_has_arrived() -> None:
    """Signals after it do nothing, and the counts say what was dropped."""
    buffer, upstream = begun(demand=4)
    buffer.on_next_many([b"a", b"b"])
    buffer.cancel()
    buffer.on_next(b"late")
    buffer.on_next_many([b"late"])
    buffer.on_complete()
    buffer.on_error(ValueError())
    assert upstream.is_cancelled
    now = buffer.statistics()
    assert (now.state, now.received, now.taken, now.buffered, now.outstanding) == (
        StreamState.CANCELLED,
        2,
        0,
        0,
        0,
    )
    with pytest.raises(StreamEnd):
        buffer.take_batch()


def test_a_waiting_reader_is_woken_once_by_each_kind_of_signal() -> None:
    """An element, elements, the end, and a cancel."""
    for signal in (
        lambda buffer: buffer.on_next(b"a"),
        lambda buffer: buffer.on_next_many([b"a"]),
        lambda buffer: buffer.on_complete(),
        lambda buffer: buffer.cancel(),
    ):
        buffer, _ = begun()
        woken: list[bool] = []
        buffer.wake = lambda buffer=buffer, woken=woken: woken.append(buffer.is_readable)  # type: ignore[misc]  # bound in the loop
        signal(buffer)
        signal(buffer)
        assert woken == [True]


def test_packed_elements_are_taken_apart_unless_memory_is_read() -> None:
    """Counts are of elements in both cases."""
    buffer, _ = begun(demand=8)
    buffer.on_element_size(2)
    buffer.on_next_packed(2, b"aabb")
    assert buffer.take_batch() == [b"aa", b"bb"]
    buffer, upstream = begun(demand=4)
    buffer.on_element_size(2)
    with pytest.raises(UsageError, match="no fixed size"):
        _taken_without_a_size()
    assert buffer.take_buffer() is None
    buffer.on_next_packed(2, b"aabb")
    buffer.on_next_packed(2, b"ccdd")
    assert buffer.statistics().buffered == 4
    assert buffer.take_buffer() == b"aabbccdd"
    assert upstream.requested == [4, 4]


def _taken_without_a_size() -> None:
    buffer, _ = begun()
    buffer.on_next(b"a")
    buffer.take_buffer()


def test_elements_are_decoded_when_they_are_taken() -> None:
    """Those before one that does not decode arrive;
    then the stream fails, and its publisher is cancelled.
    """
    buffer, upstream = begun(loader=JsonSerializer())
    buffer.on_next_many([b"1", b"2", b"{", b"4"])
    assert buffer.take_batch() == [1, 2]
    assert upstream.is_cancelled
    with pytest.raises(ProtocolError, match=r"^element 2 \(1 bytes\)"):
        buffer.take_batch()
    assert buffer.statistics().state is StreamState.FAILED


def test_none_is_never_an_element() -> None:
    """Rule 2.13, for a serializer that returns it, and for a publisher that signals it."""

    class Nothing(Serializer):
        name = "nothing"

        def dumps(self, element: object, /) -> bytes:
            return b""

        def loads(self, data: bytes, /) -> object:
            return None

    buffer, _ = begun(loader=Nothing())
    buffer.on_next(b"x")
    with pytest.raises(PluginError, match="returned None"):
        buffer.take_slice()
    with pytest.raises(TypeError):
        StreamBuffer().on_next(None)


def test_what_waits_is_counted_in_bytes() -> None:
    """The session bounds it; `repr` shows the counts."""
    buffer, _ = begun(demand=0)
    buffer.request(1)
    buffer.on_next(b"abc")
    assert buffer.held() == 3
    buffer.take_batch()
    assert "starved" in repr(buffer)


def cut_buffer(demand: int, *, taken: int) -> StreamBuffer:
    """Return a buffer of a stream from position 5 on that has taken some of four elements
    when its connection is lost.
    """
    buffer, _ = begun(demand=demand, place=StreamPlace(PositionedName("a", 5), goes_on=True))
    if not demand:
        buffer.request(6)
    for number in range(taken):
        buffer.on_next(b"%d" % number)
        buffer.take_batch()
    buffer.on_next_many([b"x"] * (4 - taken))
    buffer.on_error(ConnectionLost("lost"))
    return buffer


@pytest.mark.parametrize("demand", [0, 6])
def test_the_demand_is_exact_over_a_lost_connection(demand: int) -> None:
    """The outstanding demand is requested again, and no more."""
    buffer = cut_buffer(demand, taken=1)
    outstanding = buffer.statistics().outstanding
    assert buffer.is_readable
    assert buffer.take_batch() == [b"x"] * 3
    assert buffer.position == 9
    with pytest.raises(StreamCut):
        buffer.take_slice()
    assert buffer.place.next_name(buffer.statistics().received) == "a?start=9"
    again = Requests()
    buffer.on_subscribe(again)
    assert again.requested == [outstanding]
    assert not buffer.is_readable
    assert buffer.take_batch() is None
    assert buffer.statistics().outstanding == (demand or outstanding)


def test_unbounded_demand_stays_unbounded() -> None:
    """The next connection gets the same number, not one less."""
    buffer, _ = begun(demand=0, place=StreamPlace(PositionedName("a", 5), goes_on=True))
    buffer.request(UNBOUNDED)
    buffer.on_next(b"x")
    buffer.on_error(ConnectionLost("lost"))
    again = Requests()
    buffer.on_subscribe(again)
    assert again.requested == [UNBOUNDED]


def test_a_wrong_position_cancels_and_fails() -> None:
    """No later signal is taken."""
    buffer = cut_buffer(6, taken=4)
    again = Requests()
    buffer.on_subscribe(again)
    buffer.on_fact("unknown")
    buffer.on_fact(Positions(10, 0, 40))
    buffer.on_next(b"late")
    assert again.is_cancelled
    assert buffer.state is StreamState.FAILED
    with pytest.raises(ProtocolError, match=r"begins at position 10, and 9 was asked for"):
        buffer.take_batch()


def test_a_cut_stream_can_be_cancelled() -> None:
    """Its reader gets the end, and no wait for a connection."""
    buffer = cut_buffer(6, taken=0)
    buffer.cancel()
    with pytest.raises(StreamEnd):
        buffer.take_batch()
