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
    """The task of trio that makes the elements, or that works on one, if this part has one."""
    position: int | None = None
    """The position of the next element, if the elements come out of a log."""
    lag: int | None = None
    """How many elements the log has from there on."""
    shared: object = None
    """What other pipes have in common with this one, if they wait for each other: a topic."""
    holds_up: bool = False
    """True if a publisher waits because this pipe takes nothing of what is shared."""


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


def subscribers_below(subscriber: object) -> list[object]:
    """Return `subscriber` and those below it; the last one is at the end of the pipe."""
    found = [subscriber]
    while len(found) <= MOST_PARTS:
        below = getattr(found[-1], "subscriber_below", None)
        if below is None:
            break
        found.append(below)
    return found
