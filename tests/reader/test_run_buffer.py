"""The reader's end of a stream that is read in runs:
elements that arrived together stay together, and each counts.
"""

from collections.abc import Sequence

import pytest

from penstock.api import EqualRun, SharedBytes, ShortRun, StreamState
from penstock.reader import RunBuffer
from penstock.testing import ManualPublisher

EQUAL = EqualRun(b"haahbb", 1, 3)
SHORT = ShortRun(b"\1c\2dd\0", b"\2\3\1")


def begun(demand: int) -> tuple[RunBuffer, ManualPublisher]:
    buffer, publisher = RunBuffer(demand=demand), ManualPublisher()
    publisher.subscribe(buffer)
    return buffer, publisher


def taken(buffer: RunBuffer) -> list[Sequence[bytes]]:
    return buffer._take_batch()


def test_runs_stay_as_they_are() -> None:
    """Runs in memory are handed over as they came, lists as copies, and single elements that
    follow each other as one list.
    """
    buffer, _ = begun(100)
    given = [b"e", b"f"]
    buffer.on_next_many(EQUAL)
    buffer.on_next(b"x")
    buffer.on_next(b"y")
    buffer.on_next_many(SHORT)
    buffer.on_next_many(given)
    buffer.on_next(b"z")
    runs = taken(buffer)
    assert runs[0] is EQUAL
    assert runs[2] is SHORT
    assert [list(run) for run in runs] == [
        [b"aa", b"bb"],
        [b"x", b"y"],
        [b"c", b"dd", b""],
        [b"e", b"f", b"z"],
    ]
    assert given == [b"e", b"f"]


def test_the_demand_counts_elements_and_not_runs() -> None:
    """Half of it is requested anew when as many elements were taken."""
    buffer, publisher = begun(10)
    assert publisher.subscription.requests == [10]
    buffer.on_next_many(EQUAL)
    buffer.on_next_many(SHORT)
    now = buffer.statistics()
    assert (now.received, now.buffered, now.outstanding) == (5, 5, 5)
    taken(buffer)
    assert publisher.subscription.requests == [10, 5]
    assert buffer.statistics().taken == 5


def test_large_elements_behind_small_ones_are_unread_until_they_are_taken() -> None:
    """A thousand were asked for as small ones. The reader takes each large one at once, long
    before it may ask for more.
    """
    shared, buffer, publisher = SharedBytes(8_000), RunBuffer(demand=1_000), ManualPublisher()
    window = buffer.count_bytes(2_000, 1_000)
    assert window is not None
    shared.add(window, "this stream")
    publisher.subscribe(buffer)
    for size in [1] * 64 + [1_000] * 100:
        window.received += size
        buffer.on_next(bytes(size))
        taken(buffer)
        assert shared.largest() is None
        assert window.unread <= 3_000
    assert publisher.requested < 1_000 + 64


def test_packed_elements_are_a_run() -> None:
    """Without headers."""
    buffer, _ = begun(10)
    buffer.on_element_size(2)
    buffer.on_next_packed(2, b"aabb")
    assert [list(run) for run in taken(buffer)] == [[b"aa", b"bb"]]
    assert buffer.statistics().received == 2


def test_what_waits_is_counted_in_bytes() -> None:
    """With the headers, which are kept as well."""
    buffer, _ = begun(100)
    buffer.on_next_many(EQUAL)
    buffer.on_next_many(SHORT)
    buffer.on_next_many([b"eee", b"f"])
    assert buffer.held() == 6 + 6 + 4


def test_elements_after_the_end_are_dropped() -> None:
    """As a reader of lists drops them (rule 2.8)."""
    buffer, publisher = begun(10)
    buffer.on_next_many(EQUAL)
    buffer.cancel()
    buffer.on_next(b"x")
    buffer.on_next_many(SHORT)
    assert publisher.cancelled
    assert buffer.statistics().state is StreamState.CANCELLED
    assert buffer.statistics().received == 2
    assert not taken(buffer)


def test_a_waiting_reader_is_woken() -> None:
    """Once by each kind of signal."""
    buffer, _ = begun(10)
    woken: list[str] = []
    for signal in (lambda: buffer.on_next(b"x"), lambda: buffer.on_next_many(EQUAL)):
        buffer._reader = lambda: woken.append("woken")
        signal()
        taken(buffer)
    assert woken == ["woken"] * 2


def test_none_is_never_an_element() -> None:
    """Rule 2.13."""
    buffer, _ = begun(10)
    with pytest.raises(TypeError, match=r"rule 2\.13"):
        buffer.on_next(None)
