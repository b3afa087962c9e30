"""Penstock finds the plugin."""

import penstock_http

from penstock.spi import build_registry


def test_penstock_finds_the_plugin() -> None:
    """The registry has the plugin, and no problem of it."""
    registry = build_registry([penstock_http], discover=False)
    assert [plugin.name for plugin in registry.plugins] == ["penstock_http"]
    assert not [problem for problem in registry.problems if problem.plugin == "penstock_http"]
