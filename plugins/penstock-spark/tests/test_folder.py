"""Each file of a record is checked before the job, and named if it cannot be judged."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from _traces import (
    ON_COMPLETE,
    ON_NEXT,
    ON_SUBSCRIBE,
    REQUEST,
    Signal,
    Trace,
    run_here,
    tell_process,
    tell_subscriptions,
)
from penstock_spark.audit import _audit, audit, files_of

from penstock.api import UsageError

SIGNALS = "signals-0000000000000001-000001.parquet"
SUBSCRIPTIONS = "subscriptions-0000000000000001-000000000001.parquet"
PROCESS = "process-0000000000000001.json"


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A whole record; the work is done in this process."""
    monkeypatch.setattr(_audit, "SparkRun", lambda spark, progress: run_here)
    trace = Trace()
    for _ in range(50):
        trace.add(
            [
                Signal(ON_SUBSCRIBE),
                *[Signal(REQUEST, 2), Signal(ON_NEXT, 2)] * 20,
                Signal(ON_COMPLETE),
            ]
        )
    trace.write(tmp_path, Random(1), groups=1)
    tell_subscriptions(tmp_path, trace)
    tell_process(tmp_path, rows=50 * 42)
    return tmp_path


def test_a_whole_record_is_accepted(record: Path) -> None:
    """Nothing is lost."""
    report = audit(None, record)
    assert report["lost"]["total"] == 0
    assert report["lost"]["advice"] == []


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-50])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _foreign(path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), path)


def _texts_of(name: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        table = pq.read_table(path)
        texts = pa.array([str(value) for value in table[name].to_pylist()])
        pq.write_table(table.set_column(table.schema.get_field_index(name), name, texts), path)

    return change


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        (SIGNALS, _cut, "cannot be read: "),
        (SIGNALS, _empty, "cannot be read: "),
        (SIGNALS, _foreign, "lacks the columns connection, "),
        (SIGNALS, _texts_of("kind"), "its column kind is string, and a recorder writes int8"),
        (SUBSCRIPTIONS, _cut, "cannot be read: "),
        (SUBSCRIPTIONS, _empty, "cannot be read: "),
        (SUBSCRIPTIONS, _foreign, "lacks the columns began, "),
        (
            SUBSCRIPTIONS,
            _texts_of("process"),
            "its column process is string, and a recorder writes int64",
        ),
    ],
)
def test_a_file_that_is_no_part_of_a_record_is_named_before_the_job(
    record: Path, name: str, change: Callable[[Path], None], text: str
) -> None:
    """They are found before Spark starts: `files_of` needs no session."""
    change(record / name)
    with pytest.raises(UsageError) as caught:
        files_of(record)
    assert str(caught.value).startswith(f"{record / name} ")
    assert text in str(caught.value)
    assert str(caught.value).endswith(". Remove it, or record again")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b"[1]", "it has no version"),
        (b"{}", "it has no version"),
        (b'{"version": "x"}', "it has no version"),
        (
            b'{"version": 1, "process": true, "ended": "x"}',
            "lacks process, pid, began, rows, dropped, streams_left_out, host, program, ended",
        ),
    ],
)
def test_a_file_that_tells_of_no_process_is_named(record: Path, content: bytes, text: str) -> None:
    """It holds other JSON, or none."""
    (record / PROCESS).write_bytes(content)
    with pytest.raises(UsageError, match=text) as caught:
        files_of(record)
    assert str(record / PROCESS) in str(caught.value)


@pytest.mark.parametrize("name", [SIGNALS, SUBSCRIPTIONS])
def test_a_file_with_damaged_pages_is_named(record: Path, name: str) -> None:
    """Its begin and its end are whole, so it shows only when the pages are read."""
    content = bytearray((record / name).read_bytes())
    group = pq.read_metadata(record / name).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    for at in range(4, max(column.data_page_offset for column in columns)):
        content[at] ^= 0xFF
    (record / name).write_bytes(content)
    files_of(record)
    with pytest.raises(UsageError, match="cannot be read: ") as caught:
        audit(None, record)
    assert str(caught.value).startswith(f"{record / name} ")


@pytest.mark.parametrize(("name", "column"), [(SIGNALS, "n"), (SUBSCRIPTIONS, "subscription")])
def test_a_file_with_missing_values_is_named(record: Path, name: str, column: str) -> None:
    """A recorder writes a number in each place."""
    rows = pq.read_table(record / name)
    changed = [{**row, column: None} if at == 2 else row for at, row in enumerate(rows.to_pylist())]
    pq.write_table(pa.Table.from_pylist(changed, schema=rows.schema), record / name)
    with pytest.raises(UsageError, match=f"values of the column {column} are missing") as caught:
        audit(None, record)
    assert str(caught.value).startswith(f"{record / name} ")


def test_a_file_that_is_gone_when_it_is_looked_at_is_named(
    record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only suspects are read a second time."""
    trace = Trace(process=2)
    trace.add([Signal(ON_SUBSCRIBE), Signal(ON_NEXT, 1)])
    [file] = trace.write(record, Random(1), groups=1)

    def run(work: Any, function: Any, types: str, what: str) -> Any:
        table = run_here(work, function, types, what)
        Path(file).unlink(missing_ok=True)
        return table

    monkeypatch.setattr(_audit, "SparkRun", lambda spark, progress: run)
    with pytest.raises(UsageError, match="is not there: it was removed while the audit ran"):
        audit(None, record)


def test_a_copy_of_the_file_of_a_process_counts_once(record: Path) -> None:
    """The one with the end is the last one."""
    (record / "process-copy.json").write_bytes((record / PROCESS).read_bytes())
    tell_process(record, rows=10, ended=None)
    assert audit(None, record)["lost"]["total"] == 0
    facts = json.loads((record / PROCESS).read_text())
    (record / "process-copy.json").write_text(json.dumps({**facts, "pid": 2}))
    with pytest.raises(
        UsageError,
        match=r"process-0000000000000001\.json and .*: these are two recordings with the same process number",
    ):
        files_of(record)


def test_two_names_of_one_subscription_are_two_recordings(record: Path) -> None:
    """A copy is not another recording."""
    (record / "subscriptions-copy.parquet").write_bytes((record / SUBSCRIPTIONS).read_bytes())
    assert audit(None, record)["subscriptions"] == 50
    tell_subscriptions(record, Trace(streams={1: []}), publisher="other")
    with pytest.raises(
        UsageError,
        match="process 0000000000000001, subscription 1, in two ways: these are two recordings",
    ):
        audit(None, record)
