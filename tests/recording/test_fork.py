"""A process that is forked records as another process, and leaves the files of its parent alone."""

import json
import logging
import subprocess
import sys
from multiprocessing import util
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.api import SignalKind
from penstock.recording import Recorder, _recorder
from tests._real_time import HANGS_AFTER
from tests.recording._record import rows_of

IN_CHILD = """
import os
import sys
import time
from penstock.recording import Recorder, _writer_thread

_writer_thread.INTERVAL, _writer_thread.GROUP_ROWS = 0.001, 1
folder = sys.argv[1]
recorder = Recorder(folder)


def row(tap):
    tap.record(2, 1, 0, 1, 2, 3)


tap = recorder.tap("before")
row(tap)
while recorder._files._writer is None:  # the parent's file is open at the fork
    time.sleep(0.001)
child = os.fork()
if child == 0:
    row(recorder.tap("in the child"))
    row(tap)
    # The interpreter ends as usual, and destroys what it has.
    sys.exit()
_, status = os.waitpid(child, 0)
row(recorder.tap("behind"))
recorder.close()
sys.exit(status)
"""

OF_MULTIPROCESSING = """
import multiprocessing
import sys
from penstock.recording import Recorder


def work():
    recorder.tap("x").record(2, 1, 0, 1, 2, 3)


recorder = Recorder(sys.argv[1])
worker = multiprocessing.get_context("fork").Process(target=work)
worker.start()
worker.join()
"""


def _run(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=True,
    )
    return done.stderr


def _facts(folder: Path) -> dict[int, dict[str, int]]:
    return {
        facts["process"]: facts
        for facts in (json.loads(path.read_text()) for path in folder.glob("process-*.json"))
    }


def _names(folder: Path) -> dict[tuple[int, int], str]:
    rows = [
        row
        for path in folder.glob("subscriptions-*.parquet")
        for row in pq.read_table(path).to_pylist()
    ]
    return {(row["process"], row["subscription"]): row["publisher"] for row in rows}


def test_both_sides_of_a_fork_record_in_files_of_their_own(tmp_path: Path) -> None:
    """The parent's file is whole, and the child's rows are in another one. The row of the
    parent's stream is counted, and told.
    """
    told = _run(IN_CHILD, tmp_path)
    names = _names(tmp_path)
    rows = [
        (row["process"], names[row["process"], row["subscription"]], row["seq"])
        for row in rows_of(tmp_path)
    ]
    of_child, of_parent = sorted(_facts(tmp_path).values(), key=lambda facts: facts["rows"])
    assert sorted(rows) == sorted(
        [
            (of_parent["process"], "before", 0),
            (of_parent["process"], "behind", 0),
            (of_child["process"], "in the child", 0),
        ]
    )
    assert (of_parent["rows"], of_parent["dropped"]) == (2, 0)
    assert (of_child["rows"], of_child["dropped"]) == (1, 1)
    assert of_child["pid"] != of_parent["pid"]
    assert told.count("Streams that were open then are not recorded here") == 1
    assert not list(tmp_path.glob("*.part"))


def test_a_process_of_multiprocessing_writes_its_last_rows(tmp_path: Path) -> None:
    """It ends without what the interpreter does at its end."""
    assert _run(OF_MULTIPROCESSING, tmp_path) == ""
    assert len(rows_of(tmp_path)) == 1
    (facts,) = _facts(tmp_path).values()
    assert facts["ended"] is not None


@pytest.mark.parametrize("uses_multiprocessing", [False, True])
def test_a_recorder_begins_anew_in_a_forked_process(
    tmp_path: Path,
    stopped: None,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    *,
    uses_multiprocessing: bool,
) -> None:
    """The test does the work of the child, without a fork.
    Rows of the parent's stream start the thread, which counts them.
    """
    if uses_multiprocessing:
        monkeypatch.setitem(sys.modules, "multiprocessing.util", util)
    else:
        monkeypatch.delitem(sys.modules, "multiprocessing.util", raising=False)
    caplog.set_level(logging.WARNING)
    recorder = Recorder(tmp_path)
    idle = Recorder(tmp_path / "idle")
    tap = recorder.tap("before")
    assert tap is not None
    tap.record(SignalKind.REQUEST, 1, 0, 1, 2, 3)
    parent, number = recorder._thread, recorder.process
    assert parent is not None
    parent.stop()
    tap.record(SignalKind.REQUEST, 1, 0, 1, 2, 3)  # the parent's: it waits at the fork
    _recorder._after_fork()
    assert recorder.process != number
    for _ in range(3):
        tap.record(SignalKind.REQUEST, 1, 0, 1, 2, 3)
    recorder.close()
    facts = _facts(tmp_path)
    assert (facts[number]["rows"], facts[number]["dropped"]) == (1, 0)
    assert (facts[recorder.process]["rows"], facts[recorder.process]["dropped"]) == (0, 3)
    assert len(caplog.records) == 1
    idle.close()
    assert not idle.folder.exists()
