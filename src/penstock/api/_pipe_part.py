"""What the parts of a running pipe tell of themselves: asked only when somebody looks.

Rules of this file:

* A subscription that can be looked at has a method ``pipe_part()``. It returns a `PipePart`,
  changes nothing, and costs nothing before it is called.
* A pipe is looked at from its subscriber up: each part names the subscriptions above it.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

MOST_PARTS: Final = 32
"""Parts of one pipe that are looked at. A merge of a thousand sources has more."""


class PipePart(NamedTuple):
    """One part of a running pipe."""

    label: str
    """What a person calls it: ``batch(100)``; empty for a part that only passes signals on."""
    held: int = 0
    """Elements that it holds."""
    upstream: tuple[object, ...] = ()
    """The subscriptions above it; None among them is passed over."""
    task: Any = None
    """The task of trio that makes the elements, if this part has one."""
    position: int | None = None
    """The position of the next element, if the elements come out of a log."""
    lag: int | None = None
    """How many elements the log has from there on."""


def pipe_parts(lowest: object) -> Iterator[tuple[object, PipePart]]:
    """Yield the subscription `lowest` and those above it, each with its part."""
    waiting, left = [lowest], MOST_PARTS
    while waiting and left:
        each = waiting.pop(0)
        if each is None:
            continue
        left -= 1
        look = getattr(each, "pipe_part", None)
        part = None if look is None else look()
        # A subscription of a program may have a method of that name, too.
        if not isinstance(part, PipePart):
            part = PipePart(type(each).__name__)
        yield each, part
        waiting += part.upstream


def lowest_subscriber(subscriber: object) -> object:
    """Return the subscriber at the end of a pipe that begins with `subscriber`."""
    for _ in range(MOST_PARTS):
        below = getattr(subscriber, "subscriber_below", None)
        if below is None:
            return subscriber
        subscriber = below
    return subscriber
