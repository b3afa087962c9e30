"""Finding plugins, and switching them off."""

import sys
from importlib.metadata import EntryPoint, distributions
from pathlib import Path

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
    found = find_plugins().plugins
    assert [(each.name, each.distribution) for each in found] == [
        ("builtin", "penstock"),
        ("protocols", "penstock"),
        ("aaa", "zzz"),
        ("mmm", "aaa"),
        ("mmm", "bbb"),
    ]
    assert [each.is_ours for each in found] == [True, True, False, False, False]
    assert found[-1].version == "2.5"


def test_finding_imports_nothing(shelf: Shelf) -> None:
    """A plugin that is switched off does not even get to run its imports."""
    shelf.install("not-to-be-imported", "raise SystemExit")
    assert "not-to-be-imported" in {each.name for each in find_plugins().plugins}
    assert "not_to_be_imported" not in sys.modules


def test_a_distribution_that_is_there_twice_counts_once(shelf: Shelf, tmp_path_factory: pytest.TempPathFactory) -> None:
    """As for imports: the first on the path hides the other one, whatever its version."""
    shelf.install("acme", "", version="1.0")
    other = Shelf(tmp_path_factory.mktemp("other"), shelf.monkeypatch)
    other.install("acme", "", version="2.0")
    assert [each.version for each in find_plugins().plugins if each.distribution == "acme"] == ["2.0"]


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"[penstock]\ngarbage\n", "TypeError"), (b"[penstock]\n\xff = x\n", "UnicodeDecodeError")],
    ids=["shape", "encoding"],
)
def test_entry_points_that_cannot_be_read_hide_nobody_else_s(shelf: Shelf, content: bytes, why: str) -> None:
    """They are reported with the reason; all others are found."""
    shelf.install("acme", "")
    shelf.install("broken", "")
    (shelf.folder / "broken-1.0.dist-info/entry_points.txt").write_bytes(content)
    finding = find_plugins()
    assert [each.name for each in finding.plugins] == ["builtin", "protocols", "acme"]
    [(distribution, reason)] = finding.unreadable
    assert distribution == "broken"
    assert reason.startswith(why)


def test_a_name_that_cannot_be_read_hides_nobody_else_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Then nobody can tell whose entry points they are."""
    (tmp_path / "x.dist-info").mkdir()
    (tmp_path / "x.dist-info/entry_points.txt").write_text("[penstock]\nlonely = x\n", encoding="utf-8")
    (tmp_path / "x.dist-info/METADATA").write_bytes(b"Name: \xff\n")
    monkeypatch.setattr(_finding, "distributions", lambda: distributions(path=[str(tmp_path)]))
    finding = find_plugins()
    assert finding.plugins == ()
    [(distribution, reason)] = finding.unreadable
    assert distribution == "?"
    assert reason.startswith("UnicodeDecodeError")


def test_metadata_of_others_may_be_as_broken_as_it_likes(shelf: Shelf) -> None:
    """A distribution that has nothing to do with us is none of our business."""
    shelf.install("acme", "")
    (shelf.folder / "acme-1.0.dist-info/entry_points.txt").write_text("[console_scripts]\ngarbage\n", encoding="utf-8")
    finding = find_plugins()
    assert [each.name for each in finding.plugins] == ["builtin", "protocols"]
    assert finding.unreadable == ()


def test_a_distribution_without_a_name_is_found_all_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It gets no name and no version, and no error."""
    (tmp_path / "x.dist-info").mkdir()
    (tmp_path / "x.dist-info/entry_points.txt").write_text("[penstock]\nlonely = x\n", encoding="utf-8")
    (tmp_path / "x.dist-info/METADATA").write_text("Metadata-Version: 2.1\n", encoding="utf-8")
    monkeypatch.setattr(_finding, "distributions", lambda: distributions(path=[str(tmp_path)]))
    [found] = find_plugins().plugins
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
