"""Reading groups: ranges that begin and end in the middle of a group, lists of a bounded length,
dropped positions.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from penstock.api import LogDamaged, PositionNotRetained
from penstock.logs import DiskLog, Retention
from penstock.logs._disk_reader import DiskReader
from tests.logs._opening import PLENTY, numbered

MUCH = 1 << 20


@asynccontextmanager
async def _reader(path: Path, *ends: int) -> AsyncIterator[DiskReader]:
    """A reader of a log with groups that end at these positions, and a second partition after them."""
    async with DiskLog(path, retention=PLENTY, partitions=["a", "b"]) as log:
        for start, end in zip((0, *ends), ends, strict=False):
            await log.append(numbered(start, end), partition="a")
        await log.append([b"other"] * 50, partition="b")
        reader = DiskReader.of(path)
        yield reader
        reader.close()


async def test_each_range_is_read_exactly(tmp_path: Path) -> None:
    """All starts and stops over three groups."""
    async with _reader(tmp_path / "a.log", 3, 4, 9) as reader:
        for start in range(9):
            for stop in range(start + 1, 10):
                taken = reader.read(0, "a", start, stop, MUCH)
                while start + len(taken) < stop:
                    taken += reader.read(0, "a", start + len(taken), stop, MUCH)
                assert taken == numbered(start, stop)


async def test_a_list_is_bounded_by_bytes(tmp_path: Path) -> None:
    """A group that would come in parts is left to the next read."""
    size = sum(map(len, numbered(0, 6)))
    async with _reader(tmp_path / "a.log", 3, 6, 9) as reader:
        assert reader.read(0, "a", 0, 9, size) == numbered(0, 6)
        assert reader.read(0, "a", 1, 9, 1) == numbered(1, 2)


async def test_no_group_is_read_of_which_a_part_is_left_over(tmp_path: Path) -> None:
    """Else each of two reads would decode it."""
    async with _reader(tmp_path / "a.log", 3, 6, 9) as reader:
        assert reader.read(0, "a", 0, 5, MUCH) == numbered(0, 3)
        assert reader.read(0, "a", 2, 5, MUCH) == numbered(2, 3)
        assert reader.read(0, "a", 3, 5, MUCH) == numbered(3, 5)


async def test_a_group_that_is_not_there_was_dropped_or_lost(tmp_path: Path) -> None:
    """In front of the first group it was dropped, between others it was lost."""
    path = tmp_path / "a.log"
    async with DiskLog(path, retention=PLENTY) as log:
        for start in range(0, 9, 3):
            await log.append(numbered(start, start + 3))
        connection, reader = log._opened.store._connection, log._opened.reader
        connection.execute("DELETE FROM groups WHERE key = 0")
        with pytest.raises(PositionNotRetained, match="does not have position 1; it has 3 up to"):
            reader.read(0, "0", 1, 9, MUCH)
        connection.execute("DELETE FROM groups WHERE key = 3")
        connection.execute("UPDATE groups SET count = 2")
        with pytest.raises(LogDamaged, match="from 6 on were changed"):
            reader.read(0, "0", 6, 9, MUCH)
        connection.execute("DELETE FROM groups")
        with pytest.raises(PositionNotRetained, match="it has 9 up to, and not with, 9"):
            reader.read(0, "0", 7, 9, MUCH)


async def test_it_cannot_write(tmp_path: Path) -> None:
    """The connection refuses any change."""
    async with _reader(tmp_path / "a.log", 3) as reader:
        with pytest.raises(Exception, match="attempt to write a readonly database"):
            reader._connection.execute("DELETE FROM groups")


async def test_the_error_about_a_dropped_position_names_the_ends_of_now(tmp_path: Path) -> None:
    """The read waited for its turn while elements were appended and dropped."""
    path = tmp_path / "a.log"
    async with DiskLog(path, retention=Retention(max_count=30)) as log:
        await log.append(numbered(0, 10))
        reader = DiskReader.of(path)
        stop = 10  # the end of the log when the read began to wait
        for start in range(10, 100, 10):
            await log.append(numbered(start, start + 10))
        with pytest.raises(PositionNotRetained) as caught:
            reader.read(0, "a", 0, stop, MUCH)
        reader.close()
    assert (caught.value.earliest, caught.value.latest) == (70, 100)
    assert "it has 70 up to, and not with, 100" in str(caught.value)
