"""The sources: every way to begin a stream that needs no operator.

`subscribe`, `pipe` and the sinks call `as_source` on their argument.
The functions below it each make one kind of source.
"""

import inspect
from abc import abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from functools import partial
from math import ceil
from typing import Any, Generic, TypeAlias, TypeVar, cast

import trio

from penstock.api import (
    UNBOUNDED,
    AlreadySubscribed,
    Publisher,
    Subscriber,
    Subscription,
    UsageError,
    shown,
)
from penstock.core import (
    EndedSubscription,
    IteratorLease,
    PublisherGuard,
    Pump,
    Scope,
    already_subscribed,
    check_function,
    check_seconds,
    has_methods_of,
    name_of,
    take_lease,
)
from penstock.streams._ready_iterators import (
    COLLECTIONS,
    BatchIterator,
    ChannelIterator,
    CollectionIterator,
)
from penstock.streams._source import Source, Streamable

T = TypeVar("T")


Wrap: TypeAlias = Callable[[Callable[[], AsyncIterator[Any]], str], AsyncIterator[Any]]
"""Makes the iterator of a stream out of the function that opens another one, and its label."""


class PulledSource(Source[T]):
    """A stream that is pulled out of an iterator."""

    __slots__ = ()

    @property
    def acts_at_once(self) -> bool:
        """Whether a stream does something before its first request: it may end, or it claims the
        iterator.
        """
        return True

    @abstractmethod
    def wrapped(self, wrap: Wrap) -> "PulledSource[Any]":
        """Return the source that is pulled out of what `wrap` makes of the iterator."""


class IteratorSource(PulledSource[T]):
    """A stream that is pulled out of an iterator. `open_iterator` makes one for each subscriber."""

    __slots__ = ("_borrowed", "_label", "_length", "_open")

    def __init__(
        self,
        open_iterator: Callable[[], AsyncIterator[T]],
        *,
        label: str,
        length: Callable[[], int] | None = None,
        borrowed: bool = False,
    ) -> None:
        self._open = open_iterator
        self._label = label  # for task names and messages
        self._length = length  # a function, because a list may grow between two subscriptions
        self._borrowed = borrowed

    def wrapped(self, wrap: Wrap) -> PulledSource[Any]:
        return IteratorSource(
            partial(wrap, self._open, self._label),
            label=self._label,
            borrowed=self._borrowed,
        )

    @property
    def acts_at_once(self) -> bool:
        # Its length may be 0.
        return self._length is not None

    def attach(self, subscriber: Subscriber[T], scope: Scope) -> None:
        try:
            length = UNBOUNDED if self._length is None else self._length()
        except Exception as error:  # boundary: the user's __len__; rule 1.4
            failed(error).attach(subscriber, scope)
            return
        if not length:
            # rule 1.5, as early as possible:
            # a subscriber needs no demand to receive an end that is already known
            empty().attach(subscriber, scope)
            return
        pump = Pump(
            self._open, subscriber, scope, label=self._label, length=length, borrowed=self._borrowed
        )
        subscriber.on_subscribe(pump)

    def __repr__(self) -> str:
        return f"<source {self._label}>"


def waits_for_demand(source: Source[Any]) -> bool:
    """Return whether a stream of `source` does nothing before its first request, so
    that it may be attached only then.
    """
    # An idle subscription to such a source costs no pump. Other sources act before the first
    # request: an empty one completes, and a topic counts the subscription.
    return isinstance(source, PulledSource) and not source.acts_at_once


def as_source(given: Streamable[T]) -> Source[T]:
    """Return `given` as a source.

    Takes a source, a `Publisher`, an async iterable, an iterable, or a callable that returns one of
    the last two, such as an async generator function.
    Raises UsageError for anything else.
    """
    # The order matters: a Topic is a Source and a Publisher,
    # and a memory channel is an AsyncIterable.
    if isinstance(given, Source):
        return given
    # iterable, but to stream its characters is nearly always a mistake.
    if isinstance(given, str | bytes | bytearray):
        raise UsageError(
            f"{type(given).__name__} is not streamed element by element; a stream inside one "
            "process begins with a publisher, an iterable or a generator function. For its "
            "characters, give iter(...)"
        )
    if has_methods_of(given, Publisher):
        return from_publisher(cast("Publisher[T]", given))
    # Before the async iterables: a channel is one too,
    # and its own source takes several elements at a time.
    if isinstance(given, trio.MemoryReceiveChannel):
        return from_channel(given)
    if isinstance(given, AsyncIterable):
        return from_async_iterable(given)
    if isinstance(given, Iterable):
        return from_iterable(given)
    if callable(given):
        return generate(given)
    raise UsageError(
        f"{type(given).__name__!r} cannot be subscribed to: give a publisher, a source, an async "
        "iterable, an iterable, or a function that returns one (an async generator function, say)"
    )


def from_iterable(iterable: Iterable[T]) -> Source[T]:
    """Stream an iterable. If its length is known, the stream completes with the last element.

    An iterator, such as a generator or an open file, has one subscriber:
    a second one gets `AlreadySubscribed`.
    """
    if not isinstance(iterable, Iterable):
        raise UsageError(
            f"from_iterable() was given {shown(iterable)}, which cannot be iterated over"
        )
    if isinstance(iterable, Iterator):
        return _OnceSource(iterable, is_async=False)
    # Only the length of a collection is the number of its elements.
    length = partial(_length, iterable) if isinstance(iterable, Collection) else None
    is_at_hand = type(iterable) in COLLECTIONS
    opened = (
        partial(CollectionIterator, cast("Sequence[T]", iterable))
        if is_at_hand
        else partial(_walk, iterable)
    )
    return IteratorSource(opened, label=name_of(iterable), length=length)


def from_async_iterable(iterable: AsyncIterable[T]) -> Source[T]:
    """Stream an async iterable. An async generator is closed at the end, even
    if it was never pulled.

    An object that is its own iterator has one subscriber: a second one gets `AlreadySubscribed`. If
    it is not a generator, it stays open.
    """
    if not isinstance(iterable, AsyncIterable):
        raise UsageError(
            f"from_async_iterable() was given {shown(iterable)}, which cannot be iterated over "
            "with `async for`"
        )
    if isinstance(iterable, AsyncIterator):
        return _OnceSource(iterable, is_async=True)
    return IteratorSource(partial(aiter, iterable), label=name_of(iterable))


def generate(
    function: Callable[..., AsyncIterable[T]] | Callable[..., Iterable[T]], *args: object
) -> Source[T]:
    """Stream the result of ``function(*args)``, called anew for each subscriber, in the task
    that pulls the elements.

    Made for async generator functions:
    each subscriber gets its own generator, and that is closed when the stream ends.
    """
    check_function(
        function,
        "what generate() shall call",
        "the arguments that follow it, which returns an async iterable or an iterable",
    )
    # `return` written for `yield`; found here before anything runs.
    if inspect.iscoroutinefunction(function):
        raise UsageError(
            f"{name_of(function)} is a coroutine function, it returns one value; to stream, "
            "`yield` the elements instead"
        )
    # A generator function returns a new generator for each subscriber.
    # Another function may return the same iterator again.
    opens = (
        partial(function, *args)
        if inspect.isasyncgenfunction(function)
        else partial(_call, function, args)
    )
    return IteratorSource(cast("Callable[[], AsyncIterator[T]]", opens), label=name_of(function))


def from_batches(batches: Streamable[Sequence[T]]) -> Source[T]:
    """Stream the elements of lists, for a publisher that gets many elements at a time: the rows of
    a query, the lines of a block.

    `batches` is a function that yields lists or tuples, or an async iterable, an iterable or a
    memory channel of them. It is pulled when there is demand, one list at a time. If a list is
    longer than the demand, the rest waits, and the next list is pulled after it. An element costs
    less than one that is yielded by itself: those that the demand permits go on with one call.

    >>> await collect(from_batches([[1, 2], [], [3]]))
    [1, 2, 3]

    Raises UsageError for a publisher, or a pipe, of lists:
    use ``flat_map(lambda batch: batch)`` there.
    """
    source = as_source(batches)
    # These two pull an iterator, and leave the rest of a list in it.
    # The list of a publisher would need a buffer.
    if not isinstance(source, PulledSource):
        raise UsageError(
            f"from_batches() was given {source!r}, which it does not pull by itself; give a "
            "function that yields lists, or write source.flat_map(lambda batch: batch)"
        )
    return source.wrapped(BatchIterator)


def from_channel(channel: "trio.MemoryReceiveChannel[T]") -> Source[T]:
    """Stream a trio memory channel. Each subscriber receives through a clone: they compete for
    elements, and your end stays open.
    """
    if not isinstance(channel, trio.MemoryReceiveChannel):
        raise UsageError(
            f"from_channel() was given {shown(channel)}; give the receiving end of "
            "trio.open_memory_channel()"
        )
    # The pump closes the clone, and the caller's end stays open.
    return IteratorSource(lambda: ChannelIterator(channel.clone()), label="memory channel")


def from_publisher(publisher: Publisher[T]) -> Source[T]:
    """Stream a foreign `Publisher`. If it breaks a rule, the stream ends with a `RuleViolation`."""
    if not has_methods_of(publisher, Publisher):
        raise UsageError(
            f"from_publisher() was given {shown(publisher)}, which is not an object with a "
            "subscribe(); as_source() takes other types, too"
        )
    return _PublisherSource(publisher)


def interval(seconds: float, *, delay: float | None = None) -> Source[int]:
    """Stream 0, 1, 2, … with `seconds` between them,
    the first after `delay` (by default also `seconds`).

    A tick without demand is left out, and not signalled later.
    The element is the number of the tick.
    """
    check_seconds(seconds, "the interval")
    first = seconds if delay is None else check_seconds(delay, "the delay", zero=True)
    return IteratorSource(partial(_ticks, seconds, first), label=f"interval({seconds:g})")


def timer(delay: float) -> Source[int]:
    """Stream one 0, `delay` seconds after it was requested, and complete."""
    check_seconds(delay, "the delay", zero=True)
    return IteratorSource(partial(_tick_once, delay), label=f"timer({delay:g})")


def empty() -> Source[Any]:
    """Stream nothing and complete at once."""
    return _EndedSource(None)


def failed(error: Exception) -> Source[Any]:
    """Fail at once with `error`."""
    if not isinstance(error, Exception):
        # Not a BaseException: a KeyboardInterrupt in on_error would end no program.
        raise UsageError(
            f"failed() was given {shown(error)}; give it the exception that subscribers shall get"
        )
    return _EndedSource(error)


def single(element: T) -> Source[T]:
    """Stream one element and complete with it."""
    if element is None:
        raise UsageError(
            "single(None): None is never an element (rule 2.13). For a stream of nothing, use "
            "empty()"
        )
    return _SingleSource(element)


class _PublisherSource(Source[T]):
    __slots__ = ("_publisher",)

    def __init__(self, publisher: Publisher[T]) -> None:
        self._publisher = publisher

    def attach(self, subscriber: Subscriber[T], scope: Scope) -> None:
        scope.begun += 1  # its tasks belong to another scope
        PublisherGuard.insert_between(
            self._publisher, subscriber, scope.on_violation, max_hold_up=scope.max_hold_up
        )

    def __repr__(self) -> str:
        return f"<source from {self._publisher!r}>"


class _EndedSource(Source[Any]):
    __slots__ = ("_error",)

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        subscriber.on_subscribe(EndedSubscription())
        if self._error is None:
            subscriber.on_complete()
        else:
            subscriber.on_error(self._error)

    def __repr__(self) -> str:
        return "<source empty>" if self._error is None else f"<source failed with {self._error!r}>"


class _SingleSource(Source[T]):
    __slots__ = ("_element",)

    def __init__(self, element: T) -> None:
        self._element = element

    def attach(self, subscriber: Subscriber[T], scope: Scope) -> None:
        subscriber.on_subscribe(_SingleSubscription(self._element, subscriber))

    def __repr__(self) -> str:
        return "<source single>"


class _SingleSubscription(Subscription, Generic[T]):
    """One element, signalled inside the first `request` (rule 3.10 permits that), so
    that no task is needed.
    """

    __slots__ = ("_element", "_is_requested", "_subscriber")

    def __init__(self, element: T, subscriber: Subscriber[T]) -> None:
        self._element = element
        self._subscriber: Subscriber[T] | None = subscriber
        self._is_requested = False

    def request(self, n: int, /) -> None:
        subscriber = self._subscriber
        if self._is_requested or subscriber is None:
            return  # rules 3.3, 3.6: a request inside on_next has nothing left to do
        self._is_requested = True
        element = self._element
        # The subscriber may keep this subscription, and that must not keep the element.
        del self._element
        subscriber.on_next(element)
        if self._subscriber is not None:  # not cancelled inside on_next
            self._subscriber = None
            subscriber.on_complete()

    def cancel(self, /) -> None:
        self._subscriber = None


class _OnceSource(PulledSource[T]):
    """An iterator that exists already:
    the first subscriber gets it, each later one is refused (rule 1.9).

    The first subscriber gets it when it subscribes, not with its first request. Otherwise a second
    subscriber that cancels would close the generator of the first one. When its stream has ended,
    another source of the same iterator reads on, unless it is a generator.
    """

    __slots__ = ("_is_async", "_is_generator", "_iterator", "_label", "_wraps")

    def __init__(
        self,
        iterator: Iterator[Any] | AsyncIterator[Any],
        *,
        is_async: bool,
        wraps: tuple[Wrap, ...] = (),
    ) -> None:
        """Each of `wraps` makes the iterator of the stream out of the one before it, which the
        first has from the given iterator.
        """
        self._iterator: Any = iterator  # None after the first subscribe
        self._is_async = is_async  # an object may be both kinds of iterator
        self._is_generator = isinstance(iterator, AsyncGenerator | Generator)
        self._label = name_of(iterator)
        self._wraps = wraps

    def wrapped(self, wrap: Wrap) -> PulledSource[Any]:
        return _OnceSource(self._iterator, is_async=self._is_async, wraps=(*self._wraps, wrap))

    def attach(self, subscriber: Subscriber[T], scope: Scope) -> None:
        # Forgotten here: the source may live longer than the stream,
        # and must not keep the generator's frame.
        iterator, self._iterator = self._iterator, None
        try:
            if iterator is None:
                raise already_subscribed(self._label, is_closed_at_end=self._is_generator)
            claim = take_lease(iterator, self._label, is_closed_at_end=self._is_generator)
        except AlreadySubscribed as refusal:
            failed(refusal).attach(subscriber, scope)
            return
        if self._is_async:
            # An object that is its own iterator, such as an open socket, belongs to the program
            # that opened it. A generator is closed.
            given, borrowed = self._is_generator, not self._is_generator
            opens = self._opened(partial(aiter, iterator))
            pump = Pump(
                opens,
                subscriber,
                scope,
                label=self._label,
                given=given,
                borrowed=borrowed,
                claim=claim,
            )
        else:
            pump = Pump(
                self._opened(partial(_walk, iterator)),
                subscriber,
                scope,
                label=self._label,
                claim=claim,
            )
        subscriber.on_subscribe(pump)

    def _opened(self, opens: Callable[[], AsyncIterator[Any]]) -> Callable[[], AsyncIterator[Any]]:
        for wrap in self._wraps:
            opens = partial(wrap, opens, self._label)
        return opens

    def __repr__(self) -> str:
        return f"<source {self._label}>"


async def _walk(iterable: Iterable[T], _claim: IteratorLease | None = None) -> AsyncIterator[T]:
    # `_claim` is only kept, for as long as this generator exists.
    # Never waits. The pump's pacer checkpoints, so an endless iterable cannot starve other tasks.
    iterator = iter(iterable)
    try:
        for element in iterator:
            yield element
    finally:
        # A plain generator: close it now, and not when it is collected.
        if isinstance(iterator, Generator):
            iterator.close()


def _length(collection: Collection[object]) -> int:
    try:
        return len(collection)
    except OverflowError:
        # more than sys.maxsize elements, such as a large range: its end will never be reached.
        return UNBOUNDED


def _call(function: Callable[..., Any], args: tuple[object, ...]) -> AsyncIterator[Any]:
    made = function(*args)
    if isinstance(made, AsyncIterable):
        # Clones of a channel compete for its elements on purpose: see from_channel().
        if isinstance(made, AsyncIterator) and not isinstance(made, trio.MemoryReceiveChannel):
            take_lease(made, name_of(function), is_closed_at_end=True)
        return aiter(made)
    if isinstance(made, Iterable):
        is_iterator, is_generator = isinstance(made, Iterator), isinstance(made, Generator)
        return _walk(
            made,
            take_lease(made, name_of(function), is_closed_at_end=is_generator)
            if is_iterator
            else None,
        )
    if inspect.iscoroutine(made):
        made.close()  # else Python warns that it was never awaited, which is not the mistake
    raise UsageError(
        f"{name_of(function)} returned {type(made).__name__!r}; to be streamed it must return an "
        "iterable or an async iterable"
    )


async def _ticks(seconds: float, delay: float) -> AsyncIterator[int]:
    # Each tick is computed from the start.
    # To add up intervals would add up their rounding errors, and drift.
    start = trio.current_time() + delay
    tick = 0
    while True:
        await trio.sleep_until(start + tick * seconds)
        yield tick  # suspended here until there is demand; ticks that pass meanwhile are left out
        # A millionth of the interval early:
        # a request exactly on time must not miss its tick by a rounding error.
        tick = max(tick + 1, ceil((trio.current_time() - start) / seconds - 1e-6))


async def _tick_once(delay: float) -> AsyncIterator[int]:
    await trio.sleep(delay)
    yield 0
