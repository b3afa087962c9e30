"""`penstock top`: a table, lines of JSON, and a screen on a real terminal."""

import json
from collections.abc import AsyncIterator, Iterator

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
