"""The metrics for Prometheus: a collector that takes a snapshot each time that it is scraped."""

from collections.abc import Iterable
from weakref import WeakSet

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from penstock_metrics._hooks import MEASUREMENTS
from penstock_metrics._measurements import Collected, Measurements
from penstock_metrics._snapshot import Measured
from penstock_metrics._table import METRICS, Kind, Metric


class PenstockCollector(Collector):
    """Collects the metrics of `METRICS`.
    Register it with a registry of prometheus_client, or let `collect` do that.
    """

    def __init__(self, measurements: Measurements) -> None:
        self._measurements = measurements

    def describe(self) -> Iterable[Family]:
        """Return the metrics without samples: a registry looks for names that are taken."""
        return [_family(metric) for metric in METRICS]

    def collect(self) -> Iterable[Family]:
        """Return the metrics of now. Any thread may call this."""
        snapshot = self._measurements.take()
        families = []
        for metric in METRICS:
            family = _family(metric)
            for labels, value in metric.read(snapshot):
                family.add_metric(labels, value)
            families.append(family)
        return families


_registered: WeakSet[CollectorRegistry] = WeakSet()


def collect(source: Measured, *, registry: CollectorRegistry = REGISTRY) -> Collected:
    """Collect a `penstock.Server`, or a `penstock.Peer` that this process has connected to,
    from now on.

    Call it in the run of trio in which the server or the connection runs, and use the result as a
    ``with`` block: at its end the server is no longer collected, and the totals of its counters
    stay. The metrics appear in `registry`, which any thread may scrape.
    A server includes all of its connections: its peers need not be collected.
    """
    if registry not in _registered:
        registry.register(PenstockCollector(MEASUREMENTS))
        _registered.add(registry)
    return MEASUREMENTS.collect(source)


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    # The name of a counter gets its `_total` from the library.
    if metric.kind is Kind.COUNTER:
        return CounterMetricFamily(
            metric.name.removesuffix("_total"), metric.help, labels=metric.labels
        )
    return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
