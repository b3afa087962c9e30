"""The bound on how long a subscriber may hold up all others: the values that are accepted, and
the bound that a subscriber has.
"""

from math import inf, nan
from typing import Any

import pytest
import trio

from penstock.api import Publisher, Subscriber, UsageError
from penstock.core import Scope
from penstock.streams import SlowPolicy, Topic, from_publisher
from penstock.streams._slow_subscribers import check_hold_up, held_up, hold_up_bound_of
from tests.core._foreign import Recorder


class BoundSeen(Publisher[int]):
    """Notes the bound of each subscriber."""

    def __init__(self) -> None:
        self.bounds: list[float] = []

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self.bounds.append(hold_up_bound_of(subscriber))


@pytest.mark.parametrize(("asked", "bound"), [(None, None), (3, 3.0), (0.5, 0.5), (inf, inf)])
def test_a_time_above_zero_is_accepted(asked: Any, bound: float | None) -> None:
    """None leaves the bound to the scope of each subscriber."""
    assert check_hold_up(asked) == bound


@pytest.mark.parametrize("wrong", [0, -1, nan, True, "3"])
def test_any_other_value_is_refused(wrong: Any) -> None:
    """The error says what to give."""
    with pytest.raises(UsageError, match=r"max_hold_up is .*; it is a time in seconds above 0"):
        check_hold_up(wrong)


def test_a_bound_is_refused_with_a_policy_that_never_waits() -> None:
    """It would have no effect."""
    with pytest.raises(UsageError, match=r"max_hold_up=3 with SlowPolicy\.FAIL"):
        check_hold_up(3, SlowPolicy.FAIL)


async def test_a_subscriber_of_a_publisher_has_the_bound_of_its_scope(
    nursery: trio.Nursery, autojump_clock
) -> None:
    """`subscribe` has no parameter for it. A subscriber of the program itself has no bound."""
    seen = BoundSeen()
    from_publisher(seen).attach(Recorder(), Scope(nursery, max_hold_up=4))
    seen.subscribe(Recorder())
    assert seen.bounds == [4, inf]


async def test_a_topic_sees_the_bound_through_a_publisher_in_front_of_it(
    nursery: trio.Nursery, autojump_clock
) -> None:
    """A program may wrap a topic into another publisher, and so may `Source.publisher`."""
    topic: Topic[int] = Topic()
    seen = BoundSeen()
    from_publisher(topic.publisher(nursery)).attach(Recorder(), Scope(nursery, max_hold_up=4))
    from_publisher(from_publisher(seen).publisher(nursery)).attach(
        Recorder(), Scope(nursery, max_hold_up=4)
    )
    assert topic.statistics().subscribers == 1
    assert seen.bounds == [4]


def test_the_error_names_what_was_held_up_and_where_the_bound_is_set() -> None:
    """So that the operator of the server can find it."""
    text = str(held_up(2, what="share", setting="share(max_hold_up=...)"))
    assert text.startswith(
        "this subscriber requested nothing for 2 s while its share waited for it"
    )
    assert "(share(max_hold_up=...); Limits.max_hold_up for subscribers over a network)" in text
