"""Commands that plugins add to the command line."""

from pathlib import Path

import pytest

from penstock.cli import main
from penstock.cli._main import COMMANDS
from penstock.spi._command import OWN_COMMANDS
from tests.spi._helpers import Shelf

HELLO = """
from penstock.spi import Command, hookimpl

def arguments(parser):
    parser.add_argument("whom")
    {fault}

async def run(options):
    print("hello", options.whom)
    return 3

@hookimpl
def penstock_commands():
    return [Command(name={name!r}, summary="say hello", arguments=arguments, run=run)]
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A folder whose distributions are found as if they were installed."""
    return Shelf(tmp_path, monkeypatch)


def _hello(name: str = "hello", fault: str = "") -> str:
    return HELLO.format(name=name, fault=fault)


def _refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_command_of_a_plugin_runs_and_is_in_the_help(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its arguments, and with its status."""
    shelf.install("acme", _hello())
    assert main(["hello", "you"]) == 3
    assert capsys.readouterr().out == "hello you\n"
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "say hello" in capsys.readouterr().out
    assert main(["plugins"]) == 0
    assert "command hello" in capsys.readouterr().out


def test_the_own_commands_import_no_plugin(shelf: Shelf) -> None:
    """A broken plugin neither disturbs nor delays them."""
    shelf.install("acme", "raise RuntimeError")
    with pytest.raises(SystemExit) as ended:
        main(["cat", "--help"])
    assert ended.value.code == 0


def test_an_unknown_command_names_the_known_ones(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the plugins that were left out, because one of them may have it."""
    shelf.install("acme", _hello())
    shelf.install("broken", "raise RuntimeError('no such library')")
    text = _refused(["hullo"], capsys)
    assert "no command 'hullo'; there are: serve, cat," in text
    assert ", hello. Plugins add others. These plugins have problems:" in text
    assert "plugin 'broken' cannot be loaded: RuntimeError: no such library" in text


def test_a_name_that_two_plugins_claim_goes_to_neither(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are named, as for every other offer."""
    shelf.install("acme", _hello())
    shelf.install("bcme", _hello())
    text = _refused(["hello", "you"], capsys)
    assert "no command 'hello'; acme and bcme both claim it" in text


def test_the_name_of_an_own_command_goes_to_no_plugin(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plugin is reported, and the command is penstock's own."""
    assert tuple(COMMANDS) == OWN_COMMANDS
    shelf.install("acme", _hello(name="ls"))
    assert main(["plugins"]) == 1
    assert "plugin 'acme' claims the command 'ls'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (_hello(name="Hello World"), "'Hello World' as a name; allowed are small letters"),
        (_hello().replace("[Command", "[str) or (Command"), "each must be a Command"),
        (_hello().replace("return [Command", "raise KeyError('x'); [Command"), "KeyError"),
    ],
)
def test_a_wrong_offer_leaves_the_plugin_out(
    shelf: Shelf, capsys: pytest.CaptureFixture[str], code: str, says: str
) -> None:
    """And says why, as for every other offer."""
    shelf.install("acme", code.replace("[str) or (Command(", "[str] or [Command("))
    assert main(["plugins"]) == 1
    assert says in capsys.readouterr().out


def test_arguments_that_raise_are_an_error_of_that_command(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    """The help of `penstock` stays whole."""
    shelf.install("acme", _hello(fault="raise RuntimeError('broken')"))
    text = _refused(["hello", "you"], capsys)
    assert "the plugin of this command raised RuntimeError('broken') for its arguments" in text
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
