"""What can be read of a log whose pages were damaged: each group that the damage does not touch, at
its position, and a name for each position that was lost.
"""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from campaigns.crashes._damage import closed_log, crashed_log
from penstock.api import LogDamaged, LogError, LogLocked
from penstock.logs import DiskLog, Retention
from penstock.logs._disk_check import check_file
from penstock.logs._disk_files import open_file
from penstock.logs._disk_store import DiskStore
from penstock.logs._group_format import decode_row
from penstock.logs._group_runs import MOST_JOINED
from penstock.logs._page_cells import CellPlace
from penstock.logs._salvage import Loss, Wreck, salvage
from penstock.logs._work import Acknowledge, Append, Publish
from penstock.streams import collect
from tests.logs._opening import PLENTY, numbered

PAGE = 4_096
SIZES = (0, 1, 30, 300, 300, 5_000)
DAMAGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    lambda chance, page: bytes(PAGE),
    lambda chance, page: chance.randbytes(PAGE),
    lambda chance, page: chance.randbytes(16) + page[16:],
    lambda chance, page: page[:2_000] + chance.randbytes(1) + page[2_001:],
)

Elements = dict[tuple[int, int], bytes]


def _made(path: Path, chance: random.Random) -> tuple[Elements, bool]:
    """Write a log by chance. Return its elements by partition and position, and whether it was
    closed.
    """
    opened = path.with_name("open.log")
    connection, reader = open_file(opened, accept_loss=False)
    reader.close()
    retention = chance.choice(
        (PLENTY, Retention(max_count=120), Retention(max_count=200, acknowledged=True))
    )
    store = DiskStore(connection, opened, retention, lambda: 1.0)
    store.load(["east", "west"])
    store.mark(is_open=True)
    elements: Elements = {}
    for step in range(chance.randint(12, 45)):
        number = chance.randrange(2)
        size = chance.choice(SIZES)
        new = tuple(chance.randbytes(size) for _ in range(chance.randint(1, 9)))
        position = store.states[number].latest
        work = Append(number, new, size * len(new))
        store.commit([work if chance.random() < 0.7 else Publish(f"id {step}", (work,))])
        elements |= {(number, position + index): each for index, each in enumerate(new)}
        if retention.acknowledged:
            store.commit([Acknowledge({number: position})])
        if step % 10 == 9:
            store._loose = [MOST_JOINED + 1] * 2
            store.care()
    is_closed = chance.random() < 0.5
    if is_closed:
        store.mark(is_open=False)
        store.close()
        shutil.move(opened, path)
    else:
        for ending in ("", "-wal"):
            shutil.copy(f"{opened}{ending}", f"{path}{ending}")
        connection.close()
    kept = {key: each for key, each in elements.items() if key[1] >= store.states[key[0]].earliest}
    return kept, is_closed


def _pages_of(path: Path) -> dict[int, set[tuple[int, int]]]:
    """Return, by page of the main file, the positions that need it."""
    pages: dict[int, set[tuple[int, int]]] = {}
    with Wreck(path) as wreck:
        for key, length, in_wal, page_at, offset in wreck._notes.execute("SELECT * FROM found"):
            cell = wreck._pages.cell(CellPlace(bool(in_wal), page_at, offset))
            assert cell is not None
            number, first = divmod(key, 2**48)
            needed = {*cell.pages, *(() if in_wal else (page_at // PAGE + 1,))}
            for page in needed:
                pages.setdefault(page, set()).update(
                    (number, position) for position in range(first, first + length)
                )
    return pages


@pytest.mark.parametrize("seed", range(6))
def test_each_page_in_turn_takes_with_it_what_it_has(tmp_path: Path, seed: int) -> None:
    """The other elements are there at their positions, and those that are missing are named. A
    page of the index takes none.
    """
    chance = random.Random(seed)
    path, new = tmp_path / "orders.log", tmp_path / "new.log"
    elements, is_closed = _made(path, chance)
    pages, whole = _pages_of(path), path.read_bytes()
    assert _salvaged(path, new) == (["east", "west"], elements, set())
    without_loss = 0
    for number in range(1, len(whole) // PAGE + 1):
        begin = (number - 1) * PAGE
        damaged = chance.choice(DAMAGES)(chance, whole[begin : begin + PAGE])
        path.write_bytes(whole[:begin] + damaged + whole[begin + PAGE :])
        names, found, lost = _salvaged(path, new)
        missing = elements.keys() - found.keys()
        assert {key: each for key, each in found.items() if key in elements} == {
            key: each for key, each in elements.items() if key in found
        }
        assert missing <= pages.get(number, set())
        if names == ["east", "west"]:
            assert found.keys() <= elements.keys()
            assert lost <= missing
        # The end of a partition is known if its log was closed and its record is there.
        if is_closed and names == ["east", "west"]:
            assert lost == missing
        assert all(
            position > max(at for partition, at in found if partition == number)
            for number, position in missing - lost
        )
        without_loss += not missing
    assert without_loss >= 3


def _salvaged(path: Path, new: Path) -> tuple[list[str], Elements, set[tuple[int, int]]]:
    """Return the names, elements and lost positions of a salvaged log, which is whole."""
    new.unlink(missing_ok=True)
    losses, _ = salvage(path, new)
    assert check_file(new).fault is None
    elements: Elements = {}
    with Wreck(new) as wreck:
        names = wreck.names
        for number in range(len(names)):
            for piece in wreck.pieces(number):
                row = piece.row
                if row is not None:
                    for index, each in enumerate(decode_row(row, 0, row.length, row.size)):
                        elements[number, piece.stop - row.length + index] = each
    return (
        names,
        elements,
        {
            (names.index(loss.partition), position)
            for loss in losses
            for position in range(loss.start, loss.stop)
        },
    )


async def test_a_salvaged_log_is_a_log(tmp_path: Path) -> None:
    """It goes on where the other one ended. A source fails where elements were lost, and says
    where to start again.
    """
    path, new = await closed_log(tmp_path), tmp_path / "new.log"
    _damage_group(path, 20)
    checked = check_file(path)
    assert checked.fault is not None
    assert "from 20 on were changed" in checked.fault
    assert checked.lost == [Loss("0", 20, 70)]
    assert salvage(path, new) == ([Loss("0", 20, 70)], 0)
    async with DiskLog(new, retention=PLENTY) as log:
        assert (log.earliest(), log.latest()) == ({"0": 0}, {"0": 100})
        assert not await log.transaction("a").publish()
        with pytest.raises(
            LogDamaged,
            match=r"has lost the elements from 20 up to, and not with, 70\. Start at 70 to read",
        ):
            await collect(log.source())
        assert await collect(log.source("0", 0, 20)) == numbered(0, 20)
        assert await collect(log.source("0", 70, "latest")) == numbered(70, 100)
        assert await log.append([b"next"]) == range(100, 101)
    checked = check_file(new)
    assert (checked.fault, checked.lost, checked.elements) == (None, [Loss("0", 20, 70)], 51)


async def test_a_lost_end_keeps_its_positions(tmp_path: Path) -> None:
    """A position is never given twice."""
    path, new = await closed_log(tmp_path), tmp_path / "new.log"
    _damage_group(path, 70)
    assert salvage(path, new)[0] == [Loss("0", 70, 100)]
    async with DiskLog(new, retention=PLENTY) as log:
        assert log.latest() == {"0": 100}
        assert await log.append([b"next"]) == range(100, 101)
        assert await collect(log.source("0", 100, "latest")) == [b"next"]


async def test_lost_records_are_told(tmp_path: Path) -> None:
    """The name of a partition, and ids of published transactions."""
    path, new = await closed_log(tmp_path), tmp_path / "new.log"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE partitions SET name = 'x'")
    connection.execute("UPDATE transactions SET id = 'b'")
    connection.close()
    assert salvage(path, new) == ([], 1)
    async with DiskLog(new, retention=PLENTY) as log:
        assert await collect(log.source(stop="latest")) == numbered(0, 100)


async def test_a_log_that_is_written_is_not_salvaged(tmp_path: Path) -> None:
    """Its pages change. A check of it says what it can, and nothing of a whole log is lost."""
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        for start in range(0, 90, 30):
            await log.append(numbered(start, start + 30))
        assert check_file(path)[:4] == (90, 3, None, [])
        with pytest.raises(LogLocked, match="is open for writing, so its pages change: close it"):
            salvage(path, tmp_path / "new.log")
        log._opened.store._connection.execute("DELETE FROM groups WHERE key = 30")
        checked = check_file(path)
        assert checked.lost is None
        assert "lacks the elements from 30 on" in str(checked.fault)
    assert not (tmp_path / "new.log").exists()


async def test_what_is_no_log_is_not_salvaged(tmp_path: Path) -> None:
    """And what exists is not overwritten."""
    text = tmp_path / "notes.txt"
    text.write_text("notes " * 1_000)
    for act in (check_file, lambda path: salvage(path, tmp_path / "new.log")):
        with pytest.raises(LogError, match="is no log"):
            act(text)
    with pytest.raises(LogError, match=r"notes\.txt exists already: give a new path"):
        salvage(await crashed_log(tmp_path), text)
    with pytest.raises(LogError, match="its folder must exist"):
        salvage(tmp_path / "crashed.log", tmp_path / "nowhere" / "new.log")
    with pytest.raises(LogError, match="a file that belongs to the log"):
        salvage(tmp_path / "crashed.log", tmp_path / "crashed.log-shm")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_no_log(tmp_path: Path) -> None:
    """To open it would wait for a writer."""
    os.mkfifo(tmp_path / "pipe")
    for act in (check_file, lambda path: salvage(path, tmp_path / "new.log")):
        with pytest.raises(LogError, match="is no regular file"):
            act(tmp_path / "pipe")


def _damage_group(path: Path, position: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE groups SET size = size + 1 WHERE key = ?", (position,))
    connection.execute("VACUUM")  # or salvage would find it in a place that is not in use any more
    connection.close()
