"""Named readers: the log keeps their positions and the elements that the slowest of them needs. A
reader that holds too much is dropped, and learns what it has lost.
"""

import math
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from penstock.api import LogDamaged, PositionNotRetained, UsageError
from penstock.logs import DiskLog, Log, Retention, RingLog, _log_base, check_file, salvage
from penstock.logs import _readers as readers_module
from penstock.logs._disk_files import open_file
from penstock.logs._disk_store import DiskStore
from penstock.logs._readers import Hold, ReaderState
from penstock.logs._work import AddReader, Append
from penstock.streams import collect, subscribe
from tests._real_time import HANGS_AFTER

KEPT = Retention(max_count=800, acknowledged=True)
EVICTS = Retention(max_count=16)

OpenLog = Callable[..., Any]


@pytest.fixture(params=["ring", "disk"])
def open_log(request: pytest.FixtureRequest, tmp_path: Path) -> OpenLog:
    """A log of each kind. That on disk counts ages by the clock of the run, as the other one."""

    @asynccontextmanager
    async def opened(
        retention: Retention = KEPT, partitions: Iterable[str] = ("0",)
    ) -> AsyncIterator[Log]:
        if request.param == "ring":
            yield RingLog(retention=retention, partitions=partitions)
            return
        time = [0.0]

        def clock() -> float:
            return time[0]

        async with DiskLog(
            tmp_path / "log", retention=retention, partitions=partitions, clock=clock
        ) as log:
            log.time = time  # type: ignore[attr-defined]  # for the tests of ages
            yield log

    return opened


def elements(start: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, stop)]


async def rest(log: Log, name: str) -> list[bytes]:
    return await collect(log.reader(name).source(stop="latest"))


async def test_the_log_keeps_what_its_slowest_reader_needs(open_log: OpenLog) -> None:
    """And reads go on where the reader has acknowledged."""
    async with open_log() as log:
        await log.append(elements(0, 10))
        nightly = await log.add_reader("nightly", max_count=700)
        hourly = await log.add_reader("hourly", start="latest", max_count=700)
        assert log.readers == ("hourly", "nightly")
        assert (nightly.positions(), hourly.positions()) == ({"0": 0}, {"0": 10})
        for start in range(10, 60, 10):
            await log.append(elements(start, start + 10))
        await hourly.acknowledge({"0": 60})
        assert log.earliest() == {"0": 0}
        await nightly.acknowledge({"0": 30})
        assert 0 < log.earliest()["0"] <= 30
        await nightly.acknowledge({"0": 5})
        assert nightly.positions() == {"0": 30}
        assert await rest(log, "nightly") == elements(30, 60)
        assert await rest(log, "hourly") == []
        assert repr(nightly).startswith("<reader 'nightly' of <")
        assert nightly.name == "nightly"


async def test_a_source_begins_where_its_subscriber_finds_the_reader(open_log: OpenLog) -> None:
    """And not where the reader was when the source was made. Two subscribers get all elements."""
    async with open_log() as log:
        await log.append(elements(0, 4))
        reader = await log.add_reader("nightly", max_count=700)
        source = reader.source()
        await reader.acknowledge({"0": 2})
        async with subscribe(source) as first, subscribe(source) as second:
            assert [await anext(first), await anext(second)] == [b"2", b"2"]
            assert first.position == 3


async def test_a_reader_that_holds_too_much_is_dropped_and_told(
    open_log: OpenLog, caplog: pytest.LogCaptureFixture
) -> None:
    """The others go on. It comes back when it acknowledges a position that the log has."""
    async with open_log() as log:
        gone = await log.add_reader("gone", max_count=20)
        alive = await log.add_reader("alive", max_count=700)
        for start in range(0, 40, 4):
            await log.append(elements(start, start + 4))
            await alive.acknowledge({"0": start + 4})
        assert gone.dropped() == ("0",)
        assert alive.dropped() == ()
        assert "the reader 'gone'" in caplog.text
        assert "held more than max_count=20 allow" in caplog.text
        earliest = log.earliest()["0"]
        assert earliest == 40
        with pytest.raises(
            PositionNotRetained, match=r"up to 0, and the log begins at 40.*Acknowledge 40"
        ):
            await rest(log, "gone")
        await log.append(elements(40, 44))
        await gone.acknowledge({"0": 39})
        assert gone.dropped() == ("0",)
        await gone.acknowledge({"0": 40})
        assert gone.dropped() == ()
        await alive.acknowledge({"0": 44})
        assert log.earliest() == {"0": 40}
        assert await rest(log, "gone") == elements(40, 44)


async def test_a_reader_at_the_end_holds_nothing(open_log: OpenLog) -> None:
    """It is not dropped, however small its bound, by an append of more than that."""
    async with open_log() as log:
        reader = await log.add_reader("nightly", max_count=5)
        await log.append(elements(0, 5))
        assert reader.dropped() == ()
        await reader.acknowledge({"0": 5})
        await log.append(elements(5, 11))
        assert reader.dropped() == ("0",)
        # Nothing else needs the room, so it has lost nothing yet.
        assert await rest(log, "nightly") == elements(5, 11)


async def test_bytes_of_a_group_that_is_acknowledged_in_part_do_not_drop_a_reader(
    open_log: OpenLog,
) -> None:
    """The bound counts what the reader holds for sure."""
    async with open_log(Retention(max_bytes=80_000, acknowledged=True)) as log:
        reader = await log.add_reader("nightly", max_bytes=5_000)
        await log.append([b"x" * 100] * 45)
        await reader.acknowledge({"0": 40})
        await log.append([b"x" * 100] * 45)
        assert reader.dropped() == ()
        await log.append([b"x" * 100] * 10)
        assert reader.dropped() == ("0",)


async def test_without_a_reader_that_holds_it_a_log_drops_and_does_not_wait(
    open_log: OpenLog,
) -> None:
    """All readers of the log were dropped."""
    async with open_log() as log:
        reader = await log.add_reader("nightly", max_count=700)
        for start in range(0, 3_000, 100):
            with trio.fail_after(HANGS_AFTER):
                await log.append(elements(start, start + 100))
        assert reader.dropped() == ("0",)
        assert log.earliest()["0"] >= 2_200
        await reader.acknowledge({"0": 2_900})
        assert log.earliest()["0"] == 2_900


async def test_an_append_that_waits_for_room_drops_the_reader_that_holds_it(
    open_log: OpenLog,
) -> None:
    """Each part was within its bound, and with the append it would hold more."""
    async with open_log() as log:
        reader = await log.add_reader("nightly", max_count=700)
        await log.append(elements(0, 600))
        assert reader.dropped() == ()
        with trio.fail_after(HANGS_AFTER):
            await log.append(elements(600, 1_000))
        assert reader.dropped() == ("0",)


async def test_a_reader_is_dropped_by_age(tmp_path: Path) -> None:
    """At the next append, or while an append waits for room."""
    now = 0.0
    async with DiskLog(tmp_path / "log", retention=KEPT, clock=lambda: now) as log:
        reader = await log.add_reader("nightly", max_age=60)
        await log.append(elements(0, 1))
        now = 60.0
        await log.append(elements(1, 2))
        assert reader.dropped() == ()
        now = 61.0
        await log.append(elements(2, 3))
        assert reader.dropped() == ("0",)


async def test_a_full_log_waits_for_a_reader_for_at_most_its_age(
    autojump_clock: MockClock,
) -> None:
    """By the clock of the run."""
    log = RingLog(retention=KEPT)
    reader = await log.add_reader("nightly", max_age=600)
    await log.append(elements(0, 800))
    begun = trio.current_time()
    await log.append(elements(800, 801))
    assert 600 < trio.current_time() - begun < 700
    assert reader.dropped() == ("0",)


async def test_a_full_log_goes_on_when_its_reader_acknowledges(open_log: OpenLog) -> None:
    """A reader that is there makes the writer wait, and no element is lost to it."""
    async with open_log() as log:
        reader = await log.add_reader("nightly", max_age=1e9)
        await log.append(elements(0, 800))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.append, elements(800, 900))
            for _ in range(20):
                await trio.lowlevel.checkpoint()
            assert log.latest() == {"0": 800}
            await reader.acknowledge({"0": 400})
        assert await rest(log, "nightly") == elements(400, 900)


async def test_a_removed_reader_holds_nothing(open_log: OpenLog) -> None:
    """And is not known any more."""
    async with open_log() as log:
        gone = await log.add_reader("gone", max_count=700)
        kept = await log.add_reader("kept", max_count=700)
        await log.append(elements(0, 10))
        await kept.acknowledge({"0": 10})
        assert log.earliest() == {"0": 0}
        await gone.remove()
        assert (log.readers, log.earliest()) == (("kept",), {"0": 10})
        for call in (gone.positions, lambda: log.reader("gone"), gone.source):
            with pytest.raises(UsageError, match="no reader 'gone', it has"):
                call()
        with pytest.raises(UsageError, match="no reader 'gone'"):
            await gone.acknowledge({"0": 10})


async def test_a_reader_that_is_added_again_keeps_its_position(open_log: OpenLog) -> None:
    """A program adds its readers each time that it starts."""
    async with open_log() as log:
        await log.append(elements(0, 10))
        reader = await log.add_reader("nightly", max_count=700)
        await reader.acknowledge({"0": 3})
        again = await log.add_reader("nightly", start="latest", max_count=6)
        assert again.positions() == {"0": 3}
        # Its new bound counts at once.
        assert again.dropped() == ("0",)


async def test_readers_of_a_log_that_drops_its_oldest_elements(open_log: OpenLog) -> None:
    """They hold nothing: their positions are kept, and they are told of the elements that were
    dropped.
    """
    async with open_log(EVICTS) as log:
        reader = await log.add_reader("nightly")
        await log.append(elements(0, 4))
        await reader.acknowledge({"0": 2})
        assert await rest(log, "nightly") == elements(2, 4)
        for start in range(4, 40, 2):
            await log.append(elements(start, start + 2))
        with pytest.raises(PositionNotRetained, match="the Retention of the log dropped them"):
            await rest(log, "nightly")


async def test_each_partition_has_a_position(open_log: OpenLog) -> None:
    """And is held by itself."""
    async with open_log(partitions=("east", "west")) as log:
        reader = await log.add_reader("nightly", max_count=20)
        await log.append(elements(0, 10), partition="east")
        await log.append(elements(0, 30), partition="west")
        assert reader.dropped() == ("west",)
        await reader.acknowledge({"east": 4})
        # The smaller position changes nothing, also beside one that does.
        await reader.acknowledge({"east": 3, "west": 0})
        await reader.acknowledge({"east": 2, "west": 1})
        assert reader.positions() == {"east": 4, "west": 1}
        assert await collect(reader.source("east", stop=6)) == elements(4, 6)
        with pytest.raises(PositionNotRetained):
            await reader.acknowledge({"west": 31})


async def test_a_reader_holds_the_partitions_that_it_reads(open_log: OpenLog) -> None:
    """A partition that no reader reads is dropped by its bounds, and appends do not wait."""
    async with open_log(partitions=("east", "west", "marks")) as log:
        reader = await log.add_reader("nightly", partitions=["west", "east"], max_count=700)
        other = await log.add_reader("other", partitions=["west"], max_count=700)
        for partition in ("east", "west"):
            await log.append(elements(0, 10), partition=partition)
        for start in range(0, 2_000, 100):
            await log.append(elements(start, start + 100), partition="marks")
        assert reader.positions() == {"east": 0, "west": 0}
        assert other.positions() == {"west": 0}
        assert reader.dropped() == other.dropped() == ()
        await reader.acknowledge({"east": 10, "west": 10})
        assert (log.earliest()["east"], log.earliest()["west"]) == (10, 0)
        for call in (
            lambda: other.source("east"),
            lambda: collect(other.source("marks", "latest")),
        ):
            with pytest.raises(UsageError, match=r"reads \['west'\]"):
                call()
        with pytest.raises(UsageError, match="does not read partition 'east'"):
            await other.acknowledge({"east": 1})
        with pytest.raises(UsageError, match="no partition 'north'"):
            await log.add_reader("x", partitions=["north"], max_count=700)
        await log.add_reader("other", max_count=700)
        # Those of "east" that "reader" has acknowledged, and of "marks" all but 700, are gone.
        assert other.positions() == {"east": 10, "west": 0, "marks": 1_300}
        assert other.dropped() == ()


async def test_a_partition_that_is_added_to_a_reader_begins_at_start(open_log: OpenLog) -> None:
    """The others stay where they are. One that is taken away and added again begins anew."""
    async with open_log(partitions=("east", "west", "north")) as log:
        for partition in ("east", "west", "north"):
            await log.append(elements(0, 30), partition=partition)
        await log.add_reader("nightly", partitions=["east"], max_count=700)
        both = ["east", "west"]
        reader = await log.add_reader("nightly", partitions=both, start="latest", max_count=700)
        assert reader.positions() == {"east": 0, "west": 30}
        await reader.acknowledge({"east": 5})
        await log.add_reader("nightly", start="earliest", max_count=700)
        assert reader.positions() == {"east": 5, "west": 30, "north": 0}
        await log.add_reader("nightly", partitions=["north"], max_count=700)
        await log.add_reader("nightly", partitions=["east", "north"], max_count=20)
        # "north" has lost nothing yet, and holds more than it may now.
        assert reader.dropped() == ("north",)
        assert reader.positions() == {"east": 10, "north": 0}


async def test_a_new_reader_begins_where_its_bounds_allow(
    open_log: OpenLog, caplog: pytest.LogCaptureFixture
) -> None:
    """A log that holds more than that does not drop it at once."""
    async with open_log(Retention(max_bytes=80_000, acknowledged=True)) as log:
        for _ in range(10):
            await log.append([b"x" * 100] * 10)
        await log.add_reader("other", max_bytes=70_000)  # it holds all
        for bounds, first in (
            ({"max_count": 25, "max_bytes": 70_000}, 75),
            ({"max_bytes": 70_000}, 0),
            ({"max_bytes": 50}, 100),
        ):
            reader = await log.add_reader("new", **bounds)  # type: ignore[arg-type]  # all are int
            assert (reader.positions(), reader.dropped()) == ({"0": first}, ())
            assert len(await rest(log, "new")) == 100 - first
            await reader.remove()
        # A group is read whole, or from the middle, when its bytes do not count.
        reader = await log.add_reader("new", max_bytes=3_500)
        begin = reader.positions()["0"]
        assert 0 < begin <= 100
        assert reader.dropped() == ()
        assert 100 * (100 - begin) <= 3_500
        assert "was dropped" not in caplog.text


async def test_a_new_reader_begins_where_its_age_allows(tmp_path: Path) -> None:
    """In one commit with elements that are not in the file yet."""
    now = 0.0
    async with DiskLog(tmp_path / "log", retention=KEPT, clock=lambda: now) as log:
        for _ in range(5):
            await log.append(elements(0, 10))
            now += 20.0
        reader = await log.add_reader("nightly", max_age=50)
        assert (reader.positions(), reader.dropped()) == ({"0": 30}, ())


def test_a_new_reader_counts_what_its_commit_appends(tmp_path: Path) -> None:
    """The elements of one commit wait for their insert."""
    path = tmp_path / "log"
    connection, opened = open_file(path, accept_loss=False)
    opened.close()
    store = DiskStore(connection, path, KEPT, lambda: 1.0)
    store.load(["0"])
    work = AddReader("nightly", None, (5, None, None), is_at_the_end=False)
    store.commit([Append(0, tuple(elements(0, 8)), 8), work])
    (reader,) = store.readers.known.values()
    assert (reader.positions, reader.dropped) == ((3,), (False,))
    store.close()


async def test_bounds_of_a_reader_do_not_count_while_it_holds_nothing(tmp_path: Path) -> None:
    """The log was opened with a retention that drops its oldest elements, since."""
    path = tmp_path / "log"
    async with DiskLog(path, retention=KEPT) as log:
        await log.add_reader("nightly", partitions=["0"], max_count=5)
    async with DiskLog(path, retention=EVICTS) as log:
        await log.append(elements(0, 10))
        assert log.reader("nightly").dropped() == ()
        assert log.reader("nightly").positions() == {"0": 0}


@pytest.mark.parametrize(
    ("retention", "options", "text"),
    [
        (KEPT, {}, "max_count=None.*append would wait for ever. Give max_count= of at most 700"),
        (KEPT, {"max_count": 701}, "at most 700"),
        (
            Retention(max_count=10, max_bytes=80, acknowledged=True),
            {"max_count": 5},
            "max_bytes=None",
        ),
        (KEPT, {"max_age": math.nan}, "positive number, not nan"),
        (KEPT, {"max_age": math.inf}, "positive number, not inf"),
        (KEPT, {"max_count": 0}, "positive number, not 0"),
        (KEPT, {"max_count": True}, "positive number, not True"),
        (KEPT, {"max_count": 5, "start": 7}, "give 'earliest' or 'latest'"),
        (EVICTS, {"max_count": 5}, "leave the bound out"),
        (KEPT, {"name": "", "max_count": 5}, "the name of a reader"),
        (KEPT, {"name": "x" * 256, "max_count": 5}, "1 to 255 bytes"),
    ],
)
async def test_a_reader_that_could_hold_a_log_for_ever_is_refused(
    retention: Retention, options: dict[str, Any], text: str
) -> None:
    """And other mistakes, each with what is allowed."""
    log = RingLog(retention=retention)
    with pytest.raises(UsageError, match=text):
        await log.add_reader(**({"name": "nightly"} | options))
    assert log.readers == ()


async def test_the_number_of_readers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit looks at all of them."""
    monkeypatch.setattr(_log_base, "MOST_READERS", 2)
    log = RingLog(retention=EVICTS)
    for name in ("a", "b", "a"):
        await log.add_reader(name)
    with pytest.raises(UsageError, match=r"remove those that are not used"):
        await log.add_reader("c")
    assert readers_module.MOST_READERS == 256


async def test_one_acknowledgement_for_all_is_refused_beside_readers(open_log: OpenLog) -> None:
    """It would say nothing about what they need."""
    async with open_log() as log:
        reader = await log.add_reader("nightly", max_count=700)
        with pytest.raises(UsageError, match=r"has the readers \['nightly'\]"):
            await log.acknowledge({"0": 0})
        await reader.remove()
        await log.acknowledge({"0": 0})


def test_the_bounds_of_a_reader() -> None:
    """The first one that is exceeded."""
    reader = ReaderState("r", max_count=5, max_bytes=50, max_age=500.0)
    assert reader.exceeded_by(Hold(5, 50, 500.0)) is None
    assert reader.exceeded_by(Hold(6, 51, 0.0)) == "max_count"
    assert reader.exceeded_by(Hold(0, 51, 501.0)) == "max_bytes"
    assert reader.exceeded_by(Hold(0, 0, 501.0)) == "max_age"
    assert reader.bounds_text() == "max_count=5, max_bytes=50, max_age=500.0"
    assert ReaderState.of_text("r", [5, 50, 500.0], reader.to_text()) == reader


# --- the file


async def test_readers_are_there_after_a_restart(tmp_path: Path) -> None:
    """Their positions and their losses are kept. Partitions that are added begin at 0."""
    path = tmp_path / "log"
    async with DiskLog(path, retention=KEPT, partitions=["a"]) as log:
        await log.append(elements(0, 30), partition="a")
        first = await log.add_reader("first", max_count=700)
        await log.add_reader("dropped", max_count=20)
        await log.add_reader("removed", max_count=700)
        await first.acknowledge({"a": 20})
        await log.reader("removed").remove()
        await log.append(elements(30, 31), partition="a")
    async with DiskLog(path, retention=KEPT, partitions=["a", "b"]) as log:
        assert log.readers == ("dropped", "first")
        assert log.reader("first").positions() == {"a": 20, "b": 0}
        assert log.reader("dropped").dropped() == ("a",)
        await log.append(elements(0, 5), partition="b")
        assert log.earliest() == {"a": 0, "b": 0}
        await log.reader("first").acknowledge({"a": 31, "b": 5})
        assert log.earliest() == {"a": 31, "b": 0}


async def test_ages_count_while_a_log_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The reader is dropped when the log is opened, and the line is written."""
    path, now = tmp_path / "log", 0.0
    async with DiskLog(path, retention=KEPT, clock=lambda: now) as log:
        await log.add_reader("nightly", max_age=60)
        await log.append(elements(0, 5))
    now = 61.0
    async with DiskLog(path, retention=KEPT, clock=lambda: now) as log:
        assert log.reader("nightly").dropped() == ("0",)
    assert "held more than max_age=60.0 allow" in caplog.text
    assert check_file(path).readers[0].is_dropped(0)


async def test_a_commit_that_fails_changes_no_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full."""
    async with DiskLog(tmp_path / "log", retention=KEPT) as log:
        reader = await log.add_reader("nightly", max_count=700)
        await log.append(elements(0, 10))

        def full(_: DiskStore) -> None:
            raise sqlite3.OperationalError("full")

        with monkeypatch.context() as patch:
            patch.setattr(DiskStore, "_save_readers", full)
            with pytest.raises(LogDamaged):
                await reader.acknowledge({"0": 5})
        assert reader.positions() == {"0": 0}
        assert log.earliest() == {"0": 0}
        await log.append(elements(10, 11))
        assert await rest(log, "nightly") == elements(0, 11)


async def test_check_backup_and_salvage_know_readers(tmp_path: Path) -> None:
    """A reader is never beyond the last element that was salvaged."""
    path = tmp_path / "log"
    async with DiskLog(path, retention=KEPT) as log:
        await log.append(elements(0, 30))
        reader = await log.add_reader("nightly", max_count=700)
        await reader.acknowledge({"0": 20})
        await log.backup(tmp_path / "copy")
    assert salvage(path, tmp_path / "new") == ([], 0)
    for copy in ("copy", "new"):
        found = check_file(tmp_path / copy)
        assert (found.fault, [each.positions for each in found.readers]) == (None, [(20,)])
        async with DiskLog(tmp_path / copy, retention=KEPT) as log:
            assert await rest(log, "nightly") == elements(20, 30)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DELETE FROM groups")
    connection.execute("VACUUM")  # or salvage would find them in free pages
    connection.close()
    salvage(path, tmp_path / "rest")
    async with DiskLog(tmp_path / "rest", retention=KEPT) as log:
        (position,) = log.reader("nightly").positions().values()
        assert position <= log.latest()["0"]


async def test_a_changed_record_of_a_reader_is_told(tmp_path: Path) -> None:
    """The log does not guess what it may drop."""
    path = tmp_path / "log"
    async with DiskLog(path, retention=KEPT) as log:
        await log.add_reader("nightly", max_count=700)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE readers SET max_count = 7")
    connection.close()
    with pytest.raises(LogDamaged, match="the record of reader 1 was changed"):
        async with DiskLog(path, retention=KEPT):
            pass
    assert "reader 1" in str(check_file(path).fault)


async def test_an_acknowledgement_that_changes_nothing_costs_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer may repeat it as often as it likes."""
    commits: list[int] = []
    commit = DiskStore.commit

    def counted(self: DiskStore, works: Any) -> Any:
        commits.append(len(works))
        return commit(self, works)

    async with DiskLog(tmp_path / "log", retention=KEPT) as log:
        reader = await log.add_reader("nightly", max_count=700)
        await log.append(elements(0, 10))
        monkeypatch.setattr(DiskStore, "commit", counted)
        for position in (5, 5, 3):
            with trio.testing.assert_checkpoints():
                await reader.acknowledge({"0": position})
        assert commits == [1]


async def test_a_log_that_is_read_only_has_no_readers(tmp_path: Path) -> None:
    """It cannot keep positions."""
    path = tmp_path / "log"
    async with DiskLog(path, retention=KEPT) as log:
        await log.add_reader("nightly", max_count=700)
        async with DiskLog(path, read_only=True) as reading:
            with pytest.raises(UsageError, match="for reading only"):
                reading.reader("nightly")


# --- the model


class Model:
    """A log on disk, its readers, and what each of them must get."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = Random(seed)
        self.folder = folder
        self.path = folder / "0.log"
        self.kills = 0
        self.latest = 0
        self.bounds = {"a": 30, "b": 60, "c": 200}
        self.places = dict.fromkeys(self.bounds, 0)
        self.dropped: set[str] = set()
        self.log: DiskLog
        self.retention = Retention(max_count=320, acknowledged=True)

    async def run(self, steps: int) -> None:
        self.log = await self.opened()
        for name, bound in self.bounds.items():
            await self.log.add_reader(name, max_count=bound)
        for _ in range(steps):
            acts = (self.append, self.read, self.lose, self.restart, self.kill)
            await self.chance.choices(acts, (5, 6, 1, 1, 1))[0]()
            self.check()
        await self.log.aclose()

    async def opened(self) -> DiskLog:
        log = DiskLog(self.path, retention=self.retention)
        return await log.__aenter__()

    async def append(self) -> None:
        count = self.chance.randrange(1, 12)
        await self.log.append(elements(self.latest, self.latest + count))
        self.latest += count
        self.drop()

    def drop(self) -> None:
        """Drop in the model, by the rule: the slowest reader that holds more than its bound."""
        while True:
            here = {name: place for name, place in self.places.items() if name not in self.dropped}
            slowest = min(here.values(), default=self.latest)
            late = {
                name
                for name, place in here.items()
                if place == slowest and self.latest - place > self.bounds[name]
            }
            if not late:
                return
            self.dropped |= late

    async def read(self) -> None:
        """Take some elements, and acknowledge them or vanish before that."""
        name = self.chance.choice(list(self.places))
        place, earliest = self.places[name], self.log.earliest()["0"]
        if place < earliest:
            assert name in self.dropped
            with pytest.raises(PositionNotRetained, match=f"Acknowledge {earliest:,}"):
                await rest(self.log, name)
            if self.chance.random() < 0.5:
                await self.acknowledge(name, earliest)
            return
        stop = self.chance.randint(place, self.latest)
        assert await collect(self.log.reader(name).source(stop=stop)) == elements(place, stop)
        if self.chance.random() < 0.7:
            await self.acknowledge(name, stop)

    async def acknowledge(self, name: str, place: int) -> None:
        # The log may still have what a dropped reader needs: then it is back with any position.
        await self.log.reader(name).acknowledge({"0": place})
        self.places[name] = place
        self.dropped.discard(name)
        self.drop()

    async def lose(self) -> None:
        """Remove a reader, and add one with its name: it begins with what the log has."""
        name = self.chance.choice(list(self.places))
        await self.log.reader(name).remove()
        self.dropped.discard(name)
        del self.places[name]
        self.drop()
        reader = await self.log.add_reader(name, max_count=self.bounds[name])
        self.places[name] = reader.positions()["0"]
        self.drop()

    async def restart(self) -> None:
        await self.log.aclose()
        self.log = await self.opened()

    async def kill(self) -> None:
        """Go on with the files as they are now, as after a kill."""
        self.kills += 1
        after = self.folder / f"{self.kills}.log"
        for ending in ("", "-wal"):
            shutil.copy(f"{self.path}{ending}", f"{after}{ending}")
        await self.log.aclose()
        self.path = after
        self.log = await self.opened()

    def check(self) -> None:
        """The log has all that a reader needs which is not dropped, and not much more."""
        readers = {name: self.log.reader(name) for name in self.places}
        assert {name: each.positions()["0"] for name, each in readers.items()} == self.places
        assert {name for name, each in readers.items() if each.dropped()} == self.dropped
        earliest = self.log.earliest()["0"]
        here = [place for name, place in self.places.items() if name not in self.dropped]
        assert earliest <= min(here, default=self.latest)
        assert self.latest - earliest <= 320


@pytest.mark.parametrize("seed", range(6))
async def test_no_reader_loses_an_element_that_it_was_not_told_of(
    tmp_path: Path, seed: int
) -> None:
    """Random appends, reads, acknowledgements, removals, restarts, kills, and readers that vanish."""
    await Model(tmp_path, seed).run(120)
