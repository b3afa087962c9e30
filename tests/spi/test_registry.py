"""The registry: built from plugins, complete in spite of broken ones, never shared,
never changed.
"""

import types

import attrs
import pytest

from penstock.api import UsageError
from penstock.spi import Factory, PluginStatus, Registry, _registry, build_registry, hookimpl
from penstock.spi._finding import Finding
from tests.spi._helpers import SERIALIZER, Shelf


def _statuses(registry: Registry) -> dict[str, PluginStatus]:
    return {report.name: report.status for report in registry.plugins}


def test_penstock_s_own_plugin_is_found_like_any_other() -> None:
    """By its entry point; it is examined and listed."""
    registry = build_registry(environ={"PENSTOCK_DISABLE_PLUGINS": "all"})
    assert [each.name for each in registry.plugins if each.status is PluginStatus.ACTIVE] == [
        "elements",
        "extensions",
        "protocols",
        "transports",
    ]
    assert {each.distribution for each in registry.plugins[:4]} == {"penstock"}
    assert sorted(registry.transports) == [
        "exec",
        "memory",
        "memory-framed",
        "pipe",
        "tcp",
        "tls",
        "unix",
    ]
    assert sorted(registry.serializers) == ["bytes", "json", "text"]
    assert registry.transport("tcp") is registry.transports["tcp"]


def test_installing_a_plugin_is_enough_to_have_it(shelf: Shelf) -> None:
    """Its serializer is in the registry."""
    shelf.install("acme-plain", SERIALIZER.format(name="plain"), entry="plain", version="3.2")
    registry = build_registry(environ={})
    assert registry.serializer("plain").dumps(1) == b""
    report = next(report for report in registry.plugins if report.name == "plain")
    assert (report.distribution, report.version, report.offers) == (
        "acme-plain",
        "3.2",
        ("serializer plain",),
    )
    assert registry.problems == ()


@pytest.mark.parametrize(
    "code",
    [
        "import no_such_module_at_all",
        "raise SystemExit(7)",
        "1 +",
        "",
        "from penstock.spi import hookimpl\n@hookimpl\ndef penstock_serialisers(): return []",
        "from penstock.spi import hookimpl\n@hookimpl\ndef penstock_serializers(): 1 / 0",
        "from penstock.spi import hookimpl\n@hookimpl\ndef penstock_serializers(): return 7",
    ],
)
def test_a_broken_plugin_is_reported_and_left_out(shelf: Shelf, code: str) -> None:
    """The registry contains all other plugins, and the report names the plugin and the reason."""
    shelf.install("acme-broken", code, entry="broken")
    registry = build_registry(environ={})
    assert _statuses(registry)["broken"] is PluginStatus.REFUSED
    assert [problem.plugin for problem in registry.problems] == ["broken"]
    assert "It was left out" in str(registry.problems[0])
    assert registry.transport("tcp")
    assert any(
        line.split()[:4] == ["broken", "acme-broken", "1.0", "refused:"]
        for line in registry.describe().splitlines()
    )
    assert "!" not in registry.describe()


def test_unreadable_metadata_is_reported(shelf: Shelf) -> None:
    """The distribution may contain a plugin that cannot be found."""
    shelf.install("acme-broken", "")
    (shelf.folder / "acme_broken-1.0.dist-info/entry_points.txt").write_text(
        "[penstock]\ngarbage\n", encoding="utf-8"
    )
    registry = build_registry(environ={})
    assert registry.transport("tcp")
    assert (
        "! plugin 'acme-broken' has metadata that cannot be read: TypeError" in registry.describe()
    )


def test_the_second_of_two_plugins_with_one_name_is_left_out(shelf: Shelf) -> None:
    """The order is that of their distributions. The second one is reported."""
    shelf.install("acme-a", SERIALIZER.format(name="a"), entry="same")
    shelf.install("acme-b", SERIALIZER.format(name="b"), entry="same")
    registry = build_registry(environ={})
    assert "a" in registry.serializers
    assert "b" not in registry.serializers
    assert (
        str(registry.problems[0])
        == "plugin 'same' has the name of another plugin, which came first. It was left out"
    )


def test_a_name_that_two_plugins_claim_raises_an_error_that_names_both(shelf: Shelf) -> None:
    """The error says how to disable one of them."""
    shelf.install("acme-a", SERIALIZER.format(name="x"), entry="a")
    shelf.install("acme-b", SERIALIZER.format(name="x"), entry="b")
    registry = build_registry(environ={})
    assert [problem.plugin for problem in registry.problems] == ["a", "b"]
    with pytest.raises(
        UsageError,
        match=(
            "the serializer 'x' is claimed by 'a' and 'b', so no plugin gets it; disable all but "
            "one"
        ),
    ):
        registry.serializer("x")
    assert (
        "! plugin 'a' claims the serializer 'x', which is also claimed by 'b'; no plugin gets it"
        in registry.describe()
    )
    assert build_registry(environ={"PENSTOCK_DISABLE_PLUGINS": "b"}).serializer("x")


def test_a_plugin_cannot_replace_a_part_of_penstock(shelf: Shelf) -> None:
    """The claim is reported."""
    shelf.install("acme-json", SERIALIZER.format(name="json"), entry="aaa")
    registry = build_registry(environ={})
    assert type(registry.serializer("json")).__module__.startswith("penstock.")
    assert "which is penstock's own; penstock keeps it" in str(registry.problems[0])


def test_the_environment_disables_plugins(shelf: Shelf) -> None:
    """A disabled plugin is listed as disabled, and is not imported. An unknown name is reported."""
    shelf.install("acme-off", "raise RuntimeError('imported')", entry="off")
    registry = build_registry(environ={"PENSTOCK_DISABLE_PLUGINS": "off,typo"})
    assert _statuses(registry)["off"] is PluginStatus.DISABLED
    assert "disabled: switched off by PENSTOCK_DISABLE_PLUGINS" in registry.describe()
    assert [str(problem) for problem in registry.problems] == [
        "PENSTOCK_DISABLE_PLUGINS names 'typo', but no such plugin is installed"
    ]


def test_the_environment_of_the_process_is_the_default(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable takes effect without an argument."""
    shelf.install("acme-x", SERIALIZER.format(name="x"), entry="x")
    monkeypatch.setenv("PENSTOCK_DISABLE_PLUGINS", "1")
    assert _statuses(build_registry())["x"] is PluginStatus.DISABLED


def test_disabling_one_of_two_plugins_with_one_name_activates_the_other(shelf: Shelf) -> None:
    """The variable may name the distribution."""
    shelf.install("acme-a", SERIALIZER.format(name="a"), entry="same")
    shelf.install("acme-b", SERIALIZER.format(name="b"), entry="same")
    registry = build_registry(environ={"PENSTOCK_DISABLE_PLUGINS": "acme-a"})
    assert "b" in registry.serializers
    assert registry.problems == ()


def test_a_program_can_pass_in_plugins_as_objects() -> None:
    """The environment does not disable them."""
    offers = {
        "dialects": Factory(name="d", make=object),
        "encodings": Factory(name="e", make=object, id=200),
    }
    offers["extensions"] = Factory(name="f", make=object, id=201)
    mine = types.SimpleNamespace(
        **{f"penstock_{hook}": hookimpl(lambda o=offer: [o]) for hook, offer in offers.items()}
    )
    registry = build_registry([mine], environ={"PENSTOCK_DISABLE_PLUGINS": "all,SimpleNamespace"})
    assert (registry.dialect("d"), registry.encoding("e"), registry.extension("f")) == tuple(
        offers.values()
    )
    assert "SimpleNamespace  passed in by the program" in registry.describe()


def test_a_module_that_is_passed_in_keeps_its_name() -> None:
    """So two modules of a program are two plugins."""
    module = types.ModuleType("pack")
    assert [report.name for report in build_registry([module], discover=False).plugins] == ["pack"]


def test_without_discovery_the_registry_has_passed_in_plugins_only() -> None:
    """Not even penstock's own plugins are found."""
    registry = build_registry(discover=False, environ={"PENSTOCK_DISABLE_PLUGINS": "typo"})
    assert (registry.plugins, registry.problems, registry.describe()) == ((), (), "")
    with pytest.raises(UsageError, match="there is no transport 'tcp'; there is: none at all"):
        registry.transport("tcp")


def test_the_error_for_a_wrong_name_lists_the_available_ones(shelf: Shelf) -> None:
    """It also lists the plugins that were left out: the intended one may be among them."""
    shelf.install("acme-broken", "import no_such_module_at_all", entry="broken")
    registry = build_registry(environ={})
    with pytest.raises(
        UsageError, match="there is no serializer 'jsno'; there is: bytes, json"
    ) as caught:
        registry.serializer("jsno")
    assert "plugin 'broken' cannot be loaded: ModuleNotFoundError" in str(caught.value)


def test_observers_are_collected() -> None:
    """From every plugin, into `Registry.events`."""
    seen = []
    mine = types.SimpleNamespace(
        penstock_connection_closed=hookimpl(lambda event: seen.append(event) or None)
    )
    registry = build_registry([mine], discover=False)
    registry.events.connection_closed("event")  # type: ignore[arg-type]  # the type does not matter here
    assert seen == ["event"]
    assert registry.plugins[0].offers == ("observes connection_closed",)


def test_a_registry_cannot_be_changed() -> None:
    """Neither the record nor its tables."""
    registry = build_registry(discover=False)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        registry.plugins = ()  # type: ignore[misc]  # that it cannot be done is the point
    with pytest.raises(TypeError):
        registry.transports["x"] = None  # type: ignore[index]  # the same
    assert repr(registry) == "<registry of 0 plugins, 0 transports, 0 problems>"


def test_two_registries_share_no_transport() -> None:
    """The hooks are called for each registry."""
    one, other = build_registry(environ={}), build_registry(environ={})
    assert one is not other
    assert one.transport("pipe") is not other.transport("pipe")


def test_a_penstock_that_is_not_installed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imported from a folder it has no entry points, and so no transports:
    the error says to install it.
    """
    monkeypatch.setattr(
        _registry, "find_plugins", lambda: Finding(plugins=(), commands=(), unreadable=())
    )
    registry = build_registry(environ={})
    message = (
        "! the plugins of penstock itself were not found: penstock is imported from a folder; "
        "install it (pip install -e .)"
    )
    assert registry.describe() == message
    with pytest.raises(UsageError, match="were not found"):
        registry.transport("tcp")
