"""Files of a log that were cut, changed or lost:
whole elements, or an error that says what to do, and never other elements.

The default run takes a part of the places. `nox -s crashes` takes each byte and each bit:
`python -m campaigns crashes`.
"""

import sqlite3
from pathlib import Path

import pytest

from campaigns.crashes._damage import (
    APPENDS,
    Outcome,
    closed_log,
    crashed_log,
    cut_outcomes,
    flip_outcomes,
    last_commit_of,
    reopened,
)
from penstock.api import LogDamaged
from penstock.logs import DiskLog, Retention, check_file
from penstock.streams import collect
from tests.logs._opening import PLENTY, numbered


async def test_a_cut_in_the_last_commit_loses_that_commit_or_nothing(tmp_path: Path) -> None:
    """PATH-wal that ends in the middle of its last commit: the commits before it are whole, and
    no part of the last one is served.
    """
    crashed = await crashed_log(tmp_path)
    begin, end = last_commit_of(crashed)
    lengths = [begin, begin + 1, *range(begin + 2, end - 1, 1_499), end - 1]
    outcomes = await cut_outcomes(crashed, tmp_path / "cut.log", lengths)
    assert set(outcomes) == {Outcome.WITHOUT_THE_LAST}
    assert await cut_outcomes(crashed, tmp_path / "whole.log", [end]) == [Outcome.WHOLE]


async def test_a_changed_bit_in_the_last_commit_loses_that_commit_or_nothing(
    tmp_path: Path,
) -> None:
    """A bit of the last commit in PATH-wal that was changed by a crash:
    that commit is not served.
    """
    crashed = await crashed_log(tmp_path)
    begin, end = last_commit_of(crashed)
    outcomes = await flip_outcomes(
        crashed, tmp_path / "flipped.log", "-wal", range(begin * 8 + 3, end * 8, 6_007)
    )
    assert set(outcomes) <= {Outcome.WITHOUT_THE_LAST, Outcome.WHOLE}
    assert Outcome.WITHOUT_THE_LAST in outcomes


async def test_a_changed_bit_in_the_main_file_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    """A bit of a closed log: all elements are there, or an error names the damage.
    None is missing without an error.
    """
    closed = await closed_log(tmp_path)
    bits = closed.stat().st_size * 8
    outcomes = await flip_outcomes(closed, tmp_path / "flipped.log", "", range(5, bits, bits // 60))
    assert set(outcomes) <= {Outcome.REFUSED, Outcome.WHOLE}
    assert Outcome.REFUSED in outcomes


async def test_each_changed_bit_of_an_element_is_noticed(tmp_path: Path) -> None:
    """The checksum of its group does not fit any more."""
    closed = await closed_log(tmp_path)
    place = closed.read_bytes().index(APPENDS[-1][-1])
    outcomes = await flip_outcomes(
        closed, tmp_path / "flipped.log", "", range(place * 8, (place + 3) * 8)
    )
    assert set(outcomes) == {Outcome.REFUSED}


async def test_a_damaged_group_does_not_keep_the_others_from_being_read(tmp_path: Path) -> None:
    """A source that starts behind the damage hands over its elements; one that reads it fails
    and names the first position.
    """
    closed = await closed_log(tmp_path)
    data = bytearray(closed.read_bytes())
    data[data.index(APPENDS[0][-1])] ^= 1
    closed.write_bytes(data)
    assert await reopened(closed) == Outcome.REFUSED
    async with DiskLog(closed, retention=PLENTY) as log:
        assert await _collected(log, len(APPENDS[0])) == [
            element for append in APPENDS[1:] for element in append
        ]
        with pytest.raises(
            LogDamaged,
            match=r"partition '0' from 0 on were changed\. Put back closed\.log, closed\.log-wal",
        ):
            await _collected(log, 0)


async def _collected(log: DiskLog, start: int) -> list[bytes]:
    return await collect(log.source("0", start, "latest"))


async def test_a_main_file_that_was_cut_is_refused(tmp_path: Path) -> None:
    """A closed log without its last page, or without half of it."""
    closed = await closed_log(tmp_path)
    size = closed.stat().st_size
    for length in (size - 1, size - 4_096, size // 2, 100, 1):
        copy = tmp_path / f"cut to {length}.log"
        copy.write_bytes(closed.read_bytes()[:length])
        assert await reopened(copy) == Outcome.REFUSED, length


async def test_a_missing_main_file_is_no_empty_log(tmp_path: Path) -> None:
    """The message names the missing file and the existing one."""
    closed = await closed_log(tmp_path)
    closed.unlink()
    with pytest.raises(
        LogDamaged,
        match=r"closed\.log is missing, and closed\.log-lock beside it .* delete closed\.log-lock to begin",
    ):
        await _open(closed)
    (tmp_path / "closed.log-lock").unlink()
    await _open(closed)


async def test_a_missing_wal_is_noticed_and_can_be_accepted(tmp_path: Path) -> None:
    """After a crash the newest elements are in PATH-wal.
    Without it the log opens only if the program accepts the loss.
    """
    crashed = await crashed_log(tmp_path)
    crashed.with_name(crashed.name + "-wal").unlink()
    with pytest.raises(LogDamaged, match=r"crashed\.log-wal is missing .* accept_loss=True"):
        await _open(crashed)
    async with DiskLog(crashed, retention=PLENTY, accept_loss=True) as log:
        assert log.latest() == {"0": 0}
        assert await log.append(numbered(0, 1)) == range(1)


async def test_a_file_of_another_program_or_version_is_refused(tmp_path: Path) -> None:
    """Nothing is written to it."""
    for pragma, message in (
        ("application_id = 7", "a database of another program"),
        ("user_version = 9", r"has format 9, .* reads the formats up to 3"),
    ):
        other = await closed_log(tmp_path, name=f"{pragma}.log")
        _change(other, f"PRAGMA {pragma}")
        with pytest.raises(LogDamaged, match=message):
            await _open(other)


async def test_rows_that_another_program_changed_are_refused(tmp_path: Path) -> None:
    """A value of another kind, a lost group, a changed name, a lost transaction:
    each is named when the log is opened, or when the group is read.
    """
    changes = {
        "UPDATE groups SET count = 'many'": "a record was changed",
        "DELETE FROM groups WHERE key = 20": "lacks the elements from 20 on",
        "DELETE FROM groups WHERE key > 20": (
            "ends at 70 in place of 100: its last elements are lost"
        ),
        "UPDATE partitions SET name = '1'": "the record of partition 0 was changed",
        "UPDATE transactions SET id = 'b'": "the record of transaction 0 was changed",
        "DELETE FROM transactions": "it has 1 partitions and 0 transactions, and recorded 1 and 1",
        "DELETE FROM state": "the record of its totals was changed",
        "UPDATE state SET checksum = checksum + 1": "the record of its totals was changed",
        "DROP TABLE groups": "SQLite says: no such table",
    }
    for number, (change, message) in enumerate(changes.items()):
        log = await closed_log(tmp_path, name=f"{number}.log")
        _change(log, change)
        with pytest.raises(LogDamaged, match=message):
            await _read(log)


async def test_the_last_group_is_checked_when_the_log_is_opened(tmp_path: Path) -> None:
    """A crash can tear it, and new elements would follow changed ones."""
    log = await closed_log(tmp_path)
    _change(log, "UPDATE groups SET written = written + 1 WHERE key = 70")
    with pytest.raises(LogDamaged, match="the elements of partition '0' from 70 on were changed"):
        await _open(log)


async def test_a_transaction_that_is_missing_between_others_is_noticed(tmp_path: Path) -> None:
    """The totals fit: only the last number and the number of partitions are in them."""
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        for name in ("a", "b", "c"):
            await log.transaction(name).publish()
    _change(path, "DELETE FROM transactions WHERE id = 'b'")
    with pytest.raises(LogDamaged, match="the record of transaction 2 was changed"):
        await _open(path)


async def _open(path: Path) -> None:
    async with DiskLog(path, retention=Retention(max_count=1_000_000)):
        pass


async def _read(path: Path) -> None:
    async with DiskLog(path, retention=PLENTY) as log:
        await collect(log.source(stop="latest"))


def _change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()


def _first_unused_page(path: Path) -> int:
    """Return where the first page of the list of unused ones stands, from the header of SQLite."""
    return (int.from_bytes(path.read_bytes()[32:36], "big") - 1) * 4096


async def test_a_check_finds_damage_that_no_read_meets(tmp_path: Path) -> None:
    """The list of unused pages: all elements can be read, and the next append fails. The check said
    that such a log is whole.
    """
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=Retention(max_count=80)) as log:
        for _ in range(40):
            await log.append([bytes(3_000)] * 10)
    assert check_file(path).fault is None
    place = _first_unused_page(path)
    assert place > 0
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b"\xff" * 4096)
    checked = check_file(path)
    assert "orders.log is damaged: SQLite says: " in str(checked.fault)
    assert (checked.elements, checked.lost) == (80, [])


async def test_a_damaged_lock_is_told_apart_from_the_log(tmp_path: Path) -> None:
    """It has no elements: its error once asked for a backup of all files."""
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        await log.append([b"x"])
    lock = path.with_name("orders.log-lock")
    lock.write_bytes(b"?" * 4096)
    with pytest.raises(LogDamaged, match=r"orders\.log-lock .* was changed .* delete it while"):
        await _open(path)
    lock.unlink()
    async with DiskLog(path, retention=PLENTY) as log:
        assert await collect(log.source(stop="latest")) == [b"x"]
