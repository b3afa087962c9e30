"""A pump pulls one iterator, on demand, from one task.

Rules of this file:

* One task opens, pulls and closes the iterator, and does nothing else (see `_pulled_iterator.py`).
* The task exists from the first request to the end.
  A subscription without demand is an object without a task.
* `_budget` is how many elements this burst may still signal, `_demand` how many were requested
  beyond the budget. Cancelling sets both to zero. So one comparison for each element finds the end
  of the burst, of the demand and of the subscription.
* Signals come only from the pump's task.
  `request` and `cancel` never signal, so signals cannot nest (rules 3.3, 3.4).
* Elements come in bursts with a checkpoint after each. A checkpoint costs as much as some twenty
  elements, so one for each element would be most of the cost; none at all would starve other tasks.
  `BurstPacer` decides how long a burst is.

A `BatchingSubscriber` lends its open batch: the pump appends the elements that fit itself, because
a call for each element costs more than all the other work on it. Every other element is signalled
with `on_next`. For a `ConvertingSubscriber` the pump also converts. Elements that the iterator has
at hand (`ReadyElements`) go in one call to subscribers that take lists.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import takewhile
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar, cast

import trio

from penstock.api import (
    UNBOUNDED,
    BatchingSubscriber,
    BytesList,
    ConvertingSubscriber,
    PipePart,
    PublisherStopped,
    SharedBatch,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    on_next_many_of,
)
from penstock.core._iterator_lease import IteratorLease
from penstock.core._parked_task import ParkedTask
from penstock.core._pulled_iterator import PulledIterator
from penstock.core._scope import Scope

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


FIRST_BURST: Final = 32
LONGEST_BURST: Final = 1024
"""Elements between two checkpoints.
Spread over 1,024 elements, the cost of a checkpoint cannot be measured any more.
"""

BURST_SECONDS: Final = 0.005
"""Seconds that a burst may take. A longer one is followed by a shorter one, so that other tasks
wait about this long for their turn.
"""


def next_burst(burst: int, seconds: float) -> int:
    """Return the length of the next burst after one of `burst` elements took `seconds`."""
    if seconds > BURST_SECONDS:
        # shrink faster than it grows: a slow burst delays every other task.
        return max(1, burst // 4)
    if seconds < BURST_SECONDS / 4:
        # twice as long still takes less than half of BURST_SECONDS.
        return min(LONGEST_BURST, burst * 2)
    return burst


class BurstPacer:
    """The length of the present burst of one task, and how much of it is used up."""

    __slots__ = ("_burst", "_spent", "_turn_began")

    def __init__(self) -> None:
        self._burst = FIRST_BURST
        self._spent = 0  # elements since the last checkpoint
        self._turn_began = 0.0  # when the last checkpoint returned

    @property
    def remaining(self) -> int:
        """Elements that may still be signalled in this burst."""
        return self._burst - self._spent

    def start_turn(self) -> None:
        """Begin a whole burst: other tasks have just run."""
        self._spent, self._turn_began = 0, monotonic()

    def spend(self, count: int) -> None:
        """Use up `count` elements of the burst."""
        self._spent += count

    async def checkpoint_if_due(self) -> None:
        """Checkpoint if the burst is used up or has taken too long;
        else only raise Cancelled if this task is cancelled.
        """
        # The burst is counted over any number of requests. With a checkpoint for each request, a
        # consumer that requests one element at a time would pay for a checkpoint with each element.
        seconds = monotonic() - self._turn_began
        if self._spent >= self._burst or seconds > BURST_SECONDS:
            self._burst = next_burst(self._burst, seconds)
            await trio.lowlevel.checkpoint()
            self.start_turn()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()


# Shared by the streams of a publisher: a name for each would be 80 bytes of it.
@lru_cache(maxsize=256)
def _task_name(role: str, label: str) -> str:
    """Return the name of a pump's task."""
    return f"penstock {role} of {label}"


class _ClosedBatch:
    """A batch to which nothing can be appended."""

    def __init__(self) -> None:
        self.elements: list[bytes] = []
        self.longest = -1


NO_BATCH: Final[SharedBatch] = _ClosedBatch()
"""Stands in for a batch when the subscriber has no open one, so that the loop over elements needs
no second comparison.
"""


_NONE: Final = type(None)


def before_none(elements: Sequence[T]) -> Sequence[T]:
    """Return the elements before the first None; all of them if None is not there."""
    kind: type = type(elements)  # by itself, so that the type of the result does not change
    if kind is BytesList:
        return elements
    # By type and in C. `None in elements` would call `__eq__` of each,
    # which some objects answer with an array.
    if _NONE not in set(map(type, elements)):
        return elements
    return list(takewhile(lambda element: element is not None, elements))


class ReadyElements(Protocol[T_co]):
    """An async iterator that may have several elements at hand."""

    def take_ready(self, most: int, /) -> Sequence[T_co]:
        """Return up to `most` elements that are there now; none if the next element must be
        awaited, or the end has come. `most` is what is requested: the iterator may compute that
        many, and no more, while the next element is awaited.
        """


class PullsAhead(ReadyElements[T_co], Protocol):
    """An iterator that something else pulls, which computes what is requested before the pump looks
    for it.
    """

    parked: ParkedTask
    """Where the task of the pump waits, for demand and for elements. Woken when there are some."""

    def pull_ahead(self, n: int, /) -> bool:
        """Compute `n` elements more. Return False if the pump has to be woken for them."""

    async def wait_ready(self) -> bool:
        """Wait until there may be elements. Return False at the end; raises its failure."""


class Pump(Subscription, Generic[T]):
    """The subscription to a stream that comes out of an iterator."""

    __slots__ = (
        "_ahead",
        "_batch",
        "_budget",
        "_cancel_scope",
        "_demand",
        "_is_pulling",
        "_is_stopped",
        "_iterator",
        "_left",
        "_pacer",
        "_parked",
        "_position",
        "_scope",
        "_subscriber",
        "_task",
        "_unasked",
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
        claim: IteratorLease | None = None,
    ) -> None:
        """`length` is how many elements will come, if that is known.

        `given`: the iterator exists already, and must be closed even if it is never pulled.
        `borrowed`: it is never closed here.
        `claim`: the claim on an iterator that exists already.
        """
        self._iterator = PulledIterator(
            open_iterator, scope, label=label, is_given=given, borrowed=borrowed, claim=claim
        )
        self._subscriber: Subscriber[T] | None = subscriber
        self._scope = scope
        self._left = length
        self._budget = 0
        self._demand = 0
        self._pacer = BurstPacer()
        self._position = 0  # elements that were signalled in earlier bursts, for messages
        # At most one element, yielded in answer to a cancellation and not to a pull.
        self._unasked: list[T] | tuple[()] = ()
        self._cancel_scope: trio.CancelScope | None = None  # around the task
        self._task: trio.lowlevel.Task | None = None
        # Where the task waits for demand; made when it first has to wait.
        self._parked: ParkedTask | None = None
        # inside a burst: the iterator or the subscriber runs, or the iterator waits.
        self._is_pulling = False
        self._ahead: PullsAhead[T] | None = None  # the iterator, if it is one
        self._batch: SharedBatch = NO_BATCH  # the open batch of a subscriber that lends one
        self._is_stopped = False

    # --- the subscription

    def request(self, n: int, /) -> None:
        if self._subscriber is None:
            return  # rule 3.6
        # Python's integers do not overflow, and _next_budget() treats every sum of at least 2^63-1
        # as without bound.
        self._demand += n
        if self._cancel_scope is None:
            self._start()
        elif self._ahead is not None and self._ahead.pull_ahead(n):
            pass  # a pass of the loop is saved: it wakes the task when it has elements
        elif self._parked is not None:
            self._parked.wake()

    def cancel(self, /) -> None:
        if self._subscriber is None:
            return  # rule 3.7
        self._forget_subscriber()
        self._stop()
        if self._cancel_scope is None:
            if self._iterator.is_given:
                # If the nursery has closed, no task can close the generator.
                # It never ran, so it holds nothing.
                with suppress(UsageError):
                    self._spawn("cleanup")
            else:
                self._iterator.discard()

    def _start(self) -> None:
        try:
            self._spawn("pump")
        except UsageError as closed:
            # rule 3.16: request() returns normally, and the subscriber gets the error.
            self._end_with_error(closed)

    def _spawn(self, role: str) -> None:
        self._cancel_scope = self._scope.spawn(
            self._run, name=_task_name(role, self._iterator.label), stop=self._stop
        )

    def _stop(self) -> None:
        """End the task. If the iterator is suspended at a `yield`, the task ends by itself; if
        the iterator waits, that is cancelled.
        """
        self._is_stopped = True
        self._budget = self._demand = 0
        self._batch.longest = -1  # the loops that append look at nothing else
        if self._parked is not None and self._parked.task is not None:
            self._parked.wake()
        elif self._is_pulling and not self._is_in_signal():
            self._own_scope.cancel()

    @property
    def _own_scope(self) -> trio.CancelScope:
        """The cancel scope around the task; exists as long as the task."""
        return cast("trio.CancelScope", self._cancel_scope)

    def _is_in_signal(self) -> bool:
        """Return whether this call comes from inside the subscriber's `on_next`.
        The iterator is suspended then.
        """
        is_running = self._task is not None and self._task.coro.cr_running
        return is_running and not self._iterator.is_running

    def _forget_subscriber(self) -> Subscriber[T] | None:
        """Forget the subscriber (rules 1.6, 3.13) and all demand.
        Return the subscriber, for the last signal.
        """
        subscriber, self._subscriber = self._subscriber, None
        self._budget = self._demand = 0
        return subscriber

    def pipe_part(self) -> PipePart:
        """Return the part for those who look at the pipe: the label, the task, and the place in a
        log.
        """
        iterator = self._iterator
        position, lag = iterator.place
        return PipePart(iterator.label, task=self._task, position=position, lag=lag)

    # --- the task

    # The whole way to the loop over elements is one coroutine: each one more would be 280 bytes of
    # a stream that waits.
    async def _run(self) -> None:
        self._task = trio.lowlevel.current_task()
        self._pacer.start_turn()
        try:
            opened = self._open()
            if opened is None:
                return
            iterator, on_next, signal, taker = opened
            while self._left:
                try:
                    if not await self._next_budget():
                        return
                except trio.Cancelled as cancelled:
                    try:
                        self._unasked = [await self._throw_cancellation(cancelled)]
                    except StopAsyncIteration:
                        break
                    continue
                granted = self._budget
                self._is_pulling = True
                if self._unasked:
                    unasked, self._unasked = self._unasked[0], ()
                    self._signal_one(unasked, on_next)
                if self._budget > 0 and not await signal(taker, iterator, on_next, granted):
                    break
                self._is_pulling = False
                if self._is_stopped:
                    return
                # `granted` and not what is left of the budget:
                # the whole budget has been signalled here.
                self._position += granted
                self._left -= granted
                self._pacer.spend(granted)
            # rule 1.5: a source that knows its length completes with the last element,
            # not with the pull after it
            subscriber = self._forget_subscriber()
            if subscriber is not None:
                subscriber.on_complete()
        except Exception as error:  # boundary: the user's factory and generator; rule 1.4
            self._end_with_error(error)
        finally:
            self._is_pulling = False
            if self._subscriber is not None:
                self._end_with_error(
                    PublisherStopped(
                        f"{self._iterator.label} was stopped: the nursery that ran it was "
                        "cancelled. "
                        "Keep the nursery open until the subscribers are done, or cancel the "
                        "subscription first"
                    )
                )
            await self._iterator.close(self._own_scope)
            self._task = None

    # A plain function, for the same reason.
    def _open(
        self,
    ) -> tuple[AsyncIterator[T], Callable[[T], None], Callable[..., Awaitable[bool]], Any] | None:
        """Return the iterator, the method for an element, the loop that signals a burst, and what
        this loop gives elements to; None if there is nothing to pull.
        """
        if self._is_stopped and not self._iterator.is_given:
            # Cancelled before the task ran for the first time: the user's factory need not run at
            # all. An iterator that exists already is opened even so, because it must be closed.
            self._iterator.discard()
            return None
        iterator, subscriber = self._iterator.open(), self._subscriber
        if iterator is None or subscriber is None:
            return None
        return iterator, subscriber.on_next, *self._signal_for(subscriber, iterator)

    # A pair and no `partial`, which would be 190 bytes of a stream that waits.
    def _signal_for(
        self, subscriber: Subscriber[T], iterator: AsyncIterator[T]
    ) -> tuple[Callable[..., Awaitable[bool]], Any]:
        """Return the loop that signals a burst of `iterator` to `subscriber`, and its first
        argument.
        """
        if hasattr(iterator, "take_ready"):
            on_next_many = on_next_many_of(subscriber)
            if hasattr(iterator, "pull_ahead"):
                ahead = self._ahead = cast("PullsAhead[T]", iterator)
                self._parked = ahead.parked
                on_next_many = on_next_many or partial(self._signal_each, subscriber.on_next)
            if on_next_many is not None:
                return self._signal_ready, on_next_many
        # One method name decides. isinstance() with a runtime-checkable protocol takes 7 µs on
        # Python 3.11, this takes 0.05 µs.
        lender = getattr(subscriber, "lender", None)  # as `lender_of`, without its call
        if lender is None:
            return self._signal_burst, None
        if hasattr(lender, "convert"):
            return self._append_converted, lender
        return self._append_to_batch, lender

    async def _signal_burst(
        self, _: None, iterator: AsyncIterator[T], on_next: Callable[[T], None], granted: int
    ) -> bool:
        """Signal as many elements as the budget permits; return False at the iterator's end."""
        # The path of each element. `_budget` is read before and after on_next, because the
        # subscriber may cancel inside it.
        async for element in iterator:
            if self._budget <= 0:
                return True  # cancelled while the iterator was pulled: no signal from then on
            if element is None:
                raise self._none_element(granted - self._budget)
            self._budget -= 1
            on_next(element)
            if self._budget <= 0:
                return True
        return False

    async def _signal_ready(
        self,
        on_next_many: Callable[[Sequence[T]], None],
        iterator: Any,
        on_next: Callable[[T], None],
        granted: int,
    ) -> bool:
        """Do the same for an iterator that may have several elements at hand, and a subscriber
        that takes them in one call.
        """
        at_hand: ReadyElements[T] = iterator
        ahead = self._ahead
        while self._budget > 0:
            elements = at_hand.take_ready(self._budget)
            if not elements and ahead is not None:
                if not await ahead.wait_ready():
                    return False
                continue
            if len(elements) > 1:
                legal = before_none(elements)
                self._budget -= len(legal)
                if legal:
                    on_next_many(legal)
                if len(legal) < len(elements) and self._subscriber is not None:
                    raise self._none_element(granted - self._budget)
                continue
            try:
                element = elements[0] if elements else await anext(iterator)
            except StopAsyncIteration:
                return False
            if self._budget <= 0:
                return True  # cancelled while the iterator was pulled
            self._signal_one(element, on_next, granted - self._budget)
        return True

    def _signal_each(self, on_next: Callable[[T], None], elements: Sequence[T]) -> None:
        """Signal elements that an iterator has computed ahead, one by one."""
        for element in elements:
            if self._subscriber is None:
                return  # cancelled inside on_next; the other elements are dropped
            on_next(element)

    async def _append_to_batch(
        self,
        batching: BatchingSubscriber,
        iterator: AsyncIterator[Any],
        on_next: Callable[[Any], None],
        granted: int,
    ) -> bool:
        """Do the same for a subscriber that lends its batch:
        append elements that fit, and signal the others.
        """
        batch = self._batch = batching.run or NO_BATCH
        # `left` is the budget as this loop sees it. `_budget` itself is updated only when an
        # element is signalled, because `longest` finds a cancellation here: _stop() sets it to -1.
        elements, left = batch.elements, self._budget
        async for element in iterator:
            # `longest` is read anew for each element:
            # the subscriber may have taken the batch while the iterator waited.
            if type(element) is bytes and len(element) <= batch.longest:
                elements.append(element)
                left -= 1
                if left:
                    continue
                self._budget = 0
                batching.on_reservation_used()
                return True
            if self._budget <= 0:
                return True  # cancelled while the iterator was pulled; that has closed the batch
            if element is None:
                raise self._none_element(granted - left)
            left = self._budget = left - 1
            on_next(element)
            if self._budget <= 0:
                return True
            batch = self._batch = batching.run or NO_BATCH  # on_next may have opened one
            elements = batch.elements
        return False

    async def _append_converted(
        self,
        converting: ConvertingSubscriber[T],
        iterator: AsyncIterator[T],
        on_next: Callable[[T], None],
        granted: int,
    ) -> bool:
        """Do the same for a subscriber that lends a batch of bytes and a function
        that makes them.
        """
        # A separate loop, because a comparison more for each element would make `_append_to_batch`
        # slower by a tenth.
        batch, convert = converting.run or NO_BATCH, converting.convert
        self._batch, left = batch, self._budget
        async for element in iterator:
            if batch.longest >= 0 and element is not None:
                try:
                    data = convert(element)
                except Exception:
                    # boundary: a serializer may raise anything.
                    # on_next converts the element again, and reports the failure.
                    data = None
                # Compared after the conversion, which runs code of a plugin:
                # it may have ended the stream.
                if type(data) is bytes and len(data) <= batch.longest:
                    batch.elements.append(data)
                    left -= 1
                    if left:
                        continue
                    self._budget = 0
                    converting.on_reservation_used()
                    return True
            if self._budget <= 0:
                return True
            if element is None:
                raise self._none_element(granted - left)
            left = self._budget = left - 1
            on_next(element)
            if self._budget <= 0:
                return True
            batch = self._batch = converting.run or NO_BATCH
        return False

    def _signal_one(self, element: T, on_next: Callable[[T], None], signalled: int = 0) -> None:
        if element is None:
            raise self._none_element(signalled)
        self._budget -= 1
        on_next(element)

    async def _next_budget(self) -> bool:
        """Wait for demand, and move the part that this burst may signal into the budget. Return
        False if the pump was stopped.
        """
        if self._demand:  # else park() checkpoints
            await self._pacer.checkpoint_if_due()
        while not self._demand and not self._is_stopped:
            if self._parked is None:
                self._parked = ParkedTask()
            await self._parked.park()
            self._pacer.start_turn()  # other tasks ran while this one was parked
        budget = min(self._demand, self._pacer.remaining, self._left)
        if self._demand < UNBOUNDED:  # rule 3.17: 2^63-1 and more is without bound, and stays so
            self._demand -= budget
        self._budget = budget
        return not self._is_stopped

    async def _throw_cancellation(self, cancelled: trio.Cancelled) -> T:
        """Let the iterator handle a cancellation that began inside it, and return the element
        that it yields; else raise `cancelled`.
        """
        if self._is_stopped:
            raise cancelled  # the iterator is about to be closed
        self._is_pulling = True
        try:
            return await self._iterator.throw_cancellation(cancelled, self._own_scope)
        finally:
            self._is_pulling = False

    # --- the end

    def _end_with_error(self, error: Exception) -> None:
        """Signal on_error. If the subscriber is gone, as when cleanup fails, report the error to
        the scope.
        """
        subscriber = self._forget_subscriber()
        if subscriber is not None:
            subscriber.on_error(error)
        else:
            self._scope.report_failure(error)

    def _none_element(self, signalled: int) -> UsageError:
        return UsageError(
            f"{self._iterator.label} yielded None at position {self._position + signalled} "
            "(counted from 0); None is never an element (rule 2.13). Leave it out, or map it to a "
            "value of its own"
        )

    def __repr__(self) -> str:
        state = (
            "over" if self._subscriber is None else "idle" if self._cancel_scope is None else "live"
        )
        return (
            f"<pump of {self._iterator.label}: {state}, demand "
            f"{add_demand(self._budget, self._demand)}>"
        )
