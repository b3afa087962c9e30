"""Finding plugins, and switching them off."""

import sys
from importlib.metadata import EntryPoint

import pytest

from penstock.plugins import _finding
from penstock.plugins._finding import Found, SwitchedOff, find_plugins
from tests.plugins._helpers import Shelf


def _found(name: str, distribution: str) -> Found:
    return Found(name=name, distribution=distribution, version="1", point=EntryPoint(name, "x", "penstock"))


def test_ours_comes_first_and_the_others_by_name(shelf: Shelf) -> None:
    """The order does not depend on where or when something was installed."""
    shelf.install("zzz", "", entry="aaa")
    shelf.install("aaa", "", entry="mmm", module="other")
    shelf.install("bbb", "", entry="mmm", module="another", version="2.5")
    found = find_plugins()
    assert [(each.name, each.distribution) for each in found] == [
        ("builtin", "penstock"),
        ("aaa", "zzz"),
        ("mmm", "aaa"),
        ("mmm", "bbb"),
    ]
    assert [each.is_ours for each in found] == [True, False, False, False]
    assert found[-1].version == "2.5"


def test_finding_imports_nothing(shelf: Shelf) -> None:
    """A plugin that is switched off does not even get to run its imports."""
    shelf.install("not-to-be-imported", "raise SystemExit")
    assert "not-to-be-imported" in {each.name for each in find_plugins()}
    assert "not_to_be_imported" not in sys.modules


def test_an_entry_point_of_no_distribution_is_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever adds one by hand gets no version, and no error."""
    monkeypatch.setattr(_finding, "entry_points", lambda group: [EntryPoint("lonely", "x", group)])
    [found] = find_plugins()
    assert (found.name, found.distribution, found.version, found.is_ours) == ("lonely", "", "", False)


OURS = _found("builtin", "penstock")
WEBSOCKET = _found("websocket", "penstock-websocket")
OTHER = _found("My_Other", "acme")


@pytest.mark.parametrize(
    ("value", "off"),
    [
        ("", []),
        (" , ", []),
        ("websocket", ["websocket"]),
        ("penstock-websocket", ["websocket"]),
        ("Penstock_WebSocket", ["websocket"]),
        ("websocket, my.other", ["websocket", "My_Other"]),
        ("acme", ["My_Other"]),
        ("all", ["websocket", "My_Other"]),
        ("1", ["websocket", "My_Other"]),
        ("ALL", ["websocket", "My_Other"]),
        ("builtin", ["builtin"]),
        ("penstock", []),
        ("builtin,all", ["builtin", "websocket", "My_Other"]),
    ],
)
def test_the_variable_switches_off_what_it_names(value: str, off: list[str]) -> None:
    """Names of entry points or of distributions, in any case and with any separators; `all` is everybody but us."""
    switched = SwitchedOff.read({"PENSTOCK_DISABLE_PLUGINS": value})
    assert off == [each.name for each in (OURS, WEBSOCKET, OTHER) if switched.covers(each)]


def test_without_the_variable_nothing_is_off() -> None:
    """The default is that what is installed works."""
    switched = SwitchedOff.read({})
    assert not any(switched.covers(each) for each in (OURS, WEBSOCKET, OTHER))


def test_a_name_that_nothing_has_is_told() -> None:
    """A misspelt name would otherwise leave on what somebody wanted off."""
    switched = SwitchedOff.read({"PENSTOCK_DISABLE_PLUGINS": "websocket,websokcet,all,acme,zzz"})
    assert switched.unknown([OURS, WEBSOCKET, OTHER]) == ["websokcet", "zzz"]
