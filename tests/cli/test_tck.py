"""`penstock tck`: a table, a file, and an exit status that tells whether anything failed."""

import json

import pytest
import trio

from penstock.cli import _tck
from penstock.cli._main import parser
from tck.tests.wire import _scripted_target
from tck.tests.wire._rs_saboteur import rs_server

URL = f"reactivesocket+{_scripted_target.URL}"
TWO = ["--only", "demand-initial", "--only", "setup-version"]


async def _run(*arguments: str, fault: str = "") -> int:
    async with trio.open_nursery() as nursery:
        await nursery.start(_scripted_target.serve_script, rs_server, fault)
        status = await _tck.run(parser().parse_args(["tck", *arguments]))
        nursery.cancel_scope.cancel()
    return status


async def test_a_table_and_a_file_are_written(tmp_path, capsys: pytest.CaptureFixture[str], autojump_clock) -> None:
    """Row by row, then the counts; the file holds the same."""
    file = tmp_path / "out.json"
    assert await _run(URL, *TWO, "--json", str(file)) == 0
    out = capsys.readouterr().out
    assert "pass           demand-initial" in out
    assert out.endswith("2 pass, 0 fail, 0 not supported\n")
    assert json.loads(file.read_text(encoding="utf-8"))["counts"]["pass"] == 2


async def test_a_failure_is_status_one(capsys: pytest.CaptureFixture[str], autojump_clock) -> None:
    """And stands in the table."""
    assert await _run(URL, *TWO, fault="initial-one-more") == 1
    assert "FAIL           demand-initial" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [["morse+memory://x"], [URL, "--only", "nonsense"], [URL, "--patience", "0"], [URL, *TWO, "--json", "/no/such/folder/out.json"]],
    ids=["protocol", "row", "patience", "file"],
)
async def test_what_makes_no_sense_is_status_two(arguments: list[str], capsys: pytest.CaptureFixture[str], autojump_clock) -> None:
    """With a line on standard error."""
    assert await _run(*arguments) == 2
    assert capsys.readouterr().err.startswith("penstock tck: ")


async def test_the_list_checks_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """It shows the table of a target that need not be there; what is lacking can be said."""
    assert await _tck.run(parser().parse_args(["tck", URL, "--list", "--without", "relay"])) == 0
    assert "setup-first" in capsys.readouterr().out
