"""Staged elements in the tables of a log. The tests of `penstock.receive` have the rest."""

from pathlib import Path

import pytest

from penstock.api import LogDamaged
from penstock.logs import Retention
from penstock.logs._disk_files import open_file
from penstock.logs._disk_reader import DiskReader
from penstock.logs._disk_store import DiskStore
from penstock.logs._work import Append, Attempt, Publish, Stage, Staged, Unstage, loads_of
from tests.logs._opening import PLENTY


def _store(path: Path, retention: Retention = PLENTY) -> DiskStore:
    connection, reader = open_file(path, accept_loss=False)
    reader.close()
    store = DiskStore(connection, path, retention, lambda: 1.0)
    store.load(["0", "1"])
    store.mark(is_open=True)
    return store


def _append(partition: int, *elements: bytes) -> Append:
    return Append(partition, elements, sum(map(len, elements)))


def _stage(number: int, *elements: bytes) -> Stage:
    size = sum(map(len, elements))
    return Stage(number, elements, Attempt(number, "orders", "[]", len(elements), size, 9e9))


def _contents(store: DiskStore, partition: int) -> list[bytes]:
    latest, found = store.states[partition].latest, []
    reader = DiskReader(store._connection, store._path)
    while len(found) < latest:
        found += reader.read(partition, "0", len(found), latest, 10_000)
    return found


def test_a_batch_between_two_appends_of_one_commit_has_the_positions_between(
    tmp_path: Path,
) -> None:
    """In each partition; and all of it is there when the log is opened again."""
    store = _store(tmp_path / "log")
    store.commit([_stage(1, b"a", b"bc"), _stage(2, b"d"), _stage(3)])
    batch = Publish(
        "batch",
        (_append(0, b"own"),),
        (Staged(1, 0, 2, 3), Staged(2, 1, 1, 1), Staged(3, 0, 0, 0)),
    )
    results = store.commit([_append(0, b"0"), batch, _append(0, b"9"), _append(1, b"x"), batch])
    assert results == [range(1), True, range(4, 5), range(1, 2), False]
    store.mark(is_open=False)
    store.close()
    store = _store(tmp_path / "log")
    assert _contents(store, 0) == [b"0", b"a", b"bc", b"own", b"9"]
    assert _contents(store, 1) == [b"d", b"x"]
    assert store.states[0].size == 8
    store.check_staged()
    assert store.attempts == []
    store.close()


def test_pieces_that_were_staged_for_another_retention_are_divided_again(tmp_path: Path) -> None:
    """The log was opened with lower bounds since."""
    store = _store(tmp_path / "log")
    store.commit([_stage(1, *[b"%d" % number for number in range(30)])])
    store.mark(is_open=False)
    store.close()
    store = _store(tmp_path / "log", Retention(max_count=40))
    assert store.commit([Publish("batch", (), (Staged(1, 0, 30, 50),))]) == [True]
    sizes = store._connection.execute("SELECT count FROM groups ORDER BY key").fetchall()
    assert sizes == [(5,)] * 6
    assert _contents(store, 0) == [b"%d" % number for number in range(30)]
    store.close()


@pytest.mark.parametrize("change", ["UPDATE staged SET checksum = 0", "DELETE FROM staged"])
def test_a_batch_that_cannot_be_read_fails_alone(tmp_path: Path, change: str) -> None:
    """None of it is appended, also not what was whole, and its id is free. Its neighbours in the
    commit are appended.
    """
    store = _store(tmp_path / "log")
    store.commit([_stage(1, b"a"), _stage(2, b"b")])
    store._connection.execute(change + " WHERE key >= 33554432")
    batch = Publish("batch", (), (Staged(1, 0, 1, 1), Staged(2, 0, 1, 1)))
    first, lost, last = store.commit([_append(0, b"0"), batch, _append(0, b"1")])
    assert (first, last) == (range(1), range(1, 2))
    assert isinstance(lost, LogDamaged)
    assert _contents(store, 0) == [b"0", b"1"]
    store.commit([Unstage((1, 2)), _stage(3, b"c")])
    assert store.commit([Publish("batch", (), (Staged(3, 0, 1, 1),))]) == [True]
    assert _contents(store, 0) == [b"0", b"1", b"c"]
    store.close()


def test_a_batch_is_dropped_by_the_retention_as_appended_elements_are(tmp_path: Path) -> None:
    """In groups of an eighth."""
    store = _store(tmp_path / "log", Retention(max_count=16))
    store.commit([_stage(1, *[b"%d" % number for number in range(40)])])
    store.commit([Publish("batch", (), (Staged(1, 0, 40, 70),))])
    assert (store.states[0].earliest, store.states[0].latest) == (24, 40)
    store.close()


def test_a_commit_that_fails_leaves_the_staged_elements(tmp_path: Path) -> None:
    """The disk is full: the batch is committed later."""
    store = _store(tmp_path / "log")
    store.commit([_stage(1, b"a")])
    store._connection.execute(
        "CREATE TEMP TRIGGER full BEFORE INSERT ON transactions "
        "BEGIN SELECT RAISE(ABORT, 'full'); END"
    )
    batch = Publish("batch", (), (Staged(1, 0, 1, 1),))
    with pytest.raises(Exception, match="full"):
        store.commit([batch])
    store._connection.execute("DROP TRIGGER full")
    assert store.commit([batch]) == [True]
    assert _contents(store, 0) == [b"a"]
    store.close()


def test_the_loads_of_a_transaction_are_one_for_each_partition() -> None:
    """A log that is full makes each partition wait once."""
    work = Publish("id", (_append(1, b"ab"),), (Staged(1, 0, 2, 3), Staged(2, 1, 4, 5)))
    assert sorted(loads_of(work)) == [(0, 2, 3), (1, 5, 7)]
    assert loads_of(Unstage((1,))) == ()
