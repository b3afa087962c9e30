"""Which groups are joined: within the bounds of the retention, and close to each other in time."""

import pytest

from penstock.logs import Retention
from penstock.logs import _group_runs as module
from penstock.logs._group_runs import GroupAt, joinable, next_run

PLENTY = Retention(max_count=1_000_000)


def _groups(*facts: tuple[int, int, float]) -> list[GroupAt]:
    groups, key = [], 0
    for length, size, written in facts:
        groups.append(GroupAt(key, length, size, written))
        key += length
    return groups


@pytest.mark.parametrize(
    ("retention", "facts", "run"),
    [
        (PLENTY, [], (0, 0)),
        (PLENTY, [(1, 10, 0.0)] * 3, (0, 0)),
        (PLENTY, [(1, 10, 0.0)] * 4, (0, 4)),
        (Retention(max_count=24), [(1, 1, 0.0)] * 4, (0, 3)),
        (Retention(max_count=24), [(3, 1, 0.0), (3, 1, 0.0), (1, 1, 0.0)], (2, 2)),
        (Retention(max_count=24), [(3, 1, 0.0), (1, 1, 0.0), (1, 1, 0.0), (3, 1, 0.0)], (1, 3)),
        (Retention(max_bytes=800), [(1, 40, 0.0), (1, 60, 0.0), (1, 1, 0.0)], (0, 2)),
        (Retention(max_bytes=800), [(1, 500, 0.0), (1, 500, 0.0)], (1, 1)),
        (
            Retention(max_count=99, max_age=80),
            [(1, 1, 5.0), (1, 1, 15.0), (1, 1, 15.1), (1, 1, 15.2)],
            (0, 2),
        ),
    ],
)
def test_a_run_keeps_the_bounds(
    retention: Retention,
    facts: list[tuple[int, int, float]],
    run: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Groups that may get more neighbours wait; a group that is large by itself is passed over."""
    monkeypatch.setattr(module, "MOST_JOINED", 4)
    assert next_run(_groups(*facts), retention) == run


def test_groups_that_are_dropped_one_by_one_stay_apart() -> None:
    """Elements that are kept until they are acknowledged, and groups of one element."""
    assert joinable(PLENTY)
    assert not joinable(Retention(max_count=100, acknowledged=True))
    assert not joinable(Retention(max_count=15))
