"""`penstock log`: the file of a log, checked, exported, salvaged and backed up."""

import base64
import json
import sqlite3
from pathlib import Path

import pytest
import trio

from campaigns.crashes._damage import closed_log
from penstock.cli import main
from penstock.logs import DiskLog, Retention
from tests.logs._opening import PLENTY, numbered


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A closed log with three groups, of the elements 0, 20 and 70."""
    return trio.run(closed_log, tmp_path)


def _damage(path: Path, key: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE groups SET size = size + 1 WHERE key = ?", (key,))
    connection.execute("VACUUM")  # or the group would be found where it was before
    connection.close()


def test_a_check_counts_what_is_whole(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In one line, with status 0."""
    assert main(["log", "check", str(log)]) == 0
    out = capfd.readouterr().out
    assert out == f"{log} is whole: 100 elements\n"


async def test_a_check_lists_readers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And how far they have acknowledged; one that was dropped is marked."""
    path = tmp_path / "orders.log"
    retention = Retention(max_count=80, acknowledged=True)
    async with DiskLog(path, retention=retention, partitions=["east", "west"]) as log:
        reader = await log.add_reader("nightly", max_count=20)
        await log.append(numbered(0, 30), partition="west")
        await reader.acknowledge({"west": 5})
    assert await trio.to_thread.run_sync(main, ["log", "check", str(path)]) == 0
    assert capfd.readouterr().out.splitlines()[1:] == [
        "reader 'nightly' has acknowledged partition 'east' up to 0",
        "reader 'nightly' has acknowledged partition 'west' up to 5, and was dropped",
    ]


def test_a_check_names_damage(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The first fault, each lost position, and the command that copies the rest."""
    _damage(log, 20)
    assert main(["log", "check", str(log)]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert "the elements of partition '0' from 20 on were changed" in lines[0]
    assert lines[1] == "partition '0' has lost the elements from 20 up to, and not with, 70"
    assert lines[2] == (
        f"50 elements can be read, and `penstock log salvage {log} NEW` copies them"
    )


async def test_a_check_of_a_damaged_log_that_is_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its pages change, so only the fault is told, and what to do."""
    async with DiskLog(tmp_path / "a.log", retention=PLENTY) as log:
        for start in range(0, 30, 10):
            await log.append(numbered(start, start + 10))
        log._opened.store._connection.execute("DELETE FROM groups WHERE key = 10")
        status = await trio.to_thread.run_sync(main, ["log", "check", str(tmp_path / "a.log")])
    lines = capfd.readouterr().out.splitlines()
    assert status == 1
    assert "lacks the elements from 10 on" in lines[0]
    assert lines[1].startswith("close the log where it is written")


def test_an_export_has_positions(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A line of JSON for each element; a range of it."""
    assert main(["log", "export", str(log)]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["text"].encode() for line in lines] == numbered(0, 100)
    assert [line["position"] for line in lines] == list(range(100))
    assert {line["partition"] for line in lines} == {"0"}
    assert main(["log", "export", str(log), "--start", "95", "--stop", "97"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["position"] for line in lines] == [95, 96]


def test_an_export_keeps_bytes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Elements that are not text are in base64, and each partition follows the one before it."""
    path = tmp_path / "a.log"

    async def write() -> None:
        async with DiskLog(path, retention=PLENTY, partitions=["east", "west"]) as log:
            await log.append([b"\xff\x00", "\u202e\x1b".encode()], partition="west")
            await log.append([b""], partition="east")

    trio.run(write)
    assert main(["log", "export", str(path)]) == 0
    first, second, third = map(json.loads, capfd.readouterr().out.splitlines())
    assert first == {"partition": "east", "position": 0, "text": ""}
    assert base64.b64decode(second["base64"]) == b"\xff\x00"
    assert third == {"partition": "west", "position": 1, "text": "\u202e\x1b"}
    assert main(["log", "export", str(path), "--partition", "north"]) == 1
    assert "the log has no partition 'north'" in capfd.readouterr().err
    assert main(["log", "export", str(path), "--start", "1"]) == 1
    assert "name the partition" in capfd.readouterr().err
    assert main(["log", "export", str(path), "--start", "soon"]) == 1
    assert "--start soon: give a position" in capfd.readouterr().err


@pytest.mark.parametrize("change", ["one group", "the record of the partition"])
def test_an_export_of_a_damaged_log_has_the_rest(
    log: Path, capfd: pytest.CaptureFixture[str], change: str
) -> None:
    """Standard error names the lost elements, and the status is 1."""
    _damage(log, 20)
    if change != "one group":
        connection = sqlite3.connect(log, isolation_level=None)
        connection.execute("UPDATE partitions SET earliest = 7")
        connection.close()
    assert main(["log", "export", str(log)]) == 1
    captured = capfd.readouterr()
    positions = [json.loads(line)["position"] for line in captured.out.splitlines()]
    assert positions == [*range(20), *range(70, 100)]
    assert captured.err == (
        "penstock: partition '0' has lost the elements from 20 up to, and not with, 70\n"
    )
    assert main(["log", "export", str(log), "--start", "30", "--stop", "72"]) == 1
    captured = capfd.readouterr()
    positions = [json.loads(line)["position"] for line in captured.out.splitlines()]
    assert positions == [70, 71]
    assert "from 30 up to, and not with, 70" in captured.err


def test_a_log_without_its_first_page_is_exported(
    log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As it is checked and salvaged, also if only this file of the log is left."""
    copy = tmp_path / "copy.log"
    data = log.read_bytes()
    copy.write_bytes(bytes(4096) + data[4096:])
    assert main(["log", "export", str(copy)]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [json.loads(line)["position"] for line in lines] == list(range(100))


def test_a_salvage_prints_what_was_lost(
    log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The new log is whole, and a check of it names the loss."""
    _damage(log, 20)
    connection = sqlite3.connect(log, isolation_level=None)
    connection.execute("UPDATE transactions SET id = 'b'")
    connection.close()
    new = tmp_path / "new.log"
    assert main(["log", "salvage", str(log), str(new)]) == 0
    assert capfd.readouterr().out.splitlines() == [
        "partition '0' has lost the elements from 20 up to, and not with, 70",
        "ids of published transactions that are lost, and could be published again: 1",
        f"{new}: a log with what can be read of {log}; 50 elements lost",
    ]
    assert main(["log", "check", str(new)]) == 0
    assert "from 20 up to, and not with, 70, before the log was salvaged" in capfd.readouterr().out


def test_a_salvage_without_the_wal_says_that_it_is_missing(
    log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing in the file tells how many elements were in it."""
    connection = sqlite3.connect(log, isolation_level=None)
    connection.execute("UPDATE state SET is_open = 1")
    connection.close()
    for left in tmp_path.glob(f"{log.name}-[ws]*"):
        left.unlink()
    assert main(["log", "salvage", str(log), str(tmp_path / "new.log")]) == 0
    assert "the newest elements are in that file" in capfd.readouterr().out


def test_a_backup_is_a_log(log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed. A second one does not overwrite the first."""
    new = tmp_path / "new.log"
    assert main(["log", "backup", str(log), str(new)]) == 0
    assert main(["log", "check", str(new)]) == 0
    assert "100 elements" in capfd.readouterr().out
    assert main(["log", "backup", str(log), str(new)]) == 1
    assert "exists already: give a new path" in capfd.readouterr().err


@pytest.mark.parametrize("action", ["check", "export", "salvage", "backup"])
def test_a_file_that_is_no_log_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], action: str
) -> None:
    """In one line, without a traceback."""
    text = tmp_path / "notes.txt"
    text.write_text("These are notes.")
    new = [str(tmp_path / "new")] if action in ("salvage", "backup") else []
    assert main(["log", action, str(text), *new]) == 1
    assert "is no log: it is a file that begins with b'These are notes.'" in capfd.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]
