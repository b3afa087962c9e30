"""The plugin in a registry."""

import trio
from _metrics_helpers import quotes_service
from penstock_metrics import MEASUREMENTS

import penstock
from penstock.spi import PluginStatus, build_registry


def test_installing_the_plugin_is_enough() -> None:
    """The registry finds it, reports no problem, and observes streams."""
    registry = build_registry(environ={})
    report = next(
        report for report in registry.plugins if report.distribution == "penstock-metrics"
    )
    assert (report.name, report.status) == ("metrics", PluginStatus.ACTIVE)
    assert registry.problems == ()
    assert registry.events.wants_streams


async def test_an_installed_plugin_counts_the_streams_of_every_server(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Without a line in the program; the counts are those of the process."""
    known = MEASUREMENTS.take().publishers.get("quotes/{symbol}")
    before = 0 if known is None else known.elements
    async with (
        penstock.serve(quotes_service(), "memory://test"),
        penstock.connect("memory://test") as peer,
    ):
        async with peer.subscribe("quotes/EURUSD") as stream:
            assert [element async for element in stream] == [b"EURUSD", b"0" * 10]
        await trio.sleep(1)
    assert MEASUREMENTS.take().publishers["quotes/{symbol}"].elements == before + 2
