"""Metrics of Penstock's servers, connections and streams, for Prometheus; and for OpenTelemetry, in
`penstock_metrics.opentelemetry`.

May import `penstock.spi`, `penstock.api`, attrs, prometheus_client, trio and the standard library.
Only `opentelemetry` imports that.
"""

from penstock_metrics._hooks import MEASUREMENTS, penstock_reads
from penstock_metrics._measurements import Collected, Measurements
from penstock_metrics._merged import merged
from penstock_metrics._prometheus import PenstockCollector, collect
from penstock_metrics._publishers import MOST_LABELS, OTHER
from penstock_metrics._table import METRICS, Kind, Metric

__all__ = [
    "MEASUREMENTS",
    "METRICS",
    "MOST_LABELS",
    "OTHER",
    "Collected",
    "Kind",
    "Measurements",
    "Metric",
    "PenstockCollector",
    "collect",
    "merged",
    "penstock_reads",
]
