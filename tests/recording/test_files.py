"""Files have their names only when they are whole."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from penstock.recording._columns import PACKED, ROW, STREAM
from penstock.recording._files import RecordFiles
from penstock.recording._tap import StreamFacts
from tests._real_time import HANGS_AFTER
from tests.recording._record import facts_of, rows_of

RECORDED = StreamFacts(
    subscription=7,
    connection=2,
    stream=3,
    outbound=True,
    publisher="ticks/EURUSD",
    pattern="ticks/{symbol}",
    peer="::1",
    began=5,
)


def test_a_file_has_the_columns_of_its_version(tmp_path: Path) -> None:
    """Those of the stream first, then those of the row; the index has the names."""
    files = RecordFiles(tmp_path, 9)
    assert files.size == 0
    assert files.write_signals([(RECORDED, ROW.pack(0, 2, 100, 0, 11, 12, 13))]) == 1
    assert files.size > 0
    assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
    files.finish()
    files.write_subscriptions([RECORDED])
    table = pq.read_table(tmp_path / "signals-0000000000000009-000001.parquet")
    assert tuple(table.column_names) == STREAM + PACKED
    assert table.to_pylist() == [
        {
            "process": 9,
            "subscription": 7,
            "connection": 2,
            "stream": 3,
            "outbound": True,
            "seq": 0,
            "kind": 2,
            "n": 100,
            "size": 0,
            "first": 11,
            "last": 12,
            "longest": 13,
        }
    ]
    (told,) = pq.read_table(
        tmp_path / "subscriptions-0000000000000009-000000000007.parquet"
    ).to_pylist()
    assert told == {
        "process": 9,
        "subscription": 7,
        "connection": 2,
        "stream": 3,
        "outbound": True,
        "publisher": "ticks/EURUSD",
        "pattern": "ticks/{symbol}",
        "peer": "::1",
        "began": 5,
    }


def test_a_file_that_is_given_up_is_removed(tmp_path: Path) -> None:
    """A second call does nothing, and the next file has the next number."""
    files = RecordFiles(tmp_path, 9)
    files.write_signals([(RECORDED, ROW.pack(0, 2, 100, 0, 11, 12, 13))])
    files.give_up()
    files.give_up()
    assert list(tmp_path.iterdir()) == []
    files.write_signals([(RECORDED, ROW.pack(0, 2, 100, 0, 11, 12, 13))])
    files.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["signals-0000000000000009-000002.parquet"]


def test_a_file_that_is_left_to_the_parent_is_never_ended(tmp_path: Path) -> None:
    """Not even when the object is gone: both processes would write into the same file."""
    files = RecordFiles(tmp_path, 9)
    files.write_signals([(RECORDED, ROW.pack(0, 2, 100, 0, 11, 12, 13))])
    files.leave_to_parent()
    [path] = tmp_path.iterdir()
    size = files.size
    del files
    assert path.stat().st_size == size > 0


def test_the_file_of_the_process_is_replaced(tmp_path: Path) -> None:
    """It tells the program, without its arguments, and whether it has ended."""
    files = RecordFiles(tmp_path, 9)
    files.write_process(rows=1, dropped=2, streams_left_out=3, is_over=False)
    files.write_process(rows=4, dropped=2, streams_left_out=3, is_over=True)
    facts = facts_of(tmp_path)
    assert (facts["rows"], facts["dropped"], facts["streams_left_out"], facts["process"]) == (
        4,
        2,
        3,
        9,
    )
    assert facts["ended"] >= facts["began"]


def test_writing_imports_no_pandas(tmp_path: Path) -> None:
    """It takes half a second, and at the end of a program it cannot be imported any more."""
    program = f"""
import sys
sys.modules["pandas"] = None
from penstock.recording import Recorder
recorder = Recorder({str(tmp_path)!r})
recorder.tap("x").record(2, 1, 0, 1, 2, 3)
del recorder
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=True,
    )
    assert done.stderr == ""
    assert len(rows_of(tmp_path)) == 1
