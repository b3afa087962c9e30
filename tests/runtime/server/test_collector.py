"""`tune_collector` keeps the garbage collector from holding up the run loop of a server."""

import gc
from collections.abc import Iterator

import pytest

from penstock.runtime import tune_collector
from penstock.runtime.server._collector import THRESHOLDS


@pytest.fixture(autouse=True)
def _restored_collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)  # what is frozen stays so, as conftest.py has it for all tests


class Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.me = self


def test_what_exists_at_the_start_is_in_no_later_collection() -> None:
    """But cycles that are garbage by then are freed first."""
    nodes = [Node() for _ in range(1000)]
    before = gc.get_freeze_count()
    tune_collector()
    frozen = gc.get_freeze_count()
    assert frozen >= before + 1000
    assert not any(isinstance(each, Node) for each in gc.get_objects())
    del nodes


def test_new_objects_start_no_full_collection() -> None:
    """200,000 objects that stay are fewer than a full collection waits for;
    by default they cause several.
    """
    tune_collector()
    full = gc.get_stats()[2]["collections"]
    kept = [[number] for number in range(200_000)]
    assert gc.get_stats()[2]["collections"] == full
    assert len(kept) == 200_000
    assert gc.get_threshold() == THRESHOLDS


def test_cycles_of_young_objects_are_still_freed() -> None:
    """Only the oldest generation waits."""
    tune_collector()
    for _ in range(100_000):
        Node()
    assert sum(isinstance(each, Node) for each in gc.get_objects()) <= THRESHOLDS[0] + 100
