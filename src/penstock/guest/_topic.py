"""A topic that tasks of asyncio publish to.

Rules of this file:

* Elements that no subscriber must be waited for are delivered by a plain call. Every wait is that
  of `penstock.Topic`, in a task of trio.
"""

from collections.abc import Iterable
from time import monotonic
from typing import TypeVar

from penstock.guest._calls import in_trio
from penstock.streams import Topic as TrioTopic

T = TypeVar("T")


class Topic(TrioTopic[T]):
    """A hot publisher, as `penstock.Topic` is, that tasks of asyncio publish to."""

    __slots__ = ()

    async def publish(self, element: T) -> None:
        # As `penstock.Topic` does without a wait: a task of trio for each element would cost more
        # than all else.
        if (
            element is not None
            and self._end is None
            and not self._grace
            and monotonic() <= self._turn_ends
            and not self._must_wait()
        ):
            self._deliver([element])
        else:
            await in_trio(super().publish, element)

    async def publish_many(self, elements: Iterable[T], /) -> None:
        await in_trio(super().publish_many, elements)

    async def wait_subscribers(self, *, at_least: int = 1) -> None:
        async def wait() -> None:
            await TrioTopic.wait_subscribers(self, at_least=at_least)

        await in_trio(wait)

    async def wait_alone(self) -> None:
        await in_trio(super().wait_alone)
