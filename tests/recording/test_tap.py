"""A tap numbers its rows, and drops and counts those that find no room."""

from pathlib import Path

from penstock.api import SignalKind
from penstock.recording import Recorder
from penstock.recording._columns import MOST
from tests.recording._record import facts_of, rows_of


def test_rows_without_room_are_dropped_and_counted(tmp_path: Path, stopped: None) -> None:
    """The numbers of the rows show where some are missing."""
    with Recorder(tmp_path, max_rows=10) as recorder:
        tap = recorder.tap("x")
        assert tap is not None
        for number in range(15):
            tap.record(SignalKind.REQUEST, number, 0, 1, 2, 3)
        assert recorder.dropped == 5
    assert [row["seq"] for row in rows_of(tmp_path)] == list(range(10))
    assert facts_of(tmp_path)["dropped"] == 5


def test_streams_without_room_are_left_out_and_counted(tmp_path: Path, stopped: None) -> None:
    """As many new streams wait as rows."""
    with Recorder(tmp_path, max_rows=2) as recorder:
        assert [recorder.tap("x") is None for _ in range(3)] == [False, False, True]
        assert recorder.streams_left_out == 1
    assert facts_of(tmp_path)["streams_left_out"] == 1


def test_numbers_that_no_column_holds_are_cut(tmp_path: Path, stopped: None) -> None:
    """A user's object may request any number."""
    with Recorder(tmp_path) as recorder:
        tap = recorder.tap("x")
        assert tap is not None
        tap.record(SignalKind.REQUEST, 1 << 70, 0, 1, 2, 3)
        tap.record(SignalKind.REQUEST, -(1 << 70), 0, 1, 2, 3)
    assert [row["n"] for row in rows_of(tmp_path)] == [MOST, -MOST]
