"""The registry: built, never shared, whole whatever some plugin does."""

import dataclasses
import types

import pytest

from penstock.api import UsageError
from penstock.plugins import Factory, PluginStatus, Registry, _registry, build_registry, hookimpl
from penstock.plugins._finding import Finding
from tests.plugins._helpers import SERIALIZER, Shelf


def _fate(registry: Registry) -> dict[str, PluginStatus]:
    return {report.name: report.status for report in registry.plugins}


def test_our_own_plugin_comes_through_the_door_that_all_use() -> None:
    """Found by its entry point, examined, listed."""
    registry = build_registry(environ={"PENSTOCK_DISABLE_PLUGINS": "all"})
    ours = registry.plugins[0]
    assert (ours.name, ours.distribution, ours.status) == ("builtin", "penstock", PluginStatus.ACTIVE)
    assert sorted(registry.transports) == ["exec", "memory", "memory-framed", "pipe", "tcp", "tls", "unix"]
    assert sorted(registry.serializers) == ["bytes", "json", "text"]
    assert registry.transport("tcp") is registry.transports["tcp"]


def test_an_installed_plugin_is_there_without_further_ado(shelf: Shelf) -> None:
    """Installing is all that it takes."""
    shelf.install("acme-plain", SERIALIZER.format(name="plain"), entry="plain", version="3.2")
    registry = build_registry(environ={})
    assert registry.serializer("plain").dumps(1) == b""
    report = next(report for report in registry.plugins if report.name == "plain")
    assert (report.distribution, report.version, report.offers) == ("acme-plain", "3.2", ("serializer plain",))
    assert registry.problems == ()


@pytest.mark.parametrize(
    "code",
    [
        "import no_such_module_at_all",
        "raise SystemExit(7)",
        "1 +",
        "",
        "from penstock.plugins import hookimpl\n@hookimpl\ndef penstock_serialisers(): return []",
        "from penstock.plugins import hookimpl\n@hookimpl\ndef penstock_serializers(): 1 / 0",
        "from penstock.plugins import hookimpl\n@hookimpl\ndef penstock_serializers(): return 7",
    ],
)
def test_a_broken_plugin_is_reported_and_left_out(shelf: Shelf, code: str) -> None:
    """The registry is built, everything else works, and the report names the plugin and the reason."""
    shelf.install("acme-broken", code, entry="broken")
    registry = build_registry(environ={})
    assert _fate(registry)["broken"] is PluginStatus.REFUSED
    assert [problem.plugin for problem in registry.problems] == ["broken"]
    assert "It was left out" in str(registry.problems[0])
    assert registry.transport("tcp")
    assert any(line.split()[:4] == ["broken", "acme-broken", "1.0", "refused:"] for line in registry.describe().splitlines())
    assert "!" not in registry.describe()


def test_unreadable_metadata_is_reported(shelf: Shelf) -> None:
    """There may be a plugin behind it, but nobody can tell."""
    shelf.install("acme-broken", "")
    (shelf.folder / "acme_broken-1.0.dist-info/entry_points.txt").write_text("[penstock]\ngarbage\n", encoding="utf-8")
    registry = build_registry(environ={})
    assert registry.transport("tcp")
    assert "! plugin 'acme-broken' has metadata that cannot be read: TypeError" in registry.describe()


def test_two_plugins_of_one_name_are_told_apart(shelf: Shelf) -> None:
    """The first by its distribution stays; the second is left out, and reported."""
    shelf.install("acme-a", SERIALIZER.format(name="a"), entry="same")
    shelf.install("acme-b", SERIALIZER.format(name="b"), entry="same")
    registry = build_registry(environ={})
    assert "a" in registry.serializers
    assert "b" not in registry.serializers
    assert str(registry.problems[0]) == "plugin 'same' has the name of another plugin, which came first. It was left out"


def test_what_two_plugins_claim_goes_to_neither_and_asking_says_why(shelf: Shelf) -> None:
    """The error names both, and the way out."""
    shelf.install("acme-a", SERIALIZER.format(name="x"), entry="a")
    shelf.install("acme-b", SERIALIZER.format(name="x"), entry="b")
    registry = build_registry(environ={})
    assert [problem.plugin for problem in registry.problems] == ["a", "b"]
    with pytest.raises(UsageError, match="the serializer 'x' is claimed by 'a' and 'b', so nobody has it; switch off all but one"):
        registry.serializer("x")
    assert "! plugin 'a' claims the serializer 'x', like 'b': nobody has it" in registry.describe()
    assert build_registry(environ={"PENSTOCK_DISABLE_PLUGINS": "b"}).serializer("x")


def test_a_plugin_cannot_replace_what_is_ours(shelf: Shelf) -> None:
    """Its other offers are there all the same."""
    shelf.install("acme-json", SERIALIZER.format(name="json"), entry="aaa")
    registry = build_registry(environ={})
    assert type(registry.serializer("json")).__module__.startswith("penstock.")
    assert "penstock's own and stays so" in str(registry.problems[0])


def test_the_environment_switches_plugins_off(shelf: Shelf) -> None:
    """One that is off is listed as such, and is not even imported."""
    shelf.install("acme-off", "raise RuntimeError('imported')", entry="off")
    registry = build_registry(environ={"PENSTOCK_DISABLE_PLUGINS": "off,typo"})
    assert _fate(registry)["off"] is PluginStatus.DISABLED
    assert "disabled: switched off by PENSTOCK_DISABLE_PLUGINS" in registry.describe()
    assert [str(problem) for problem in registry.problems] == ["PENSTOCK_DISABLE_PLUGINS names 'typo', but no such plugin is installed"]


def test_the_environment_is_the_process_s_own_by_default(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the variable says holds without any code."""
    shelf.install("acme-x", SERIALIZER.format(name="x"), entry="x")
    monkeypatch.setenv("PENSTOCK_DISABLE_PLUGINS", "1")
    assert _fate(build_registry())["x"] is PluginStatus.DISABLED


def test_a_name_of_one_that_is_off_is_free(shelf: Shelf) -> None:
    """Two of one name: switch off the distribution that is not wanted, and the other one works."""
    shelf.install("acme-a", SERIALIZER.format(name="a"), entry="same")
    shelf.install("acme-b", SERIALIZER.format(name="b"), entry="same")
    registry = build_registry(environ={"PENSTOCK_DISABLE_PLUGINS": "acme-a"})
    assert "b" in registry.serializers
    assert registry.problems == ()


def test_a_program_can_bring_its_own() -> None:
    """An object is as good as a distribution; the environment does not switch it off."""
    offers = {"dialects": Factory(name="d", make=object), "encodings": Factory(name="e", make=object, id=200)}
    offers["extensions"] = Factory(name="f", make=object, id=201)
    mine = types.SimpleNamespace(**{f"penstock_{hook}": hookimpl(lambda o=offer: [o]) for hook, offer in offers.items()})
    registry = build_registry([mine], environ={"PENSTOCK_DISABLE_PLUGINS": "all,SimpleNamespace"})
    assert (registry.dialect("d"), registry.encoding("e"), registry.extension("f")) == tuple(offers.values())
    assert "SimpleNamespace  of the program" in registry.describe()


def test_a_module_goes_by_its_own_name() -> None:
    """So that two modules of a program are two plugins."""
    module = types.ModuleType("pack")
    assert [report.name for report in build_registry([module], discover=False).plugins] == ["pack"]


def test_without_discovery_there_is_only_what_was_handed_in() -> None:
    """For tests and for those who want nothing found: not even ours."""
    registry = build_registry(discover=False, environ={"PENSTOCK_DISABLE_PLUGINS": "typo"})
    assert (registry.plugins, registry.problems, registry.describe()) == ((), (), "")
    with pytest.raises(UsageError, match="there is no transport 'tcp'; there is: none at all"):
        registry.transport("tcp")


def test_a_wrong_name_is_answered_with_what_there_is(shelf: Shelf) -> None:
    """And with what was left out: it may be what was meant."""
    shelf.install("acme-broken", "import no_such_module_at_all", entry="broken")
    registry = build_registry(environ={})
    with pytest.raises(UsageError, match="there is no serializer 'jsno'; there is: bytes, json") as caught:
        registry.serializer("jsno")
    assert "plugin 'broken' cannot be loaded: ModuleNotFoundError" in str(caught.value)


def test_observers_are_collected() -> None:
    """From every plugin, into the one record that tells them."""
    seen = []
    mine = types.SimpleNamespace(penstock_connection_closed=hookimpl(lambda event: seen.append(event) or None))
    registry = build_registry([mine], discover=False)
    registry.events.connection_closed("event")  # type: ignore[arg-type]  # what it is plays no part
    assert seen == ["event"]
    assert registry.plugins[0].offers == ("observes connection_closed",)


def test_a_registry_never_changes() -> None:
    """Neither the record nor its tables."""
    registry = build_registry(discover=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        registry.plugins = ()  # type: ignore[misc]  # that it cannot be done is the point
    with pytest.raises(TypeError):
        registry.transports["x"] = None  # type: ignore[index]  # the same
    assert repr(registry) == "<registry of 0 plugins, 0 transports, 0 problems>"


def test_two_registries_share_nothing() -> None:
    """Each is built anew: what one plugin object holds belongs to one registry."""
    one, other = build_registry(environ={}), build_registry(environ={})
    assert one is not other
    assert one.transport("pipe") is not other.transport("pipe")


def test_penstock_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imported from a bare folder there is no entry point: without a word nobody would guess why there is no tcp://."""
    monkeypatch.setattr(_registry, "find_plugins", lambda: Finding(plugins=(), unreadable=()))
    registry = build_registry(environ={})
    says = "! the plugin of penstock itself was not found: penstock is imported from a folder; install it (pip install -e .)"
    assert registry.describe() == says
    with pytest.raises(UsageError, match="was not found"):
        registry.transport("tcp")
