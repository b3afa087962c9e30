"""The listener reports the three figures of Kafka's source."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from penstock_spark.progress import Lag, LagListener, lag_of
from penstock_spark.source._offsets import Offset


def offset(**positions: int) -> str:
    return json.dumps(
        Offset(
            {("orders", partition): position for partition, position in positions.items()}
        ).to_json()
    )


def test_the_lag_is_told_over_the_partitions() -> None:
    """A partition that the query has not begun counts with all of it;
    one that is read counts zero.
    """
    assert lag_of(offset(a=10, b=5), offset(a=10, b=9)) == Lag(0, 4, 2.0)
    assert lag_of(offset(a=10), offset(a=10, b=9)) == Lag(0, 9, 4.5)
    assert lag_of(None, offset(a=7)) == Lag(7, 7, 7.0)


@pytest.mark.parametrize(
    "latest", [None, "", "null", "{", "7", '{"logOffset": 3}', '{"orders": {"0": 3}}']
)
def test_the_offsets_of_other_sources_have_no_lag(latest: str | None) -> None:
    """Spark's progress has those of all sources."""
    assert lag_of(offset(a=1), latest) is None


def test_the_listener_reports_each_source_of_a_progress() -> None:
    """With the name of the query, or its id."""
    told: list[Any] = []
    listener = LagListener(lambda *given: told.append(given))
    sources = [
        SimpleNamespace(endOffset="3", latestOffset="4"),
        SimpleNamespace(endOffset=offset(a=1), latestOffset=offset(a=3)),
    ]
    for name in ("orders", None):
        listener.onQueryProgress(
            SimpleNamespace(progress=SimpleNamespace(name=name, id="7", sources=sources))
        )
    assert told == [("orders", 1, Lag(2, 2, 2.0)), ("7", 1, Lag(2, 2, 2.0))]
