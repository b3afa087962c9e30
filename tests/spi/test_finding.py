"""The search for installed plugins, and the environment variable that disables them."""

import sys
from importlib.metadata import EntryPoint, distributions
from pathlib import Path

import pytest

from penstock.spi import _finding
from penstock.spi._finding import DisabledPlugins, Found, find_plugins
from tests.spi._helpers import Shelf

OURS = ["elements", "extensions", "protocols", "transports"]


def _found(name: str, distribution: str) -> Found:
    return Found(
        name=name, distribution=distribution, version="1", point=EntryPoint(name, "x", "penstock")
    )


def test_own_plugins_come_first_and_the_others_by_name(shelf: Shelf) -> None:
    """The order does not depend on the place or the time of installation."""
    shelf.install("zzz", "", entry="aaa")
    shelf.install("aaa", "", entry="mmm", module="other")
    shelf.install("bbb", "", entry="mmm", module="another", version="2.5")
    found = find_plugins().plugins
    assert [(each.name, each.distribution) for each in found] == [
        *((name, "penstock") for name in OURS),
        ("aaa", "zzz"),
        ("mmm", "aaa"),
        ("mmm", "bbb"),
    ]
    assert [each.is_own for each in found] == [True] * 4 + [False] * 3
    assert found[-1].version == "2.5"


def test_finding_imports_no_plugin(shelf: Shelf) -> None:
    """A disabled plugin is never imported."""
    shelf.install("not-to-be-imported", "raise SystemExit")
    assert "not-to-be-imported" in {each.name for each in find_plugins().plugins}
    assert "not_to_be_imported" not in sys.modules


def test_a_distribution_that_is_installed_twice_is_found_once(
    shelf: Shelf, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The first on the path hides the second, as it does for imports, even
    if the second has a newer version.
    """
    shelf.install("acme", "", version="1.0")
    other = Shelf(tmp_path_factory.mktemp("other"), shelf.monkeypatch)
    other.install("acme", "", version="2.0")
    assert [each.version for each in find_plugins().plugins if each.distribution == "acme"] == [
        "2.0"
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"[penstock]\ngarbage\n", "TypeError"), (b"[penstock]\n\xff = x\n", "UnicodeDecodeError")],
    ids=["shape", "encoding"],
)
def test_damaged_entry_points_do_not_hide_other_plugins(
    shelf: Shelf, content: bytes, why: str
) -> None:
    """The distribution is reported with the reason,
    and the plugins of other distributions are found.
    """
    shelf.install("acme", "")
    shelf.install("broken", "")
    (shelf.folder / "broken-1.0.dist-info/entry_points.txt").write_bytes(content)
    finding = find_plugins()
    assert [each.name for each in finding.plugins] == [*OURS, "acme"]
    [(distribution, reason)] = finding.unreadable
    assert distribution == "broken"
    assert reason.startswith(why)


def test_a_distribution_whose_name_cannot_be_read_is_reported_as_a_question_mark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its plugins are not found, and no error is raised."""
    (tmp_path / "x.dist-info").mkdir()
    (tmp_path / "x.dist-info/entry_points.txt").write_text(
        "[penstock]\nlonely = x\n", encoding="utf-8"
    )
    (tmp_path / "x.dist-info/METADATA").write_bytes(b"Name: \xff\n")
    monkeypatch.setattr(_finding, "distributions", lambda: distributions(path=[str(tmp_path)]))
    finding = find_plugins()
    assert finding.plugins == ()
    [(distribution, reason)] = finding.unreadable
    assert distribution == "?"
    assert reason.startswith("UnicodeDecodeError")


def test_damaged_metadata_of_a_distribution_without_plugins_is_ignored(shelf: Shelf) -> None:
    """It is not even reported."""
    shelf.install("acme", "")
    (shelf.folder / "acme-1.0.dist-info/entry_points.txt").write_text(
        "[console_scripts]\ngarbage\n", encoding="utf-8"
    )
    finding = find_plugins()
    assert [each.name for each in finding.plugins] == OURS
    assert finding.unreadable == ()


def test_a_plugin_of_a_distribution_without_a_name_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its distribution and its version are empty."""
    (tmp_path / "x.dist-info").mkdir()
    (tmp_path / "x.dist-info/entry_points.txt").write_text(
        "[penstock]\nlonely = x\n", encoding="utf-8"
    )
    (tmp_path / "x.dist-info/METADATA").write_text("Metadata-Version: 2.1\n", encoding="utf-8")
    monkeypatch.setattr(_finding, "distributions", lambda: distributions(path=[str(tmp_path)]))
    [found] = find_plugins().plugins
    assert (found.name, found.distribution, found.version, found.is_own) == (
        "lonely",
        "",
        "",
        False,
    )


OWN = _found("transports", "penstock")
WEBSOCKET = _found("websocket", "penstock-websocket")
OTHER = _found("My_Other", "acme")


@pytest.mark.parametrize(
    ("value", "disabled"),
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
        ("transports", ["transports"]),
        ("penstock", []),
        ("transports,all", ["transports", "websocket", "My_Other"]),
    ],
)
def test_the_variable_disables_the_plugins_that_it_names(value: str, disabled: list[str]) -> None:
    """Names of entry points or of distributions, in any case and with any separators. `all`
    means every plugin but penstock's own.
    """
    variable = DisabledPlugins.read({"PENSTOCK_DISABLE_PLUGINS": value})
    assert disabled == [each.name for each in (OWN, WEBSOCKET, OTHER) if variable.covers(each)]


def test_without_the_variable_no_plugin_is_disabled() -> None:
    """Installing a plugin is enough to have it."""
    variable = DisabledPlugins.read({})
    assert not any(variable.covers(each) for each in (OWN, WEBSOCKET, OTHER))


def test_a_name_that_no_plugin_has_is_unknown() -> None:
    """A misspelt name would otherwise leave a plugin active that was meant to be disabled."""
    variable = DisabledPlugins.read(
        {"PENSTOCK_DISABLE_PLUGINS": "websocket,websokcet,all,acme,zzz"}
    )
    assert variable.unknown([OWN, WEBSOCKET, OTHER]) == ["websokcet", "zzz"]
