"""The formats of the file: one of an older format opens, is upgraded, and keeps all that it had. A
summary spares the reading of the groups, and is never trusted more than they are.

`format_1` and `format_2` were written by penstock with these formats: `closed.log` was closed,
`crashed.log` was copied while it was open.
"""

import shutil
import sqlite3
from pathlib import Path

import pytest

from penstock.api import LogDamaged
from penstock.logs import DiskLog, Retention, check_file
from penstock.logs._disk_files import open_file
from penstock.logs._disk_store import DiskStore
from penstock.logs._work import Append
from penstock.streams import collect
from tests.logs._opening import PLENTY, numbered

OLDER = (1, 2)
EAST = [b"%d:" % number * (number % 7) for number in range(60)]
WEST = [b"x" * 6000, b"published"]
AFTER = [b"after %d" % number for number in range(5)]
KEPT = Retention(max_count=1_000, acknowledged=True)


def _copied(folder: Path, name: str, version: int) -> Path:
    for file in Path(__file__).with_name(f"format_{version}").glob(f"{name}*"):
        shutil.copy(file, folder / file.name)
    return folder / name


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize(
    ("name", "east", "ids"),
    [("closed.log", EAST, ("first", "second")), ("crashed.log", EAST + AFTER, ("first", "third"))],
)
async def test_a_log_of_an_older_format_is_upgraded(
    tmp_path: Path, name: str, east: list[bytes], ids: tuple[str, ...], version: int
) -> None:
    """Elements, partitions, acknowledgements and published ids; and it goes on as any other."""
    path = _copied(tmp_path, name, version)
    for _ in range(2):
        async with DiskLog(path, retention=KEPT, partitions=["east"]) as log:
            assert set(log.partitions) >= {"east", "west"}
            assert log.earliest()["east"] == 12
            assert await collect(log.source("east", stop="latest")) == east[12:]
            assert await collect(log.source("west", stop="latest")) == WEST
            for transaction_id in ids:
                assert not await log.transaction(transaction_id).publish()
            state = log._opened.store.states[0]
            assert state.size == sum(map(len, east[12:]))
            assert state.acknowledged == (12, 24, 36)
    async with DiskLog(path, retention=KEPT, partitions=["east"]) as log:
        assert await log.append([b"next"], partition="east") == range(len(east), len(east) + 1)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    connection.close()


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("name", ["closed.log", "crashed.log"])
async def test_a_log_of_an_older_format_is_read_without_an_upgrade(
    tmp_path: Path, name: str, version: int
) -> None:
    """Reading changes nothing."""
    path = _copied(tmp_path, name, version)
    before = path.read_bytes()
    async with DiskLog(path, read_only=True) as log:
        assert (await collect(log.source("east", stop="latest")))[:48] == EAST[12:]
        assert await collect(log.source("west", stop="latest")) == WEST
    assert check_file(path).fault is None
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", OLDER)
async def test_a_log_of_an_older_format_gets_readers(tmp_path: Path, version: int) -> None:
    """With what its acknowledgements have left."""
    path = _copied(tmp_path, "closed.log", version)
    async with DiskLog(path, retention=KEPT, partitions=["east"]) as log:
        reader = await log.add_reader("nightly", max_count=800)
        assert reader.positions()["east"] == 12
        await reader.acknowledge({"east": 50})
    async with DiskLog(path, retention=KEPT, partitions=["east"]) as log:
        assert await collect(log.reader("nightly").source("east", "latest")) == EAST[50:]


def _loaded(path: Path) -> tuple[DiskStore, int]:
    """Return the loaded tables of a log, and the steps of SQLite that loading took, in hundreds."""
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    connection, reader = open_file(path, accept_loss=False)
    reader.close()
    connection.set_progress_handler(count, 100)
    store = DiskStore(connection, path, PLENTY, lambda: 1.0)
    store.load(())
    connection.set_progress_handler(None, 0)
    return store, steps[0]


def _log(path: Path, groups: int) -> None:
    """Write a log with groups of one element each, that was not closed."""
    opened = path.with_name(f"open {path.name}")
    connection, reader = open_file(opened, accept_loss=False)
    store = DiskStore(connection, opened, PLENTY, lambda: 1.0)
    store.load(["0"])
    store.mark(is_open=True)
    connection.execute("PRAGMA synchronous = OFF")
    for position in range(groups):
        (element,) = numbered(position, position + 1)
        store.commit([Append(0, (element,), len(element))])
    for ending in ("", "-wal"):
        shutil.copy(f"{opened}{ending}", f"{path}{ending}")
    connection.close()
    reader.close()


def test_opening_does_not_read_all_groups(tmp_path: Path) -> None:
    """The steps of SQLite are those of a bounded number of groups, also after a crash."""
    _log(tmp_path / "short.log", 900)
    _log(tmp_path / "long.log", 5_900)
    store, short = _loaded(tmp_path / "short.log")
    assert store.states[0].latest == 900
    store._connection.close()
    store, after_crash = _loaded(tmp_path / "long.log")
    assert store.states[0].latest == 5_900
    store.mark(is_open=False)
    store.close()
    store, after_close = _loaded(tmp_path / "long.log")
    store.close()
    assert after_close < 5 < after_crash <= short


@pytest.mark.parametrize(
    "change",
    [
        "size = size + 1",
        "summary = summary + 1",
        "joined = 'x'",
        "size = NULL",
        "summary = NULL",
    ],
)
async def test_a_wrong_summary_is_rebuilt(tmp_path: Path, change: str) -> None:
    """From the groups, and the next opening finds a right one."""
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        for start in range(0, 60, 10):
            await log.append(numbered(start, start + 10))
        state = log._opened.store.states[0]
    connection = sqlite3.connect(path, isolation_level=None)
    right = connection.execute("SELECT size, joined, summary FROM partitions").fetchall()
    connection.execute(f"UPDATE partitions SET {change}")
    connection.close()
    async with DiskLog(path, retention=PLENTY) as log:
        assert log._opened.store.states[0] == state
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT size, joined, summary FROM partitions").fetchall() == right
    connection.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DELETE FROM groups WHERE key = 0", "lacks the elements from 0 on"),
        ("DELETE FROM groups WHERE key = 50", "ends at 50 in place of 60"),
        ("UPDATE groups SET count = 9 WHERE key = 50", "from 50 on were changed"),
    ],
)
async def test_a_summary_hides_no_lost_end(tmp_path: Path, change: str, message: str) -> None:
    """Its two ends are compared with the groups there."""
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        for start in range(0, 60, 10):
            await log.append(numbered(start, start + 10))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(change)
    connection.close()
    with pytest.raises(LogDamaged, match=message):
        async with DiskLog(path, retention=PLENTY):
            pass


async def test_elements_that_were_lost_do_not_stay_in_the_sum(tmp_path: Path) -> None:
    """A gap that is dropped with its neighbours: the log keeps as much as it says again."""
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        for _ in range(6):
            await log.append([b"x" * 10] * 10)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DELETE FROM groups WHERE key = 10")
    connection.close()
    async with DiskLog(path, retention=Retention(max_count=35)) as log:
        assert log.earliest() == {"0": 30}
        assert log._opened.store.states[0].size == 300
