"""The arguments of `penstock tck` and its run: a table, a JSON file, and an exit status."""

import argparse
import json

import pytest
import trio
from penstock_tck.wire import OFFERS, add_arguments, run_command

from penstock.api import ConnectionLost, UsageError
from penstock.spi import TransportOptions
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._scripted_target import URL, serve_script

SERVER = f"reactivesocket+{URL}"
TWO_ROWS = ["--only", "demand-initial", "--only", "setup-version"]


def _parse(*arguments: str) -> argparse.Namespace:
    command = argparse.ArgumentParser()
    add_arguments(command)
    return command.parse_args(arguments)


async def _run(*arguments: str, fault: str = "") -> int:
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, rs_server, fault)
        status = await run_command(_parse(*arguments), transport=TransportOptions())
        nursery.cancel_scope.cancel()
    return status


async def test_results_go_to_the_terminal_and_to_the_json_file(
    tmp_path, capsys: pytest.CaptureFixture[str], autojump_clock
) -> None:
    """The terminal gets each row and then the counts; the file holds the same."""
    file = tmp_path / "out.json"
    assert await _run(SERVER, *TWO_ROWS, "--json", str(file)) == 0
    out = capsys.readouterr().out
    assert "pass           demand-initial" in out
    assert out.endswith("2 pass, 0 fail, 0 not supported\n")
    assert json.loads(file.read_text(encoding="utf-8"))["counts"]["pass"] == 2


async def test_a_failed_requirement_gives_status_one(
    capsys: pytest.CaptureFixture[str], autojump_clock
) -> None:
    """The failed row is in the table."""
    assert await _run(SERVER, *TWO_ROWS, fault="initial-one-more") == 1
    assert "FAIL           demand-initial" in capsys.readouterr().out


async def test_without_marks_an_offer_as_missing(
    capsys: pytest.CaptureFixture[str], autojump_clock
) -> None:
    """The rows that need it are not supported, and the status is 0."""
    assert await _run(SERVER, *TWO_ROWS, "--without", "publisher") == 0
    assert "not supported  demand-initial" in capsys.readouterr().out


async def test_a_known_failure_does_not_count_until_it_passes(
    tmp_path, capsys: pytest.CaptureFixture[str], autojump_clock
) -> None:
    """Other failures do; and one that is listed although it passes must be removed."""
    file = tmp_path / "known.txt"
    file.write_text("# the next release\n\ndemand-initial  # one too many\n", encoding="utf-8")
    known = ["--known-failures", str(file)]
    assert await _run(SERVER, *TWO_ROWS, *known, fault="initial-one-more") == 0
    assert f"Known to fail ({file}): demand-initial." in capsys.readouterr().out
    assert await _run(SERVER, *TWO_ROWS, *known) == 1
    assert "demand-initial: passes, and" in capsys.readouterr().out
    file.write_text("setup-version", encoding="utf-8")
    assert await _run(SERVER, *TWO_ROWS, *known, fault="initial-one-more") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [("demand-inital", "no requirement demand-inital"), (None, "No such file"), (b"\xff", "UTF-8")],
)
async def test_a_list_of_known_failures_that_cannot_be_used(
    tmp_path, text: str | bytes | None, told: str
) -> None:
    """A name that no requirement has would excuse nothing, and nobody would see it."""
    file = tmp_path / "known.txt"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=told):
        await run_command(
            _parse(SERVER, "--known-failures", str(file)), transport=TransportOptions()
        )


@pytest.mark.parametrize(
    "arguments",
    [
        ["morse+memory://x"],
        [SERVER, "--only", "nonsense"],
        [SERVER, "--patience", "0"],
        [SERVER, *TWO_ROWS, "--json", "/no/such/out.json"],
    ],
    ids=["protocol", "row", "patience", "file"],
)
async def test_options_that_cannot_be_used_raise_a_usage_error(
    arguments: list[str], autojump_clock
) -> None:
    """An unknown protocol, an unknown row, a patience of zero, and a file
    that cannot be written.
    """
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, rs_server, "")
        with pytest.raises(UsageError):
            await run_command(_parse(*arguments), transport=TransportOptions())
        nursery.cancel_scope.cancel()


async def test_an_unreachable_server_raises_connection_lost(autojump_clock) -> None:
    """No row is checked."""
    with pytest.raises(ConnectionLost):
        await run_command(_parse("memory://nowhere"), transport=TransportOptions())


async def test_list_shows_the_requirements_without_connecting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No server listens at the URL."""
    assert await run_command(_parse(SERVER, "--list"), transport=TransportOptions()) == 0
    assert "setup-first" in capsys.readouterr().out


def test_each_offer_has_an_option() -> None:
    """The option sets the name under which the server offers it."""
    for name in OFFERS:
        assert getattr(_parse(SERVER, f"--{name}", "other"), name) == "other"
