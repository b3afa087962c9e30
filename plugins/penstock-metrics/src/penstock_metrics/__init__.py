"""Metrics of Penstock's servers, connections and streams, for Prometheus; and for OpenTelemetry, in
`penstock_metrics.opentelemetry`.

May import `penstock.spi`, `penstock.api`, attrs, prometheus_client, trio and the standard library.
Only `opentelemetry` imports that. What needs prometheus_client is imported at its first use: a
program that has the plugin, and collects nothing, does without its 3 MiB.
"""

import importlib as _importlib
import typing as _typing

from penstock_metrics._hooks import MEASUREMENTS, penstock_reads
from penstock_metrics._measurements import Collected, Measurements
from penstock_metrics._publishers import MOST_LABELS, OTHER
from penstock_metrics._table import METRICS, Kind, Metric

if _typing.TYPE_CHECKING:
    from penstock_metrics._merged import merged as merged
    from penstock_metrics._prometheus import PenstockCollector as PenstockCollector
    from penstock_metrics._prometheus import collect as collect

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

_HOMES: _typing.Final = {
    "PenstockCollector": "_prometheus",
    "collect": "_prometheus",
    "merged": "_merged",
}


def __getattr__(name: str) -> _typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock_metrics' has no attribute {name!r}")
    return getattr(_importlib.import_module(f"penstock_metrics.{_HOMES[name]}"), name)
