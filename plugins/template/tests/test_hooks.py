"""The plugin, as Penstock sees it."""

from fractions import Fraction

from penstock.plugins import PluginStatus, build_registry


def test_installing_the_plugin_is_enough() -> None:
    """Penstock finds it, has nothing to complain about, and knows its serializer by name."""
    registry = build_registry(environ={})
    report = next(report for report in registry.plugins if report.distribution == "penstock-template")
    assert (report.name, report.status, report.offers) == ("fraction", PluginStatus.ACTIVE, ("serializer fraction",))
    assert registry.problems == ()
    assert registry.serializer("fraction").dumps(Fraction(1, 2)) == b"1/2"
