"""The campaigns: their table names what exists, and their page shows the recorded results."""

import tomllib
from pathlib import Path

import pytest

from campaigns import __main__ as runner
from campaigns import _page
from campaigns._table import ROOT, Campaign, campaigns
from tests.repo._tree import refuse, text_of

TABLE = tomllib.loads(text_of(Path("campaigns/table.toml")))
KEYS = {"proves", "takes", "short", "ci", "groups", "plugins", "commands", "helpers", "env"}
KEYS |= {"programs", "npm"}


def _campaign(program: str) -> Campaign:
    return Campaign("a", "It is true", "1 min", ("--less",), (("-c", program),), {"GIVEN": "yes"})


def test_each_row_has_known_keys_only() -> None:
    """A key with a slip of the pen would be passed over."""
    unknown = [f"{name}: {key}" for name, row in TABLE.items() for key in set(row) - KEYS]
    refuse(unknown, "campaigns/table.toml has unknown keys:")


def test_each_program_of_a_campaign_exists() -> None:
    """A row without commands has a folder with `__main__.py`; paths in commands are there."""
    for name, row in TABLE.items():
        words = [word for command in row.get("commands", ()) for word in command]
        paths = [word.rpartition("=")[2] for word in words if "/" in word]
        paths += row.get("helpers", [])
        paths += [f"plugins/penstock-{plugin}" for plugin in row.get("plugins", ())]
        paths += [] if words else [f"campaigns/{name}/__main__.py"]
        refuse((f"{name}: {path}" for path in paths if not (ROOT / path).exists()), "missing:")


def test_a_plain_nox_runs_short_forms_only() -> None:
    """A campaign that CI runs has a short form. Speed is not judged there: other programs run."""
    by_ci = {name for name, row in TABLE.items() if row.get("ci")}
    assert by_ci
    assert all(TABLE[name].get("short") for name in by_ci)
    assert "bench" not in by_ci


def test_the_page_shows_the_recorded_results() -> None:
    """The table is generated: `python -m campaigns --render` generates it again."""
    assert text_of(_page.PAGE.relative_to(ROOT)) == _page.page(campaigns(), _page.results())


def test_a_campaign_gets_its_arguments_and_its_last_line_is_recorded(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`--short` stands for the short form; the status is that of the program."""
    recorded: list[_page.Run] = []
    monkeypatch.setattr(_page, "record", lambda _name, run: recorded.append(run))
    program = "import os, sys; print('begins'); print(sys.argv[1:], os.environ['GIVEN'])"
    assert runner.run(_campaign(program), ["--record", "--short", "-x"]) == 0
    assert (recorded[0].result, recorded[0].is_good) == ("['--less', '-x'] yes", True)
    assert recorded[0].arguments == "--less -x"
    assert runner.run(_campaign("raise SystemExit(3)"), ["--record"]) == 3
    assert not recorded[1].is_good
    printed = capfd.readouterr()
    assert printed.out.splitlines() == ["begins", "['--less', '-x'] yes"]
    assert "a: exit status 3 after 0 s" in printed.err


def test_a_campaign_that_fails_is_shown_as_failed() -> None:
    """The row says when it ran and for how long; a campaign without a run says so."""
    run = _page.Run("2026-01-31", "3.11", "", 75, "2 faults", is_good=False)
    row = _page.page({"a": _campaign("")}, {"a": run}).splitlines()[2]
    assert row == (
        "| `a` | It is true | 1 min | 2026-01-31, Python 3.11, 1 min 15 s | **failed**: 2 faults |"
    )
    assert "| not recorded |" in _page.page({"a": _campaign("")}, {})
