"""The plugin in a registry."""

from fractions import Fraction

from penstock.spi import PluginStatus, build_registry


def test_installing_the_plugin_is_enough() -> None:
    """The registry finds it, reports no problem, and returns its serializer by name."""
    registry = build_registry(environ={})
    report = next(
        report
        for report in registry.plugins
        if report.distribution == "penstock-template-serializer"
    )
    assert (report.name, report.status, report.offers) == (
        "fraction",
        PluginStatus.ACTIVE,
        ("serializer fraction",),
    )
    assert registry.problems == ()
    assert registry.serializer("fraction").dumps(Fraction(1, 2)) == b"1/2"
