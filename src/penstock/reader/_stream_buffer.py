"""The reader's end of a stream, without I/O: elements wait here, and the demand for more is renewed
here.

Rules of this file:

* Elements that have arrived are in a list, `_arrived`. The reader takes a slice of it at a time,
  and steps through `_slice`. Elements are counted only when a slice is taken. So an element costs
  one append and one step of a list iterator.
* Buffered and outstanding elements together never exceed the demand. `_renew` is the only place
  that requests more.
* Elements that arrived before the end are read before the end is raised. After `cancel` nothing is
  read.
* With a serializer elements wait as bytes, and are loaded when the reader takes them (`load_with`),
  up to `MOST_LOADED` at a time. Loaded when they arrived, up to 1,024 objects of a dataclass waited
  for a reader. Python's collector looked at each of them again and again, which took a quarter of
  the reader's time.
* An element that cannot be loaded ends the stream when the reader comes to it.
* Over a connection `_arrived` may have pieces of several elements, and every count counts elements.
  Packed elements have one fixed size. If the reader reads memory, they are not taken apart from
  then on; else it gets single elements. A reader of runs gets elements that arrived together as one
  sequence: in the memory in which they arrived where it can be (`EqualRun`, `ShortRun`), else as a
  list.

A subclass adds the wait of one kind of program (trio, asyncio, a thread that blocks). It reads in
three steps:

1. If nothing is here, it calls `_renew`: a reader that has read all elements must not wait for ones
   that it never requested.
2. It waits until `_is_readable`, and has `_wake_reader` called meanwhile. If nothing has arrived
   then, it raises `_take_failure()`, or ends the loop.
3. It takes: `_take_slice` or `_take_batch`. They return nothing if the first element cannot be
   loaded: then it begins again, and comes to the end.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from itertools import accumulate, islice
from operator import length_hint
from sys import getsizeof
from time import monotonic
from typing import Any, Final, TypeAlias, TypeVar, cast

from penstock.api import (
    UNBOUNDED,
    ByteWindow,
    EqualRun,
    Positions,
    RuleViolation,
    ShortRun,
    StreamState,
    StreamStatistics,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    check_demand,
    shown,
    split_packed,
)

T = TypeVar("T")

DEFAULT_DEMAND: Final = 256
"""Elements that may be under way at a time:
enough to keep working during a round trip, few enough to hold in memory.
"""

TURN_SECONDS: Final = 0.005
"""Seconds that a reader may go on before other tasks get a scheduler pass."""

MOST_LOADED: Final = 256
"""Elements that are loaded at a time. The collector runs when 700 objects more were made than
freed, and a dataclass that msgspec makes has two: 256 of them are read and freed before the next
ones, and the collector does not run at all.
"""

LOADED_BYTES: Final = 64 << 10
"""Bytes after which no further element is loaded at a time. The reader of a connection receives the
same number at a time.
"""

FEW_WAITING: Final = 2048
"""Elements that may wait in a list. If there are more, they are moved to a deque: the rest of a
list is copied each time that some are loaded, which took ten times as long as to load them when
800,000 waited.
"""

MEMORY: Final = frozenset({EqualRun, ShortRun})
"""The types of runs that stay unchanged in memory."""

SHARED_SECONDS: Final = 0.01
"""Streams that are made within this time have the same time of their beginning."""

Loader: TypeAlias = Callable[[Sequence[bytes], int], tuple[list[Any], Exception | None]]
"""Loads elements, and gets the position of the first one in the stream. Returns all of them and
None; or those before one that cannot be loaded, and the error of that one.
"""

_now = monotonic

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_OPEN: Final = StreamState.OPEN
_CANCELLED: Final = StreamState.CANCELLED

NO_SLICE: Final[Iterator[Any]] = iter(())
"""The slice of a reader that has none."""

_NO_ELEMENTS: Final = cast("list[Any]", ())


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


class StreamBuffer(Subscriber[T]):
    """The elements of one subscription, for one reader. Each kind of `Stream` is one."""

    # A server may hold 100,000 idle streams: an object for the demand would cost each of them 60
    # bytes, and each slice a call.
    __slots__ = (
        "__weakref__",
        "_arrived",
        "_began_at",
        "_counted",
        "_demand",
        "_dropped",
        "_error",
        "_first",
        "_load",
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
        "opener",
    )

    opener: Any
    """The task that has opened the stream, for those who look at it. Not set if none did, and None
    after the block.
    """

    def __init__(self, *, demand: int = DEFAULT_DEMAND, prefetch: int | None = None) -> None:
        """`prefetch` is how many of the `demand` are requested before the reader asks for an
        element; by default all.
        """
        # `type`, and not isinstance: True is an int for Python.
        if type(demand) is not int or demand < 0:
            raise UsageError(
                f"demand={shown(demand)}; give how many elements may be under way at a time "
                "(renewed as you take them), or 0 to call request() yourself"
            )
        self._began_at = _begin_time.now()
        self._demand = min(demand, UNBOUNDED)
        self._slice_size = max(1, self._demand // 2) if demand else UNBOUNDED
        self._state = _OPEN
        self._subscription: Subscription | None = None
        self._error: BaseException | None = None
        # Becomes a list with the first element: an empty list takes 56 bytes.
        self._arrived: list[T] = _NO_ELEMENTS
        self._slice: Iterator[T] = NO_SLICE
        self._counted = 0  # elements that were moved out of `_arrived`
        self._dropped = 0  # of these, the ones that the reader will never get
        self._requested = 0
        # Elements that were moved out of `_arrived` and not yet requested anew; at first the part
        # of the demand that awaits the reader.
        self._unrenewed = 0 if prefetch is None else self._demand - prefetch
        self._spare = 0  # the part of the demand that the window of bytes leaves unused
        self._window: ByteWindow | None = None
        self._turn_ends = 0.0  # `TURN_SECONDS` after elements were taken last
        self._reader: Any = None  # the task or future that waits for an element
        self._load: Loader | None = None
        self._first: int | None = None  # the position of the first element

    # --- reading, for subclasses

    @property
    def _is_readable(self) -> bool:
        """The reader need not wait: an element is here, or the end."""
        return bool(self._arrived) or self._state is not _OPEN

    def _renew(self) -> None:
        """Request anew what was read, half of the demand at a time: a request costs as much for one
        element as for a hundred.

        Less is enough if nothing has arrived, because the reader will wait. Else less than half
        stayed with a reader that had read all, the publisher had nothing to do while the reader
        worked, and the reader nothing while the publisher worked: each element took twice as long.
        """
        window = self._window
        least = self._least()
        # Fitted before a request, and as long as less than the whole demand is used: small elements
        # cost it once for half of the demand. The same if many bytes have come: elements may have
        # become large, and those that were read count as unread until then.
        if window is not None and (
            self._spare or self._unrenewed >= least or window.received >= window.due
        ):
            self._fit_demand(window)
            least = self._least()
        count = self._unrenewed - self._spare
        if count >= least and self._demand and self._subscription is not None:
            self._unrenewed = self._spare
            requested = self._requested + count  # as `add_demand`, without its call
            self._requested = requested if requested < UNBOUNDED else UNBOUNDED
            self._subscription.request(count)

    def _least(self) -> int:
        """Return how many elements are requested anew, at least."""
        if self._arrived:
            return self._slice_size
        # All of them inside one process: a group of readers counts an element as done when it is
        # requested anew, and the next one may come much later. Over a network each request is a
        # frame, and a quarter is enough.
        return 1 if self._window is None else (self._slice_size + 1) // 2

    def _fit_demand(self, window: ByteWindow) -> None:
        """Use as much of the demand as fits into the window by the size of the elements so far."""
        arrived = self._number_in(self._arrived)
        received = self._counted + arrived
        if received >= window.first:
            limit = window.demand(self._demand, received, length_hint(self._slice) + arrived)
            self._spare, self._slice_size = self._demand - limit, max(1, limit // 2)

    def _take_slice(self) -> bool:
        """Unless elements are left in `_slice`, put some there: at most half of the demand.
        Return whether there are any.
        """
        if not length_hint(self._slice):
            self._renew()  # the slice before was read to its end
            part = self._take(self._slice_size)
            if not part:
                return False
            self._slice = iter(part)
        self._turn_ends = _now() + TURN_SECONDS
        return True

    def _take_batch(self) -> list[T]:
        """Return the rest of the slice, and all elements that have arrived;
        with a serializer some of them.
        """
        batch = list(self._slice)
        more = self._take(UNBOUNDED)
        self._turn_ends = _now() + TURN_SECONDS
        # With 1 there is no half to request ahead: an element is requested when the reader asks.
        if self._demand > 1:
            self._renew()
        return [*batch, *more] if batch else more  # usually `more` itself, without a copy

    def _take_failure(self) -> BaseException | None:
        """Return what the stream has failed with, once; None if it has just ended."""
        # Moved out: the stream must not keep the exception alive, which refers to the frames of the
        # reader.
        error, self._error = self._error, None
        # Its list would keep the last elements.
        self._slice = NO_SLICE
        if isinstance(error, StopIteration | StopAsyncIteration):
            # Raised unchanged, it would end the loop as if the stream had completed. PEP 479 solves
            # this with a RuntimeError, too.
            wrapped = RuntimeError(f"the publisher failed with {type(error).__name__}")
            wrapped.__cause__ = error
            return wrapped
        return error

    def _wake_reader(self) -> None:
        """Let the reader go on that waits, if there is one.
        Here `_reader` is a function; streams of trio keep a task in it.
        """
        reader, self._reader = self._reader, None
        if reader is not None:
            reader()

    # --- taking

    def _take(self, most: int) -> list[T]:
        """Return up to `most` of the elements that have arrived, and count them."""
        arrived = self._arrived
        if self._load is not None and arrived:
            return self._take_loaded(self._load, min(most, MOST_LOADED))
        if len(arrived) > most:
            part, self._arrived = arrived[:most], arrived[most:]
        else:
            part, self._arrived = arrived, _NO_ELEMENTS
        counted = self._number_in(part)
        self._counted += counted
        self._unrenewed += counted
        return part

    def _take_loaded(self, load: Loader, most: int) -> list[T]:
        first, waiting = self._counted, self._take_waiting(most)
        loaded, error = load(waiting, first)
        # The code of a serializer may have cancelled the stream, which drops what was not read.
        if self._state is _CANCELLED:
            self._dropped += len(waiting)
            return []
        if error is not None:
            self._dropped += len(waiting) - len(loaded)
            # This holds even if the publisher has ended: the element that cannot be loaded came
            # before that.
            self._fail(error)
        return loaded

    def _take_waiting(self, most: int) -> list[bytes]:
        arrived: Any = self._arrived
        if len(arrived) > FEW_WAITING and type(arrived) is list:
            self._arrived = arrived = cast("Any", deque(arrived))
        most = _within(LOADED_BYTES, list(islice(arrived, most)))
        waiting: list[bytes]
        if type(arrived) is not list:
            waiting = [arrived.popleft() for _ in range(most)]
        else:
            waiting, arrived = arrived[:most], arrived[most:]
        self._arrived = arrived or _NO_ELEMENTS
        self._counted += most
        self._unrenewed += most
        return waiting

    def _fail(self, error: Exception) -> None:
        """Stop the stream now, and let its reader get `error`:
        nothing that follows could be read.
        """
        StreamBuffer.cancel(
            self
        )  # of this class: that of a subclass takes the lock of its connection, which is held here
        # After `cancel`, which sets the state and clears the error.
        self._state, self._error = StreamState.FAILED, error

    def _number_in(self, part: Sequence[Any]) -> int:
        """Return the number of elements in `part`."""
        return len(part)

    @property
    def _received(self) -> int:
        return self._counted + self._number_in(self._arrived)

    # --- steering

    def count_bytes(self, most: int, largest: int) -> ByteWindow | None:
        """Let bytes bound the demand too: for a source whose elements have up to `largest` bytes,
        and come over a network.

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

    def load_with(self, load: Loader, /) -> None:
        """Load elements with `load` when they are read: from now on bytes arrive.
        Called before the first element.
        """
        self._load = load

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
        if self._state is not _OPEN:
            return  # rule 3.6
        self._requested = add_demand(self._requested, n)
        if self._subscription is not None:
            self._subscription.request(n)

    def cancel(self) -> None:
        """Stop the stream now: buffered elements are dropped and iteration ends.
        Leaving the block does the same.
        """
        if self._state is _OPEN:
            # Closed first: the publisher may answer the cancel with a signal, and that must do
            # nothing (rule 2.8).
            self._state = _CANCELLED
            subscription, self._subscription = self._subscription, None
            if subscription is not None:
                subscription.cancel()
        waiting = self._number_in(self._arrived)
        self._counted += waiting
        self._dropped += length_hint(self._slice) + waiting
        self._arrived, self._slice, self._error = _NO_ELEMENTS, NO_SLICE, None
        if self._reader is not None:
            self._wake_reader()

    # --- facts

    @property
    def position(self) -> int:
        """The position of the element that the reader gets next.

        Store it with the results of the elements before, and subscribe with it as ``start`` to go
        on. It is a `UsageError` if the publisher has no positions, or they are not known yet; then
        `position_if_known` is None.
        """
        position = self.position_if_known
        if position is None:
            raise UsageError(
                "the position of this stream is not known: its publisher has not told one. A log "
                "that is read without operators has positions, here and over RS.io; over "
                "ReactiveSocket if `start` is a number. Other publishers have none, and HTTP tells "
                "none: ask for `stream.position_if_known`, which is None then and before the "
                "connection is made"
            )
        return position

    @property
    def position_if_known(self) -> int | None:
        """The same as `position`, or None if the publisher has no positions, or they are not known
        yet.
        """
        return (
            None
            if self._first is None
            else self._first + self._counted - length_hint(self._slice) - self._dropped
        )

    def held(self) -> int:
        """Return the bytes of the elements that wait to be read.
        An element that is neither bytes nor text counts with its own object.
        """
        # Of most streams nothing waits, and a connection may have a hundred thousand, all of which
        # are asked at once.
        if not self._arrived and not length_hint(self._slice):
            return 0
        waiting = [
            *copy(self._slice),
            *self._arrived,
        ]  # a copy of the iterator: the reader must still get the rest of its slice
        return sum(
            len(element) if isinstance(element, bytes | str) else getsizeof(element)
            for element in waiting
        )

    @property
    def is_awaited(self) -> bool:
        """Whether a task waits for an element now."""
        return self._reader is not None

    @property
    def subscription(self) -> Subscription | None:
        """The subscription, for those who look at the pipe; None before it and after the end."""
        return self._subscription

    def statistics(self) -> StreamStatistics:
        """Return the state, the counts, and whether the stream is starved of demand."""
        unread, arrived = length_hint(self._slice), self._number_in(self._arrived)
        buffered = unread + arrived
        received = self._counted + arrived
        is_open, now = self._state is _OPEN, _now()
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
        if self._subscription is not None or self._state is not _OPEN:
            is_same = subscription is self._subscription
            subscription.cancel()  # rule 2.5
            # That has cancelled the only subscription, and a waiting reader must learn why no
            # element comes
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
        if self._reader is not None:
            self._renew()  # a reader came before the subscription, and found nothing to request of

    def on_next(self, element: T, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        if self._state is _OPEN:  # rule 2.8: elements after the end are dropped
            arrived = self._arrived
            if arrived:  # then no reader waits
                arrived.append(element)
                return
            self._arrived = [element]
            if self._reader is not None:
                self._wake_reader()

    def on_next_many(self, elements: Sequence[T], /) -> None:
        """Receive elements that arrived together,
        from an upstream that has counted them and that sends no None.
        """
        if self._state is _OPEN:
            arrived = self._arrived
            if arrived:
                arrived.extend(elements)
                return
            self._arrived = [*elements]
            if self._reader is not None:
                self._wake_reader()

    def on_fact(self, fact: object, /) -> None:
        """Learn where the elements that follow begin."""
        if isinstance(fact, Positions):
            # Elements may have come before the fact, so this is counted back to the first element
            # of the stream.
            self._first = fact.first - self._received

    def on_error(self, error: BaseException, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError(f"on_error({shown(error)}): an exception is needed (rule 2.13)")
        if self._state is _OPEN:
            self._error = error
            self._end(StreamState.FAILED)

    def on_complete(self, /) -> None:
        if self._state is _OPEN:
            self._end(StreamState.COMPLETED)

    def _end(self, state: StreamState) -> None:
        self._state = state
        self._subscription = None  # rule 2.4
        if self._reader is not None:
            self._wake_reader()


class RemoteBuffer(StreamBuffer[T]):
    """The elements of one subscription to a publisher of the peer."""

    __slots__ = ("_element_size", "_in_pieces")

    def __init__(self, *, demand: int = DEFAULT_DEMAND) -> None:
        super().__init__(demand=demand)
        self._element_size = 0
        self._in_pieces = False

    @property
    def element_size(self) -> int:
        """The size of every element in bytes, or 0 if sizes differ;
        known after the publisher has accepted.
        """
        return self._element_size

    def on_element_size(self, size: int, /) -> None:
        """Learn the size of every element."""
        # It is the size of the bytes: with a serializer the reader gets other elements.
        if self._load is None:
            self._element_size = size

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Receive elements of fixed size, one after the other in one piece of memory."""
        if self._in_pieces and self._element_size:
            self.on_next(cast("T", elements))
        else:
            self.on_next_many(cast("list[T]", split_packed(count, elements)))

    # --- for subclasses

    def _take_buffer(self) -> bytes:
        """Return packed elements as one piece of memory.
        Raises UsageError if they have no fixed size.
        """
        pieces = cast("list[bytes]", self._take_batch())
        # Asked after the wait: the size comes with the acceptance, which the first piece follows.
        if not self._element_size:
            raise UsageError(
                "buffers() on a stream whose elements have no fixed size: read it by element, "
                "or by batches()"
            )
        # One piece is the usual case, and needs no copy.
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _number_in(self, part: Sequence[Any]) -> int:
        # By bytes: elements that came before the first read of memory were taken apart.
        return (
            sum(map(len, part)) // self._element_size
            if self._in_pieces and self._element_size
            else len(part)
        )


class RunBuffer(RemoteBuffer[Any]):
    """The runs of one subscription, for a reader that reads it by batch."""

    __slots__ = ()

    takes_runs: bool = True
    """`on_next_many` may be called with an `EqualRun` or a `ShortRun`."""

    def held(self) -> int:
        return sum(
            len(run.data) if type(run) in MEMORY else sum(map(len, run)) for run in self._arrived
        )

    def on_next(self, element: Any, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        # Single elements that follow each other are one run.
        if self._state is StreamState.OPEN and self._arrived and type(self._arrived[-1]) is list:
            self._arrived[-1].append(element)
        else:
            super().on_next([element])

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        # A copy of a list: `on_next` appends to it.
        super().on_next(elements if type(elements) in MEMORY else [*elements])

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        self.on_next_many(EqualRun(elements, 0, self._element_size))

    def _number_in(self, part: Sequence[Any]) -> int:
        return sum(map(len, part))


def _within(most: int, elements: Sequence[Any]) -> int:
    """Return how many of the first `elements` together have `most` bytes, and one more."""
    if sum(map(len, elements)) <= most:
        return len(elements)
    return 1 + sum(length <= most for length in accumulate(map(len, elements)))
