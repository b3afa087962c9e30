"""Filters that Spark leaves to the source: on the columns stream, partition and offset, which choose ranges.

Spark does so in batch queries only, and if ``spark.sql.python.filterPushdown.enabled`` is set.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from penstock_spark.source._offsets import Range

FIRST = {EqualTo: 0, GreaterThan: 1, GreaterThanOrEqual: 0}
"""By filter on the offset, the first position that it lets through, counted from its value."""

STOP = {EqualTo: 1, LessThan: 0, LessThanOrEqual: 1}
"""By filter on the offset, the position behind the last one that it lets through."""


class Chosen:
    """The positions that filters let through."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}
        self._first = 0
        self._stop: int | None = None

    def take(self, filters: Iterable[Filter]) -> Iterator[Filter]:
        """Take the filters that choose ranges, and yield the others: Spark evaluates these."""
        for each in filters:
            if not self._takes(each):
                yield each

    def cut(self, parts: Iterable[Range]) -> list[Range]:
        """Return the parts of ranges that are let through."""
        found = []
        for part in parts:
            if all(getattr(part, column) in names for column, names in self._names.items()):
                stop = part.stop if self._stop is None else min(part.stop, self._stop)
                found.append(part._replace(start=max(part.start, self._first), stop=stop, digest=part.digest if stop == part.stop else ""))
        return [part for part in found if part.start < part.stop]

    # --- inside

    def _takes(self, each: Any) -> bool:
        column = each.attribute[0] if len(getattr(each, "attribute", ())) == 1 else None
        value: Any = getattr(each, "value", None)
        if column in ("stream", "partition") and type(each) in (EqualTo, In):
            values: set[str] = {value} if type(each) is EqualTo else set(value)
            if all(isinstance(name, str) for name in values):
                self._names[column] = self._names.get(column, values) & values
                return True
        if column == "offset" and type(value) is int and type(each) in FIRST.keys() | STOP.keys():
            if type(each) in FIRST:
                self._first = max(self._first, value + FIRST[type(each)])
            if type(each) in STOP:
                stop = value + STOP[type(each)]
                self._stop = stop if self._stop is None else min(self._stop, stop)
            return True
        return False
