"""The thread writes rows together, ends files in time, and counts what the disk refuses."""

import logging
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.api import SignalKind
from penstock.recording import Recorder, _files, _writer_thread
from penstock.recording._tap import StreamFacts
from tests._real_time import HANGS_AFTER
from tests.recording._record import facts_of, rows_of


def test_the_rows_of_a_subscription_stand_together(tmp_path: Path, stopped: None) -> None:
    """Rows of several streams come mixed, and each stream has one piece in the row group."""
    with Recorder(tmp_path) as recorder:
        taps = [recorder.tap(name) for name in "abc"]
        for number in range(30):
            tap = taps[number % 3]
            assert tap is not None
            tap.record(SignalKind.REQUEST, number, 0, number, number, 0)
    table = pq.read_table(next(tmp_path.glob("signals-*.parquet")))
    assert table["subscription"].to_pylist() == [1] * 10 + [2] * 10 + [3] * 10


def test_a_disk_that_refuses_costs_rows_and_no_stream(
    tmp_path: Path, stopped: None, caplog: pytest.LogCaptureFixture
) -> None:
    """The rows are counted as dropped, and one line names the folder and the cause."""
    folder = tmp_path / "record"
    folder.write_text("a file, where the folder should be")
    caplog.set_level(logging.ERROR)
    with Recorder(folder) as recorder:
        tap = recorder.tap("x")
        assert tap is not None
        tap.record(SignalKind.REQUEST, 1, 0, 1, 2, 3)
    assert (recorder.rows, recorder.dropped) == (0, 1)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"the recorder cannot write to {folder}: ")


@pytest.mark.parametrize("options", [{"rotate_seconds": 1e-9}, {"rotate_bytes": 1}, {}])
def test_files_end_after_a_time_after_a_size_and_after_many_streams(
    options: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file has its own number, and is whole as soon as it has its name."""
    monkeypatch.setattr(_writer_thread, "INTERVAL", 0.001)
    monkeypatch.setattr(_writer_thread, "GROUP_ROWS", 1)
    monkeypatch.setattr(_writer_thread, "MOST_NEW", 1_000_000 if options else 1)
    ended = threading.Semaphore(0)
    write_subscriptions = _files.RecordFiles.write_subscriptions

    def tell(files: _files.RecordFiles, new: list[StreamFacts]) -> None:
        write_subscriptions(files, new)
        ended.release()

    monkeypatch.setattr(_files.RecordFiles, "write_subscriptions", tell)
    with Recorder(tmp_path, **options) as recorder:  # type: ignore[arg-type]  # each option has its own type
        for _ in range(3):
            tap = recorder.tap("x")
            assert tap is not None
            tap.record(SignalKind.REQUEST, 1, 0, 1, 2, 3)
            assert ended.acquire(timeout=HANGS_AFTER)
    assert len(list(tmp_path.glob("subscriptions-*.parquet"))) == 3
    assert len(list(tmp_path.glob("signals-*.parquet"))) >= 1
    assert len(rows_of(tmp_path)) == 3


def test_a_disk_that_works_again_gets_the_later_rows(
    tmp_path: Path, stopped: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first file is refused as a whole, and counted;
    after the pause the next rows have a file.
    """
    monkeypatch.setattr(_writer_thread, "PAUSE", 0.0)
    recorder = Recorder(tmp_path)
    tap = recorder.tap("x")
    assert tap is not None
    thread = recorder._thread
    assert thread is not None
    thread.stop()  # from here on this test does the thread's work
    for refuses in (True, False):
        tap.record(SignalKind.REQUEST, 1, 0, 1, 2, 3)
        with monkeypatch.context() as patch:
            if refuses:
                patch.setattr(thread._files, "write_signals", _refuse)
            thread._take()
            thread._write()
        assert (recorder.rows, recorder.dropped) == ((0, 1) if refuses else (1, 1))
    thread._end_file(is_over=True)
    assert [row["seq"] for row in rows_of(tmp_path)] == [1]
    assert facts_of(tmp_path)["dropped"] == 1
    assert len(caplog.records) == 1


@pytest.mark.parametrize(("refused", "lost"), [("finish", 1), ("write_subscriptions", 0)])
def test_what_a_stream_was_is_kept_until_it_is_written(
    tmp_path: Path, stopped: None, monkeypatch: pytest.MonkeyPatch, refused: str, lost: int
) -> None:
    """Its later rows are in a file, and so is its name.
    Rows of a file that is whole are not counted as dropped.
    """
    monkeypatch.setattr(_writer_thread, "PAUSE", 0.0)
    recorder = Recorder(tmp_path)
    tap, thread = recorder.tap("x"), recorder._thread
    assert tap is not None
    assert thread is not None
    # The thread has not looked at the taps yet: this test does its work.
    for refuses in (True, False):
        tap.record(SignalKind.REQUEST, 1, 0, 1, 2, 3)
        with monkeypatch.context() as patch:
            if refuses:
                patch.setattr(_files.RecordFiles, refused, _refuse)
            thread._take()
            thread._end_file()
    assert (recorder.rows, recorder.dropped) == (2 - lost, lost)
    assert [row["seq"] for row in rows_of(tmp_path)] == [0, 1][lost:]
    (path,) = tmp_path.glob("subscriptions-*.parquet")
    assert pq.read_table(path)["publisher"].to_pylist() == ["x"]
    recorder.close()


def test_streams_that_begin_while_the_disk_refuses_have_a_bound(
    tmp_path: Path, stopped: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that wait for their file, and those that wait for the thread; the others are
    counted. At the end all are written.
    """
    monkeypatch.setattr(_writer_thread, "PAUSE", 0.0)
    monkeypatch.setattr(_writer_thread, "MOST_NEW", 3)
    recorder = Recorder(tmp_path, max_rows=4)
    thread = None
    with monkeypatch.context() as patch:
        patch.setattr(_files.RecordFiles, "finish", _refuse)
        for _ in range(20):
            recorder.tap("x")
            thread = recorder._thread
            assert thread is not None
            thread._take()
            thread._end_file()
    assert recorder.streams_left_out == 20 - 3 - 4
    recorder.close()
    rows = [
        row
        for path in tmp_path.glob("subscriptions-*.parquet")
        for row in pq.read_table(path).to_pylist()
    ]
    assert len(rows) == 7


def test_a_disk_that_is_full_at_the_end_leaves_the_counts(
    tmp_path: Path, stopped: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of the process is small, and is written when the rows were refused."""
    with Recorder(tmp_path) as recorder:
        tap = recorder.tap("x")
        assert tap is not None
        tap.record(SignalKind.REQUEST, 1, 0, 1, 2, 3)
        monkeypatch.setattr(
            _files.RecordFiles, "write_signals", lambda files, blocks: _refuse(blocks)
        )
    facts = facts_of(tmp_path)
    assert (facts["rows"], facts["dropped"]) == (0, 1)
    assert facts["ended"]


def _refuse(*_: object) -> int:
    raise OSError(28, "No space left on device")
