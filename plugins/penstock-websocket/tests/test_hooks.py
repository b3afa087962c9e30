"""The plugin in a registry."""

from penstock.spi import PluginStatus, build_registry


def test_installing_the_plugin_is_enough() -> None:
    """The registry finds it, reports no problem, and returns one transport for both schemes."""
    registry = build_registry(environ={})
    report = next(
        report for report in registry.plugins if report.distribution == "penstock-websocket"
    )
    assert (report.name, report.status, report.offers) == (
        "websocket",
        PluginStatus.ACTIVE,
        ("transport ws", "transport wss"),
    )
    assert registry.problems == ()
    assert registry.transport("ws") is registry.transport("wss")
    assert registry.transport("wss").needs_certificate == ("wss",)
