"""`penstock pub --to` writes lines to a receiver or a log."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import PenstockError
from penstock.cli import _destination, _pub, main
from penstock.logs import DiskLog, Log, Retention, RingLog
from penstock.runtime import Service, receive, serve
from penstock.streams import collect
from tests._real_time import HANGS_AFTER
from tests.cli._programs import penstock


async def ran(*arguments: str) -> int:
    from penstock.cli._main import parse  # noqa: PLC0415  # as the command does

    options = parse(["pub", "--quiet", *arguments])
    return int(await options.run(options))


async def refused(*arguments: str) -> str:
    """Return the text of the error of a command that fails."""
    texts: list[str] = []
    try:
        await ran(*arguments)
    except* PenstockError as group:
        texts += map(str, leaves(group))
    (text,) = texts
    return text


def leaves(group: BaseExceptionGroup[Any]) -> list[BaseException]:
    """Return the exceptions of a group."""
    return [
        single
        for each in group.exceptions
        for single in (leaves(each) if isinstance(each, BaseExceptionGroup) else [each])
    ]


def ring() -> RingLog:
    return RingLog(retention=Retention(max_count=100_000))


def shop(log: Any) -> Service:
    service = Service()
    receive(service, "orders", log)
    return service


async def contents(log: Log, partition: str = "0") -> list[bytes]:
    return await collect(log.source(partition, stop="latest"))


async def in_file(path: Path) -> list[bytes]:
    async with DiskLog(path, read_only=True) as log:
        return await contents(log, log.partitions[0])


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"".join(b"%d\n" % number for number in range(2_500)))
    return file


EXPECTED = [b"%d" % number for number in range(2_500)]


@pytest.mark.parametrize("words", [["memory://shop", "orders"], ["memory://shop/orders"]])
async def test_lines_of_a_file_go_to_a_receiver(words: list[str], lines: Path) -> None:
    """Its name follows TO, or is in the URL."""
    log = ring()
    async with serve(shop(log), "memory://shop"):
        assert await ran("--to", *words, str(lines)) == 0
    assert await contents(log) == EXPECTED


async def test_an_id_appends_once_at_a_receiver(
    lines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same input repeated is left out; what the summary says is true."""
    log = ring()
    async with serve(shop(log), "memory://shop"):
        for _ in range(2):
            await ran("--to", "memory://shop/orders", str(lines), "--id", "monday", "--json")
        await ran("--to", "memory://shop/orders", str(lines), "--id", "tuesday")
    assert await contents(log) == EXPECTED * 2
    summaries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["elements"], each["new"]) for each in summaries] == [(2_500, 2_500), (2_500, 0)]


async def test_another_input_under_one_id_is_refused_by_a_receiver(lines: Path) -> None:
    """If its last batch was another one: the lines would be lost without a word."""
    async with serve(shop(ring()), "memory://shop"):
        await ran("--to", "memory://shop/orders", str(lines), "--id", "monday")
        with lines.open("ab") as file:
            file.write(b"more\n")
        assert "other lines under this id, from line 2,001" in await refused(
            "--to", "memory://shop/orders", str(lines), "--id", "monday"
        )


async def test_an_id_appends_once_to_a_file(tmp_path: Path, lines: Path) -> None:
    """And an input that has grown is appended from where it ended."""
    log = tmp_path / "log"
    for _ in range(2):
        await ran("--to", str(log), str(lines), "--id", "monday")
    assert await in_file(log) == EXPECTED
    with lines.open("ab") as file:
        file.write(b"".join(b"x%d\n" % number for number in range(600)))
    await ran("--to", str(log), str(lines), "--id", "monday")
    assert await in_file(log) == EXPECTED + [b"x%d" % number for number in range(600)]


@pytest.mark.parametrize("left", [2_600, 2_400, 2_500, 1_000])
async def test_a_shorter_input_under_one_id_appends_nothing(
    tmp_path: Path, lines: Path, left: int
) -> None:
    """It had grown before, so that a batch begins at line 2,501. A shorter input once appended the
    lines after it again. One that ends where a batch ends is a part of what is there.
    """
    log, grown = tmp_path / "log", [b"%d" % number for number in range(5_000)]
    await ran("--to", str(log), str(lines), "--id", "monday")
    lines.write_bytes(b"\n".join(grown))
    await ran("--to", str(log), str(lines), "--id", "monday")
    lines.write_bytes(b"\n".join(grown[:left]))
    if left in (2_600, 2_400):
        text = await refused("--to", str(log), str(lines), "--id", "monday")
        assert "the input is shorter than before, or has changed" in text
        assert ("500 lines under this id from line 2,501" in text) == (left == 2_600)
    else:
        await ran("--to", str(log), str(lines), "--id", "monday")
    assert await in_file(log) == grown


async def test_a_receiver_gets_what_is_new_after_a_whole_batch(lines: Path) -> None:
    """A shorter input appends nothing there, and is refused if its last batch has other lines."""
    log, grown = ring(), [b"%d" % number for number in range(3_000)]
    async with serve(shop(log), "memory://shop"):
        for count in (2_000, 3_000, 1_000):
            lines.write_bytes(b"\n".join(grown[:count]))
            await ran("--to", "memory://shop/orders", str(lines), "--id", "monday")
        lines.write_bytes(b"\n".join(grown[:2_600]))
        assert "other lines under this id, from line 2,001" in await refused(
            "--to", "memory://shop/orders", str(lines), "--id", "monday"
        )
    assert await contents(log) == grown


async def test_batches_of_an_id_depend_on_the_lines_alone() -> None:
    """However they come: a repeat makes the same batches."""

    async def given(*sizes: int) -> Any:
        left = [b"x" * size for size in [1, 400_000, 200_000, 1, 600_000, 5]]
        for size in sizes:
            yield left[:size]
            left = left[size:]

    made = [
        [len(batch) async for batch in _pub.whole_pieces(given(*sizes), 3)]
        for sizes in ([6], [1, 1, 1, 1, 1, 1], [2, 4], [5, 1])
    ]
    assert made == [[2, 2, 1, 1]] * 4


async def test_a_function_receives_lines_without_an_id(lines: Path) -> None:
    """With an id it is refused: each line would come at least once."""
    got: list[bytes] = []

    async def keep(received: Any) -> None:
        got.extend(received.elements)

    async with serve(shop(keep), "memory://shop"):
        await ran("--to", "memory://shop/orders", str(lines))
        assert got == EXPECTED
        assert "at least once" in await refused(
            "--to", "memory://shop/orders", str(lines), "--id", "monday"
        )


async def test_a_partition_is_chosen_with_into(tmp_path: Path, lines: Path) -> None:
    """One that an existing file lacks is refused: it would be added by a slip of the finger."""
    log = tmp_path / "log"
    await ran("--to", str(log), str(lines), "--into", "east")
    await ran("--to", str(log), str(lines))
    assert await in_file(log) == EXPECTED * 2
    assert "has the partitions east; choose one with --into" in await refused(
        "--to", str(log), str(lines), "--into", "esat"
    )


async def test_bounds_are_those_of_a_log(tmp_path: Path, lines: Path) -> None:
    """A receiver has its own."""
    log = tmp_path / "log"
    await ran("--to", str(log), str(lines), "--max-count", "1200")
    assert len(await in_file(log)) <= 1_200
    assert "the receiver decides" in await refused(
        "--to", "memory://shop/orders", str(lines), "--max-count", "800"
    )


async def test_a_rate_bounds_the_lines_of_a_second(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """At 500 a second, 2,500 lines take five seconds; batches are small, so lines come evenly."""
    pace, began = _pub.Pace(500), trio.current_time()
    assert pace.most == 50
    for count in range(0, 2_501, 50):
        await pace.wait(count)
    assert trio.current_time() - began == 5
    assert _pub.Pace(0.1).most == 1
    unbounded = _pub.Pace(None)
    await unbounded.wait(10**9)
    assert trio.current_time() - began == 5


async def test_nothing_is_waited_for_after_the_last_line(
    lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the slowest rate that would take another day."""
    waited: list[int] = []

    async def wait(_: _pub.Pace, count: int) -> None:
        waited.append(count)

    monkeypatch.setattr(_pub.Pace, "wait", wait)
    await ran("--to", str(tmp_path / "log"), str(lines), "--rate", "10_000")
    assert waited == [0, 1_000, 2_000]


def test_standard_input_may_end_within_a_line(tmp_path: Path) -> None:
    """The rest is a line."""
    with penstock("pub", "--to", str(tmp_path / "log")) as program:
        _, err = program.communicate(b"one\ntwo", timeout=HANGS_AFTER)
    assert program.returncode == 0
    assert err.startswith(b"2 elements in ")
    assert trio.run(in_file, tmp_path / "log") == [b"one", b"two"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "tcp://127.0.0.1:1/orders"], "no server answers"),
        (["--to", "tcp://127.0.0.1:1"], "names no receiver"),
        (["--to", "FOLDER"], "FOLDER"),
        (["--to", "FOLDER/log", "FOLDER/nothing.txt"], "cannot read"),
        (["--to", "FOLDER/log", "FOLDER"], "cannot read"),
        (["--to", "FOLDER/log", "--rate", "0"], "--rate 0: give a number"),
        (["--to", "FOLDER/log", "--rate", "nan"], "--rate nan: give a number"),
        (["--to", "FOLDER/log", "--rate", "1e400"], "--rate inf: give a number"),
        (["tcp://127.0.0.1:0/x", "--rate", "inf"], "--rate inf: give a number"),
        (["--to", "FOLDER/log", "--rate", "1e-320"], "from 1e-05, which is about one a day"),
        (["--to", "FOLDER/log", "--id", ""], "--id is empty: give each input an id"),
        (["--to", "nosuch://127.0.0.1/x"], "nosuch"),
        (["tcp://127.0.0.1:0/x", "--id", "a"], "--to"),
        (["tcp://127.0.0.1:0/x", "file.txt"], "--to"),
        ([], "give the URL to listen at"),
    ],
)
def test_what_cannot_be_written_is_an_error_of_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is left open, and the status is 1."""
    monkeypatch.setattr(_pub, "tune_collector", lambda: None)
    monkeypatch.setattr("penstock.runtime.client._writer.TRIES", 1)
    given = [each.replace("FOLDER", str(tmp_path)) for each in arguments]
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert main(["pub", *given]) == 1
    err = capsys.readouterr().err
    assert message.replace("FOLDER", str(tmp_path)) in err
    assert err.count("\n") == 1


async def test_a_receiver_that_is_not_there_is_told_before_the_first_line(
    tmp_path: Path,
) -> None:
    """The input may be empty, or one that ends never."""
    (tmp_path / "empty").write_bytes(b"")
    log = ring()
    async with serve(shop(log), "tcp://127.0.0.1:0") as server:
        to = ["--to", str(server.addresses[0])]
        empty = str(tmp_path / "empty")
        assert "nosuch" in await refused(*to, "nosuch", empty)
        assert "west" in await refused(*to, "orders", empty, "--into", "west")
        assert await ran(*to, "orders", empty) == 0
    assert log.latest() == {"0": 0}


async def test_a_log_that_another_program_writes_is_refused_with_advice(
    tmp_path: Path, lines: Path
) -> None:
    """Its URL can be written to."""
    async with DiskLog(tmp_path / "log", retention=Retention(max_count=10)):
        assert "write to its URL" in await refused("--to", str(tmp_path / "log"), str(lines))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_summary_that_cannot_be_written_is_an_error(tmp_path: Path, lines: Path) -> None:
    """The lines were appended; the status says that the summary was not."""
    with penstock("pub", "--to", str(tmp_path / "log"), str(lines), "--json") as program:
        assert program.wait(HANGS_AFTER) == 0
    assert trio.run(in_file, tmp_path / "log") == EXPECTED
    command = f"pub --to {tmp_path}/log2 {lines} --json"
    with penstock("pub", *command.split()[1:]) as program:
        program.stdout.close()  # type: ignore[union-attr]  # it is a pipe
        assert program.wait(HANGS_AFTER) in (0, 1)


@pytest.mark.slow
def test_an_interrupt_ends_a_command_that_waits_for_lines(tmp_path: Path) -> None:
    """With status 130; what had come before is appended, and the next command opens the log."""
    with penstock("pub", "--to", str(tmp_path / "log")) as program:
        assert program.stdin is not None
        program.stdin.write(b"one\n")
        while not (tmp_path / "log").exists() or not trio.run(_count, tmp_path / "log"):
            assert program.poll() is None
        program.send_signal(signal.SIGINT)
        assert program.wait(HANGS_AFTER) == 130
    assert trio.run(in_file, tmp_path / "log") == [b"one"]


async def _count(path: Path) -> int:
    try:
        return len(await in_file(path))
    except Exception:  # it is being made
        return 0


def test_a_batch_has_a_bound_in_bytes() -> None:
    """Unless one element has more."""
    half = _destination.MOST_BYTES // 2
    assert _destination.fitting([b"x" * half] * 5, 10) == 2
    assert _destination.fitting([b"x" * half * 3] * 5, 10) == 1
    assert _destination.fitting([b"x"] * 5, 3) == 3
