"""Commands that plugins add are found by their metadata, and imported when they run."""

import sys
from pathlib import Path

import pytest

from penstock.api import PluginError
from penstock.spi import PluginStatus, find_commands
from tests.spi._helpers import Shelf

CODE = """
from penstock.spi import Command

async def run(options):
    return 0

HELLO = Command(description="Say hello.", arguments=lambda parser: None, run=run)
WRONG = "hello"
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A folder whose distributions are found as if they were installed."""
    return Shelf(tmp_path, monkeypatch)


def _add(shelf: Shelf, distribution: str, entry: str = "hello:HELLO", code: str = CODE) -> None:
    shelf.install(distribution, code, entry=entry, group="penstock_commands")


def test_a_command_is_imported_when_it_is_loaded(shelf: Shelf) -> None:
    """Not before: its name and its distribution are in the metadata."""
    _add(shelf, "acme")
    found = find_commands(environ={})
    (command,) = found.by_name.values()
    assert (command.name, command.distribution, command.version) == ("hello", "acme", "1.0")
    assert "acme" not in sys.modules
    assert command.load().description == "Say hello."
    assert command.report().status is PluginStatus.ACTIVE
    assert command.report().offers == ("command hello",)
    assert (found.problems, found.contested) == ((), {})


@pytest.mark.parametrize(
    ("entry", "code", "says"),
    [
        ("hello:WRONG", CODE, "must name a Command"),
        ("hello:HELLO", "import sys; sys.exit(1)", "cannot be loaded: SystemExit"),
    ],
)
def test_a_broken_command_says_why(shelf: Shelf, entry: str, code: str, says: str) -> None:
    """The user that runs it and the list of commands get the reason."""
    _add(shelf, "acme", entry, code)
    command = find_commands(environ={}).by_name["hello"]
    with pytest.raises(PluginError, match=says):
        command.load()
    report = command.report()
    assert (report.status, report.offers) == (PluginStatus.REFUSED, ())
    assert says in report.reason


def test_names_that_several_claim_go_to_none(shelf: Shelf) -> None:
    """A plugin gets neither a name of penstock's own nor a word that is not a name."""
    _add(shelf, "acme")
    _add(shelf, "bcme")
    _add(shelf, "ccme", "ls:HELLO")
    _add(shelf, "dcme", "Say it:HELLO")
    found = find_commands(["ls"], environ={})
    assert dict(found.by_name) == {}
    assert found.contested == {"hello": ("acme", "bcme")}
    assert sorted(problem.plugin for problem in found.problems) == ["acme", "bcme", "ccme", "dcme"]


def test_a_disabled_distribution_has_no_commands(shelf: Shelf) -> None:
    """As the variable of the environment says."""
    _add(shelf, "acme")
    assert dict(find_commands(environ={"PENSTOCK_DISABLE_PLUGINS": "acme"}).by_name) == {}
