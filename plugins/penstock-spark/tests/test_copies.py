"""Rows that came twice are judged once, in any shape of row groups;
rows that only have the same number are refused.
"""

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from _traces import (
    CANCEL,
    ON_COMPLETE,
    ON_NEXT,
    ON_SUBSCRIBE,
    REQUEST,
    Signal,
    Trace,
    mutated,
    run_here,
    sound,
)
from penstock_spark.audit import _audit, audit

from penstock.api import UsageError

GOOD = [
    Signal(ON_SUBSCRIBE),
    Signal(REQUEST, 10),
    Signal(ON_NEXT, 10),
    Signal(REQUEST, 5),
    Signal(ON_NEXT, 3),
    Signal(ON_NEXT, 2),
]
BAD = [
    Signal(ON_SUBSCRIBE),
    Signal(REQUEST, 10),
    Signal(ON_NEXT, 11),
    Signal(ON_COMPLETE),
    Signal(ON_NEXT, 1),
]


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is done in this process."""
    monkeypatch.setattr(_audit, "SparkRun", lambda spark, progress: run_here)


def _table(folder: Path, signals: list[Signal], process: int = 1) -> pa.Table:
    """Return the rows of one subscription, in their order."""
    trace = Trace(process=process)
    trace.add(signals)
    [file] = trace.write(folder / "whole", Random(1), groups=1)
    return pq.read_table(file).sort_by("seq")


def _write(folder: Path, table: pa.Table, group: int, name: str = "signals-1.parquet") -> Path:
    pq.write_table(table, folder / name, row_group_size=group)
    return folder / name


@pytest.mark.parametrize(
    ("order", "group"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 2, 3], 3),
        ([0, 1, 2, 3, 4, 5, 6, 3, 4], 7),
        ([0, 1, 2, 3, 4, 5, 6, 3, 4], 9),
        ([0, 1, 2, 2, 3, 4, 5, 6], 4),
        ([0, 1, 2, 2, 3, 4, 5, 6], 3),
        ([0, 1, 1, 2, 3, 4, 5, 6], 8),
        ([0, 1, 2, 3, 3, 4, 4, 5, 6], 2),
        ([6, 5, 4, 3, 2, 1, 0, 6, 0], 2),
        ([0, 1, 2, 5, 6, 1, 2, 3, 4, 5, 6], 5),
    ],
)
def test_a_part_that_came_again_does_not_change_the_figures(
    tmp_path: Path, order: list[int], group: int
) -> None:
    """Its row groups may overlap the others only partly. The waits are also counted once: six at
    most.
    """
    rows = _table(tmp_path, [*GOOD, Signal(ON_COMPLETE)])
    _write(tmp_path, rows.take(order), group)
    report = audit(None, tmp_path)
    assert (report["rows"], report["elements"], report["violations"]) == (7, 15, {})
    assert (report["lost"]["rows"], report["lost"]["first"], report["lost"]["rows_twice"]) == (
        0,
        [],
        len(order) - 7,
    )
    assert sum(report["waits"][side]["count"] for side in report["waits"]) <= 6


def test_a_copy_of_the_whole_folder_leaves_the_waits(tmp_path: Path) -> None:
    """Each wait is counted once."""
    rows = _table(tmp_path, [*GOOD, Signal(CANCEL)])
    _write(tmp_path, rows, 3)
    alone = audit(None, tmp_path)
    _write(tmp_path, rows, 4, "signals-2.parquet")
    twice = audit(None, tmp_path)
    assert sum(twice["waits"][side]["count"] for side in twice["waits"]) <= 6
    assert twice["elements"] == alone["elements"]


def test_a_breach_in_rows_that_came_again_is_told_once(tmp_path: Path) -> None:
    """The first one has its place, and the rows are counted once."""
    rows = _table(tmp_path, BAD)
    _write(tmp_path, pa.concat_tables([rows, rows.slice(2)]), 3)
    found = audit(None, tmp_path)["violations"]
    assert {rule: (each["rows"], each["first"][0]["seq"]) for rule, each in found.items()} == {
        "1.1": (2, 2),
        "1.7": (1, 4),
    }


@pytest.mark.parametrize("seed", range(10))
def test_random_copies_change_nothing(tmp_path: Path, seed: int) -> None:
    """Slices of a record with faults, written again in row groups of any size."""
    random = Random(seed)
    trace = Trace()
    for _ in range(20):
        trace.add(mutated(random, sound(random, 20)))
    [file] = trace.write(tmp_path, random, groups=1)
    table = pq.read_table(file)
    alone = audit(None, tmp_path)
    again = 0
    for number in range(random.randint(1, 4)):
        part = table.slice(random.randrange(len(table)), random.randint(1, 200))
        again += len(part)
        _write(tmp_path, part, random.randint(1, 50), f"signals-copy-{number}.parquet")
    report = audit(None, tmp_path)
    for name in ("rows", "elements", "bytes", "violations", "unterminated", "subscriptions"):
        assert report[name] == alone[name]
    assert (report["lost"]["rows"], report["lost"]["rows_twice"]) == (0, again)


def test_other_rows_with_the_same_numbers_are_refused(tmp_path: Path) -> None:
    """They are not copies: two recordings have the same process number. Both files are named."""
    first = _write(tmp_path, _table(tmp_path, [*GOOD, Signal(ON_COMPLETE)]), 9)
    second = _write(tmp_path, _table(tmp_path, BAD), 9, "signals-2.parquet")
    with pytest.raises(UsageError) as caught:
        audit(None, tmp_path)
    assert str(caught.value) == (
        f"{first} and {second}: the rows 0 to 4 of subscription 1 of process 0000000000000001 are "
        "there twice, and differ: these are two recordings with the same process number. Put each "
        "into a folder of its own, and audit one by one"
    )


@pytest.mark.parametrize("column", ["kind", "n", "size", "first", "last", "longest"])
def test_each_column_tells_a_copy_from_another_row(tmp_path: Path, column: str) -> None:
    """One row of many, in one column, in the same row group or in another one."""
    rows = _table(tmp_path, [*GOOD, Signal(ON_COMPLETE)])
    values: list[Any] = rows[column].to_pylist()
    values[3] += 1
    other = rows.set_column(
        rows.schema.get_field_index(column), column, pa.array(values, rows[column].type)
    )
    for group in (7, 14):
        file = _write(tmp_path, pa.concat_tables([rows, other]), group)
        with pytest.raises(
            UsageError, match="two recordings with the same process number"
        ) as caught:
            audit(None, tmp_path)
        assert str(caught.value).startswith(str(file))
