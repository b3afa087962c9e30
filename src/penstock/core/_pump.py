"""A pump pulls one iterator, on demand, from one task, and closes it there.

Rules of this file:

* One task pulls and closes; it does nothing else. (An async generator that is pulled from two tasks breaks its cancel scopes silently.)
* The task exists from the first pull to the end, not before: a subscription that nobody pulls is an object, not a task.
* No cancel scope is opened between two pulls: a generator may hold one of its own open over a `yield`, or a nursery, and they must nest.
  So what bounds the cleanup is the scope around the whole task, and a generator that rests at a `yield` is never cancelled but closed.
* `_budget` is what may still be signalled in this burst, `_backlog` what was requested beyond it. Cancelling sets both to zero,
  so a comparison of one number sees the end of the burst, of the demand and of the subscription alike.
* Signals come from the pump's task only: `request` and `cancel` never signal, so they cannot recurse (rules 3.3, 3.4).
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from math import inf
from time import monotonic
from types import AsyncGeneratorType
from typing import Any, Final, Generic, TypeVar, cast

import trio

from penstock.api import UNBOUNDED, CleanupTimeout, PublisherStopped, Subscriber, Subscription, UsageError, add_demand
from penstock.core._scope import Scope
from penstock.core._shared_batch import NO_BATCH, BatchingSubscriber, SharedBatch

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
        "_cancel_scope",
        "_given",
        "_held",
        "_iterator",
        "_label",
        "_left",
        "_open",
        "_parked",
        "_position",
        "_pulling",
        "_run_now",
        "_scope",
        "_spent",
        "_stopped",
        "_subscriber",
        "_task",
        "_turn_began",
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
        self._spent = 0  # of that, since the last checkpoint
        self._turn_began = 0.0  # when that was
        self._position = 0
        self._iterator: AsyncIterator[T] | None = None
        self._held: list[T] | tuple[()] = ()  # what the iterator answered when it was not asked: see _hand_back
        self._cancel_scope: trio.CancelScope | None = None  # the one around the task
        self._task: trio.lowlevel.Task | None = None
        self._parked: trio.lowlevel.Task | None = None  # the task, while it waits for demand
        self._pulling = False  # inside a burst: the iterator is at work, or the subscriber
        self._run_now: SharedBatch = NO_BATCH  # what elements are put into, where the subscriber gathers them
        self._stopped = False

    # --- the subscription

    def request(self, n: int, /) -> None:
        if self._subscriber is None:
            return  # rule 3.6
        self._backlog = add_demand(self._backlog, n)
        if self._parked is not None:
            self._wake(self._parked)
        elif self._cancel_scope is None:
            self._start()

    def cancel(self, /) -> None:
        if self._subscriber is None:
            return  # rule 3.7
        self._let_go()
        self._stop()
        if self._cancel_scope is None:
            if self._given:
                with suppress(UsageError):  # the nursery has closed: whoever made the generator is left with it, unstarted
                    self._spawn("cleanup")
            else:
                self._open = None

    def _start(self) -> None:
        try:
            self._spawn("pump")
        except UsageError as closed:
            # rule 3.16: request() returns normally, the subscriber hears of it
            self._end_with_error(closed)

    def _spawn(self, role: str) -> None:
        self._cancel_scope = self._scope.spawn(self._run, name=f"penstock {role} of {self._label}", stop=self._stop)

    def _stop(self) -> None:
        """End the task: by itself where the iterator rests between two elements, else by cancelling what it waits for."""
        self._stopped = True
        self._budget = self._backlog = 0
        self._run_now.length = -1
        if self._parked is not None:
            self._wake(self._parked)
        elif self._pulling and not self._in_signal():
            self._own_scope.cancel()

    @property
    def _own_scope(self) -> trio.CancelScope:
        """The cancel scope around the task, which is there while the task is."""
        return cast("trio.CancelScope", self._cancel_scope)

    def _in_signal(self) -> bool:
        """Tell whether this call comes from inside the subscriber's `on_next`: the iterator rests meanwhile."""
        running = self._task is not None and self._task.coro.cr_running
        return running and not getattr(self._iterator, "ag_running", False)

    def _let_go(self) -> Subscriber[T] | None:
        """Forget the subscriber (rules 1.6, 3.13) and every demand; return who it was."""
        subscriber, self._subscriber = self._subscriber, None
        self._budget = self._backlog = 0
        return subscriber

    # --- the task

    async def _run(self) -> None:
        self._task = trio.lowlevel.current_task()
        self._turn_began = monotonic()
        try:
            await self._open_and_pull()
        except Exception as error:  # boundary: the user's factory and generator; rule 1.4
            self._end_with_error(error)
        finally:
            self._pulling = False
            if self._subscriber is not None:
                self._end_with_error(
                    PublisherStopped(
                        f"{self._label} was stopped: the nursery that ran it was cancelled. "
                        "Keep the nursery open until the subscribers are done, or cancel the subscription first"
                    )
                )
            await self._close()
            self._task = None

    async def _open_and_pull(self) -> None:
        open_iterator, self._open = self._open, None
        if open_iterator is None or (self._stopped and not self._given):
            return  # cancelled before the task had its first turn
        self._iterator = iterator = open_iterator()
        subscriber = self._subscriber
        if subscriber is not None:
            gathers = hasattr(subscriber, "on_reservation_used")
            signal = partial(self._append_to_batch, cast("BatchingSubscriber", subscriber)) if gathers else self._signal_burst
            await self._pull(iterator, subscriber.on_next, signal)

    async def _pull(self, iterator: AsyncIterator[T], on_next: Callable[[T], None], signal: Callable[..., Awaitable[bool]]) -> None:
        while self._left:
            try:
                if not await self._next_budget():
                    return
            except trio.Cancelled as cancelled:
                try:
                    self._held = [await self._hand_back(cancelled, iterator)]
                except StopAsyncIteration:
                    break
                continue
            granted = self._budget
            self._pulling = True
            if self._held:
                held, self._held = self._held[0], ()
                self._signal_one(held, on_next)
            if self._budget > 0 and not await signal(iterator, on_next, granted):
                break
            self._pulling = False
            if self._stopped:
                return
            self._position += granted
            self._left -= granted
            self._spent += granted
        # rule 1.5; a source that knows its length completes with the last element, not with the pull after it
        done = self._let_go()
        if done is not None:
            done.on_complete()

    async def _signal_burst(self, iterator: AsyncIterator[T], on_next: Callable[[T], None], granted: int) -> bool:
        """Signal what the budget permits; return False at the iterator's end."""
        async for element in iterator:
            if self._budget <= 0:
                return True  # cancelled while it was pulled: silence from then on
            if element is None:
                raise self._none_element(granted - self._budget)
            self._budget -= 1
            on_next(element)
            if self._budget <= 0:
                return True
        return False

    async def _append_to_batch(
        self, gatherer: BatchingSubscriber, iterator: AsyncIterator[Any], on_next: Callable[[Any], None], granted: int
    ) -> bool:
        """The same for a subscriber that gathers: put what is like the last element into its run, and signal the others."""
        run = self._run_now = gatherer.run or NO_BATCH
        elements, left = run.elements, self._budget  # the budget itself is brought up to date with what is signalled
        async for element in iterator:
            if type(element) is bytes and len(element) == run.length:
                elements.append(element)
                left -= 1
                if left:
                    continue
                self._budget = 0
                gatherer.on_reservation_used()
                return True
            if self._budget <= 0:
                return True  # cancelled while it was pulled, which has closed the run
            if element is None:
                raise self._none_element(granted - left)
            left = self._budget = left - 1
            on_next(element)
            if self._budget <= 0:
                return True
            run = self._run_now = gatherer.run or NO_BATCH
            elements = run.elements
        return False

    def _signal_one(self, element: T, on_next: Callable[[T], None]) -> None:
        if element is None:
            raise self._none_element(0)
        self._budget -= 1
        on_next(element)

    async def _next_budget(self) -> bool:
        """Wait for demand, and cut from it what this burst may signal; return False where there will be none."""
        if self._backlog:
            await self._end_turn()
        while not self._backlog and not self._stopped:
            self._parked = self._task
            await trio.lowlevel.wait_task_rescheduled(self._unpark)
            self._spent, self._turn_began = 0, monotonic()
        budget = min(self._backlog, self._burst - self._spent, self._left)
        if self._backlog < UNBOUNDED:  # rule 3.17: 2^63-1 is without bound, and stays so
            self._backlog -= budget
        self._budget = budget
        return not self._stopped

    async def _end_turn(self) -> None:
        """Checkpoint where it is time to: after a whole burst, however small the portions were in which it was asked for."""
        seconds = monotonic() - self._turn_began
        if self._spent >= self._burst or seconds > BURST_SECONDS:
            self._burst = next_burst(self._burst, seconds)
            await trio.lowlevel.checkpoint()
            self._spent, self._turn_began = 0, monotonic()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()

    def _unpark(self, _: Any) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake(self, parked: trio.lowlevel.Task) -> None:
        trio.lowlevel.reschedule(parked)  # first: from a foreign thread it raises, and nothing here may have changed then
        self._parked = None

    async def _hand_back(self, cancelled: trio.Cancelled, iterator: AsyncIterator[T]) -> T:
        """Hand a cancellation to the iterator whose it is, and return what that yields in answer.

        A generator that holds a cancel scope or a nursery open over its `yield` would be told there, if it waited there for demand.
        We wait in its place: the timeout that it set, or the crash of its own child task, reaches us.
        """
        athrow = getattr(iterator, "athrow", None)
        if athrow is None or self._stopped or not self._is_inner():
            raise cancelled
        self._pulling = True
        try:
            return cast("T", await athrow(cancelled))
        finally:
            self._pulling = False

    def _is_inner(self) -> bool:
        """Tell whether what is cancelled here lies inside this task."""
        own = self._own_scope
        own.shield = True
        inner = trio.current_effective_deadline() == -inf
        own.shield = False
        return inner

    async def _close(self) -> None:
        """Close the iterator in the task that pulled it, within a deadline of its own."""
        iterator, self._iterator = self._iterator, None
        is_over = isinstance(iterator, AsyncGeneratorType) and iterator.ag_frame is None  # ran to its end: nothing is left to close
        aclose = None if self._borrowed or is_over else getattr(iterator, "aclose", None)
        if aclose is None:
            return
        own = self._own_scope
        gentle = not own.cancel_called
        if gentle:
            own.deadline = trio.current_time() + self._scope.cleanup_timeout
            own.shield = True
        try:
            await aclose()
        except BaseException as raised:  # boundary: the user's cleanup; the stream is over, so the scope hears of it
            left = _without_exit(raised)
            if gentle and own.cancel_called and _holds_cancelled(left):
                self._scope.fail(self._too_long())
            rest = None if left is None else self._scope.sift(left)
            if rest is not None:
                raise rest from None

    def _too_long(self) -> CleanupTimeout:
        return CleanupTimeout(
            f"the cleanup of {self._label} did not end within {self._scope.cleanup_timeout} s and was cut short. "
            "Make its `finally` shorter, or give `cleanup_timeout=` more"
        )

    def _end_with_error(self, error: Exception) -> None:
        """Tell the subscriber; where it is gone, as when cleanup fails, the scope."""
        subscriber = self._let_go()
        if subscriber is not None:
            subscriber.on_error(error)
        else:
            self._scope.fail(error)

    def _none_element(self, signalled: int) -> UsageError:
        return UsageError(
            f"{self._label} yielded None at position {self._position + signalled} (counted from 0); None is never an element (rule 2.13). "
            "Leave it out, or map it to a value of its own"
        )

    def __repr__(self) -> str:
        state = "over" if self._subscriber is None else "idle" if self._cancel_scope is None else "live"
        return f"<pump of {self._label}: {state}, demand {add_demand(self._budget, self._backlog)}>"


def _without_exit(raised: BaseException) -> BaseException | None:
    """Return `raised` without the GeneratorExit that closes a generator: a nursery around the `yield` puts even that into a group."""
    return raised.split(GeneratorExit)[1] if isinstance(raised, BaseExceptionGroup) else raised


def _holds_cancelled(raised: BaseException | None) -> bool:
    if isinstance(raised, BaseExceptionGroup):
        return raised.subgroup(trio.Cancelled) is not None
    return isinstance(raised, trio.Cancelled)
