"""A pump pulls one iterator, on demand, from one task, and closes it there.

Rules of this file:

* One task pulls and closes; it does nothing else. (An async generator that is pulled from two tasks breaks its cancel scopes silently.)
* The task exists from the first pull to the end, not before: a subscription that nobody pulls is an object, not a task.
* `_budget` is what may still be signalled in this burst, `_backlog` what was requested beyond it. Cancelling sets both to zero,
  so one comparison per element sees the end of the burst, of the demand and of the subscription alike.
* Signals come from the pump's task only: `request` and `cancel` never signal, so they cannot recurse (rules 3.3, 3.4).
"""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Generic, TypeVar

import trio

from penstock.api import UNBOUNDED, CleanupTimeout, PublisherStopped, Subscriber, Subscription, UsageError, add_demand
from penstock.core._scope import Scope

T = TypeVar("T")

FIRST_BURST: Final = 32
LONGEST_BURST: Final = 1024
"""Elements between two checkpoints. A checkpoint costs what some twenty elements cost: spread over 1,024 it cannot be measured any more."""

BURST_SECONDS: Final = 0.005
"""A burst that took longer is followed by a shorter one: neighbours should not wait longer than this for their turn."""


def next_burst(burst: int, seconds: float) -> int:
    """Return the length of the next burst after one of `burst` elements took `seconds`."""
    if seconds > BURST_SECONDS:
        return max(1, burst // 4)
    if seconds < BURST_SECONDS / 4:
        return min(LONGEST_BURST, burst * 2)
    return burst


class Pump(Subscription, Generic[T]):
    """The subscription to a stream that comes out of an iterator."""

    __slots__ = (
        "_backlog",
        "_borrowed",
        "_budget",
        "_burst",
        "_given",
        "_label",
        "_left",
        "_open",
        "_parked",
        "_position",
        "_scope",
        "_subscriber",
        "_task",
    )

    def __init__(
        self,
        open_iterator: Callable[[], AsyncIterator[T]],
        subscriber: Subscriber[T],
        scope: Scope,
        *,
        label: str,
        length: int = UNBOUNDED,
        given: bool = False,
        borrowed: bool = False,
    ) -> None:
        """`length` is how many elements will come, where that is known.

        `given` says that the iterator exists already and must be closed even if never pulled; `borrowed` that it is not ours to close.
        """
        self._given = given
        self._borrowed = borrowed
        self._open: Callable[[], AsyncIterator[T]] | None = open_iterator
        self._subscriber: Subscriber[T] | None = subscriber
        self._scope = scope
        self._label = label
        self._left = length
        self._budget = 0
        self._backlog = 0
        self._burst = FIRST_BURST
        self._position = 0
        self._task: trio.CancelScope | None = None
        self._parked: trio.lowlevel.Task | None = None

    # --- the subscription

    def request(self, n: int, /) -> None:
        if self._subscriber is None:
            return  # rule 3.6
        self._backlog = add_demand(self._backlog, n)
        if self._parked is not None:
            trio.lowlevel.reschedule(self._parked)
            self._parked = None
        elif self._task is None:
            self._start()

    def cancel(self, /) -> None:
        if self._subscriber is None:
            return  # rule 3.7
        self._let_go()
        if self._task is not None:
            self._task.cancel()
        elif self._given:
            with suppress(UsageError):  # the nursery has closed: whoever made the generator is left with it, unstarted
                self._task = self._scope.spawn(self._run, name=f"penstock cleanup of {self._label}")
        else:
            self._open = None

    def _start(self) -> None:
        try:
            self._task = self._scope.spawn(self._run, name=f"penstock pump of {self._label}")
        except UsageError as closed:
            # rule 3.16: request() returns normally, the subscriber hears of it
            self._end_with_error(closed)

    def _let_go(self) -> Subscriber[T] | None:
        """Forget the subscriber (rules 1.6, 3.13) and every demand; return who it was."""
        subscriber, self._subscriber = self._subscriber, None
        self._budget = self._backlog = 0
        return subscriber

    # --- the task

    async def _run(self) -> None:
        open_iterator, self._open = self._open, None
        if open_iterator is None:
            return  # cancelled before the task had its first turn
        try:
            iterator = open_iterator()
        except Exception as error:  # boundary: the user's factory; rule 1.4
            self._end_with_error(error)
            return
        try:
            await self._pull(iterator)
        except Exception as error:  # boundary: the user's generator; rule 1.4
            self._end_with_error(error)
        finally:
            if self._subscriber is not None:
                self._end_with_error(
                    PublisherStopped(
                        f"{self._label} was stopped: the nursery that ran it was cancelled. "
                        "Keep the nursery open until the subscribers are done, or cancel the subscription first"
                    )
                )
            await self._close(iterator)

    async def _pull(self, iterator: AsyncIterator[T]) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            return
        on_next = subscriber.on_next
        del subscriber
        while self._left:
            await self._next_budget()
            started, granted = monotonic(), self._budget
            async for element in iterator:
                if element is None:
                    raise self._none_element(granted)
                self._budget -= 1
                on_next(element)
                if self._budget <= 0:
                    break
            else:
                break
            if self._subscriber is None:
                return
            self._position += granted
            self._left -= granted
            self._burst = next_burst(self._burst, monotonic() - started)
        # rule 1.5; a source that knows its length completes with the last element, not with the pull after it
        done = self._let_go()
        if done is not None:
            done.on_complete()

    async def _next_budget(self) -> None:
        """Wait for demand, and cut from it what this burst may signal."""
        if self._backlog:
            await trio.lowlevel.checkpoint()
        while not self._backlog:
            self._parked = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._unpark)
        budget = min(self._backlog, self._burst, self._left)
        if self._backlog < UNBOUNDED:  # rule 3.17: 2^63-1 is without bound, and stays so
            self._backlog -= budget
        self._budget = budget

    def _unpark(self, _: Any) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED

    async def _close(self, iterator: AsyncIterator[T]) -> None:
        """Close the iterator in the task that pulled it, within a deadline of its own."""
        aclose = None if self._borrowed else getattr(iterator, "aclose", None)
        if aclose is None:
            return
        with trio.move_on_after(self._scope.cleanup_timeout, shield=True) as deadline:
            try:
                await aclose()
            except Exception as error:  # boundary: the user's cleanup; the stream is over, so the scope hears of it
                self._scope.fail(error)
        if deadline.cancelled_caught:
            self._scope.fail(
                CleanupTimeout(
                    f"the cleanup of {self._label} did not end within {self._scope.cleanup_timeout} s and was cut short. "
                    "Make its `finally` shorter, or give `cleanup_timeout=` more"
                )
            )

    def _end_with_error(self, error: Exception) -> None:
        subscriber = self._let_go()
        if subscriber is not None:
            subscriber.on_error(error)

    def _none_element(self, granted: int) -> UsageError:
        position = self._position + granted - self._budget
        return UsageError(
            f"{self._label} yielded None at position {position} (counted from 0); None is never an element (rule 2.13). "
            "Leave it out, or map it to a value of its own"
        )

    def __repr__(self) -> str:
        state = "over" if self._subscriber is None else "idle" if self._task is None else "live"
        return f"<pump of {self._label}: {state}, demand {add_demand(self._budget, self._backlog)}>"
