"""The page on dialects says what is so: it has every member of the seam, and a third protocol would change no file of the core."""

import inspect
import re

import pytest

from penstock.session import Dialect, DialectFactory, Session
from tests.repo._tree import ROOT
from tests.session.test_dialect import CORE, OFFERED

PAGE = (ROOT / "docs/explanation/dialects.md").read_text(encoding="utf-8")
PLAN = re.findall(r"^\| `([\w./]+)` \| (new|changed) \|", PAGE, re.MULTILINE)
KIND = {name for name in [*vars(DialectFactory), *DialectFactory.__annotations__] if not name.startswith("_")}
TOLD = {name for name in vars(Session) if name.startswith("peer_") or name in {"greeted", "introduced", "welcomed"}}


@pytest.mark.parametrize("name", sorted(OFFERED | KIND))
def test_each_member_of_a_dialect_has_a_row_or_a_sentence(name: str) -> None:
    """Who calls it, and when."""
    assert f"| `{name}` |" in PAGE or name in KIND - OFFERED
    assert f"`{name}`" in PAGE


def test_no_row_is_about_what_is_not_there() -> None:
    """A member that went away went from the page, too."""
    rows = set(re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.MULTILINE))
    assert rows - TOLD == OFFERED | (KIND & rows)
    assert len(rows) > 30


@pytest.mark.parametrize("name", sorted(TOLD))
def test_each_call_of_the_core_that_is_a_dialects_is_on_it(name: str) -> None:
    """What the peer said, and the three of the handshake."""
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("path", re.findall(r"\(`(_\w+\.py)`\)", PAGE))
def test_each_file_of_the_core_that_is_named_is_there(path: str) -> None:
    """In the folder of the session."""
    assert (ROOT / "src/penstock/session" / path).is_file()


def test_a_third_protocol_would_touch_nothing_of_the_core() -> None:
    """What would be new is not there yet, what would change is, and none of it is a file that every protocol shares."""
    assert len(PLAN) > 15
    for path, how in PLAN:
        assert (ROOT / path).is_file() is (how == "changed"), path
        assert path.removeprefix("src/penstock/session/") not in {*CORE, "_dialect.py", "_settings.py", "_choosing.py"}


def test_what_the_page_calls_properties_and_methods_are_such() -> None:
    """Facts are looked at, the rest is called."""
    facts = PAGE[PAGE.index("### Facts") : PAGE.index("### Saying")]
    called = {name for name, value in vars(Dialect).items() if inspect.isfunction(value)}
    assert set(re.findall(r"^\| `([a-z_]+)` \|", facts, re.MULTILINE)) == OFFERED - called
