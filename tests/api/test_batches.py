"""The optional interfaces for batches: each is found by its method, and absent ones are None."""

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.api import (
    AcceptsMany,
    AcceptsPacked,
    BatchingSubscriber,
    SharedBatch,
    on_element_size_of,
    on_next_many_of,
    on_next_packed_of,
    split_packed,
)


class Batch:
    """An open batch of one byte each."""

    def __init__(self) -> None:
        self.elements: list[bytes] = []
        self.length = 1


class Everything:
    """Has every optional method."""

    run: SharedBatch | None = Batch()

    def __init__(self) -> None:
        self.log: list[Any] = []

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        self.log.append(elements)

    def on_element_size(self, size: int, /) -> None:
        self.log.append(size)

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        self.log.append((count, elements))

    def on_reservation_used(self) -> None:
        self.log.append("used")


def test_each_method_is_found_and_can_be_called() -> None:
    """The returned object is the subscriber's own method."""
    subscriber = Everything()
    many, size, packed = (
        on_next_many_of(subscriber),
        on_element_size_of(subscriber),
        on_next_packed_of(subscriber),
    )
    assert many is not None
    assert size is not None
    assert packed is not None
    many("ab")
    size(1)
    packed(2, b"ab")
    assert subscriber.log == ["ab", 1, (2, b"ab")]


@pytest.mark.parametrize("subscriber", [None, object()], ids=["none", "object"])
@pytest.mark.parametrize("find", [on_next_many_of, on_element_size_of, on_next_packed_of])
def test_a_subscriber_without_the_method_gives_none(find: Any, subscriber: object) -> None:
    """None stands for a subscriber that has cancelled."""
    assert find(subscriber) is None


@pytest.mark.parametrize(
    ("count", "elements", "expected"),
    [(1, b"abc", [b"abc"]), (3, b"aabbcc", [b"aa", b"bb", b"cc"])],
)
def test_packed_elements_are_split_in_order(
    count: int, elements: bytes, expected: list[bytes]
) -> None:
    """Each piece has the same size."""
    assert split_packed(count, elements) == expected


def test_the_interfaces_are_structural() -> None:
    """An object conforms by having the methods; a type checker checks these assignments."""
    everything = Everything()
    many: AcceptsMany[Any] = everything
    packed: AcceptsPacked = everything
    batching: BatchingSubscriber = everything
    assert many is packed is batching
