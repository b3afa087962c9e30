"""`penstock tck`: it runs the checks of the test kit, and says what to install
if the kit is missing.
"""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from penstock.cli import _tck, main
from penstock.cli._main import parse
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._scripted_target import URL, serve_script
from tests._real_time import HANGS_AFTER
from tests.cli._programs import ROOT

SERVER = f"reactivesocket+{URL}"
TWO_ROWS = ["--only", "demand-initial", "--only", "setup-version"]


async def _run(*arguments: str, fault: str = "") -> int:
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, rs_server, fault)
        status = await _tck.run(parse(["tck", *arguments]))
        nursery.cancel_scope.cancel()
    return status


async def test_the_table_is_printed_and_the_status_is_zero(
    capsys: pytest.CaptureFixture[str], autojump_clock
) -> None:
    """Each row, then the counts."""
    assert await _run(SERVER, *TWO_ROWS) == 0
    out = capsys.readouterr().out
    assert "pass           demand-initial" in out
    assert out.endswith("2 pass, 0 fail, 0 not supported\n")


async def test_a_failed_requirement_gives_status_one(
    capsys: pytest.CaptureFixture[str], autojump_clock
) -> None:
    """The failed row is in the table."""
    assert await _run(SERVER, *TWO_ROWS, fault="initial-one-more") == 1
    assert "FAIL           demand-initial" in capsys.readouterr().out


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
async def test_options_that_cannot_be_used_give_status_two(
    arguments: list[str], capsys: pytest.CaptureFixture[str], autojump_clock
) -> None:
    """Standard error gets one line."""
    assert await _run(*arguments) == 2
    told = capsys.readouterr().err
    assert told.startswith("penstock tck: ")
    assert told.count("\n") == 1


async def test_a_transport_that_is_not_permitted_is_refused_before_anything_is_opened(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, autojump_clock
) -> None:
    """A URL of a configuration must not start a program: the program would have made the file."""
    made = tmp_path / "made"
    assert await _run(f"exec:touch {made}", "--transports", "tcp,tls", *TWO_ROWS) == 2
    told = capsys.readouterr().err
    assert told.startswith(
        f"penstock tck: 'exec:touch {made}' uses the transport 'exec', and transports= permits "
        "tcp, tls"
    )
    assert told.count("\n") == 1
    assert not made.exists()


async def test_a_transport_that_is_permitted_is_used(
    capsys: pytest.CaptureFixture[str], autojump_clock
) -> None:
    """Each name between the commas is permitted."""
    assert await _run(SERVER, "--transports", "tcp,memory", *TWO_ROWS) == 0
    assert capsys.readouterr().out.endswith("2 pass, 0 fail, 0 not supported\n")


@pytest.mark.parametrize(
    "arguments",
    [[], [SERVER, "--nonsense"], [SERVER, "--without", "nonsense"]],
    ids=["none", "option", "offer"],
)
def test_arguments_that_the_kit_does_not_know_give_status_two(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard error gets the usage of `penstock tck`."""
    with pytest.raises(SystemExit) as left:
        main(["tck", *arguments])
    assert left.value.code == 2
    assert "usage: penstock tck" in capsys.readouterr().err


def test_help_shows_the_options_of_the_kit_and_those_for_tls(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The kit defines the first, penstock the second."""
    with pytest.raises(SystemExit) as left:
        main(["tck", "--help"])
    assert left.value.code == 0
    told = capsys.readouterr().out
    assert "--quiet-for SECONDS" in told
    assert "--tls-ca FILE" in told


async def test_list_shows_the_requirements_without_connecting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No server listens at the URL; options may stand before it."""
    assert await _tck.run(parse(["tck", "--list", "--without", "relay", SERVER])) == 0
    assert "setup-first" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], [SERVER], ["--list", SERVER]],
    ids=["none", "help", "url", "option"],
)
def test_without_the_kit_one_line_says_what_to_install(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status is 2."""
    for name in [each for each in sys.modules if each.split(".")[0] == "penstock_tck"]:
        # None makes an import raise ModuleNotFoundError.
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "penstock_tck", None)
    with pytest.raises(SystemExit) as left:
        main(["tck", *arguments])
    assert left.value.code == 2
    told = capsys.readouterr()
    assert told.err == (
        "penstock tck: the checks are in the distribution penstock-tck; install it with: pip "
        "install penstock-tck\n"
    )
    assert told.out == ""


def test_a_module_that_the_kit_misses_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If penstock-tck is installed but cannot import a module that it needs, the advice to
    install penstock-tck would mislead.
    """
    importlib.import_module("penstock.workers")  # the command line imports it, and it needs attrs
    for name in [each for each in sys.modules if each.split(".")[0] == "penstock_tck"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "attrs", None)
    assert main(["tck", SERVER]) == 1
    told = capsys.readouterr().err
    assert told.startswith("penstock: 'attrs' is not installed for this Python; ")
    assert "/penstock_tck/" in told
    assert told.count("\n") == 1


WITHOUT_THE_KIT = """
import sys
sys.modules["penstock_tck"] = None
from penstock.cli import main
assert main(["plugins"]) == 0
main(["--help"])
"""


def test_the_other_commands_work_without_the_kit() -> None:
    """`penstock plugins` and `penstock --help` run in a process that cannot import penstock_tck."""
    command = [sys.executable, "-c", WITHOUT_THE_KIT]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGS_AFTER
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "check a server, or an RSocket client, from outside" in done.stdout
