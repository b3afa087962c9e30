"""`penstock audit` runs the job, and prints what it found."""

import json
from pathlib import Path
from typing import Any

import pytest
from penstock_spark import _command

from penstock.api import UsageError
from penstock.cli import main

SOUND: dict[str, Any] = {
    "rows": 1_000,
    "subscriptions": 2,
    "elements": 5_000,
    "bytes": 40_000,
    "unterminated": {"subscriptions": 1},
    "lost": {
        "total": 7,
        "rows": 3,
        "rows_not_here": 3,
        "dropped_by_recorders": 4,
        "processes": [{"process": "a (x.py, pid 1 on here)", "rows_not_here": 3}],
        "unended": {"processes": 4, "first": ["a\x1b", "b", "c", "d"]},
    },
    "violations": {},
}
BROKEN = {
    **SOUND,
    "lost": {"total": 0, "rows": 0, "rows_not_here": 0, "unended": {"processes": 0, "first": []}},
    "violations": {
        "1.1": {
            "text": "more elements than were requested",
            "subscriptions": 1,
            "rows": 2,
            "first": [{"publisher": "ticks\x1b", "subscription": 7, "seq": 9}],
        }
    },
}


class _Session:
    stopped = 0

    def stop(self) -> None:
        _Session.stopped += 1


def _install(monkeypatch: pytest.MonkeyPatch, report: dict[str, Any] | Exception) -> None:
    """Let the command find a report, without Spark."""

    class Audit:
        violations: tuple[dict[str, Any], ...] = ()

        def __init__(self, session: object, folder: str, *, stall_seconds: float, progress: Any):
            progress("reading", 1, 2)
            progress("reading", 2, 2)

        def update(self) -> dict[str, Any]:
            if isinstance(report, Exception):
                raise report
            return report

    monkeypatch.setattr(_command, "session", lambda master, **_: _Session())
    monkeypatch.setattr(_command, "files_of", lambda folder: [])
    monkeypatch.setattr(_command, "Audit", Audit)
    monkeypatch.setattr(_command, "page_of", lambda report, title: f"<h1>{title}</h1>")
    _Session.stopped = 0


def test_a_sound_record_has_status_0_and_its_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The summary is on standard output, the progress on standard error,
    and the session is stopped.
    """
    _install(monkeypatch, SOUND)
    assert (
        main(
            [
                "audit",
                str(tmp_path),
                "--html",
                str(tmp_path / "r.html"),
                "--json",
                str(tmp_path / "r.json"),
            ]
        )
        == 0
    )
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "1,000 rows of 2 subscriptions: 5,000 elements, 40,000 bytes",
        "1 streams without an end, 7 lost rows",
        "3 rows were written and are not here: a (x.py, pid 1 on here)",
        "4 processes did not end, and the last rows may be missing: a\\x1b, b, c, …",
        "no violations",
    ]
    assert err == "starting Spark\n"  # a line each five seconds, without a terminal
    assert (tmp_path / "r.html").read_text() == f"<h1>{tmp_path}</h1>"
    assert json.loads((tmp_path / "r.json").read_text()) == SOUND
    assert _Session.stopped == 1


def test_a_violation_has_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first one is named; a control character of a peer is escaped."""
    _install(monkeypatch, BROKEN)
    assert main(["audit", str(tmp_path), "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[2:] == [
        "rule 1.1: more elements than were requested: 1 subscriptions, 2 rows",
        "  first: ticks\\x1b, subscription 7, row 9",
    ]
    assert err == ""


def test_mistakes_have_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder without a record, a report that cannot be written, and a missing package;
    each with what to do.
    """
    _install(monkeypatch, UsageError("there are no recorded signals in here"))
    assert main(["audit", str(tmp_path), "--quiet"]) == 2
    assert capsys.readouterr().err == "penstock audit: there are no recorded signals in here\n"
    assert _Session.stopped == 1
    _install(monkeypatch, SOUND)
    assert main(["audit", str(tmp_path), "--quiet", "--json", str(tmp_path / "no" / "r.json")]) == 2
    assert "the report cannot be written" in capsys.readouterr().err
