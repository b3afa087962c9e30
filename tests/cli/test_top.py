"""`penstock top`: a table, lines of JSON, and a screen on a real terminal."""

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from penstock.api import UsageError
from penstock.cli._main import parse
from penstock.runtime import Service, connect, serve
from tests._real_time import HANGS_AFTER
from tests.cli._programs import line_of, penstock
from tests.cli._pseudo_terminal import penstock_on, terminal

pytest.importorskip("rich", reason="the screen of top needs it")

HOSTILE = "a%1B]0;owned%07b%1B[2Jc%0Dd%C2%9B31m%E2%80%AEh"
"""In the name of a stream, as a URL has it: escape sequences, a carriage return, C1, and a character
that changes the order of a text.
"""


@pytest.fixture(scope="module")
def inspected() -> Iterator[str]:
    """The address of a program that shows its map."""
    with penstock(
        "serve", "tests.cli._service:service", "tcp://127.0.0.1:0", "--inspect"
    ) as program:
        yield line_of(program).split()[-1]


def service() -> Service:
    found = Service()

    @found.publisher("silent/{name}")
    async def silent(name: str) -> AsyncIterator[bytes]:
        yield name.encode()
        await trio.sleep_forever()

    return found


async def once(*arguments: str) -> None:
    async with (
        serve(service(), "memory://top", inspect=True),
        connect("memory://top") as peer,
        peer.subscribe("silent/orders", demand=7) as stream,
        peer.subscribe("silent/other"),
    ):
        await anext(stream)
        options = parse(["top", "memory://top", "--once", *arguments])
        assert await options.run(options) == 0


async def test_once_prints_a_table(autojump_clock, capsys: pytest.CaptureFixture[str]) -> None:
    """With each stream of the service, and its own."""
    await once("--filter", "silent")
    heading, columns, *rows = capsys.readouterr().out.splitlines()
    assert "by still" in heading
    assert columns.split()[:2] == ["STREAM", "PEER"]
    assert sorted(row.split()[1] for row in rows if row) == [
        "silent/orders",
        "silent/orders",
        "silent/other",
        "silent/other",
    ]


async def test_json_is_a_line_for_each_stream(
    autojump_clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """With all that is known of it."""
    await once("--json", "--filter", "silent/orders")
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (sent,) = (each for each in records if each["out"])
    assert (sent["url"], sent["demand"], sent["waits"]) == ("memory://top", 6, "publisher")
    assert sent["still"] >= 1


async def test_mistakes_of_arguments_are_told(autojump_clock) -> None:
    """A screen is no JSON, and no pipe shows one."""
    for arguments in (["top", "memory://top", "--json"], ["top", "memory://top"]):
        options = parse(arguments)
        with pytest.raises(UsageError):
            await options.run(options)


def test_plain_prints_a_table_for_each_look(inspected: str) -> None:
    """Into a pipe, until it is ended."""
    with penstock("top", inspected, "--plain") as program:
        assert program.stdout is not None
        headings = 0
        for line in program.stdout:
            headings += b" streams, by still" in line
            if headings == 2:
                break
        program.terminate()
        assert program.wait(HANGS_AFTER) == 143


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform == "win32", reason="workers need Unix sockets")
def test_the_map_of_a_server_with_workers_has_the_streams_of_all() -> None:
    """Whichever of them answers."""
    serving = ("serve", "tests.cli._service:service", "tcp://127.0.0.1:0", "--inspect")
    with ExitStack() as stack:
        address = line_of(stack.enter_context(penstock(*serving, "--workers", "2"))).split()[-1]
        for _ in range(4):
            stack.enter_context(penstock("cat", f"{address}/endless", "--demand", "1", "--quiet"))
        # A reader may need longer than a look to start.
        for _ in range(20):
            with penstock("top", address, "--once", "--json", "--filter", "endless") as program:
                out, errors = program.communicate(timeout=HANGS_AFTER)
            assert program.returncode == 0, errors
            if out.count(b"\n") == 4:
                break
    assert out.count(b"\n") == 4
    assert len({json.loads(line)["key"] for line in out.splitlines()}) == 4


@pytest.mark.heavy
@pytest.mark.parametrize("others", [0, 1])
def test_a_server_that_vanishes_has_a_line_until_it_is_there_again(
    others: int, inspected: str
) -> None:
    """Killed between two looks: the command waits for the next process at the address."""
    serving = ("serve", "tests.cli._service:service", "--inspect")
    with penstock(*serving, "tcp://127.0.0.1:0") as server:
        address = line_of(server).split()[-1]
        with penstock("top", address, *([inspected] * others), "--plain") as program:
            assert program.stdout is not None
            lines = iter(program.stdout)
            assert any(b"penstock/demand" in line for line in lines)
            server.kill()
            server.wait(HANGS_AFTER)
            lost = f"lost, asked again every 2 s: {address}: ".encode()
            assert any(line.startswith(lost) for line in lines)
            with penstock(*serving, address) as another:
                line_of(another)
                assert any(f"{1 + others} streams, by still".encode() in line for line in lines)
                program.terminate()
                _, errors = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, errors) == (143, b"")


def test_a_server_that_was_never_there_ends_the_command() -> None:
    """Its address is a mistake, and one line says so."""
    with penstock("top", "tcp://127.0.0.1:1", "--plain") as program:
        _, errors = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, errors.count(b"\n")) == (1, 1)


def test_a_terminal_without_a_screen_is_told_what_to_give(
    inspected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that understands no sequences, and one whose keys go elsewhere: no blank screen."""
    with (
        Path(os.devnull).open("rb") as nothing,
        terminal() as screen,
        penstock_on(screen, "top", inspected, stdin=nothing.fileno()) as program,
    ):
        assert screen.read_until_end_of(program) == 1
        assert "standard input is no terminal" in screen.rows()[0]
    monkeypatch.setenv("TEST_TERM", "dumb")
    with terminal(120) as screen, penstock_on(screen, "top", inspected) as program:
        assert screen.read_until_end_of(program) == 1
        assert screen.rows() == [
            "penstock: this terminal can show no screen (TERM=dumb); give --plain, or --once"
        ]


@pytest.mark.parametrize("columns", [80, 40])
def test_the_screen_shows_streams_and_reacts_to_keys(inspected: str, columns: int) -> None:
    """At 80 columns and fewer; the terminal is as before at the end."""
    with (
        penstock("cat", f"{inspected}/endless", "--demand", "1", "--quiet"),
        terminal(columns) as screen,
        penstock_on(screen, "top", inspected) as program,
    ):
        screen.read_until(b"endless")
        assert max(map(len, screen.rows())) <= columns
        screen.type(b"/")
        screen.read_until(b"/_")
        screen.type(b"endless\r")
        screen.read_until(b"/endless")
        # Keys that it does not know, Alt-q last, change nothing.
        screen.type(b"\x1b[3~\x1b[1;5A\x1bOP\x1b[Z\x1bq")
        screen.type(b"s")
        screen.read_until(b"by rate")
        # The last one: a row of an earlier picture may have been scrolled off.
        heading = next(row for row in reversed(screen.rows()) if "by rate" in row)
        assert heading.startswith("/endless")
        screen.type(b"\r")
        screen.read_until(b"serializer")
        screen.type(b"p")
        screen.read_until(b"paused")
        screen.type(b"q")
        assert screen.read_until_end_of(program) == 0
        # The alternate screen is left, and the cursor is shown.
        assert screen.written.rindex(b"\x1b[?1049l") > screen.written.rindex(b"\x1b[?1049h")
        assert screen.written.rindex(b"\x1b[?25h") > screen.written.rindex(b"\x1b[?25l")


def test_a_hostile_name_cannot_control_the_terminal(inspected: str) -> None:
    """It is shown escaped, on the screen too."""
    with (
        penstock("cat", f"{inspected}/any/{HOSTILE}", "--quiet"),
        terminal(120) as screen,
        penstock_on(screen, "top", inspected, "--filter", "any/") as program,
    ):
        screen.read_until(b"any/a")
        assert b"\\x1b]0;owned\\x07" in screen.written
        for sequence in (b"\x1b]0;owned", b"\x1b[2Jc", b"\x9b31m", "\u202e".encode()):
            assert sequence not in screen.written
        screen.type(b"q")
        assert screen.read_until_end_of(program) == 0
