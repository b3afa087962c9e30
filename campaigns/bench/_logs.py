"""The contenders of logs: replays beside a generator of equal elements,
appends beside bare writes that are synced.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

import trio

from campaigns.bench._measure import Bar, Group, Opening, Timer
from penstock import subscribe
from penstock.logs import DiskLog, Retention, RingLog
from penstock.streams import Source, generate

ELEMENT: Final = b"x" * 100
AT_ONCE: Final = 4_000
"""Elements of an append while a log is filled."""

GROUP_OF: Final = 64
TASKS: Final = 64
"""Tasks that append at the same time, 16 elements at a time:
the rate with group commit, of groups of any size.
"""

PLENTY: Final = Retention(max_bytes=2**30)


async def _generator(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield ELEMENT


async def _read(source: Source[bytes], count: int) -> float:
    """Read `count` elements with `batches()` and demand 1,024,
    and return nanoseconds per element.
    """
    began, seen = perf_counter(), 0
    async with subscribe(source, demand=1024) as stream:
        async for batch in stream.batches():
            for _ in batch:
                seen += 1
    assert seen == count
    return (perf_counter() - began) / count * 1e9


@contextmanager
def _generated(count: int) -> Iterator[Timer]:
    yield partial(trio.run, _read, generate(_generator, count), count)


@contextmanager
def _from_ring(count: int) -> Iterator[Timer]:
    log = RingLog(retention=PLENTY)

    async def fill() -> None:
        for _ in range(0, count, AT_ONCE):
            await log.append([ELEMENT] * AT_ONCE)

    trio.run(fill)
    yield partial(trio.run, _read, log.source("0", 0, count), count)


@contextmanager
def _from_disk(count: int) -> Iterator[Timer]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bench.log"

        async def fill() -> None:
            async with DiskLog(path, retention=PLENTY) as log:
                for _ in range(0, count, AT_ONCE):
                    await log.append([ELEMENT] * AT_ONCE)

        async def replay() -> float:
            async with DiskLog(path, retention=PLENTY) as log:
                return await _read(log.source("0", 0, count), count)

        trio.run(fill)
        yield partial(trio.run, replay)


@contextmanager
def _bare_groups(count: int) -> Iterator[Timer]:
    """Write 64 elements at a time to a file, and call fdatasync after each write."""
    with TemporaryDirectory() as folder:

        def timed() -> float:
            file = os.open(
                Path(folder) / "bare", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
            )
            began = perf_counter()
            for _ in range(0, count, GROUP_OF):
                os.write(file, ELEMENT * GROUP_OF)
                os.fdatasync(file)
            took = perf_counter() - began
            os.close(file)
            return took / count * 1e9

        yield timed


@contextmanager
def _disk_groups(count: int, tasks: int, at_once: int) -> Iterator[Timer]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bench.log"

        async def append(log: DiskLog) -> None:
            for _ in range(0, count // tasks, at_once):
                await log.append([ELEMENT] * at_once)

        async def timed() -> float:
            async with DiskLog(path, retention=PLENTY) as log:
                began = perf_counter()
                async with trio.open_nursery() as nursery:
                    for _ in range(tasks):
                        nursery.start_soon(append, log)
                return (perf_counter() - began) / count * 1e9

        yield partial(trio.run, timed)


def _replays(short: bool) -> dict[str, Opening]:
    count = AT_ONCE * (10 if short else 100)
    return {
        "generator": partial(_generated, count),
        "replay from RingLog": partial(_from_ring, count),
        "replay from DiskLog": partial(_from_disk, count),
    }


def _appends(short: bool) -> dict[str, Opening]:
    count = GROUP_OF * TASKS * (4 if short else 32)
    return {
        "write and fdatasync, groups of 64": partial(_bare_groups, count),
        "DiskLog, groups of 64": partial(_disk_groups, count, 1, GROUP_OF),
        "DiskLog, 64 tasks with 16 elements each": partial(_disk_groups, count, TASKS, 16),
    }


GROUPS: Final = (
    Group(
        "replays",
        "Replay of elements of 100 bytes from a log",
        "element",
        "generator",
        _replays,
        (
            Bar("from memory", "replay from RingLog", "generator", at_least=0.9),
            Bar("from disk", "replay from DiskLog", "generator", at_least=0.5),
        ),
    ),
    Group(
        "appends",
        "Appends of elements of 100 bytes, synced",
        "element",
        "write and fdatasync, groups of 64",
        _appends,
        (
            Bar(
                "groups of 64",
                "DiskLog, groups of 64",
                "write and fdatasync, groups of 64",
                at_least=0.6,
            ),
        ),
    ),
)
