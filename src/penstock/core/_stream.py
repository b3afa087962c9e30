"""A stream is the consumer's end: a subscriber that one task reads with `async for`, by element
or by batch.

Rules of this file:

* Elements that have arrived are in a list; the reader takes a slice of it at a time. Elements are
  counted only when a slice is taken. So an element costs one append, one reading of the clock, and
  one step of a list iterator.
* If the elements come over a network, their bytes bound the demand as well (`count_bytes`):
  `_spare` is the part of the demand that stays unused.
* With automatic demand a slice is at most half the demand, and is requested anew when it has been
  read to its end. So buffered and outstanding elements together never exceed the demand. With a
  demand of 1 an element is requested when the reader asks for it.
* Reading checkpoints when it must wait, once a slice, and every `TURN_SECONDS`: a stream that is
  always full cannot starve other tasks.
  If the end arrived with the last slice, it is raised without a further checkpoint. Otherwise a
  stream of one element would pay for two.
* Elements that arrived before the end are read before the end is raised.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from copy import copy
from operator import length_hint
from sys import getsizeof
from time import monotonic
from typing import Any, Final, TypeVar, cast

import trio

from penstock.api import (
    UNBOUNDED,
    ByteWindow,
    RuleViolation,
    StreamState,
    StreamStatistics,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    check_demand,
    shown,
)
from penstock.core._in_trio import check_in_trio
from penstock.core._parked_task import ParkedTask

T = TypeVar("T")

DEFAULT_DEMAND: Final = 256
"""Elements that may be under way at a time:
enough to keep working during a round trip, few enough to hold in memory.
"""

TURN_SECONDS: Final = 0.005
"""Seconds that a reader may go on before other tasks get a scheduler pass."""

_now = monotonic

SHARED_SECONDS: Final = 0.01
"""Streams that are made within this time have the same time of their beginning."""


class _BeginTime:
    """The time at which a stream begins, as one object for all streams that begin together: a
    separate time would take 24 bytes.
    """

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest = 0.0

    def now(self) -> float:
        """Return the time, at most `SHARED_SECONDS` old."""
        now = _now()
        if not 0 <= now - self._latest < SHARED_SECONDS:
            self._latest = now
        return self._latest


_begin_time: Final = _BeginTime()

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_OPEN: Final = StreamState.OPEN

_NO_SLICE: Final[Iterator[Any]] = iter(())

_NO_ELEMENTS: Final = cast("list[Any]", ())


class Stream(Subscriber[T], AsyncIterator[T]):
    """The elements of one subscription, for one reading task.

    Iterate over it, or over `batches()`.
    A publisher's failure is raised from there, and completion ends the loop.
    """

    # 17 attributes, two of them for the window of bytes. An object for the demand would cost an
    # idle stream 60 bytes, and a slice a call.
    __slots__ = (
        "__weakref__",
        "_arrived",
        "_began_at",
        "_counted",
        "_demand",
        "_dropped",
        "_error",
        "_is_open",
        "_reader",
        "_requested",
        "_slice",
        "_slice_size",
        "_spare",
        "_state",
        "_subscription",
        "_turn_ends",
        "_unrenewed",
        "_window",
    )

    def __init__(self, *, demand: int = DEFAULT_DEMAND, prefetch: int | None = None) -> None:
        """`prefetch` is how many of the `demand` are requested before the reader asks for an
        element; by default all.
        """
        if type(demand) is not int or demand < 0:
            raise UsageError(
                f"demand={shown(demand)}; give how many elements may be under way at a time "
                "(renewed as you take them), or 0 to call request() yourself"
            )
        self._began_at = _begin_time.now()
        self._demand = min(demand, UNBOUNDED)
        self._slice_size = max(1, self._demand // 2) if demand else UNBOUNDED
        self._state = _OPEN
        # The same as `_state is StreamState.OPEN`. It is read for each element, and to look up the
        # member of an enum costs more than all the rest of on_next.
        # After the end it is False, and None from the time on at which the end was raised without a
        # checkpoint. That is done once.
        self._is_open: bool | None = True
        self._subscription: Subscription | None = None
        self._error: BaseException | None = None
        # Becomes a list with the first element.
        # A server may hold 100,000 idle streams, and an empty list takes 56 bytes.
        self._arrived: list[T] = _NO_ELEMENTS
        self._slice: Iterator[T] = _NO_SLICE
        self._counted = 0  # elements that were moved out of `_arrived`
        self._dropped = 0  # of these, those dropped by cancel()
        self._requested = 0
        # Elements that were moved out of `_arrived` and not yet requested anew; at first the part
        # of the demand that awaits the reader.
        self._unrenewed = 0 if prefetch is None else self._demand - prefetch
        self._spare = 0
        self._window: ByteWindow | None = None
        self._turn_ends = 0.0  # until the first elements are read
        # Made when a reader first waits: an idle stream must stay below 400 bytes,
        # and this object has 56.
        self._reader: ParkedTask | None = None

    # --- reading

    def __aiter__(self) -> "Stream[T]":
        return self

    async def __anext__(self) -> T:
        """Return the next element. Checkpoints when it must wait, once a slice, and every 5 ms.

        If the stream has ended when the last slice is read within its turn, the end is raised
        without a checkpoint, once.
        """
        if _now() < self._turn_ends:
            # One step of the iterator; cheaper than next() and an exception.
            for element in self._slice:
                return element
            if self._is_open is False and not self._arrived:
                self._is_open = None
                raise self._ending()
        return await self._next_turn()

    def batches(self) -> AsyncIterator[list[T]]:
        """Iterate over lists of all elements that have arrived, never empty. The fastest way to
        read. Checkpoints once a batch.

        Over a connection and with a serializer a list has up to 256 elements:
        they are loaded when they are taken.
        """
        return _Batches(self)

    async def _next_turn(self) -> T:
        """Give other tasks a scheduler pass, then continue the slice, or take the next one."""
        await self._wait_readable()
        if not length_hint(self._slice):
            part = self._take(self._slice_size)
            if not part:
                raise self._ending()
            self._slice = iter(part)
        self._turn_ends = _now() + TURN_SECONDS
        return next(self._slice)

    async def _next_batch(self) -> list[T]:
        await self._wait_readable()
        # No checkpoint comes from here to the return. So a cancelled read has taken nothing, and no
        # element is lost.
        batch = list(self._slice)
        more = self._take(UNBOUNDED)
        if not batch and not more:
            raise self._ending()
        self._turn_ends = _now() + TURN_SECONDS
        # else no half can be requested ahead: the next element is requested when the reader asks
        # for it.
        if self._demand > 1:
            self._renew_demand()
        return batch + more if batch else more  # usually `more` itself, without a copy

    def _take(self, most: int) -> list[T]:
        """Return up to `most` of the elements that have arrived, and count them. None only if
        the stream ends with that, in a subclass.
        """
        arrived = self._arrived
        if len(arrived) > most:
            part, self._arrived = arrived[:most], arrived[most:]
        else:
            part, self._arrived = arrived, []
        counted = self._number_in(part)
        self._counted += counted
        self._unrenewed += counted
        return part

    def _number_in(self, part: list[T]) -> int:
        """Return the number of elements in `part`."""
        return len(part)

    async def _wait_readable(self) -> None:
        """Checkpoint, and return when there is an element to read.
        If there will be none, raise what ended the stream.
        """
        if length_hint(self._slice):
            await trio.lowlevel.checkpoint()
            # cancel() may have dropped the slice during the checkpoint.
            if length_hint(self._slice):
                return
        # Before the wait: a reader that has read all elements must not wait for ones
        # that it never requested.
        self._renew_demand()
        try:
            if self._arrived or self._state is not _OPEN:
                await trio.lowlevel.checkpoint()
            else:
                reader = self._reader
                if reader is None:
                    reader = self._reader = ParkedTask()
                elif reader.task is not None:
                    raise _second_reader()
                await reader.park()
        except RuntimeError:
            # Of trio, outside of trio: a task of asyncio reads, beside trio as a guest.
            check_in_trio("reading a stream")
            raise
        if not self._arrived:
            raise self._ending()

    def _ending(self) -> BaseException:
        """Return the exception that tells the reader why no element comes."""
        if self._state is _OPEN:
            # another reader has taken the element for which this one was woken.
            return _second_reader()
        error, self._error = self._error, None
        if isinstance(error, StopIteration | StopAsyncIteration):
            # Raised itself, it would end the loop as if the stream had completed. PEP 479 also
            # solves this with a RuntimeError.
            wrapped = RuntimeError(f"the publisher failed with {type(error).__name__}")
            wrapped.__cause__ = error
            return wrapped
        return StopAsyncIteration() if error is None else error

    def _renew_demand(self) -> None:
        """Request anew what was read, half of the demand at a time:
        a request costs as much for one element as for a hundred.

        A quarter is enough if the reader will wait. Else less than half stayed with a reader that
        had read all, the publisher had nothing to do while the reader worked, and the reader
        nothing while the publisher worked: each element took twice as long.
        """
        # Fitted before a request, and as long as less than the whole demand is used: small elements
        # cost it once for half of the demand. Also if many bytes have come: elements may be
        # large now, and what was read of them counts as unread until then.
        window = self._window
        if window is not None and (
            self._spare or self._unrenewed >= self._least_renewed or window.received >= window.due
        ):
            self._fit_demand(window)
        count, least = self._unrenewed - self._spare, self._least_renewed
        if self._demand and count >= least and self._subscription is not None:
            self._unrenewed = self._spare
            self._requested = add_demand(self._requested, count)
            self._subscription.request(count)

    @property
    def _least_renewed(self) -> int:
        return self._slice_size if self._arrived else (self._slice_size + 1) // 2

    def _fit_demand(self, window: ByteWindow) -> None:
        """Use as much of the demand as fits into the window by the size of the elements so far."""
        arrived = self._number_in(self._arrived)
        received = self._counted + arrived
        if received >= window.first:
            limit = window.demand(self._demand, received, length_hint(self._slice) + arrived)
            self._spare, self._slice_size = self._demand - limit, max(1, limit // 2)

    # --- steering

    def count_bytes(self, most: int, largest: int) -> ByteWindow | None:
        """Let bytes bound the demand too:
        for a source whose elements have up to `largest` bytes, and come over a network.

        Returns the window, to which the source adds the bytes of each element; or None if the
        program requests each element by itself.
        """
        if self._demand and self._window is None:
            window = self._window = ByteWindow(most, largest)
            if self._subscription is None:
                # The first elements are one slice, so that a short stream costs no further request.
                limit = self._slice_size = window.demand(self._demand, 0, 0)
                self._spare = self._demand - limit
                self._unrenewed = max(self._unrenewed, self._spare)
        return self._window

    def request(self, n: int) -> None:
        """Request `n` more elements, on a stream that was opened with ``demand=0``.

        Raises IllegalDemand; or UsageError if the demand is automatic.
        """
        if self._demand:
            raise UsageError(
                f"request({shown(n)}) on a stream with demand={self._demand}, which renews it by "
                "itself. Open it with demand=0 to ask for each element yourself"
            )
        n = check_demand(n)
        if not self._is_open:
            return  # rule 3.6
        self._requested = add_demand(self._requested, n)
        if self._subscription is not None:
            self._subscription.request(n)

    def cancel(self) -> None:
        """Stop the stream now: buffered elements are dropped and iteration ends. Leaving the
        block does the same, and waits.
        """
        if self._is_open:
            # Closed first: the publisher may answer the cancel with a signal, and
            # that must do nothing (rule 2.8).
            self._state, self._is_open = StreamState.CANCELLED, False
            subscription, self._subscription = self._subscription, None
            if subscription is not None:
                subscription.cancel()
        self._counted += len(self._arrived)
        self._dropped += length_hint(self._slice) + len(self._arrived)
        self._arrived, self._slice, self._error = [], _NO_SLICE, None
        if self._reader is not None:
            self._reader.wake()

    def held(self) -> int:
        """Return the bytes of the elements that wait to be read. An element that is neither
        bytes nor text counts with its own object.
        """
        # Of most streams nothing waits, and a connection may have a hundred thousand, all of
        # which are asked at once.
        if not self._arrived and not length_hint(self._slice):
            return 0
        # A copy of the iterator: the reader must still get the rest of its slice.
        waiting = [*copy(self._slice), *self._arrived]
        return sum(
            len(element) if isinstance(element, bytes | str) else getsizeof(element)
            for element in waiting
        )

    def statistics(self) -> StreamStatistics:
        """Return the state, the counts, and whether the stream is starved of demand."""
        unread, arrived = length_hint(self._slice), self._number_in(self._arrived)
        buffered = unread + arrived
        received = self._counted + arrived
        is_open, now = bool(self._is_open), _now()
        outstanding = self._requested - received if is_open else 0
        return StreamStatistics(
            state=self._state,
            requested=self._requested,
            received=received,
            taken=self._counted - unread - self._dropped,
            buffered=buffered,
            outstanding=outstanding,
            starved=is_open and not self._demand and not buffered and not outstanding,
            received_bytes=None if self._window is None else self._window.received,
            age=now - self._began_at,
            since_taken=now - self._turn_ends + TURN_SECONDS if self._turn_ends else None,
        )

    def __repr__(self) -> str:
        now = self.statistics()
        starved = ", starved" if now.starved else ""
        return (
            f"<stream {now.state.value}: {now.taken} taken, {now.buffered} buffered, "
            f"{now.outstanding} outstanding{starved}>"
        )

    # --- the subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None): a subscription is needed (rule 2.13)")
        if self._subscription is not None or not self._is_open:
            is_same = subscription is self._subscription
            subscription.cancel()  # rule 2.5
            # That has cancelled the only subscription, and a waiting reader must learn why no
            # element comes.
            if is_same:
                self.on_error(
                    RuleViolation(
                        "the publisher signalled on_subscribe twice with one subscription",
                        rule="2.12",
                    )
                )
            return
        self._subscription = subscription
        # Counted before the request: the publisher may signal inside it (rule 3.10).
        if self._demand:
            self._requested = self._demand - self._unrenewed
        if self._requested:  # with manual demand: the requests from before on_subscribe
            subscription.request(self._requested)
        if self._reader is not None and self._reader.task is not None:
            # A reader came before the subscription, and found nothing to request of.
            self._renew_demand()

    def on_next(self, element: T, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        if self._is_open:  # rule 2.8: elements after the end are dropped
            arrived = self._arrived
            if arrived:  # then no reader waits
                arrived.append(element)
                return
            self._arrived = [element]
            reader = self._reader
            if reader is not None and reader.task is not None:
                reader.wake()

    def on_next_many(self, elements: Sequence[T], /) -> None:
        """Receive elements that arrived together, from an upstream that has counted them
        and that sends no None.
        """
        if self._is_open:
            arrived = self._arrived
            if arrived:
                arrived.extend(elements)
                return
            self._arrived = [*elements]
            reader = self._reader
            if reader is not None and reader.task is not None:
                reader.wake()

    def on_error(self, error: BaseException, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError(f"on_error({shown(error)}): an exception is needed (rule 2.13)")
        if self._is_open:
            self._error = error
            self._end(StreamState.FAILED)

    def on_complete(self, /) -> None:
        if self._is_open:
            self._end(StreamState.COMPLETED)

    def _end(self, state: StreamState) -> None:
        self._state, self._is_open = state, False
        self._subscription = None  # rule 2.4
        if self._reader is not None:
            self._reader.wake()


class _Batches(AsyncIterator[list[T]]):
    """The same stream, read by batch. (Not an async generator:
    one that is left early would have to be closed.)
    """

    __slots__ = ("_stream",)

    def __init__(self, stream: Stream[T]) -> None:
        self._stream = stream

    async def __anext__(self) -> list[T]:
        return await self._stream._next_batch()  # noqa: SLF001  # the two are one idea in one file


def _second_reader() -> UsageError:
    return UsageError(
        "two tasks read this stream at once; one subscription has one reader. "
        "Subscribe twice, or hand on the elements through a memory channel"
    )
