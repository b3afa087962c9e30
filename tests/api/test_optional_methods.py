"""The optional methods of a subscriber: each is found by its name, and absent ones are None."""

from collections.abc import Sequence
from typing import Any, Protocol

import pytest

from penstock import api
from penstock.api import (
    BatchingSubscriber,
    OptionalMethods,
    SharedBatch,
    held_of,
    lender_of,
    on_content_of,
    on_element_size_of,
    on_fact_of,
    on_next_many_of,
    on_next_packed_of,
    on_next_sized_of,
    split_packed,
    takes_runs_of,
)


class Batch:
    """An open batch of one byte each."""

    def __init__(self) -> None:
        self.elements: list[bytes] = []
        self.longest = 1


class Everything:
    """Has every optional method."""

    run: SharedBatch | None = Batch()
    takes_runs = True

    def __init__(self) -> None:
        self.log: list[Any] = []

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        self.log.append(elements)

    def on_next_sized(self, elements: Sequence[Any], size: int, /) -> None:
        self.log.append((elements, size))

    def on_element_size(self, size: int, /) -> None:
        self.log.append(size)

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        self.log.append((count, elements))

    def on_content(self, serializer: str | None, schema: str, /) -> Any:
        self.log.append((serializer, schema))

    def on_fact(self, fact: object, /) -> None:
        self.log.append(fact)

    def held(self) -> int:
        return 7

    @property
    def lender(self) -> BatchingSubscriber | None:
        return self

    def on_reservation_used(self) -> None:
        self.log.append("used")


LOOK_UPS = {
    "on_next_many": on_next_many_of,
    "on_next_sized": on_next_sized_of,
    "on_element_size": on_element_size_of,
    "on_next_packed": on_next_packed_of,
    "takes_runs": takes_runs_of,
    "on_content": on_content_of,
    "on_fact": on_fact_of,
    "held": held_of,
    "lender": lender_of,
}


def members() -> set[str]:
    """Return the names that the protocol lists."""
    return {name for name in vars(OptionalMethods) if not name.startswith("_")} - set(
        vars(Protocol)
    )


def test_each_optional_method_has_a_look_up() -> None:
    """The protocol is the one list of them."""
    assert members() == LOOK_UPS.keys()
    assert all(callable(getattr(api, f"{name}_of")) for name in LOOK_UPS)


@pytest.mark.parametrize("name", LOOK_UPS)
def test_each_method_is_found(name: str) -> None:
    """The method is the subscriber's own; a type checker checks the first assignment."""
    subscriber: OptionalMethods[Any] = Everything()
    assert LOOK_UPS[name](subscriber) == getattr(subscriber, name)


def test_a_method_that_was_found_can_be_called() -> None:
    """It is bound to its subscriber."""
    subscriber = Everything()
    many, held = on_next_many_of(subscriber), held_of(subscriber)
    assert many is not None
    assert held is not None
    many("ab")
    assert (subscriber.log, held()) == (["ab"], 7)


@pytest.mark.parametrize("subscriber", [None, object()], ids=["none", "object"])
@pytest.mark.parametrize("name", LOOK_UPS)
def test_a_subscriber_without_the_method_gives_none(name: str, subscriber: object) -> None:
    """None stands for a subscriber that has cancelled."""
    assert LOOK_UPS[name](subscriber) in (None, False)


@pytest.mark.parametrize(
    ("count", "elements", "expected"),
    [(1, b"abc", [b"abc"]), (3, b"aabbcc", [b"aa", b"bb", b"cc"])],
)
def test_packed_elements_are_split_in_order(
    count: int, elements: bytes, expected: list[bytes]
) -> None:
    """Each piece has the same size."""
    assert split_packed(count, elements) == expected
