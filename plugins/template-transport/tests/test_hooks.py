"""The plugin in a registry."""

from penstock.spi import PluginStatus, build_registry


def test_installing_the_plugin_is_enough() -> None:
    """The registry finds it, reports no problem, and returns its transport by scheme."""
    registry = build_registry(environ={})
    report = next(
        report
        for report in registry.plugins
        if report.distribution == "penstock-template-transport"
    )
    assert (report.name, report.status, report.offers) == (
        "netstring",
        PluginStatus.ACTIVE,
        ("transport netstring",),
    )
    assert registry.problems == ()
    assert registry.transport("netstring").framed
