"""`penstock ls` lists what a service offers."""

import json

import pytest

from penstock.cli._description import checked
from penstock.cli._ls import table_of
from penstock.cli._main import parse
from penstock.runtime import DESCRIPTION, Service, serve
from tests._real_time import HANGS_AFTER
from tests.cli._programs import penstock
from tests.runtime.service.test_description import service_with


async def listed(service: Service, *arguments: str) -> int:
    async with serve(service, "memory://ls"):
        options = parse(["ls", *arguments])
        return int(await options.run(options))


@pytest.mark.parametrize("url", ["memory://ls", "reactivesocket+memory://ls"])
async def test_the_table_has_a_row_for_each_entry(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names, parameters, types and summaries."""
    assert await listed(service_with(), url) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        "NAME KIND TAKES GIVES SUMMARY",
        "odd publisher json",
        "order/{symbol} request symbol: str, payload: Quote Quote Place an order.",
        f"{DESCRIPTION} publisher json List the publishers and requests of this service.",
        "raw publisher bytes",
        (
            "ticks/{symbol} publisher symbol: str, ?most: int, ?kinds: list[str] | None "
            "list[Quote] Prices of a symbol."
        ),
    ]


async def test_json_has_all_that_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each entry."""
    assert await listed(service_with(), "memory://ls", "--json") == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["name"] for entry in entries] == [
        "odd",
        "order/{symbol}",
        DESCRIPTION,
        "raw",
        "ticks/{symbol}",
    ]
    assert entries[1]["payload"] == "Quote"


def test_a_service_that_does_not_describe_itself_is_an_error_of_one_line(address: str) -> None:
    """It says how one does."""
    with penstock("ls", address) as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out, err.count(b"\n")) == (1, b"", 1)
    assert b"describe=True" in err


def test_a_url_with_a_name_is_refused() -> None:
    """The list is that of a whole service."""
    with penstock("ls", "tcp://127.0.0.1:1/ticks") as program:
        _, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, err.count(b"\n")) == (1, 1)
    assert b"names a publisher" in err


HOSTILE = {
    "name": "a\x1b[2Jb",
    "kind": "publisher",
    "parameters": [{"name": "\n", "type": 7}],
    "summary": "x" * 300,
}


def test_texts_of_a_hostile_server_are_shown_and_not_obeyed() -> None:
    """The row stays one row, and fits into the terminal."""
    table = table_of([checked(HOSTILE)], width=80)
    assert table.count("\n") == 2
    assert "\x1b" not in table
    assert "a\\x1b[2Jb" in table
    assert max(map(len, table.splitlines())) == 80
