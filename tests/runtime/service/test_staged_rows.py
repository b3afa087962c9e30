"""Staged elements in the file of a log: they are there after a restart and after a kill of the
receiver, a commit moves them once, and what no commit will name is deleted.
"""

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from penstock.api import LogError, PublisherFailed, partition_of
from penstock.logs import DiskLog, Retention, Transaction, check_file, salvage
from penstock.logs._disk_store import DiskStore
from penstock.logs._staged_elements import StagedElements
from penstock.logs._work import Stage, Unstage
from penstock.runtime import Service, connect, receive, serve
from penstock.runtime.service._staged_rows import PIECE_BYTES, RowsInFile
from penstock.runtime.service._staging import Attempt
from tests._real_time import HANGS_AFTER
from tests.runtime.service.test_receive import Meeting, Writer, contents

PLENTY = Retention(max_count=1_000_000)

RECEIVER = """
import sys, trio
from penstock import DiskLog, Retention, Service, receive, serve

async def main():
    service = Service()
    async with DiskLog(sys.argv[1], retention=Retention(max_count=1_000)) as log:
        receive(service, "orders", log)
        async with serve(service, sys.argv[2]):
            print("ready", flush=True)
            await trio.sleep_forever()

trio.run(main)
"""


def started(path: Path, url: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", RECEIVER, str(path), url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


async def test_a_receiver_that_is_killed_between_stage_and_commit_loses_nothing(
    tmp_path: Path,
) -> None:
    """SIGKILL after the answer to the stage: the next process commits the batch, once."""
    path, url, writer = tmp_path / "orders.log", f"unix://{tmp_path}/socket", Writer()
    with started(path, url) as process:
        async with connect(url, service=writer.service) as writer.peer:
            await writer.stage(b"1", b"2")
            await writer.stage(b"x" * (PIECE_BYTES + 1), b"3", partition=1)
        process.kill()
        assert process.wait(HANGS_AFTER) == -signal.SIGKILL
    with started(path, url) as process:
        async with connect(url, service=writer.service) as writer.peer:
            attempts = ((0, "a", 2), (1, "a", 2))
            assert await writer.commit(*attempts) == {"is_first": True}
            assert await writer.commit(*attempts) == {"is_first": False}
        process.kill()
        process.wait(HANGS_AFTER)
    async with DiskLog(path, retention=PLENTY) as log:
        assert await contents(log) == [b"1", b"2", b"x" * (PIECE_BYTES + 1), b"3"]


async def test_rows_of_a_task_are_kept_across_a_restart_in_each_partition_and_log(
    tmp_path: Path,
) -> None:
    """A task has an attempt for each partition of each log. All of them are written, in pieces if
    they are large, and a task of which one is missing is not committed.
    """
    random = Random(6)
    names = ("0", "1", "2")
    sent = [
        msgspec.msgpack.encode(
            (
                random.randbytes(random.choice([0, 9, 50_000])),
                b"%d" % random.randrange(9),
                (),
                None,
                random.choice("ab"),
            )
        )
        for _ in range(150)
    ]

    def both() -> tuple[DiskLog, DiskLog]:
        return opened(tmp_path / "a", partitions=names), opened(tmp_path / "b", partitions=names)

    first, second = both()
    async with first, second, Meeting({"a": first, "b": second}) as writer:
        await writer.stage(*sent, more="&routed=true")
    first, second = both()
    async with first, second, Meeting({"a": first, "b": second}) as writer:
        with pytest.raises(PublisherFailed, match="is not staged here"):
            await writer.commit((0, "a", 149))
        assert await writer.commit((0, "a", 150)) == {"is_first": True}
        for log, name in ((first, "a"), (second, "b")):
            for place in names:
                rows = [msgspec.msgpack.decode(each) for each in sent]
                assert await contents(log, place) == [
                    value
                    for value, key, _, _, wanted in rows
                    if wanted == name and partition_of(key, names) == place
                ]
    assert staged_in(tmp_path / "a") == staged_in(tmp_path / "b") == []


# --- the file


def staged_in(path: Path) -> list[int]:
    """Return the numbers of the attempts in the file, each of which has all of its elements."""
    connection = sqlite3.connect(path)
    try:
        numbers = connection.execute("SELECT number, count FROM attempts ORDER BY number")
        pieces = connection.execute(
            "SELECT key / 16777216, sum(count) FROM staged GROUP BY 1"
        ).fetchall()
        attempts = numbers.fetchall()
        assert [each for each in attempts if each[1]] == pieces
        return [number for number, _ in attempts]
    finally:
        connection.close()


def opened(path: Path, **options: Any) -> DiskLog:
    return DiskLog(path, retention=PLENTY, **options)


async def test_what_a_commit_or_an_abort_makes_useless_is_deleted(tmp_path: Path) -> None:
    """An attempt that failed, the attempts of a batch before, and an aborted run."""
    path = tmp_path / "log"
    async with opened(path) as log, Meeting(log) as writer:
        await writer.stage(b"dead", attempt="first")
        await writer.stage(b"1")
        await writer.stage(b"never named", partition=1)
        await writer.commit((0, "a", 1))
        await writer.stage(b"2", batch=1)
        await writer.peer.request(
            "orders/abort", {"query": "q", "batch": 1, "run": "r"}, serializer="json"
        )
        await writer.stage(b"3", batch=1)
    assert staged_in(path) == [5]
    async with opened(path) as log:
        assert await contents(log) == [b"1"]


async def test_a_commit_deletes_what_it_moves_with_the_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A separate deletion would be one more sync. If a batch was repeated, its second attempt is
    deleted, although nothing of it is moved.
    """
    path, forgotten = tmp_path / "log", []
    forget = StagedElements.forget

    def noted(self: StagedElements, number: int) -> None:
        forgotten.append(number)
        forget(self, number)

    monkeypatch.setattr(StagedElements, "forget", noted)
    async with opened(path) as log, Meeting(log) as writer:
        await writer.stage(b"1")
        await writer.commit((0, "a", 1))
        assert forgotten == []
        await writer.stage(b"1", attempt="again")
        assert await writer.commit((0, "again", 1)) == {"is_first": False}
        assert forgotten == [2]
    assert staged_in(path) == []


async def test_a_kill_between_a_commit_and_its_deletions_leaves_nothing_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run of the receiver knows that the batch is in the log."""
    path = tmp_path / "log"
    with monkeypatch.context() as patch:
        patch.setattr(StagedElements, "forget", lambda *_: None)
        async with opened(path) as log, Meeting(log) as writer:
            await writer.stage(b"1", attempt="first")
            await writer.stage(b"1")
            await writer.commit((0, "a", 1))
    assert staged_in(path) == [1]
    async with opened(path) as log, Meeting(log) as writer:
        await writer.stage(b"2", batch=1)
    assert staged_in(path) == [2]


ABORT = {"query": "q", "batch": 0, "run": "r"}


async def test_an_attempt_that_is_dropped_while_the_disk_works_is_not_told_as_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commit would fail, and Spark would not repeat the task."""
    finish = RowsInFile.finish
    async with opened(tmp_path / "log") as log, Meeting(log) as writer:

        async def aborted(self: RowsInFile, attempt: Attempt) -> None:
            await finish(self, attempt)
            await writer.peer.request("orders/abort", ABORT, serializer="json")

        monkeypatch.setattr(RowsInFile, "finish", aborted)
        with pytest.raises(PublisherFailed, match="was dropped while it was staged"):
            await writer.stage(b"1")
    assert staged_in(tmp_path / "log") == []


async def test_an_abort_during_a_commit_drops_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is on its way to the disk."""
    give = RowsInFile.give
    async with opened(tmp_path / "log") as log, Meeting(log) as writer:

        async def aborted(self: RowsInFile, attempt: Attempt, transaction: Transaction) -> None:
            await give(self, attempt, transaction)
            await writer.peer.request("orders/abort", ABORT, serializer="json")

        await writer.stage(b"1")
        monkeypatch.setattr(RowsInFile, "give", aborted)
        assert await writer.commit((0, "a", 1)) == {"is_first": True}
        assert await contents(log) == [b"1"]


async def test_a_part_is_dropped_when_the_log_is_opened(tmp_path: Path) -> None:
    """The program ended while a task was writing."""
    path = tmp_path / "log"
    async with opened(path) as log:
        await log.staged.add(log.staged.next_number(), [b"part"])
    async with opened(path):
        pass
    assert staged_in(path) == []


async def test_old_elements_are_dropped_when_the_log_is_opened(tmp_path: Path) -> None:
    """After max_staged_seconds, by the clock of the log."""
    path, now = tmp_path / "log", 1_000.0
    async with opened(path, clock=lambda: now) as log:
        async with Meeting(log, max_staged_seconds=60) as writer:
            await writer.stage(b"1")
    now = 1_059.0
    async with opened(path, clock=lambda: now):
        pass
    assert staged_in(path) == [1]
    now = 1_060.0
    async with opened(path, clock=lambda: now):
        pass
    assert staged_in(path) == []


async def test_the_bound_counts_what_was_staged_before_a_restart(tmp_path: Path) -> None:
    """Otherwise each restart would give new room."""
    path = tmp_path / "log"
    for batch in range(2):
        async with opened(path) as log, Meeting(log, max_staged_bytes=50_000) as writer:
            refusal = pytest.raises(PublisherFailed, match="max_staged_bytes=50,000")
            if batch:
                with refusal:
                    await writer.stage(*[bytes(1_000)] * 30, batch=batch)
            else:
                await writer.stage(*[bytes(1_000)] * 30, batch=batch)
    assert staged_in(path) == [1]


async def test_each_receiver_has_its_own(tmp_path: Path) -> None:
    """A restart gives the batch of one receiver to no other."""
    path, writer = tmp_path / "log", Writer()
    for run in range(2):
        service = Service()
        async with opened(path) as log:
            receive(service, "bills", log)
            receive(service, "orders", log)
            async with (
                serve(service, "memory://shop"),
                connect("memory://shop", service=writer.service) as writer.peer,
            ):
                if not run:
                    await writer.stage(b"1")
                    continue
                bill = {"query": "q", "batch": 0, "attempts": [(0, "a", 1)]}
                with pytest.raises(PublisherFailed, match="is not staged here"):
                    await writer.peer.request("bills/commit", bill, serializer="json")
                assert await writer.commit((0, "a", 1)) == {"is_first": True}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE staged SET elements = zeroblob(length(elements))",
        "UPDATE staged SET count = 'x'",
        "DELETE FROM staged",
    ],
)
async def test_changed_elements_are_not_committed(tmp_path: Path, change: str) -> None:
    """Nothing of the batch is appended, appends of the same moment are, and the batch can be
    repeated.
    """
    path = tmp_path / "log"
    async with opened(path) as log, Meeting(log) as writer:
        await writer.stage(b"1")
        await writer.stage(b"2", partition=1)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(change + " WHERE key >= 33554432")
    connection.close()
    assert "are staged for a batch were changed" in str(check_file(path).fault)
    async with opened(path) as log, Meeting(log) as writer:
        with pytest.raises(
            PublisherFailed, match=r"were changed or deleted.*Start the query again"
        ):
            await writer.commit((0, "a", 1), (1, "a", 1))
        assert await log.append([b"mine"]) == range(1)
        await writer.stage(b"1", attempt="b")
        await writer.stage(b"2", partition=1, attempt="b")
        assert await writer.commit((0, "b", 1), (1, "b", 1)) == {"is_first": True}
        assert await contents(log) == [b"mine", b"1", b"2"]
    assert check_file(path).fault is None


async def test_a_changed_record_of_an_attempt_is_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log opens, and the log of penstock says who has to act."""
    path = tmp_path / "log"
    async with opened(path) as log, Meeting(log) as writer:
        await writer.stage(b"1")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE attempts SET facts = '[]'")
    connection.close()
    assert "are staged for a batch were changed" in str(check_file(path).fault)
    async with opened(path):
        pass
    assert "its writer has to repeat it" in caplog.text
    assert staged_in(path) == []


async def test_salvage_leaves_staged_elements_out(tmp_path: Path) -> None:
    """The log does not have them yet. A backup has them."""
    path = tmp_path / "log"
    async with opened(path) as log, Meeting(log) as writer:
        await log.append([b"kept"])
        await writer.stage(b"y" * 10_000)
        await log.backup(tmp_path / "copy")
    assert salvage(path, tmp_path / "new") == ([], 0)
    async with opened(tmp_path / "new") as log:
        assert await contents(log) == [b"kept"]
    async with opened(tmp_path / "copy") as log, Meeting(log) as writer:
        assert await writer.commit((0, "a", 1)) == {"is_first": True}
        assert await contents(log) == [b"kept", b"y" * 10_000]


async def test_a_full_disk_fails_the_stage_with_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was written of it is deleted when the disk has room: the deletion is tried again."""
    path, fails = tmp_path / "log", [False]
    real = DiskStore._apply_staged

    def full(self: DiskStore, work: Stage | Unstage) -> None:
        if fails[0] and not (isinstance(work, Stage) and work.attempt is None):
            raise sqlite3.OperationalError("database or disk is full")
        real(self, work)

    monkeypatch.setattr(DiskStore, "_apply_staged", full)
    async with opened(path) as log, Meeting(log) as writer:
        fails[0] = True
        with pytest.raises(PublisherFailed):
            await writer.stage(b"z" * PIECE_BYTES, b"more")
        with suppress(LogError):  # its commit may be that of the deletion
            await log.append([])
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT count(*) FROM staged").fetchone() != (0,)
        fails[0] = False
        await writer.stage(b"z" * PIECE_BYTES, b"more", attempt="b")
        await writer.stage(b"x", attempt="c")
        await writer.commit((0, "c", 1))
        await log.append([b"2"])
        assert connection.execute("SELECT count(*) FROM staged").fetchone() == (0,)
        connection.close()


# --- the model


class Model:
    """A writer, the receiver of a log in a file, and the elements that must be in both."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = Random(seed)
        self.path = folder / "0.log"
        self.kills = 0
        self.names = 0
        self.next = dict.fromkeys(("q", "r"), 0)
        self.staged: dict[tuple[str, int, int, str, str], list[bytes]] = {}
        self.expected: list[bytes] = []
        self.block: AsyncExitStack

    async def run(self, steps: int) -> None:
        await self.open()
        for _ in range(steps):
            act = self.chance.choices(
                (
                    self.stage,
                    self.commit,
                    self.skip,
                    self.repeat,
                    self.abort,
                    self.restart,
                    self.kill,
                ),
                (8, 4, 1, 1, 1, 1, 1),
            )[0]
            await act()
        await self.restart()
        assert await contents(self.log) == self.expected
        await self.block.aclose()
        assert len(staged_in(self.path)) == len(self.staged)

    async def open(self) -> None:
        self.block = AsyncExitStack()
        self.log = await self.block.enter_async_context(opened(self.path))
        self.writer = await self.block.enter_async_context(Meeting(self.log))

    async def stage(self) -> None:
        query = self.chance.choice(list(self.next))
        batch, partition = self.next[query], self.chance.randrange(2)
        self.names += 1
        attempt, run = f"a{self.names}", self.chance.choice("rs")
        size = self.chance.choice((0, 1, 300, 600_000))
        rows = [
            f"{query}/{batch}/{attempt}/{number}".encode().ljust(size, b".")
            for number in range(self.chance.randrange(5))
        ]
        self.writer.rows = rows
        await self.writer.peer.request(
            f"orders/stage?query={query}&run={run}&batch={batch}&partition={partition}"
            f"&attempt={attempt}",
            serializer="json",
        )
        self.staged[query, batch, partition, attempt, run] = rows

    async def commit(self) -> None:
        query = self.chance.choice(list(self.next))
        batch, attempts, rows = self.next[query], [], []
        for partition in range(2):
            known = [key for key in self.staged if key[:3] == (query, batch, partition)]
            if known:
                key = self.chance.choice(known)
                attempts.append((partition, key[3], len(self.staged[key])))
                rows += self.staged[key]
        if attempts and not self.chance.randrange(4):
            with pytest.raises(PublisherFailed, match="is not staged here"):
                await self.ask(query, batch, [(0, "never staged", 1), *attempts])
            return
        assert await self.ask(query, batch, attempts) == {"is_first": True}
        self.expected += rows
        self.forget(lambda key: key[:2] == (query, batch))
        self.next[query] += 1

    async def skip(self) -> None:
        query = self.chance.choice(list(self.next))
        with pytest.raises(PublisherFailed, match=f"does not have batch {self.next[query]} of"):
            await self.ask(query, self.next[query] + 1, [])

    async def repeat(self) -> None:
        query = self.chance.choice(list(self.next))
        if self.next[query]:
            number = self.chance.randrange(self.next[query])
            assert await self.ask(query, number, [(0, "any", 7)]) == {"is_first": False}

    async def abort(self) -> None:
        query, run = self.chance.choice(list(self.next)), self.chance.choice("rs")
        payload = {"query": query, "batch": self.next[query], "run": run}
        await self.writer.peer.request("orders/abort", payload, serializer="json")
        self.forget(lambda key: (key[0], key[4]) == (query, run))

    async def restart(self) -> None:
        await self.block.aclose()
        await self.open()

    async def kill(self) -> None:
        """Go on with the files as they are now, as after a kill."""
        # Deletions are not waited for; a kill before one leaves an attempt that no commit names.
        await self.log.append([])
        self.kills += 1
        after = self.folder / f"{self.kills}.log"
        for ending in ("", "-wal"):
            shutil.copy(f"{self.path}{ending}", f"{after}{ending}")
        await self.block.aclose()
        self.path = after
        await self.open()

    async def ask(self, query: str, batch: int, attempts: list[tuple[int, str, int]]) -> Any:
        payload = {"query": query, "batch": batch, "attempts": attempts}
        return await self.writer.peer.request("orders/commit", payload, serializer="json")

    def forget(self, is_gone: Callable[[tuple[str, int, int, str, str]], bool]) -> None:
        self.staged = {key: rows for key, rows in self.staged.items() if not is_gone(key)}


@pytest.mark.parametrize("seed", range(4))
async def test_each_batch_is_there_once_whatever_happens(tmp_path: Path, seed: int) -> None:
    """Random stages, commits, commits of a wrong batch, aborts, restarts and kills."""
    await Model(tmp_path, seed).run(60)
