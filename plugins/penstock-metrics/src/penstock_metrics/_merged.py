"""The pages of several processes, as one: for a server that runs in workers.

Rules of this file:

* Counters, histograms and summaries are added up, and so are gauges.
* Two numbers are not sums: the time for which the oldest stream has not moved is the longest one,
  and the time at which a counter began is the first one.
* What is about a process (its memory, its files, its garbage collector) has the label ``worker``.
* Of a process that has ended only the numbers count that never become smaller.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

OF_A_PROCESS: Final = ("process_", "python_")
LONGEST: Final = ("penstock_stalled_seconds",)
FIRST: Final = "_created"
_GROWS: Final = ("counter", "histogram", "summary")


class _Sums(Collector):
    """The families of several pages."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}
        self._values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}

    def add(self, page: str, worker: str, *, is_over: bool) -> None:
        """Add a page of a process; of one that `is_over`, what only grows."""
        for family in text_string_to_metric_families(page):
            is_own = family.name.startswith(OF_A_PROCESS)
            if is_over and (is_own or family.type not in _GROWS):
                continue
            self._families.setdefault(
                family.name, Family(family.name, family.documentation, family.type)
            )
            values = self._values.setdefault(family.name, {})
            for sample in family.samples:
                labels = {**sample.labels, "worker": worker} if is_own else sample.labels
                key = sample.name, tuple(labels.items())
                if key not in values:
                    values[key] = sample.value
                elif family.name in LONGEST:
                    values[key] = max(values[key], sample.value)
                elif family.name.endswith(FIRST):
                    values[key] = min(values[key], sample.value)
                else:
                    values[key] += sample.value

    def collect(self) -> Iterable[Family]:
        """Return the families with their samples."""
        for name, family in self._families.items():
            family.samples = []
            for (sample, labels), value in self._values[name].items():
                family.add_sample(sample, dict(labels), value)
            yield family


def merged(pages: Iterable[tuple[str, bytes]], ended: Sequence[bytes] = ()) -> bytes:
    """Return one page for the processes of a server: `pages` are those of workers that run, each
    with its name, and `ended` the last ones of workers that have ended.
    """
    sums = _Sums()
    for name, page in pages:
        sums.add(page.decode(), name, is_over=False)
    for page in ended:
        sums.add(page.decode(), "", is_over=True)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(sums)
    return generate_latest(registry)
