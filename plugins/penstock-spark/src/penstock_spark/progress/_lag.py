"""The lag of the sources of a streaming query, under the names that Kafka's source uses.

A source in Python cannot report metrics. But the progress of a query has its end offset and its
latest offset, from which the figures follow.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryListener

from penstock.api import UsageError
from penstock_spark.source._offsets import Offset


class Lag(NamedTuple):
    """How many elements a query has not read yet, over the partitions of one source. The names
    are those of Kafka's metrics.
    """

    minOffsetsBehindLatest: int  # noqa: N815  # Kafka's names
    maxOffsetsBehindLatest: int  # noqa: N815  # the same
    avgOffsetsBehindLatest: float  # noqa: N815  # the same


def lag_of(end: str | None, latest: str | None) -> Lag | None:
    """Return the lag between two offsets as the progress of a query has them.
    None if they are those of another source.
    """
    read, known = _positions(end), _positions(latest)
    if not known:
        return None
    # A partition that the query has not begun is behind by all of it.
    behind = [max(0, position - read.get(key, 0)) for key, position in known.items()]
    return Lag(min(behind), max(behind), sum(behind) / len(behind))


def _positions(text: str | None) -> dict[Any, int]:
    try:
        return dict(Offset.from_json(json.loads(text or "null")).positions)
    except (ValueError, UsageError):  # no JSON, or the offset of another source
        return {}


class LagListener(StreamingQueryListener):  # type: ignore[misc]  # pyspark is not installed for the check
    """Reports the lag of each penstock source after each batch:
    ``spark.streams.addListener(LagListener(report))``.

    `report` is called with the name of the query (its id if it has no name), the index of the
    source, and the `Lag`. Spark calls it in a separate thread, so it must not block.
    """

    def __init__(self, report: Callable[[str, int, Lag], None]) -> None:
        super().__init__()
        self._report = report

    def onQueryProgress(self, event: Any) -> None:  # Spark's name
        progress = event.progress
        for index, source in enumerate(progress.sources):
            lag = lag_of(source.endOffset, source.latestOffset)
            if lag is not None:
                self._report(progress.name or str(progress.id), index, lag)

    def onQueryStarted(self, event: Any) -> None:  # Spark's name
        """Do nothing: a query that starts has no offset."""

    def onQueryIdle(self, event: Any) -> None:  # Spark's name
        """Do nothing: the offsets are those of the last progress."""

    def onQueryTerminated(self, event: Any) -> None:  # Spark's name
        """Do nothing: the last progress has told."""
