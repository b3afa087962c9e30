"""The bounds of a log, and the decision about its oldest group."""

from typing import Any

import pytest

from penstock.api import UsageError
from penstock.logs import Retention
from penstock.logs._retention import MOST_BYTES_IN_GROUP, MOST_IN_GROUP, GroupFacts, split
from penstock.logs._work import PartitionState


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({}, "without max_count and max_bytes would let a log grow without a bound"),
        ({"max_age": 60}, "without max_count and max_bytes"),
        ({"max_count": 0}, "max_count=...\\) takes a positive number, not 0"),
        ({"max_count": 2.5}, "takes a positive number, not 2.5"),
        ({"max_count": True}, "takes a positive number, not True"),
        ({"max_bytes": -1}, "max_bytes=...\\) takes a positive number, not -1"),
        (
            {"max_count": 1, "max_age": float("nan")},
            "max_age=...\\) takes a positive number, not nan",
        ),
        ({"max_count": 1, "max_age": 60, "acknowledged": True}, "leave max_age out"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(bounds: dict[str, Any], message: str) -> None:
    """The message names the bound."""
    with pytest.raises(UsageError, match=message):
        Retention(**bounds)


@pytest.mark.parametrize(
    ("retention", "count", "size", "written", "dropped"),
    [
        (Retention(max_count=10), 10, 999, 0.0, False),
        (Retention(max_count=10), 11, 999, 0.0, True),
        (Retention(max_bytes=10), 999, 10, 0.0, False),
        (Retention(max_bytes=10), 999, 11, 0.0, True),
        (Retention(max_count=10, max_age=5), 6, 1, 95.0, False),
        (Retention(max_count=10, max_age=5), 6, 1, 94.9, True),
        (Retention(max_count=10, max_age=5), 5, 1, 94.9, False),
        (Retention(max_count=10, acknowledged=True), 99, 99, 0.0, False),
    ],
)
def test_the_first_bound_that_is_reached_drops_the_oldest_group(
    retention: Retention, count: int, size: int, written: float, dropped: bool
) -> None:
    """At a bound nothing is dropped, above it the oldest group is. No age drops the newest group,
    and a log that waits for acknowledgements drops nothing for a bound.
    """
    state = PartitionState(latest=count, size=size, acknowledged=(4, 4, 4))
    assert retention.drops(GroupFacts(5, 5, written), state, 100.0) is dropped


def test_acknowledged_groups_are_dropped_when_all_of_them_is_before_the_last_two_ranges() -> None:
    """A group that reaches into the last two ranges stays."""
    retention = Retention(max_count=10, acknowledged=True)
    state = PartitionState(latest=9, size=1, acknowledged=(4, 5, 6))
    assert retention.drops(GroupFacts(4, 5, 0.0), state, 0.0)
    assert not retention.drops(GroupFacts(5, 5, 0.0), state, 0.0)


def test_a_log_within_its_bounds_reads_no_groups() -> None:
    """`keeps_all` is false exactly when a group may have to go."""
    state = PartitionState(earliest=2, latest=12, size=100, acknowledged=(3, 4, 5))
    assert Retention(max_count=10, max_bytes=100).keeps_all(state)
    assert not Retention(max_count=9).keeps_all(state)
    assert not Retention(max_bytes=99).keeps_all(state)
    assert not Retention(max_count=10, max_age=1).keeps_all(state)
    assert not Retention(max_count=10, acknowledged=True).keeps_all(state)
    assert Retention(max_count=10, acknowledged=True).keeps_all(state._replace(earliest=3))


def test_a_group_has_at_most_an_eighth_of_each_bound() -> None:
    """So a log that drops a whole group keeps seven eighths of its bounds."""
    assert (Retention(max_count=800).group_count, Retention(max_bytes=800).group_bytes) == (
        100,
        100,
    )
    assert (Retention(max_count=3).group_count, Retention(max_bytes=3).group_bytes) == (1, 1)
    assert (Retention(max_bytes=10**9).group_count, Retention(max_count=10**9).group_bytes) == (
        MOST_IN_GROUP,
        MOST_BYTES_IN_GROUP,
    )


def test_elements_are_split_at_the_bounds_of_a_group() -> None:
    """By count, by bytes, and an element that is longer than a group alone."""
    assert list(split([b"a"] * 5, Retention(max_count=16))) == [[b"a"] * 2, [b"a"] * 2, [b"a"]]
    long = [b"aa", b"b", b"c" * 9, b"d", b"", b"e"]
    assert list(split(long, Retention(max_bytes=24))) == [
        [b"aa", b"b"],
        [b"c" * 9],
        [b"d", b"", b"e"],
    ]
    assert list(split([], Retention(max_count=1))) == []
