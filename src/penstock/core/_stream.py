"""A stream is the consumer's end: a subscriber that one task reads with `async for`, by the element or by the batch.

Rules of this file:

* What has arrived is a list; what is being read is a slice of it. Moving from one to the other is the only moment at which anything
  is counted, so an element costs an append, a clock reading and a step of a list iterator.
* Under automatic demand a slice is at most half of it, and is paid for (requested anew) when it has been read to its end:
  buffered and outstanding elements together never exceed the demand.
* Reading checkpoints when it must wait, once a slice, and every 5 ms: a stream that is always full cannot starve its neighbours.
  An end that has come with the last slice belongs to it: a stream of one would pay for two turns otherwise.
* Elements that arrived before the end are read before the end is.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from operator import length_hint
from time import monotonic
from typing import Any, Final, TypeVar, cast

import trio

from penstock.api import UNBOUNDED, RuleViolation, Subscriber, Subscription, UsageError, add_demand, check_demand, shown
from penstock.core._statistics import StreamState, StreamStatistics

T = TypeVar("T")

DEFAULT_DEMAND: Final = 256
"""Enough to hide a round trip behind work, little enough to hold in memory without a thought."""

TURN_SECONDS: Final = 0.005
"""How long a reader may go on without giving its neighbours a turn."""

_now = monotonic

_NOTHING: Final[Iterator[Any]] = iter(())

_NONE: Final = cast("list[Any]", ())


class Stream(Subscriber[T], AsyncIterator[T]):
    """The elements of one subscription, for one reading task.

    Iterate over it, or over `batches()`; a publisher's failure is raised from there, and completion ends the loop.
    """

    __slots__ = (
        "__weakref__",
        "_arrived",
        "_counted",
        "_demand",
        "_dropped",
        "_error",
        "_live",
        "_owed",
        "_reading",
        "_requested",
        "_slice",
        "_state",
        "_subscription",
        "_turn_ends",
        "_waiting",
    )

    def __init__(self, *, demand: int = DEFAULT_DEMAND) -> None:
        if type(demand) is not int or demand < 0:
            raise UsageError(
                f"demand={shown(demand)}; give how many elements may be under way at a time (renewed as you take them), "
                "or 0 to call request() yourself"
            )
        self._demand = min(demand, UNBOUNDED)
        self._slice = max(1, self._demand // 2) if demand else UNBOUNDED
        self._state = StreamState.OPEN
        self._live = True  # the state is OPEN: asked for each element, and an enum's member costs more to look up than all the rest
        self._subscription: Subscription | None = None
        self._error: BaseException | None = None
        self._arrived: list[T] = _NONE  # a list when the first element comes: idle streams are many
        self._reading: Iterator[T] = _NOTHING
        self._counted = 0
        self._dropped = 0
        self._requested = 0
        self._owed = 0
        self._turn_ends = 0.0
        self._waiting: trio.lowlevel.Task | None = None

    # --- reading

    def __aiter__(self) -> "Stream[T]":
        return self

    async def __anext__(self) -> T:
        """Return the next element; checkpoints when it must wait, once a slice, and every 5 ms.

        The end that is there when a slice has been read within its turn is told in that turn; asked again, it checkpoints.
        """
        if _now() < self._turn_ends:
            for element in self._reading:
                return element
            if not self._live and not self._arrived:
                self._turn_ends = -self._turn_ends  # told once in this turn: whoever asks again waits for the next one
                raise self._ending()
        return await self._next_turn()

    def batches(self) -> AsyncIterator[list[T]]:
        """Iterate over lists: each is all that is there now, and never empty. The fastest way to read. Checkpoints once a batch."""
        return _Batches(self)

    async def _next_turn(self) -> T:
        """Give the neighbours a turn, then go on with the slice, or take the next one."""
        await self._wait_readable()
        if not length_hint(self._reading):
            arrived = self._arrived
            if len(arrived) > self._slice:
                part, self._arrived = arrived[: self._slice], arrived[self._slice :]
            else:
                part, self._arrived = arrived, []
            self._count(part)
            self._reading = iter(part)
        self._turn_ends = _now() + TURN_SECONDS
        return next(self._reading)

    async def _next_batch(self) -> list[T]:
        await self._wait_readable()
        batch = list(self._reading)
        more, self._arrived = self._arrived, []
        self._count(more)
        self._renew()
        return batch + more if batch else more

    def _count(self, part: list[T]) -> None:
        self._counted += len(part)
        self._owed += len(part)

    async def _wait_readable(self) -> None:
        """Give the neighbours a turn; return when there is something to read, and raise what ended the stream where nothing will be."""
        if length_hint(self._reading):
            await trio.lowlevel.checkpoint()
            if length_hint(self._reading):
                return
        self._renew()
        if self._arrived or self._state is not StreamState.OPEN:
            await trio.lowlevel.checkpoint()
        else:
            if self._waiting is not None:
                raise self._second_reader()
            self._waiting = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._stop_waiting)
        if not self._arrived:
            raise self._ending()

    def _ending(self) -> BaseException:
        """Return what to raise where nothing is left to read."""
        if self._state is StreamState.OPEN:
            return self._second_reader()  # it took what this one had been woken for
        error, self._error = self._error, None
        if isinstance(error, StopIteration | StopAsyncIteration):
            # Raised as it is, it would end the loop as if the stream had completed: the case of PEP 479, and its answer.
            told = RuntimeError(f"the publisher failed with {type(error).__name__}")
            told.__cause__ = error
            return told
        return StopAsyncIteration() if error is None else error

    def _second_reader(self) -> UsageError:
        return UsageError(
            "two tasks read this stream at once; one subscription has one reader. "
            "Subscribe twice, or hand on the elements through a memory channel"
        )

    def _stop_waiting(self, _: Any) -> trio.lowlevel.Abort:
        self._waiting = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake(self) -> None:
        if self._waiting is not None:
            trio.lowlevel.reschedule(self._waiting)  # first: from a foreign thread it raises, and nothing here may have changed then
            self._waiting = None

    def _renew(self) -> None:
        """Ask anew for what was read, half of the demand at a time: asking costs as much for one as for a hundred."""
        if self._demand and self._owed >= self._slice and self._subscription is not None:
            owed, self._owed = self._owed, 0
            self._requested = add_demand(self._requested, owed)
            self._subscription.request(owed)

    # --- steering

    def request(self, n: int) -> None:
        """Ask for `n` more elements, on a stream that was opened with ``demand=0``.

        Raises IllegalDemand, or UsageError where demand is automatic.
        """
        if self._demand:
            raise UsageError(
                f"request({shown(n)}) on a stream with demand={self._demand}, which renews it by itself. "
                "Open it with demand=0 to ask for each element yourself"
            )
        n = check_demand(n)
        if not self._live:
            return  # rule 3.6
        self._requested = add_demand(self._requested, n)
        if self._subscription is not None:
            self._subscription.request(n)

    def cancel(self) -> None:
        """Stop the stream now: what is buffered is dropped, iteration ends. Leaving the block does the same, and waits."""
        if self._live:
            self._state, self._live = StreamState.CANCELLED, False
            subscription, self._subscription = self._subscription, None
            if subscription is not None:
                subscription.cancel()
        self._counted += len(self._arrived)
        self._dropped += length_hint(self._reading) + len(self._arrived)
        self._arrived, self._reading, self._error = [], _NOTHING, None
        self._wake()

    def statistics(self) -> StreamStatistics:
        """Return a record of this moment: state, counts, and whether the stream is starved of demand."""
        return self._statistics(len(self._arrived))

    def _statistics(self, arrived: int) -> StreamStatistics:
        ahead = length_hint(self._reading)
        buffered = ahead + arrived
        received = self._counted + arrived
        live = self._live
        outstanding = self._requested - received if live else 0
        return StreamStatistics(
            state=self._state,
            requested=self._requested,
            received=received,
            taken=self._counted - ahead - self._dropped,
            buffered=buffered,
            outstanding=outstanding,
            starved=live and not self._demand and not buffered and not outstanding,
        )

    def __repr__(self) -> str:
        now = self.statistics()
        starved = ", starved" if now.starved else ""
        return f"<stream {now.state.value}: {now.taken} taken, {now.buffered} buffered, {now.outstanding} outstanding{starved}>"

    # --- the subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None): a subscription is needed (rule 2.13)")
        if self._subscription is not None or not self._live:
            twice = subscription is self._subscription
            subscription.cancel()  # rule 2.5
            if twice:  # nothing comes any more, and a reader that waits must hear why
                self.on_error(RuleViolation("the publisher signalled on_subscribe twice with one subscription", rule="2.12"))
            return
        self._subscription = subscription
        if self._demand:
            self._requested = self._demand
        if self._requested:
            subscription.request(self._requested)

    def on_next(self, element: T, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        if self._live:  # rule 2.8: what comes after the end is nothing
            try:
                self._arrived.append(element)
            except AttributeError:
                self._arrived = [element]
            if self._waiting is not None:
                self._wake()

    def on_next_many(self, elements: Sequence[T], /) -> None:
        """Take elements that arrived together, from an upstream that has counted them and that sends no None."""
        if self._live:
            try:
                self._arrived.extend(elements)
            except AttributeError:
                self._arrived = [*elements]
            if self._waiting is not None:
                self._wake()

    def on_error(self, error: BaseException, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError(f"on_error({shown(error)}): an exception is needed (rule 2.13)")
        if self._live:
            self._error = error
            self._end(StreamState.FAILED)

    def on_complete(self, /) -> None:
        if self._live:
            self._end(StreamState.COMPLETED)

    def _end(self, state: StreamState) -> None:
        self._state, self._live = state, False
        self._subscription = None  # rule 2.4
        self._wake()


class _Batches(AsyncIterator[list[T]]):
    """The same stream, read by the list. (No async generator: one that is left early would need closing.)"""

    __slots__ = ("_stream",)

    def __init__(self, stream: Stream[T]) -> None:
        self._stream = stream

    async def __anext__(self) -> list[T]:
        return await self._stream._next_batch()  # noqa: SLF001  # the two are one idea in one file
