"""`penstock cp` copies a log, each element once, and goes on after an interruption."""

import os
import random
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from penstock.api import PenstockError, UsageError
from penstock.cli import _cp, main
from penstock.cli._copy_state import load_state, locked, state_path
from penstock.cli._main import parse
from penstock.logs import DiskLog, Log, Retention, RingLog
from penstock.runtime import Service, receive, serve
from penstock.streams import collect
from tests._real_time import HANGS_AFTER
from tests.cli._programs import line_of, penstock
from tests.cli.test_pub_to import leaves

KEEP = Retention(max_bytes=1 << 30)
ELEMENTS = [b"%d" % number for number in range(30_000)]


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


async def ran(*arguments: object) -> int:
    options = parse(["cp", "--quiet", *map(str, arguments)])
    return int(await options.run(options))


async def refused(*arguments: object) -> str:
    texts: list[str] = []
    try:
        await ran(*arguments)
    except* PenstockError as group:
        texts += map(str, leaves(group))
    return " ".join(texts)


async def fill(path: Path, elements: list[bytes] = ELEMENTS) -> None:
    async with DiskLog(path, retention=KEEP) as log:
        for first in range(0, len(elements), 10_000):
            await log.append(elements[first : first + 10_000])


async def in_file(path: Path) -> list[bytes]:
    async with DiskLog(path, read_only=True) as log:
        return await contents(log)


async def contents(log: Log) -> list[bytes]:
    return await collect(log.source(stop="latest"))


def ring() -> RingLog:
    return RingLog(retention=Retention(max_count=100_000))


async def test_a_file_is_copied_to_a_file_and_a_repeat_copies_what_is_new(tmp_path: Path) -> None:
    """Nothing twice."""
    a, b = tmp_path / "a", tmp_path / "b"
    await fill(a)
    await ran(a, b)
    await ran(a, b)
    assert await in_file(b) == ELEMENTS
    await fill(a, [b"more"])
    await ran(a, b)
    assert await in_file(b) == [*ELEMENTS, b"more"]


async def test_a_service_is_copied_to_a_receiver_and_back(tmp_path: Path) -> None:
    """Both over a connection."""
    source, target = ring(), ring()
    for first in range(0, len(ELEMENTS), 5_000):
        await source.append(ELEMENTS[first : first + 5_000])
    service = Service()
    service.publish("orders", source)
    service.publish("copied", target)
    receive(service, "write", target)
    async with serve(service, "memory://shop"):
        await ran("memory://shop/orders", "memory://shop/write")
        assert await contents(target) == ELEMENTS
        await ran("memory://shop/copied", tmp_path / "back")
    assert await in_file(tmp_path / "back") == ELEMENTS


async def test_a_copy_has_its_first_and_last_position(tmp_path: Path) -> None:
    """Positions, words and times; the repeat goes on where the first one ended."""
    a = tmp_path / "a"
    await fill(a, ELEMENTS[:10])
    await ran(a, tmp_path / "b", "--start", 2, "--stop", 5)
    assert await in_file(tmp_path / "b") == ELEMENTS[2:5]
    await ran(a, tmp_path / "b")
    assert await in_file(tmp_path / "b") == ELEMENTS[2:10]
    await ran(a, tmp_path / "c", "--start", "2020-01-01T00:00:00Z", "--stop", 3)
    assert await in_file(tmp_path / "c") == ELEMENTS[:3]
    await ran(a, tmp_path / "d", "--start", "latest")
    assert await in_file(tmp_path / "d") == []
    await ran(a, tmp_path / "b", "--again", "--start", 9)
    assert await in_file(tmp_path / "b") == [*ELEMENTS[2:10], ELEMENTS[9]]


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("to_receiver", [False, True])
@pytest.mark.parametrize("point", ["before", "after"])
async def test_a_batch_that_was_under_way_is_written_once(
    point: str, to_receiver: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends after the range of a batch is on disk: before the batch is appended, or
    after it.
    """
    a, target = tmp_path / "a", ring()
    await fill(a)
    service = Service()
    receive(service, "write", target)
    to = "memory://shop/write" if to_receiver else str(tmp_path / "b")
    kind = _cp.ReceiverDestination if to_receiver else _cp.LogDestination
    method = "write" if to_receiver else "append"
    original, calls = getattr(kind, method), []

    async def dies(self: Any, *arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2 and point == "before":
            raise Killed
        result = await original(self, *arguments)
        if len(calls) == 2:
            raise Killed
        return result

    async with serve(service, "memory://shop"):
        monkeypatch.setattr(kind, method, dies)
        try:
            await ran(a, to)
        except* Killed:
            pass
        monkeypatch.undo()
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        assert len(calls) == 2
        await ran(a, to)
    assert (await contents(target) if to_receiver else await in_file(tmp_path / "b")) == ELEMENTS


async def test_the_batch_is_found_among_elements_of_other_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were appended before and after it."""
    a, b = tmp_path / "a", tmp_path / "b"
    await fill(a, ELEMENTS[:5])
    original = _cp.LogDestination.append

    async def dies(self: Any, elements: Any) -> None:
        await original(self, [b"other", b"0"])
        await original(self, elements)
        await original(self, [b"3", b"4"])
        raise Killed

    monkeypatch.setattr(_cp.LogDestination, "append", dies)
    try:
        await ran(a, b)
    except* Killed:
        pass
    monkeypatch.setattr(_cp.LogDestination, "append", original)
    await ran(a, b)
    assert await in_file(b) == [b"other", b"0", *ELEMENTS[:5], b"3", b"4"]


async def test_a_source_that_has_lost_the_last_batch_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is another log of that name: a repeat would mix the two."""
    a, b = tmp_path / "a", tmp_path / "b"
    await fill(a, ELEMENTS[:5])

    async def dies(self: Any, elements: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(_cp.LogDestination, "append", dies)
        try:
            await ran(a, b)
        except* Killed:
            pass
    for each in tmp_path.glob("a*"):
        each.unlink()
    await fill(a, ELEMENTS[:3])
    assert "FROM ends at 3, so it is another log" in await refused(a, b)


def state_in(folder: Path) -> bytes | None:
    """Return what the file with the state has; None if there is none."""
    file = next((folder / "state").rglob("*.json"), None)
    return None if file is None else file.read_bytes()


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.parametrize("to_receiver", [False, True])
def test_a_copy_that_is_killed_again_and_again_is_whole(
    to_receiver: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill -9 at random moments; each repeat goes on. Nothing is lost, nothing comes twice."""
    elements = [b"%d" % number for number in range(90_000)]
    trio.run(fill, tmp_path / "a", elements)
    monkeypatch.setenv("PENSTOCK_TEST_LOG", str(tmp_path / "b"))
    (tmp_path / "token").write_text("ann")
    chance, kills = random.Random(7), 0  # the moments of the kills
    with ExitStack() as running:
        to = [str(tmp_path / "b")]
        if to_receiver:
            serve_it = penstock("serve", "tests.cli._receiving:service", "tcp://127.0.0.1:0")
            server = running.enter_context(serve_it)
            to = [f"{line_of(server).split()[-1]}/orders", "--to-bearer", str(tmp_path / "token")]
        while True:
            with penstock("cp", str(tmp_path / "a"), *to) as copy:
                before = state_in(tmp_path)
                while kills < 8 and copy.poll() is None:
                    if state_in(tmp_path) != before and chance.random() < 0.3:
                        copy.kill()
                        kills += 1
                        break
                if copy.wait(HANGS_AFTER) == 0:
                    break
                assert copy.returncode == -9, (copy.communicate(), sorted(tmp_path.glob("b*")))
        if to_receiver:
            server.terminate()
            server.wait(HANGS_AFTER)
    assert kills > 2
    assert trio.run(in_file, tmp_path / "b") == elements


async def test_two_copies_at_once_are_refused(tmp_path: Path) -> None:
    """The second one would repeat the batches of the first."""
    await fill(tmp_path / "a", [b"x"])
    origin, to = str(tmp_path / "a"), str(tmp_path / "b")
    with locked(state_path(f"{origin} ", f"{to} ")):
        assert "another process makes this copy" in await refused(origin, to)


async def test_the_state_of_another_copy_is_refused(tmp_path: Path) -> None:
    """And a file that is none."""
    await fill(tmp_path / "a", [b"x"])
    file = tmp_path / "mine.json"
    await ran(tmp_path / "a", tmp_path / "b", "--state", file)
    text = await refused(tmp_path / "a", tmp_path / "c", "--state", file)
    assert "has the state of a copy from" in text
    for data in (b"", b"{}", b"[1]", msgspec.json.encode({"version": 9})):
        file.write_bytes(data)
        with pytest.raises(UsageError, match="not the state of a copy"):
            load_state(file)
    await ran(tmp_path / "a", tmp_path / "b", "--state", file, "--again")
    assert await in_file(tmp_path / "b") == [b"x", b"x"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tcp://127.0.0.1:1/orders", "FOLDER/b"], "no server answers"),
        (["FOLDER/a", "tcp://127.0.0.1:1/orders"], "no server answers"),
        (["FOLDER/nothing", "FOLDER/b"], "there is no log"),
        (["FOLDER/a", "FOLDER/a"], "cannot be copied to itself"),
        (["FOLDER/a", "FOLDER/b", "--partition", "east"], "has the partitions 0"),
        (["tcp://127.0.0.1:1/x", "FOLDER/b", "--partition", "east"], "?partition=east"),
        (["tcp://127.0.0.1:1", "FOLDER/b"], "names no publisher"),
        (["FOLDER/a", "tcp://127.0.0.1:1"], "names no receiver"),
        (["FOLDER/a", "FOLDER/b", "--start", "soon"], "--start soon"),
        (["FOLDER/a", "FOLDER/b", "--follow", "--stop", "3"], "--follow has no end"),
        (["FOLDER/a", "FOLDER/b", "--state", "/proc/nothing/x"], "cannot keep the state"),
        (["FOLDER/a", "FOLDER/b", "--state", "/dev/zero"], "is no regular file"),
        (["FOLDER/a", "FOLDER/b", "--bearer", "FOLDER/nothing"], ""),
    ],
)
def test_what_cannot_be_copied_is_an_error_of_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The status is 1, and nothing is copied."""
    trio.run(fill, tmp_path / "a", [b"x"])
    status = main(["cp", "--quiet", *(each.replace("FOLDER", str(tmp_path)) for each in arguments)])
    if message:
        err = capsys.readouterr().err
        assert (status, err.count("\n")) == (1, 1)
        assert message in err


async def test_a_client_without_rights_is_refused(tmp_path: Path) -> None:
    """With the credentials for TO it may write."""
    target, service = ring(), Service(authenticate=lambda _s, token, _p: token.decode() or None)
    receive(service, "write", target)
    await fill(tmp_path / "a", [b"x"])
    (tmp_path / "token").write_text("ann\n")
    async with serve(service, "memory://shop"):
        assert await refused(tmp_path / "a", "memory://shop/write")
        arguments = (tmp_path / "a", "memory://shop/write", "--to-bearer", tmp_path / "token")
        await ran(*arguments, "--again")
    assert await contents(target) == [b"x"]


@pytest.mark.parametrize("more", [[], ["--follow"], ["--start", "3", "--stop", "9"]], ids=" ".join)
async def test_without_a_source_no_log_is_made(tmp_path: Path, more: list[str]) -> None:
    """An empty one would look like a copy of an empty log."""
    async with serve(Service(), "memory://shop"):
        assert "no such publisher" in await refused("memory://shop/x", tmp_path / "log", *more)
    assert "no server answers" in await refused("tcp://127.0.0.1:1/x", tmp_path / "log", *more)
    assert list(tmp_path.glob("log*")) == []


async def test_a_publisher_without_a_log_is_refused_with_advice(tmp_path: Path) -> None:
    """Its elements have no positions to go on at."""
    service = Service()
    service.publish("numbers", [b"1", b"2"])
    async with serve(service, "memory://shop"):
        assert "penstock cat" in await refused("memory://shop/numbers", tmp_path / "b")


async def test_the_summary_is_an_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json, on standard output."""
    await fill(tmp_path / "a", ELEMENTS[:7])
    await ran(tmp_path / "a", tmp_path / "b", "--json", "--start", 2)
    summary = msgspec.json.decode(capsys.readouterr().out)
    assert (summary["elements"], summary["start"], summary["stop"]) == (5, 2, 7)


def test_a_full_disk_keeps_the_state_and_the_copy_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The state of a batch cannot be written: the batch is not appended."""
    trio.run(fill, tmp_path / "a", ELEMENTS[:7])
    trio.run(fill, tmp_path / "b", [])  # a new log is synced, too

    def full(_descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr("penstock.cli._copy_state.os.fsync", full)
        assert main(["cp", "--quiet", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert "No space left on device. Nothing of the next batch" in capsys.readouterr().err
    assert trio.run(in_file, tmp_path / "b") == []
    assert main(["cp", "--quiet", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert trio.run(in_file, tmp_path / "b") == ELEMENTS[:7]


def test_a_folder_for_state_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of XDG, or below the home folder; each copy has its own file."""
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/users/ann")
    first = state_path("a", "b")
    assert str(first).startswith("/users/ann/.local/state/penstock/copies/")
    assert first != state_path("a", "c")
    assert sys.platform
