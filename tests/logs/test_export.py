"""The elements of the file of a log, for a program that copies them."""

from pathlib import Path

import pytest

from penstock.api import PositionNotRetained, UsageError
from penstock.logs import DiskLog, Retention, exported


async def _log(path: Path) -> Path:
    async with DiskLog(
        path, partitions=["a", "b"], retention=Retention(max_bytes=1_000_000)
    ) as log:
        await log.append([b"a%d" % number for number in range(5)], partition="a")
        await log.append([b"b0", b"b1"], partition="b")
    return path


async def test_all_partitions_or_a_part_of_one_are_exported(tmp_path: Path) -> None:
    """With the position of the first element of each piece."""
    path = await _log(tmp_path / "orders")
    whole = [tuple(piece) for piece in exported(path)]
    assert whole == [("a", 0, [b"a0", b"a1", b"a2", b"a3", b"a4"]), ("b", 0, [b"b0", b"b1"])]
    part = [tuple(piece) for piece in exported(path, partition="a", start=1, stop=3)]
    assert part == [("a", 1, [b"a1", b"a2"])]
    assert list(exported(path, partition="b", start="latest")) == []


async def test_a_place_that_the_log_does_not_have_is_refused(tmp_path: Path) -> None:
    """With what it has."""
    path = await _log(tmp_path / "orders")
    with pytest.raises(PositionNotRetained):
        list(exported(path, partition="b", start=3))
    with pytest.raises(UsageError, match="name the partition"):
        list(exported(path, start=1))
    with pytest.raises(UsageError, match="'c'"):
        list(exported(path, partition="c"))
