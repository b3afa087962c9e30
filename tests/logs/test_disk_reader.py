"""Reading groups: ranges that begin and end in the middle of a group, lists of a bounded length,
dropped positions.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from penstock.api import LogDamaged, PositionNotRetained
from penstock.logs import DiskLog
from penstock.logs import _disk_reader as module
from penstock.logs._disk_reader import DiskReader
from tests.logs._opening import PLENTY, numbered


@asynccontextmanager
async def _reader(path: Path, *ends: int) -> AsyncIterator[DiskReader]:
    """A reader of a log with groups that end at these positions, and a second partition after them."""
    async with DiskLog(path, retention=PLENTY, partitions=["a", "b"]) as log:
        for start, end in zip((0, *ends), ends, strict=False):
            await log.append(numbered(start, end), partition="a")
        await log.append([b"other"] * 50, partition="b")
        reader = DiskReader(path)
        yield reader
        reader.close()


async def test_each_range_is_read_exactly(tmp_path: Path) -> None:
    """All starts and stops over three groups."""
    async with _reader(tmp_path / "a.log", 3, 4, 9) as reader:
        for start in range(9):
            for stop in range(start + 1, 10):
                assert reader.read(0, "a", start, stop) == numbered(start, stop)


async def test_a_list_is_bounded_by_elements_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No further group is read when one of the bounds is reached."""
    async with _reader(tmp_path / "a.log", 3, 6, 9) as reader:
        monkeypatch.setattr(module, "LIST_LENGTH", 4)
        assert reader.read(0, "a", 0, 9) == numbered(0, 6)
        monkeypatch.setattr(module, "LIST_BYTES", 1)
        assert reader.read(0, "a", 1, 9) == numbered(1, 3)


async def test_a_group_that_is_not_there_was_dropped_or_lost(tmp_path: Path) -> None:
    """In front of the first group it was dropped, between others it was lost."""
    path = tmp_path / "a.log"
    async with DiskLog(path, retention=PLENTY) as log:
        for start in range(0, 9, 3):
            await log.append(numbered(start, start + 3))
        connection, reader = log._opened.store._connection, log._opened.reader
        connection.execute("DELETE FROM groups WHERE key = 0")
        with pytest.raises(PositionNotRetained, match="does not have position 1; it has 3 up to"):
            reader.read(0, "0", 1, 9)
        connection.execute("DELETE FROM groups WHERE key = 3")
        connection.execute("UPDATE groups SET count = 2")
        with pytest.raises(LogDamaged, match="from 6 on were changed"):
            reader.read(0, "0", 6, 9)
        connection.execute("DELETE FROM groups")
        with pytest.raises(PositionNotRetained, match="it has 9 up to, and not with, 9"):
            reader.read(0, "0", 7, 9)


async def test_it_cannot_write(tmp_path: Path) -> None:
    """The connection refuses any change."""
    async with _reader(tmp_path / "a.log", 3) as reader:
        with pytest.raises(Exception, match="attempt to write a readonly database"):
            reader._connection.execute("DELETE FROM groups")
