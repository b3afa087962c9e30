"""The times of elements: each log finds the position of a time, with a clock that goes back, after
elements were dropped and groups were joined, and in files of older formats.
"""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import PositionNotRetained, UsageError
from penstock.logs import DiskLog, Retention, RingLog, Written
from penstock.logs import _disk_reader as reader_module
from penstock.logs import _disk_store as store_module
from penstock.logs import _group_runs as runs_module
from penstock.logs import _ring_log as ring_module
from penstock.logs._disk_store import DiskStore
from penstock.logs._group_format import encode_row, is_whole, joined_times, times_of
from penstock.logs._salvage import _cut, salvage
from penstock.streams import collect
from penstock.testing import run_virtual
from tests.logs._opening import PLENTY, numbered

KINDS = (RingLog, DiskLog)
FEW = Retention(max_count=40)


class Clock:
    """A clock that the test sets."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def opened(
    kind: Any, folder: Path, clock: Clock, retention: Retention = PLENTY, **more: Any
) -> AsyncIterator[Any]:
    """A log of each kind with this clock."""
    if kind is RingLog:
        yield RingLog(retention=retention, clock=clock, **more)
        return
    async with DiskLog(folder / "log", retention=retention, clock=clock, **more) as log:
        yield log


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four groups are joined at once, by the test and not in a pause."""
    for module in (store_module, runs_module):
        monkeypatch.setattr(module, "MOST_JOINED", 4)
    monkeypatch.setattr(DiskStore, "needs_care", lambda self: False)
    monkeypatch.setattr(DiskStore, "is_urgent", lambda self: False)


def _join(log: DiskLog) -> int:
    """Join the groups of a log, and return how many there are."""
    store: Any = log._opened.store  # type: ignore[union-attr]  # it is open for writing
    while DiskStore._next_loose(store, 1) is not None:
        store.care()
    return int(store._connection.execute("SELECT count(*) FROM groups").fetchone()[0])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_time_leads_to_the_first_element_that_is_as_late(kind: Any, tmp_path: Path) -> None:
    """In each partition by itself; between two times to the later one, before the first time to the
    first element, and after the last one to the next element.
    """
    clock = Clock()
    async with opened(kind, tmp_path, clock, partitions=["east", "west"]) as log:
        for number, partition in enumerate(["east", "west", "east", "east"]):
            clock.now = 1_000.0 + 10 * number
            await log.append(numbered(0, 2), partition=partition)
        assert await log.position_at(0) == {"east": 0, "west": 0}
        assert await log.position_at(1_000) == {"east": 0, "west": 0}
        assert await log.position_at(1_000.001) == {"east": 2, "west": 0}
        assert await log.position_at(1_010) == {"east": 2, "west": 0}
        assert await log.position_at(1_010.5) == {"east": 2, "west": 2}
        assert await log.position_at(1_030) == {"east": 4, "west": 2}
        assert await log.position_at(1_031) == {"east": 6, "west": 2}
        assert await log.position_at(1_020, partitions=["west"]) == {"west": 2}
        assert await log.times("east") == [(0, 2, 1_000.0), (2, 4, 1_020.0), (4, 6, 1_030.0)]
        assert await log.times("east", 1, 3) == [(1, 2, 1_000.0), (2, 3, 1_020.0)]
        assert await log.times("east", "latest") == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_moment_has_several_forms(kind: Any, tmp_path: Path) -> None:
    """Seconds, a datetime of each time zone, and texts of both."""
    clock, moment = Clock(), datetime(2026, 7, 1, 10, tzinfo=UTC)
    clock.now = moment.timestamp()
    async with opened(kind, tmp_path, clock) as log:
        await log.append([b"first"])
        clock.now += 60
        await log.append([b"second"])
        later = moment + timedelta(seconds=1)
        for time in (
            later,
            later.astimezone(timezone(timedelta(hours=2))),
            later.timestamp(),
            str(later.timestamp()),
            "2026-07-01T10:00:01Z",
            "2026-07-01 12:00:01+02:00",
        ):
            assert await log.position_at(time) == {"0": 1}, time
        for wrong in (True, None, float("nan"), "soon", later.replace(tzinfo=None), "2026-07-01"):
            with pytest.raises(UsageError, match=r"is no time|has no time zone"):
                await log.position_at(wrong)


@pytest.mark.parametrize("kind", KINDS)
async def test_times_never_go_back(kind: Any, tmp_path: Path) -> None:
    """A clock that is set back gives elements the time of the newest one, until it has passed that
    time again. So a time leads to one position.
    """
    clock = Clock()
    async with opened(kind, tmp_path, clock) as log:
        for now in (1_000.0, 400.0, 999.0, 1_001.0):
            clock.now = now
            await log.append([b"x"])
        assert await log.times() == [(0, 3, 1_000.0), (3, 4, 1_001.0)]
        assert await log.position_at(500) == {"0": 0}
        assert await log.position_at(1_000.5) == {"0": 3}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_time_before_the_oldest_element_leads_to_it(kind: Any, tmp_path: Path) -> None:
    """The elements of the time may have been dropped. To read their times is an error."""
    clock = Clock()
    async with opened(kind, tmp_path, clock, FEW) as log:
        for number in range(100):
            clock.now = 1_000.0 + number
            await log.append([b"%d" % number])
        earliest = log.earliest()["0"]
        assert earliest >= 55
        assert await log.position_at(1_020) == {"0": earliest}
        assert await log.position_at(1_090) == {"0": 90}
        assert (await log.times())[0].start == earliest
        with pytest.raises(PositionNotRetained):
            await log.times("0", 20)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=200),
    st.lists(st.integers(990, 4_000), min_size=1, max_size=20),
)
def test_the_position_is_that_of_a_search_from_the_begin(
    appends: list[tuple[int, int]], times: list[int]
) -> None:
    """A log in memory may have dropped any number of elements."""

    async def scenario() -> None:
        clock = Clock()
        log = RingLog(retention=Retention(max_count=300), clock=clock)
        known: list[float] = []
        for seconds, count in appends:
            clock.now += seconds
            await log.append([b"x"] * count)
            known += [clock.now] * count
        earliest, latest = log.earliest()["0"], log.latest()["0"]
        for time in times:
            first = next((at for at in range(earliest, latest) if known[at] >= time), latest)
            assert await log.position_at(time) == {"0": first}
        told = [each.time for each in await log.times() for _ in range(each.start, each.stop)]
        assert told == known[earliest:]

    run_virtual(scenario)


async def test_the_times_of_a_ring_are_bounded_by_its_elements() -> None:
    """The list of times loses those of dropped elements, and elements of one millisecond share
    one.
    """
    clock = Clock()
    log = RingLog(retention=FEW, clock=clock)
    for number in range(3 * ring_module.COMPACT_AT):
        clock.now += 1
        await log.append([b"%d" % number])
    assert len(log._rings[0].times) <= ring_module.COMPACT_AT + 40
    before = len(log._rings[0].times)
    for _ in range(30):
        clock.now += 0.00001
        await log.append([b"x"])
    assert len(log._rings[0].times) <= before + 2


@pytest.mark.usefixtures("few")
async def test_joined_groups_keep_the_time_of_each_element(tmp_path: Path) -> None:
    """While the log is open, when it is opened again, and for a reader of another process. Without
    `max_age` groups of any times are joined.
    """
    clock, path = Clock(), tmp_path / "log"
    async with DiskLog(path, retention=PLENTY, clock=clock) as log:
        for number in range(40):
            clock.now = 1_000.0 + 100 * number
            await log.append([b"%d" % number] * 2)
        before = await log.times()
        assert len(before) == 40
        assert _join(log) < 20
        assert await log.times() == before
        for number in range(40):
            assert await log.position_at(1_000.0 + 100 * number) == {"0": 2 * number}
            assert await log.position_at(1_000.0 + 100 * number + 1) == {"0": 2 * number + 2}
        async with DiskLog(path, read_only=True) as reader:
            assert await reader.times() == before
            assert await reader.position_at(2_950) == {"0": 40}
    async with DiskLog(path, retention=PLENTY, clock=clock) as log:
        assert await log.times() == before
        assert await log.times("0", 3, 9) == [
            (3, 4, 1_100.0),
            (4, 6, 1_200.0),
            (6, 8, 1_300.0),
            (8, 9, 1_400.0),
        ]
        assert len(await collect(log.source(stop="latest"))) == 80


@pytest.mark.usefixtures("few")
async def test_a_salvaged_log_and_a_backup_keep_the_times(tmp_path: Path) -> None:
    """The times stand in the groups, so each copy has them."""
    clock, path = Clock(), tmp_path / "log"
    async with DiskLog(path, retention=PLENTY, clock=clock) as log:
        for number in range(20):
            clock.now = 1_000.0 + number
            await log.append([b"%d" % number])
        _join(log)
        times = await log.times()
        await log.backup(tmp_path / "copy")
    salvage(path, tmp_path / "salvaged")
    for name in ("copy", "salvaged"):
        async with DiskLog(tmp_path / name, read_only=True) as log:
            assert await log.times() == times


async def test_many_times_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call returns at most `MOST_TIMES`, and reads a bounded number of groups. The next call goes
    on.
    """
    for module in (reader_module, ring_module):
        monkeypatch.setattr(module, "MOST_TIMES", 7)
    monkeypatch.setattr(reader_module, "MOST_GROUPS_OF_TIMES", 5)
    for kind in KINDS:
        clock = Clock()
        async with opened(kind, tmp_path, clock) as log:
            for _ in range(23):
                clock.now += 1
                await log.append([b"x"])
            found: list[Written] = []
            calls = 0
            while not found or found[-1].stop < 23:
                found += await log.times("0", found[-1].stop if found else 0)
                calls += 1
            assert found == [(at, at + 1, 1_001.0 + at) for at in range(23)]
            assert calls >= 4


@pytest.mark.parametrize("version", [1, 2])
async def test_the_times_of_an_older_file_are_those_of_its_groups(
    tmp_path: Path, version: int
) -> None:
    """They were in the file from its first format on: nothing needs an upgrade."""
    source = Path(__file__).with_name(f"format_{version}") / "closed.log"
    shutil.copy(source, tmp_path / "log")
    async with DiskLog(tmp_path / "log", read_only=True) as log:
        read = await log.times("east")
        assert (read[0].start, read[-1].stop) == (12, 60)
        for each in read:
            assert (await log.position_at(each.time))["east"] == each.start
    async with DiskLog(tmp_path / "log", retention=PLENTY, partitions=["east"]) as log:
        assert await log.times("east") == read
        await log.append([b"new"], partition="east")
        assert (await log.position_at(read[-1].time + 1))["east"] == 60


def test_the_bytes_of_a_group_with_times() -> None:
    """After the elements: the numbers of the first elements, and the times; with one time none of
    them. A row that is damaged has none of its times.
    """
    row = encode_row(7, [b"ab", b"", b"c"], 3.5, [(0, 1.0), (2, 3.5)])
    assert row.elements.hex() == (
        "020000000000000001000000" + b"abc".hex() + "0000000002000000"
        "000000000000f03f" + "0000000000000c40"
    )
    assert (row.size, row.written, is_whole(row)) == (3, 3.5, True)
    assert times_of(row) == [(0, 1.0), (2, 3.5)]
    plain = encode_row(7, [b"ab"], 3.5, [(0, 3.5)])
    assert plain == encode_row(7, [b"ab"], 3.5)
    assert times_of(plain) == [(0, 3.5)]
    assert joined_times([row, plain, encode_row(11, [b"d"], 4.0)]) == [(0, 1.0), (2, 3.5), (4, 4.0)]
    assert times_of(_cut(row, 8)) == [(0, 1.0), (1, 3.5)]
    assert times_of(_cut(row, 9)) == [(0, 3.5)]


async def test_the_times_of_a_damaged_group_lead_to_its_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No element is left out: the reader of the elements learns of the damage."""
    clock, path = Clock(), tmp_path / "log"
    async with DiskLog(path, retention=PLENTY, clock=clock) as log:
        await log.append([b"x"])
        connection = log._opened.store._connection  # type: ignore[union-attr]  # as above
        row = encode_row(1, [b"y", b"z"], 1_002.0, [(0, 1_001.0), (1, 1_002.0)])
        damaged = row._replace(elements=row.elements[:-1] + b"\0")
        connection.execute("INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?)", damaged)
        monkeypatch.setattr(log, "_states", [log._states[0]._replace(latest=3)])
        assert await log.position_at(1_002.0) == {"0": 1}
        assert await log.times("0", 1, 3) == [(1, 3, 1_002.0)]
