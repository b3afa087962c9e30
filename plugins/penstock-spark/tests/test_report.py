"""The report counts everything, lists the first of each kind, and has a page."""

import json
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
    run_here,
    sound,
    tell_process,
)
from penstock_spark.audit import FINDINGS, RULES, _audit, audit, page_of

from penstock.api import UsageError


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is done in this process."""
    monkeypatch.setattr(_audit, "SparkRun", lambda spark, progress: run_here)


def _report(folder: Path, trace: Trace, **options: Any) -> dict[str, Any]:
    trace.write(folder, Random(2))
    return audit(None, folder, **options)


def test_a_report_counts_rows_elements_losses_and_open_streams(tmp_path: Path) -> None:
    """Of one sound stream, one without an end, one with a lost row, and one
    that breaches two rules.
    """
    trace = Trace()
    trace.add([Signal(ON_SUBSCRIBE), Signal(REQUEST, 5), Signal(ON_NEXT, 5), Signal(ON_COMPLETE)])
    trace.add([Signal(ON_SUBSCRIBE), Signal(REQUEST, 5)])
    trace.add(
        [Signal(ON_SUBSCRIBE), Signal(REQUEST, 5), Signal(ON_NEXT, 5), Signal(CANCEL)], drop=[1]
    )
    trace.add([Signal(ON_SUBSCRIBE), Signal(ON_NEXT, 2), Signal(ON_COMPLETE), Signal(ON_NEXT, 1)])
    report = _report(tmp_path, trace)
    assert (report["rows"], report["subscriptions"], report["elements"], report["bytes"]) == (
        13,
        4,
        13,
        104,
    )
    assert report["unterminated"]["subscriptions"] == 1
    assert report["unterminated"]["first"][0]["subscription"] == 2
    assert report["lost"]["rows"] == 1
    assert (
        report["lost"]["first"][0]["subscription"],
        report["lost"]["first"][0]["before_seq"],
    ) == (3, 2)
    assert {
        rule: (found["subscriptions"], found["rows"])
        for rule, found in report["violations"].items()
    } == {"1.1": (1, 2), "1.7": (1, 1)}
    assert report["violations"]["1.7"]["first"][0]["transcript"][-1] == "> 3 on_next x1"
    assert json.loads(json.dumps(report)) == report


def test_a_file_that_is_there_twice_is_told_and_judged_once(tmp_path: Path) -> None:
    """A copy breaches no rule: its on_subscribe is not a second one.
    Sorted otherwise, it is the same.
    """
    trace = Trace()
    for _ in range(20):
        trace.add(
            [Signal(ON_SUBSCRIBE), Signal(REQUEST, 5), Signal(ON_NEXT, 5), Signal(ON_COMPLETE)]
        )
    files = trace.write(tmp_path, Random(2), groups=1)
    alone = audit(None, tmp_path)
    (tmp_path / "signals-copy-000001.parquet").write_bytes(Path(files[0]).read_bytes())
    report = audit(None, tmp_path)
    assert (report["lost"]["rows_twice"], report["violations"], report["rows"]) == (
        80,
        {},
        alone["rows"],
    )
    assert "Remove the copy" in report["lost"]["advice"][0]
    assert "Remove the copy" in page_of(report, "x")
    assert alone["lost"]["advice"] == []


@pytest.mark.parametrize("groups", [1, 2])
def test_rows_that_came_again_are_told_and_judged_once(tmp_path: Path, groups: int) -> None:
    """A part of a file was copied, into the same row group or into another one. No row is
    missing, and nothing is breached.
    """
    trace = Trace()
    for _ in range(3):
        trace.add(
            [
                Signal(ON_SUBSCRIBE),
                *[Signal(REQUEST, 5), Signal(ON_NEXT, 5)] * 5,
                Signal(ON_COMPLETE),
            ]
        )
    [file] = trace.write(tmp_path, Random(2), groups=1)
    table = pq.read_table(file).sort_by([("subscription", "ascending"), ("seq", "ascending")])
    # The begin of one, and the end of it with the begin of another.
    again = pa.concat_tables([table, table.slice(0, 3), table.slice(8, 9)])
    pq.write_table(again, file, row_group_size=len(again) if groups == 1 else len(table))
    report = audit(None, tmp_path)
    assert (
        report["rows"],
        report["lost"]["rows"],
        report["lost"]["rows_twice"],
        report["violations"],
    ) == (36, 0, 12, {})


def test_missing_rows_are_told_with_what_to_do(tmp_path: Path) -> None:
    """The recorder dropped them, or a file is not there."""
    trace = Trace()
    trace.add(
        [Signal(ON_SUBSCRIBE), Signal(REQUEST, 5), Signal(ON_NEXT, 5), Signal(CANCEL)], drop=[1]
    )
    assert "max_rows" in _report(tmp_path, trace)["lost"]["advice"][0]


def test_rows_that_a_process_wrote_and_that_are_not_here_are_counted(tmp_path: Path) -> None:
    """A file is missing. Rows in a gap are counted by their process already, so they count once."""
    trace = Trace()
    trace.add(
        [Signal(ON_SUBSCRIBE), Signal(REQUEST, 5), Signal(ON_NEXT, 5), Signal(CANCEL)], drop=[1]
    )
    tell_process(tmp_path, rows=7_000, dropped=1)
    report = _report(tmp_path, trace)
    lost = report["lost"]
    assert (lost["total"], lost["rows"], lost["rows_not_here"], lost["dropped_by_recorders"]) == (
        6_998,
        1,
        6_997,
        1,
    )
    assert lost["processes"] == [
        {"process": "0000000000000001 (play.py, pid 7 on here)", "rows_not_here": 6_997}
    ]
    assert any(
        "a file of signals was removed, or was not copied" in text for text in lost["advice"]
    )
    assert "6,997" in page_of(report, "x")


def test_a_gap_without_the_file_of_its_process_is_counted(tmp_path: Path) -> None:
    """Its number in the stream shows it."""
    trace = Trace()
    trace.add(
        [Signal(ON_SUBSCRIBE), Signal(REQUEST, 5), Signal(ON_NEXT, 5), Signal(CANCEL)], drop=[1]
    )
    assert _report(tmp_path, trace)["lost"]["total"] == 1


def test_a_process_that_did_not_end_is_named(tmp_path: Path) -> None:
    """It may have written a file after its last count, so more rows are not a fault."""
    trace = Trace()
    trace.add([Signal(ON_SUBSCRIBE), Signal(REQUEST, 5)])
    tell_process(tmp_path, rows=1, ended=None)
    report = _report(tmp_path, trace)
    assert report["lost"]["unended"] == {
        "processes": 1,
        "first": ["0000000000000001 (play.py, pid 7 on here)"],
    }
    assert report["lost"]["total"] == 0
    (advice,) = report["lost"]["advice"]
    assert "rotate_seconds (60 by default)" in advice
    assert "1 process did not end: 0000000000000001 (play.py, pid 7 on here)" in page_of(
        report, "x"
    )


def test_more_rows_than_an_ended_process_wrote_are_told(tmp_path: Path) -> None:
    """Two recordings with one number, which have no row in common."""
    trace = Trace()
    trace.add([Signal(ON_SUBSCRIBE), Signal(REQUEST, 5)])
    tell_process(tmp_path, rows=1)
    (advice,) = _report(tmp_path, trace)["lost"]["advice"]
    assert "two recordings with the same process number" in advice


@pytest.mark.parametrize(
    ("rows", "ended", "text"),
    [
        (0, None, r"1 process did not end: .* 0000000000000001 \(play\.py, pid 7 on here\)$"),
        (700, 2, "Processes wrote 700 rows here, and their files are gone"),
        (0, 2, "Record some with: penstock record"),
    ],
)
def test_a_folder_with_processes_alone_tells_what_became_of_them(
    tmp_path: Path, rows: int, ended: int | None, text: str
) -> None:
    """They were killed, or their files were removed."""
    tell_process(tmp_path, rows=rows, ended=ended)
    with pytest.raises(UsageError, match=text):
        audit(None, tmp_path)


def test_many_processes_that_did_not_end_are_named_in_part(tmp_path: Path) -> None:
    """The message stays short."""
    for process in range(1, 6):
        tell_process(tmp_path, process=process, rows=0, ended=None)
    with pytest.raises(
        UsageError,
        match=r"5 processes did not end: .*0000000000000003 \(play.py, pid 7 on here\), …$",
    ):
        audit(None, tmp_path)


def test_waits_and_stalls_are_told_by_side(tmp_path: Path) -> None:
    """The rows of these traces are a microsecond apart."""
    trace = Trace()
    for _ in range(10):
        trace.add(
            [
                Signal(ON_SUBSCRIBE),
                Signal(REQUEST, 5),
                Signal(ON_NEXT, 2),
                Signal(ON_NEXT, 2),
                Signal(CANCEL),
            ]
        )
    report = _report(tmp_path, trace, stall_seconds=1e-6)
    waits = report["waits"]
    assert waits["publisher"]["count"] + waits["subscriber"]["count"] <= 40
    assert waits["publisher"]["count"] > 0
    assert waits["publisher"]["seconds_at_percent"]["50"] == pytest.approx(1.024e-6)
    assert report["stalls"]["of_publishers"] == waits["publisher"]["count"]
    assert report["stalls"]["of_subscribers"] == waits["subscriber"]["count"]
    assert 0 < report["demand_utilisation"] < 1
    (publisher,) = report["publishers"]
    assert (publisher["publisher"], publisher["subscriptions"], publisher["elements"]) == (
        "unknown",
        10,
        40,
    )


def test_the_page_shows_the_verdict_and_escapes_what_peers_chose(tmp_path: Path) -> None:
    """A publisher's name is a peer's text."""
    trace = Trace()
    trace.add([Signal(ON_SUBSCRIBE), Signal(ON_NEXT, 2)])
    report = _report(tmp_path, trace)
    report["violations"]["1.1"]["first"][0]["publisher"] = "<script>"
    page = page_of(report, "<title>")
    assert "1 violations." in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "Rule 1.1: more elements than were requested" in page
    for rule in RULES:
        assert f"<td>{rule.number}</td>" in page


def test_a_sound_record_has_a_page_without_violations(tmp_path: Path) -> None:
    """And a plot for both waits."""
    trace, random = Trace(), Random(1)
    for _ in range(20):
        trace.add(sound(random, 20))
    page = page_of(_report(tmp_path, trace), "x")
    assert "No violations." in page
    assert page.count("<svg") == 2


def test_every_finding_is_a_rule_that_a_trace_shows() -> None:
    """The table of rules says which are judged."""
    assert set(FINDINGS) <= {rule.number for rule in RULES if rule.is_shown}


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        (None, b"", "there are no recorded signals in"),
        ("signals-1.parquet.part", b"", "1 files of processes that still run or were killed"),
        ("signals-1.parquet", b"no parquet", "cannot be read"),
        ("process-1.json", b"{", "cannot be read"),
        ("process-1.json", b'{"version": 99}', "install a newer one"),
    ],
)
def test_a_folder_that_cannot_be_judged_is_told(
    tmp_path: Path, name: str | None, content: bytes, text: str
) -> None:
    """With what to do."""
    if name is not None:
        if name.startswith("process"):
            trace = Trace()
            trace.add([Signal(ON_SUBSCRIBE)])
            trace.write(tmp_path, Random(1))
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=text):
        audit(None, tmp_path)


def test_a_stall_has_a_length(tmp_path: Path) -> None:
    """Zero would count every wait."""
    with pytest.raises(UsageError, match="stall_seconds"):
        audit(None, tmp_path, stall_seconds=0)


def test_the_page_has_the_table_of_rules() -> None:
    """A how-to page repeats it for readers without a report."""
    page = (Path(__file__).parents[3] / "docs/how-to/audit.md").read_text(encoding="utf-8")
    rows = [
        f"| {rule.number} | {rule.text} | {'yes' if rule.is_shown else 'no'} | {rule.how} |"
        for rule in RULES
    ]
    assert "\n".join(rows) in page
