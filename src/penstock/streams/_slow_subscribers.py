"""Subscribers that lag: the policy of a publisher of many subscribers (`SlowPolicy`), and the bound
on how long one subscriber may hold up the others.

A subscriber that requests nothing stops a publisher that goes at the pace of the slowest. Inside
one process that is the program's own choice: the publisher waits without a bound unless it sets
one. A subscriber at the other end of a network is a stranger: if the publisher sets no bound, it
has that of its scope, `Scope.max_hold_up`.
"""

import enum
from math import inf
from typing import Any, Final

from penstock.api import SlowSubscriber, Subscriber, UsageError, shown
from penstock.core import PublisherGuard


class SlowPolicy(enum.Enum):
    """The answer of a topic to a subscriber that has no demand left and no room in its buffer."""

    WAIT = "wait"
    """`publish` waits for the slowest, for `max_hold_up` seconds at most if the topic has
    that bound. Nothing is lost.
    """

    DROP_OLDEST = "drop oldest"
    """The oldest element in its buffer is dropped."""

    DROP_NEWEST = "drop newest"
    """The subscriber misses the element that is being published."""

    LATEST = "latest"
    """Its buffer holds one element, the newest of those published since it joined."""

    FAIL = "fail"
    """The subscriber gets `on_error(SlowSubscriber)`. Other subscribers are not affected."""


IN_PROCESS: Final = inf
"""The bound of a subscriber inside the process: none."""


def check_hold_up(asked: object, slow: SlowPolicy = SlowPolicy.WAIT) -> float | None:
    """Return `asked`, the bound that a publisher sets for all subscribers, or None. Raises
    UsageError for another value.
    """
    if asked is None:
        return None
    # True is a number for Python, and would be a bound of one second.
    # `not asked > 0`, because a NaN must also be refused.
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not asked > 0:
        raise UsageError(
            f"max_hold_up is {shown(asked)}; it is a time in seconds above 0, math.inf for no "
            "bound, or None for the default"
        )
    if slow is not SlowPolicy.WAIT:
        raise UsageError(
            f"max_hold_up={shown(asked)} with SlowPolicy.{slow.name}, which never waits for a "
            "subscriber; leave it out"
        )
    return float(asked)


def hold_up_bound_of(subscriber: Subscriber[Any]) -> float:
    """Return the bound of a subscriber that has come through `Publisher.subscribe`,
    which has no parameter for it.
    """
    # The guard before a pipe knows the scope of the pipe.
    # A server attaches such a pipe to each of its peers.
    return subscriber.max_hold_up if isinstance(subscriber, PublisherGuard) else IN_PROCESS


def held_up(
    seconds: float, *, what: str = "topic", setting: str = "Topic(max_hold_up=...)"
) -> SlowSubscriber:
    """Return the error of a subscriber that has held up `what` for `seconds`.
    `setting` is where the bound can be changed.
    """
    return SlowSubscriber(
        f"this subscriber requested nothing for {seconds:g} s while its {what} waited for it, "
        f"which holds up all other subscribers ({setting}; Limits.max_hold_up for subscribers "
        f"over a network). Request more, or sooner; or give the {what} a longer bound, or another "
        "`slow`",
        limit="max_hold_up",
        value=seconds,
    )


def held_up_by_a_stranger(seconds: float) -> SlowSubscriber:
    """Return what a topic reports, once, that sets neither a bound nor another policy."""
    return SlowSubscriber(
        f"a subscriber over a network has requested nothing for {seconds:g} s, and publish() waits "
        "for it: all other subscribers wait as well (SlowPolicy.WAIT, the default). The author of "
        "the topic must act: over a network give it slow=SlowPolicy.FAIL or "
        "SlowPolicy.DROP_OLDEST, with a buffer=; or set max_hold_up=, if the slowest subscriber "
        "may hold up all. This is said once",
        limit="max_hold_up",
        value=seconds,
    )
