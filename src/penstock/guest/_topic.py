"""A topic that tasks of asyncio publish to.

Rules of this file:

* Elements that no subscriber must be waited for are delivered by a plain call. Every wait is that
  of `penstock.Topic`, in a task of trio.
* A topic with subscribers belongs to the thread whose loop serves them. A call in another thread is
  refused: it would touch their streams while that loop does.
"""

from collections.abc import Iterable
from threading import get_ident
from time import monotonic
from typing import Final, TypeVar

from penstock.api import Subscriber, UsageError
from penstock.core import Scope
from penstock.guest._calls import in_trio
from penstock.streams import Topic as TrioTopic

T = TypeVar("T")


class Topic(TrioTopic[T]):
    """A hot publisher, as `penstock.Topic` is, that tasks of asyncio publish to."""

    __slots__ = ("_thread",)

    _thread: int
    """The thread whose loop serves the subscribers; set with the first of them."""

    def attach(self, subscriber: Subscriber[T], scope: Scope) -> None:
        self._check_thread("a subscription to a Topic", "Make a topic for each loop")
        self._thread = get_ident()
        super().attach(subscriber, scope)

    async def publish(self, element: T) -> None:
        if self._subscriptions and get_ident() != self._thread:
            self._check_thread("Topic.publish()", _RUN.format("publish(element)"))
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
        self._check_thread("Topic.publish_many()", _RUN.format("publish_many(elements)"))
        await in_trio(super().publish_many, elements)

    def complete(self) -> None:
        self._check_thread("Topic.complete()", _CALL.format("complete"))
        super().complete()

    def fail(self, error: Exception) -> None:
        self._check_thread("Topic.fail()", _CALL.format("fail, error"))
        super().fail(error)

    async def wait_subscribers(self, *, at_least: int = 1) -> None:
        async def wait() -> None:
            await TrioTopic.wait_subscribers(self, at_least=at_least)

        await in_trio(wait)

    async def wait_alone(self) -> None:
        await in_trio(super().wait_alone)

    # --- inside

    def _check_thread(self, call: str, advice: str) -> None:
        if self._subscriptions and get_ident() != self._thread:
            raise UsageError(
                f"{call} was called in another thread than that of the loop that serves the "
                f"subscribers of {self!r}. {advice}"
            )


_RUN: Final = "Write asyncio.run_coroutine_threadsafe(topic.{}, loop), with that loop"
_CALL: Final = "Write loop.call_soon_threadsafe(topic.{}), with that loop"
