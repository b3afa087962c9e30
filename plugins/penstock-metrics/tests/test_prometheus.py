"""The page that Prometheus scrapes:
every metric with its samples, from any thread, with a bounded number of labels.
"""

from typing import Any
from urllib.request import urlopen

import penstock_metrics
import pytest
import trio
from _metrics_helpers import collector_registry, quotes_service, registry_with, samples
from penstock_metrics import METRICS, MOST_LABELS, OTHER, Measurements
from penstock_metrics._publishers import Labels
from penstock_metrics._snapshot import Snapshot
from prometheus_client import CollectorRegistry, generate_latest, start_http_server

import penstock
from penstock.spi import (
    DirectionStatistics,
    Outcome,
    PublisherStatistics,
    ServerStatistics,
    TransportOptions,
    build_registry,
    parse_url,
)
from penstock.testing import ManualSubscriber

SERVED = {
    "penstock_accepted_connections_total": 1,
    "penstock_connections{protocol=rsio,side=server,transport=memory}": 1,
    "penstock_elements_total{direction=received}": 0,
    "penstock_elements_total{direction=sent}": 4,
    "penstock_handshaking_connections": 0,
    "penstock_outstanding_demand{direction=received}": 0,
    "penstock_outstanding_demand{direction=sent}": 7,
    "penstock_publisher_bytes_total{publisher=quiet}": 0,
    "penstock_publisher_bytes_total{publisher=quotes/{symbol}}": 16,
    "penstock_publisher_bytes_total{publisher=twice}": 2,
    "penstock_publisher_elements_total{publisher=quiet}": 0,
    "penstock_publisher_elements_total{publisher=quotes/{symbol}}": 2,
    "penstock_publisher_elements_total{publisher=twice}": 1,
    "penstock_publisher_seconds_total{publisher=quiet}": 0,
    "penstock_publisher_seconds_total{publisher=quotes/{symbol}}": 0,
    "penstock_publisher_seconds_total{publisher=twice}": 0,
    "penstock_publisher_subscriptions_ended_total{outcome=completed,publisher=quotes/{symbol}}": 1,
    "penstock_publisher_subscriptions_ended_total{outcome=completed,publisher=twice}": 1,
    "penstock_publisher_subscriptions{publisher=quiet}": 1,
    "penstock_publisher_subscriptions{publisher=quotes/{symbol}}": 0,
    "penstock_publisher_subscriptions{publisher=twice}": 0,
    "penstock_stalled_seconds{direction=received,lacks=demand}": 0,
    "penstock_stalled_seconds{direction=received,lacks=elements}": 0,
    "penstock_stalled_seconds{direction=sent,lacks=demand}": 0,
    "penstock_stalled_seconds{direction=sent,lacks=elements}": 5,
    "penstock_subscriptions_opened_total{direction=received}": 0,
    "penstock_subscriptions_opened_total{direction=sent}": 3,
    "penstock_subscriptions{direction=received}": 0,
    "penstock_subscriptions{direction=sent}": 1,
    "penstock_unbounded_subscriptions{direction=received}": 0,
    "penstock_unbounded_subscriptions{direction=sent}": 0,
}
BYTES = {
    "penstock_buffered_bytes{side=client}",
    "penstock_buffered_bytes{side=server}",
    "penstock_memory_budget_bytes{side=server}",
    "penstock_wire_bytes_total{direction=received}",
    "penstock_wire_bytes_total{direction=sent}",
}


async def test_a_page_has_every_sample_of_a_server(autojump_clock: trio.testing.MockClock) -> None:
    """A stream that has ended, a request, and a stream that waits for its second element."""
    measurements = Measurements()
    page = collector_registry(measurements)
    async with penstock.serve(quotes_service(), "memory://test") as server:
        with measurements.collect(server):
            async with penstock.connect("memory://test", registry=registry_with(object())) as peer:
                async with peer.subscribe("quotes/EURUSD") as stream:
                    assert [element async for element in stream] == [b"EURUSD", b"0" * 10]
                assert await peer.request("twice", b"x") == b"xx"
                async with peer.subscribe("quiet", demand=8) as stream:
                    await anext(stream)
                    generate_latest(page)  # the stall is noticed here
                    await trio.sleep(5)
                    found = samples(generate_latest(page).decode())
    assert {name: value for name, value in found.items() if name not in BYTES} == SERVED
    assert found.keys() >= BYTES
    assert found["penstock_memory_budget_bytes{side=server}"] == penstock.Limits().memory_budget
    assert found["penstock_buffered_bytes{side=client}"] == 0  # nothing of a client is collected
    assert all(found[name] > 0 for name in BYTES - {"penstock_buffered_bytes{side=client}"})


async def test_a_page_has_both_directions_of_a_client(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A peer that this process has connected to is collected by itself;
    its connection is one of the side client.
    """
    measurements = Measurements()
    page = collector_registry(measurements)
    async with (
        penstock.serve(quotes_service(), "memory://test"),
        penstock.connect("memory://test") as peer,
    ):
        with measurements.collect(peer):
            async with peer.subscribe("quotes/EURUSD") as stream:
                assert len([element async for element in stream]) == 2
            found = samples(generate_latest(page).decode())
    assert found["penstock_connections{protocol=rsio,side=client,transport=memory}"] == 1
    assert found["penstock_elements_total{direction=received}"] == 2
    assert found["penstock_elements_total{direction=sent}"] == 0
    assert found["penstock_subscriptions_opened_total{direction=received}"] == 1
    # Not against the budget of a server, which the alert divides by.
    assert found["penstock_buffered_bytes{side=client}"] > 0
    assert found["penstock_buffered_bytes{side=server}"] == 0


async def test_refused_connections_are_counted_by_their_reason(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The reason is the token of the fixed list, and not a text of the client."""
    measurements = Measurements()
    transport = build_registry().transport("memory")
    async with penstock.serve(quotes_service(), "memory://test") as server:
        with measurements.collect(server):
            client = await transport.connect(
                parse_url("memory://test"), options=TransportOptions(), nursery=nursery
            )
            await client.send(b"GET / HTTP/1.1\r\n\r\n")
            while await client.receive():
                pass
            await client.abort()
            await trio.sleep(1)
            found = samples(generate_latest(collector_registry(measurements)).decode())
    assert found["penstock_refused_connections_total{reason=protocol:http}"] == 1


async def test_counters_stay_when_a_server_is_no_longer_collected(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A counter that falls would be read as the restart of the process. Gauges fall to 0.
    Closing twice counts once.
    """
    measurements = Measurements()
    page = collector_registry(measurements)
    for number in (1, 2):
        async with penstock.serve(quotes_service(), "memory://test") as server:
            with measurements.collect(server) as collected:
                async with penstock.connect("memory://test") as peer:
                    assert await peer.request("twice", b"x") == b"xx"
                collected.close()
        found = samples(generate_latest(page).decode())
        assert found["penstock_elements_total{direction=sent}"] == number
        assert found["penstock_accepted_connections_total"] == number
        assert found["penstock_memory_budget_bytes{side=server}"] == 0


async def test_a_server_counts_once_however_many_collect_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The program and the page of a transport. The last one to leave keeps the totals."""
    measurements = Measurements()
    page = collector_registry(measurements)

    def elements() -> float:
        return samples(generate_latest(page).decode())["penstock_elements_total{direction=sent}"]

    async with penstock.serve(quotes_service(), "memory://test") as server:
        by_page = measurements.collect(server)
        with measurements.collect(server):
            async with penstock.connect("memory://test") as peer:
                assert await peer.request("twice", b"x") == b"xx"
            assert elements() == 1
        assert elements() == 1
        by_page.close()
        assert elements() == 1


def test_a_run_of_trio_that_has_ended_leaves_its_totals() -> None:
    """A program that never closes what it collects: a scrape after its run finds the last
    numbers that were taken, once.
    """
    measurements = Measurements()
    page = collector_registry(measurements)

    async def main() -> None:
        async with (
            penstock.serve(quotes_service(), "memory://test") as server,
            penstock.connect("memory://test") as peer,
        ):
            measurements.collect(server)
            assert await peer.request("twice", b"x") == b"xx"
            assert (
                samples(generate_latest(page).decode())["penstock_elements_total{direction=sent}"]
                == 1
            )

    trio.run(main)
    for _ in range(2):
        found = samples(generate_latest(page).decode())
        assert found["penstock_elements_total{direction=sent}"] == 1
        assert found["penstock_memory_budget_bytes{side=server}"] == 0


async def test_another_thread_may_scrape() -> None:
    """The server of prometheus_client answers in its own threads;
    each scrape asks the run of trio.
    """
    registry = CollectorRegistry()
    pages, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        async with (
            penstock.serve(quotes_service(), "memory://test") as server,
            penstock.serve(quotes_service(), "memory://other") as other,
        ):
            with (
                penstock_metrics.collect(server, registry=registry),
                penstock_metrics.collect(other, registry=registry),
            ):
                page = await trio.to_thread.run_sync(
                    _get, f"http://127.0.0.1:{pages.server_port}/metrics"
                )
    finally:
        pages.shutdown()
        pages.server_close()
        thread.join()
    assert (
        samples(page)["penstock_memory_budget_bytes{side=server}"]
        >= 2 * penstock.Limits().memory_budget
    )


def _get(url: str) -> str:
    with urlopen(url) as answer:
        return str(answer.read().decode())


def test_a_server_outside_of_trio_cannot_be_collected() -> None:
    """The error is that of `statistics()`, and says what to do."""
    server = penstock.serve(quotes_service(), "memory://test")
    with pytest.raises(penstock.UsageError, match="trio"):
        Measurements().collect(server)


def test_a_registry_finds_names_that_are_taken_without_taking_a_snapshot() -> None:
    """Two collectors in one registry are a mistake, and the registry says so."""
    registry = collector_registry(Measurements())
    with pytest.raises(ValueError, match="penstock_connections"):
        registry.register(penstock_metrics.PenstockCollector(Measurements()))


def test_every_metric_is_named_by_the_conventions_of_prometheus() -> None:
    """A counter ends in ``_total``, a unit is the end of the name before that, and no name
    and no label is there twice.
    """
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert metric.name.startswith("penstock_")
        assert metric.name.endswith("_total") is (metric.kind is penstock_metrics.Kind.COUNTER)
        assert metric.name.removesuffix("_total").endswith(metric.unit)
        assert len(set(metric.labels)) == len(metric.labels)
        assert metric.help.endswith(".")


# --- labels


def _record(*patterns: str) -> ServerStatistics:
    """Return the record of a server with these publishers, each with one stream that has failed
    and one that is open.
    """
    publisher = PublisherStatistics(
        streams=1,
        ended={Outcome.FAILED: 1, Outcome.LOST: 0},
        elements=3,
        element_bytes=5,
        seconds=2.0,
    )
    none = DirectionStatistics()
    return ServerStatistics(
        age=1.0,
        connections={},
        handshaking=0,
        accepted=0,
        sending=none,
        receiving=none,
        sent_bytes=0,
        received_bytes=0,
        buffered_bytes=0,
        memory_budget=0,
        refused={},
        publishers=dict.fromkeys(patterns, publisher),
    )


def test_publishers_beyond_the_bound_share_a_label() -> None:
    """Each keeps the label that it had first: a counter must not move to another one."""
    labels, snapshot = Labels(most=2), Snapshot()
    snapshot.add(_record("", "a", "b", "c"), labels)
    snapshot.add(_record("d", "a"), labels)
    snapshot.add_ended(_record("b", "c"), labels)
    assert {label: counts.open for label, counts in snapshot.publishers.items()} == {
        OTHER: 3,
        "a": 2,
        "b": 1,
    }
    counts = snapshot.publishers[OTHER]
    assert (counts.elements, counts.bytes, counts.seconds) == (12, 20, 8.0)
    assert counts.ended == {Outcome.FAILED: 4}


async def test_names_that_peers_choose_make_no_labels(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A client that asks for a thousand names makes one label."""
    measurements = Measurements()
    async with (
        penstock.serve(quotes_service(), "memory://test") as server,
        penstock.connect("memory://test") as peer,
    ):
        for number in range(MOST_LABELS + 100):
            async with peer.subscribe(f"quotes/{number}") as stream:
                assert len([element async for element in stream]) == 2
        with measurements.collect(server):
            assert measurements.take().publishers.keys() == {"quotes/{symbol}"}


async def test_streams_before_the_first_scrape_are_counted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A server that is collected late has all streams since it began; their durations are added
    up from then on.
    """
    measurements = Measurements()
    async with (
        penstock.serve(quotes_service(), "memory://test") as server,
        penstock.connect("memory://test") as peer,
    ):
        await _leave_after(peer, 5)
        with measurements.collect(server):
            await _leave_after(peer, 7)
            found = measurements.take().publishers["quiet"]
    assert (found.open, found.ended, found.elements) == (0, {Outcome.CANCELLED: 2}, 2)
    assert found.seconds == pytest.approx(7)


async def _leave_after(peer: penstock.Peer, seconds: float) -> None:
    async with peer.subscribe("quiet") as stream:
        assert await anext(stream) == b"one"
        await trio.sleep(seconds)
    await trio.testing.wait_all_tasks_blocked()


async def test_each_outcome_is_counted(autojump_clock: trio.testing.MockClock) -> None:
    """Completed, failed, cancelled, and lost with the connection; a denied name is a failure."""
    measurements = Measurements()
    async with penstock.serve(quotes_service(), "memory://test") as server:
        with measurements.collect(server):
            async with penstock.connect("memory://test") as peer:
                async with peer.subscribe("quotes/EURUSD") as stream:
                    assert len([element async for element in stream]) == 2
                with pytest.raises(penstock.PublisherFailed):
                    async with peer.subscribe("failing") as stream:
                        assert len([element async for element in stream]) == 1
                async with peer.subscribe("quiet") as stream:
                    assert await anext(stream) == b"one"
                await trio.testing.wait_all_tasks_blocked()
                reader = ManualSubscriber()
                source: Any = peer.source("quiet")
                source.attach(reader)
                reader.request(1)
                await trio.testing.wait_all_tasks_blocked()
            await trio.testing.wait_all_tasks_blocked()
            found = measurements.take().publishers
    assert {name: dict(counts.ended) for name, counts in found.items()} == {
        "quotes/{symbol}": {Outcome.COMPLETED: 1},
        "failing": {Outcome.FAILED: 1},
        "quiet": {Outcome.CANCELLED: 1, Outcome.LOST: 1},
    }
