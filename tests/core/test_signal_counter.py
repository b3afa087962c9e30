"""The counter joins neighbouring elements into one row, and makes one for each other signal."""

import logging

import pytest

from penstock.api import SignalKind
from penstock.core import _signal_counter
from penstock.core._signal_counter import LONGEST_ROW, SignalCounter


class _Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class _Rows:
    """A tap that keeps its rows, with times since the clock began."""

    def __init__(self, *, each_signal: bool = False) -> None:
        self.each_signal = each_signal
        self.rows: list[tuple[str, int, int, int, int, int]] = []

    def record(
        self, kind: SignalKind, n: int, size: int, first: int, last: int, longest: int, /
    ) -> None:
        self.rows.append((kind.name, n, size, first, last, longest))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """The clock of the counter, which counts from 1970 here."""
    clock = _Clock()
    monkeypatch.setattr(_signal_counter, "perf_counter_ns", clock)
    monkeypatch.setattr(_signal_counter, "_SINCE_1970", 0)
    return clock


def test_neighbouring_elements_share_a_row(clock: _Clock) -> None:
    """It has their number, their bytes, the times of the first and the last, and the longest
    time that one of them took.
    """
    tap = _Rows()
    counter = SignalCounter(tap)
    for time, count, size, took in ((10, 1, 5, 3), (20, 3, 30, 7), (40, 2, 2, 1)):
        clock.now = time
        began = counter.elements(count, size)
        clock.now += took
        counter.returned(began)
    assert tap.rows == []
    clock.now = 50
    counter.signal(SignalKind.REQUEST, 9)
    assert tap.rows == [("ON_NEXT", 6, 37, 10, 40, 7), ("REQUEST", 9, 0, 50, 50, 0)]


def test_times_are_those_of_the_calendar(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and the last, of elements as of other signals."""
    monkeypatch.setattr(_signal_counter, "_SINCE_1970", 1_000)
    tap = _Rows()
    counter = SignalCounter(tap)
    for clock.now in (10, 20):
        counter.elements(1, 5)
    clock.now = 30
    counter.signal(SignalKind.CANCEL)
    assert [row[3:5] for row in tap.rows] == [(1_010, 1_020), (1_030, 1_030)]


def test_the_time_of_another_signal_is_in_the_next_row(clock: _Clock) -> None:
    """Its own row was made before it was passed on."""
    tap = _Rows()
    counter = SignalCounter(tap)
    began = counter.signal(SignalKind.ON_SUBSCRIBE)
    clock.now = 25
    counter.returned(began)
    counter.signal(SignalKind.CANCEL)
    assert [row[0] for row in tap.rows] == ["ON_SUBSCRIBE", "CANCEL"]
    assert tap.rows[1][5] == 25


def test_elements_that_flow_for_a_second_get_a_row(clock: _Clock) -> None:
    """Also without another signal."""
    tap = _Rows()
    counter = SignalCounter(tap)
    for time in (0, LONGEST_ROW - 1, LONGEST_ROW, LONGEST_ROW + 1):
        clock.now = time
        counter.elements(1, 1)
    assert tap.rows == [("ON_NEXT", 3, 3, 0, LONGEST_ROW, 0)]


def test_each_call_has_a_row_if_the_tap_asks_for_it(clock: _Clock) -> None:
    """Elements that travelled together stay together."""
    tap = _Rows(each_signal=True)
    counter = SignalCounter(tap)
    counter.elements(1, 1)
    counter.elements(4, 8)
    assert [row[:3] for row in tap.rows] == [("ON_NEXT", 1, 1), ("ON_NEXT", 4, 8)]


class _Raising:
    each_signal = True

    def __init__(self) -> None:
        self.calls = 0

    def record(self, *row: int) -> None:
        self.calls += 1
        raise ValueError("broken")


def test_a_tap_that_raises_is_left_alone_and_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The counter goes on, and raises nothing."""
    caplog.set_level(logging.ERROR)
    tap = _Raising()
    counter = SignalCounter(tap)
    for _ in range(3):
        counter.elements(1, 1)
    assert tap.calls == 1
    (line,) = [record.getMessage() for record in caplog.records]
    assert (
        line == "the tap of a stream raised ValueError: broken; it gets no more rows of this stream"
    )
