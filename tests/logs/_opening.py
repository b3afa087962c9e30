"""Opening logs for tests."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from penstock.logs import DiskLog, Log, Retention, RingLog
from penstock.testing._check_log import OpenLog

PLENTY = Retention(max_count=1_000_000)
NAMES = ("0",)


@asynccontextmanager
async def open_ring(
    names: Sequence[str] = NAMES, retention: Retention = PLENTY
) -> AsyncIterator[Log]:
    yield RingLog(retention=retention, partitions=names)


def disk_in(folder: Path) -> OpenLog:
    """Return a function that opens a new log in `folder` with each call."""
    numbers = count()

    @asynccontextmanager
    async def open_disk(
        names: Sequence[str] = NAMES, retention: Retention = PLENTY
    ) -> AsyncIterator[Log]:
        async with DiskLog(
            folder / f"{next(numbers)}.log", retention=retention, partitions=names
        ) as log:
            yield log

    return open_disk


def numbered(start: int, stop: int) -> list[bytes]:
    """Elements whose content says their position, with lengths from 0 to 200."""
    return [b"%d:" % number * (number % 41) for number in range(start, stop)]
