"""The plugin in a registry."""

import trio
from _metrics_helpers import quotes_service

import penstock
from penstock.spi import Fact, PluginStatus, build_registry


def test_installing_the_plugin_is_enough() -> None:
    """The registry finds it, reports no problem, and calls it for no stream."""
    registry = build_registry(environ={})
    report = next(
        report for report in registry.plugins if report.distribution == "penstock-metrics"
    )
    assert (report.name, report.status) == ("metrics", PluginStatus.ACTIVE)
    assert registry.problems == ()
    assert registry.reads == {Fact.PUBLISHERS}
    assert not registry.events.wants_streams


async def test_a_server_without_the_plugin_keeps_no_numbers_of_publishers(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nobody would read them."""
    registry = build_registry(environ={"PENSTOCK_DISABLE_PLUGINS": "metrics"})
    assert registry.reads == frozenset()
    async with (
        penstock.serve(quotes_service(), "memory://test", registry=registry) as server,
        penstock.connect("memory://test", registry=registry) as peer,
    ):
        async with peer.subscribe("quotes/EURUSD") as stream:
            assert [element async for element in stream] == [b"EURUSD", b"0" * 10]
        assert server.statistics().publishers == peer.statistics().publishers == {}


async def test_a_client_keeps_the_numbers_of_what_it_publishes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """They are those of the connection that it has made. A server has those of all connections."""
    async with (
        penstock.serve(penstock.Service(), "memory://test") as server,
        penstock.connect("memory://test", service=quotes_service()) as peer,
    ):
        await peer.wait_accepted()
        await trio.testing.wait_all_tasks_blocked()
        (client,) = server.peers
        async with client.subscribe("quotes/EURUSD") as stream:
            assert [element async for element in stream] == [b"EURUSD", b"0" * 10]
        await trio.testing.wait_all_tasks_blocked()
        assert peer.statistics().publishers["quotes/{symbol}"].elements == 2
        assert server.statistics().publishers == client.statistics().publishers == {}
