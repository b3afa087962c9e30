"""Commands that plugins add to the command line."""

import sys
from pathlib import Path

import pytest

from penstock.cli import main
from tests.spi._helpers import Shelf

HELLO = """
from penstock.spi import Command

def arguments(parser):
    parser.add_argument("whom")
    {fault}

async def run(options):
    print("hello", options.whom)
    return 3

HELLO = Command(description="Say hello.", arguments=arguments, run=run)
"""


class Commands(Shelf):
    """A shelf of distributions that add a command."""

    def add(
        self, distribution: str, code: str | None = None, *, name: str = "hello", fault: str = ""
    ) -> None:
        """Install a distribution whose command is `HELLO` of its module."""
        code = HELLO.format(fault=fault) if code is None else code
        self.install(distribution, code, entry=f"{name}:HELLO", group="penstock_commands")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """A folder whose distributions are found as if they were installed."""
    return Commands(tmp_path, monkeypatch)


def _refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


def _help(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_a_command_of_a_plugin_runs_and_is_in_the_help(
    shelf: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its arguments, and with its status."""
    shelf.add("acme")
    assert main(["hello", "you"]) == 3
    assert capsys.readouterr().out == "hello you\n"
    assert "hello" in _help(capsys)
    assert "Say hello." in _help(capsys, "hello")
    assert main(["plugins"]) == 0
    assert "acme 1.0" in (text := capsys.readouterr().out)
    assert "command hello" in text


def test_the_help_imports_no_plugin(shelf: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    """The metadata has the name of the command, and of its distribution."""
    shelf.add("acme", "raise RuntimeError")
    text = _help(capsys)
    assert "of acme" in text
    assert "acme" not in sys.modules


def test_the_own_commands_import_no_plugin(
    shelf: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broken plugin neither disturbs nor delays them."""
    shelf.add("acme", "raise RuntimeError")
    assert _help(capsys, "cat")
    assert "acme" not in sys.modules


def test_an_unknown_command_names_the_known_ones(
    shelf: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the commands that were left out, because one of them may be meant."""
    shelf.add("acme")
    shelf.add("bcme", name="Hello World")
    text = _refused(["hullo"], capsys)
    assert "no command 'hullo'; there are: serve, cat," in text
    assert ", hello. Plugins add others. These plugins have problems:" in text
    assert "plugin 'bcme' has a command 'Hello World', which is left out; allowed are" in text


def test_a_name_that_two_plugins_claim_goes_to_neither(
    shelf: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are named, as for every other offer."""
    shelf.add("acme")
    shelf.add("bcme")
    text = _refused(["hello", "you"], capsys)
    assert "no command 'hello'; acme and bcme both claim it" in text


def test_the_name_of_an_own_command_goes_to_no_plugin(
    shelf: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plugin is reported, and the command is penstock's own."""
    shelf.add("acme", name="ls")
    assert main(["plugins"]) == 1
    assert "plugin 'acme' claims the command 'ls'" in capsys.readouterr().out
    assert "list what a service offers" in _help(capsys)


def test_a_command_can_be_disabled(
    shelf: Commands, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name of its distribution, as any plugin."""
    shelf.add("acme")
    monkeypatch.setenv("PENSTOCK_DISABLE_PLUGINS", "acme")
    assert "no command 'hello'" in _refused(["hello", "you"], capsys)
    assert main(["plugins"]) == 0
    assert "no such plugin" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("HELLO = 'hello'", "'hello' as the command 'hello'; its entry point must name a Command"),
        ("HELLO = __import__('no_such_library')", "cannot be loaded: ModuleNotFoundError"),
        ("import sys; sys.exit(3)", "cannot be loaded: SystemExit: 3"),
        ("", "cannot be loaded: AttributeError"),
    ],
)
def test_a_broken_command_says_why(
    shelf: Commands, capsys: pytest.CaptureFixture[str], code: str, says: str
) -> None:
    """When it is run, and in the list of plugins."""
    shelf.add("acme", code)
    text = _refused(["hello", "you"], capsys)
    assert "the plugin 'acme' of this command" in text
    assert says in text
    assert main(["plugins"]) == 1
    assert says in capsys.readouterr().out


def test_arguments_that_raise_are_an_error_of_that_command(
    shelf: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    """The help of `penstock` stays whole."""
    shelf.add("acme", fault="raise RuntimeError('broken')")
    text = _refused(["hello", "you"], capsys)
    assert "the plugin 'acme' of this command raised RuntimeError('broken')" in text
    assert _help(capsys)
