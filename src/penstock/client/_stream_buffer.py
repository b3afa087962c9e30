"""The consumer's end of a stream without I/O: it keeps elements that have arrived, hands them over
in lists, and renews the demand.

Rules of this file:

* Buffered and outstanding elements together never exceed the demand. Half of it is requested anew
  when as much has been taken.
* With a demand of 1 an element is requested when the reader asks for it (`renew`).
* The bytes of elements bound the demand as well (`ByteWindow`):
  `_spare` is the part of the demand that stays unused.
* Elements that arrived before the end are taken before the end is raised.
  After `cancel` nothing is taken.
* Elements are decoded when they are taken, so a slow serializer holds up its own reader only.
* A stream that goes on after a lost connection (`StreamPlace`) stays open. Its reader gets
  `StreamCut` once it has taken all that arrived, and subscribes again.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import length_hint
from sys import getsizeof
from time import monotonic
from typing import Any, Final

from penstock.api import (
    UNBOUNDED,
    ByteWindow,
    Positions,
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
from penstock.client._stream_place import StreamPlace
from penstock.spi import Serializer, load_error, loaded_none

DEFAULT_DEMAND: Final = 256
"""Elements that may be under way at a time."""

_NO_SLICE: Final[Iterator[Any]] = iter(())


class StreamBuffer(Subscriber[Any]):
    """The elements of one subscription, for one reader."""

    # 19 attributes, and no part for the demand or the window:
    # each slice reads both, and would pay a call for the part.
    __slots__ = (
        "_arrived",
        "_began_at",
        "_counted",
        "_demand",
        "_dropped",
        "_element_size",
        "_error",
        "_in_pieces",
        "_loader",
        "_requested",
        "_slice_size",
        "_spare",
        "_subscription",
        "_taken_at",
        "_unrenewed",
        "current",
        "place",
        "state",
        "wake",
        "window",
    )

    def __init__(
        self,
        *,
        demand: int = DEFAULT_DEMAND,
        loader: Serializer | None = None,
        window: ByteWindow | None = None,
        place: StreamPlace | None = None,
    ) -> None:
        # `type`, and not isinstance: True is an int for Python.
        if type(demand) is not int or demand < 0:
            raise UsageError(
                f"demand={shown(demand)}; give how many elements may be under way at a time "
                "(renewed as you take them), or 0 to call request() yourself"
            )
        self._demand = min(demand, UNBOUNDED)
        self._loader = loader
        self._slice_size = max(1, self._demand // 2) if demand else UNBOUNDED
        self.state: StreamState = StreamState.OPEN
        self.place: StreamPlace = place or StreamPlace()
        """Where the stream begins, stops and goes on."""
        self._subscription: Subscription | None = None
        self._error: BaseException | None = None
        self._arrived: list[Any] = []
        self._in_pieces = False
        self._element_size = 0
        self._counted = 0  # elements that were moved out of `_arrived`
        self._dropped = 0  # of these, those dropped by cancel()
        self._requested = 0
        self._unrenewed = 0  # elements that were taken and not requested anew
        self._spare = 0
        self._began_at = monotonic()
        self._taken_at: float | None = None
        self.current: Iterator[Any] = _NO_SLICE
        """The list that the reader steps through, as an iterator. The reader sets it; the rest of
        it counts as buffered.
        """
        self.wake: Callable[[], None] | None = None
        """Called when there is something to take, while a reader waits."""
        self.window: ByteWindow | None = window if demand else None
        """Counts the bytes of the elements; None if the program requests each element."""
        if self.window is not None:
            limit = self._slice_size = self.window.demand(self._demand, 0, 0)
            # The part that the window does not allow yet. It counts as taken, so `renew` requests
            # it when the elements turn out small.
            self._spare = self._unrenewed = self._demand - limit

    # --- taking

    def take_slice(self) -> list[Any] | None:
        """Return elements for a reader of single elements, at most half of the demand; None if
        it has to wait. Raises the end.
        """
        # Renewed first: the reader has read the slice before when it asks for the next one.
        self.renew()
        arrived = self._arrived
        if len(arrived) > self._slice_size:
            self._arrived = arrived[self._slice_size :]
            arrived = arrived[: self._slice_size]
        else:
            self._arrived = []
        return self._take(arrived)

    def take_batch(self) -> list[Any] | None:
        """Return all elements that have arrived; None if the reader has to wait. Raises the end:
        `StreamEnd` after completion.
        """
        if not self._arrived:
            self.renew()
        arrived, self._arrived = self._arrived, []
        taken = self._take(arrived)
        # With 1 the next element is requested when the reader asks for it.
        if taken is not None and self._demand > 1:
            self.renew()
        return taken

    def take_buffer(self) -> bytes | None:
        """Return elements of fixed size as one piece of memory; None if the reader has to wait.
        Raises the end.
        """
        # Elements that came before this call were taken apart.
        # `_number_in` counts both kinds by their bytes.
        self._in_pieces = True
        pieces = self.take_batch()
        if pieces is None:
            return None
        if not self._element_size:
            raise UsageError(
                "buffers() on a stream whose elements have no fixed size: read it by element, or "
                "by batches()"
            )
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def renew(self) -> None:
        """Request anew what was taken, half of the demand at a time; a quarter if nothing has
        arrived, because the reader waits.
        """
        least = self._slice_size if self._arrived else (self._slice_size + 1) // 2
        window = self.window
        if window is not None and (
            self._spare or self._unrenewed >= least or window.received >= window.due
        ):
            arrived = self._number_in(self._arrived)
            received = self._counted + arrived
            if received >= window.first:
                limit = window.demand(self._demand, received, arrived + length_hint(self.current))
                self._spare, self._slice_size = self._demand - limit, max(1, limit // 2)
            # The size of a slice may have changed.
            least = self._slice_size if self._arrived else (self._slice_size + 1) // 2
        count = self._unrenewed - self._spare
        if self._demand and count >= least and self._subscription is not None:
            self._unrenewed = self._spare
            self._requested = add_demand(self._requested, count)
            self._subscription.request(count)

    # --- steering

    def request(self, n: int) -> None:
        """Request `n` more elements, on a stream with ``demand=0``. Raises IllegalDemand; or
        UsageError if the demand is automatic.
        """
        if self._demand:
            raise UsageError(
                f"request({shown(n)}) on a stream with demand={self._demand}, which renews it by "
                "itself. Open it with demand=0 to ask for each element yourself"
            )
        n = check_demand(n)
        if self.state is StreamState.OPEN:
            self._requested = add_demand(self._requested, n)
            if self._subscription is not None:
                self._subscription.request(n)

    def cancel(self) -> None:
        """Stop the stream now. Buffered elements are dropped, and the iteration ends."""
        if self.state is StreamState.OPEN:
            # Closed first: the publisher may answer the cancel with a signal, and
            # that must do nothing (rule 2.8).
            self.state = StreamState.CANCELLED
            subscription, self._subscription = self._subscription, None
            if subscription is not None:
                subscription.cancel()
        waiting = self._number_in(self._arrived)
        self._counted += waiting
        self._dropped += length_hint(self.current) + waiting
        self._arrived, self.current, self._error = [], _NO_SLICE, None
        self._notify()

    def fail(self, error: Exception) -> None:
        """Stop the stream now, and let its reader get `error`."""
        self.cancel()
        # After `cancel`, which sets the state and clears the error.
        self.state, self._error = StreamState.FAILED, error

    # --- facts

    @property
    def element_size(self) -> int:
        """The size of every element in bytes, or 0 if sizes differ;
        known after the publisher has accepted.
        """
        return self._element_size

    @property
    def position(self) -> int | None:
        """The position of the element that the reader gets next; None if the publisher has no
        positions, or they are not known yet.
        """
        return self.place.position(self._counted - length_hint(self.current) - self._dropped)

    @property
    def is_readable(self) -> bool:
        """A call of `take_slice` or `take_batch` need not wait."""
        return bool(self._arrived) or self.state is not StreamState.OPEN or self.place.is_cut

    def held(self) -> int:
        """Return the bytes of the elements that wait to be taken."""
        return sum(
            len(element) if isinstance(element, bytes | str) else getsizeof(element)
            for element in self._arrived
        )

    def statistics(self) -> StreamStatistics:
        """Return the state, the counts, and whether the stream is starved of demand."""
        unread, arrived, now = (
            length_hint(self.current),
            self._number_in(self._arrived),
            monotonic(),
        )
        received, is_open = self._counted + arrived, self.state is StreamState.OPEN
        buffered = unread + arrived
        outstanding = self._requested - received if is_open else 0
        return StreamStatistics(
            state=self.state,
            requested=self._requested,
            received=received,
            taken=self._counted - unread - self._dropped,
            buffered=buffered,
            outstanding=outstanding,
            starved=is_open and not self._demand and not buffered and not outstanding,
            received_bytes=None if self.window is None else self.window.received,
            age=now - self._began_at,
            since_taken=None if self._taken_at is None else now - self._taken_at,
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
        if self._subscription is not None or self.state is not StreamState.OPEN:
            is_same = subscription is self._subscription
            subscription.cancel()  # rule 2.5
            if is_same:
                self.on_error(
                    RuleViolation(
                        "the publisher signalled on_subscribe twice with one subscription",
                        rule="2.12",
                    )
                )
            return
        self._subscription = subscription
        received = self._counted + self._number_in(self._arrived)
        # Counted before the request: the publisher may signal inside it (rule 3.10).
        if self._demand and not self.place.is_cut:
            self._requested = self._demand - self._unrenewed
        self.place.is_cut = False
        # The outstanding demand: all of it on the first connection; with manual demand also the
        # requests from before on_subscribe.
        outstanding = UNBOUNDED if self._requested == UNBOUNDED else self._requested - received
        if outstanding:
            subscription.request(outstanding)

    def on_next(self, element: Any, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        if self.state is StreamState.OPEN:  # rule 2.8: elements after the end are dropped
            self._arrived.append(element)
            if self.wake is not None:
                self._notify()

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Receive elements that arrived together."""
        if self.state is StreamState.OPEN:
            self._arrived += elements
            if self.wake is not None:
                self._notify()

    def on_fact(self, fact: object, /) -> None:
        """Learn where the elements that follow begin."""
        if isinstance(fact, Positions):
            error = self.place.learn(fact, self._counted + self._number_in(self._arrived))
            if error is not None:
                self.fail(error)

    def on_element_size(self, size: int, /) -> None:
        """Learn the size of every element."""
        self._element_size = size

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Receive elements of fixed size, one behind the other."""
        if self._in_pieces:
            self.on_next(elements)
        else:
            size = self._element_size
            self.on_next_many([elements[at : at + size] for at in range(0, count * size, size)])

    def on_error(self, error: BaseException, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError(f"on_error({shown(error)}): an exception is needed (rule 2.13)")
        if self.state is StreamState.OPEN:
            if not self.place.cut(error):
                self._error, self.state = error, StreamState.FAILED
            self._subscription = None  # rule 2.4
            self._notify()

    def on_complete(self, /) -> None:
        if self.state is StreamState.OPEN:
            self.state = StreamState.COMPLETED
            self._subscription = None  # rule 2.4
            self._notify()

    # --- inside

    def _notify(self) -> None:
        wake, self.wake = self.wake, None
        if wake is not None:
            wake()

    def _take(self, part: list[Any]) -> list[Any] | None:
        if not part:
            if self.state is not StreamState.OPEN:
                # Moved out, so that the failure comes once. After it the stream has just ended.
                error, self._error = self._error, None
                try:
                    raise StreamEnd if error is None else as_raised(error)
                finally:
                    del error  # it refers to this frame through its traceback
            if self.place.is_cut:
                raise StreamCut
            return None
        number = self._number_in(part)
        position = self._counted
        self._counted += number
        self._unrenewed += number
        self._taken_at = monotonic()
        if self._loader is None:
            return part
        loaded, failure = load_part(self._loader, part, position)
        if failure is not None:
            self._dropped += len(part) - len(loaded)
            # The peer is told to stop: nothing that follows could be read either.
            self.fail(failure)
        return loaded or self._take([])

    def _number_in(self, part: list[Any]) -> int:
        return (
            sum(map(len, part)) // self._element_size
            if self._in_pieces and self._element_size
            else len(part)
        )


def load_part(
    loader: Serializer, part: list[bytes], position: int
) -> tuple[list[Any], Exception | None]:
    """Return the elements up to the first that cannot be decoded, and the error for that one.
    `position` is that of the first.
    """
    loaded: list[Any] = []
    loads = loader.loads
    for data in part:
        try:
            element = loads(data)
        except Exception as error:  # boundary: the serializer may be a plugin
            return loaded, load_error(error, loader, position + len(loaded), len(data))
        if element is None:
            return loaded, loaded_none(loader, position + len(loaded), len(data))
        loaded.append(element)
    return loaded, None


def as_raised(error: BaseException) -> BaseException:
    """Return what a reader gets for the error of a publisher."""
    if isinstance(error, StopIteration | StopAsyncIteration):
        # Raised itself, it would end the loop as if the stream had completed (PEP 479).
        wrapped = RuntimeError(f"the publisher failed with {type(error).__name__}")
        wrapped.__cause__ = error
        return wrapped
    return error


class StreamCut(Exception):  # as StreamEnd
    """The connection is lost, and the stream can go on over the next one. Each client subscribes
    again with the same buffer.
    """


class StreamEnd(Exception):  # as StopIteration: no error
    """The stream has completed, or was cancelled: no further element comes. Each client turns it
    into the end of its loop.
    """
