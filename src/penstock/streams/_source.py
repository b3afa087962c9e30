"""A source is the blueprint of a stream: immutable, and started anew for each subscriber.
Its methods are the operators.

Rules of this file:

* `attach` is a plain call that never raises.
  It gives the subscriber `on_subscribe` before it returns.
* Neighbours inside a pipe trust each other: demand is a positive int, no element is None, and
  **after `cancel()` has returned, or after a terminal signal, no signal follows**. Where a pipe
  meets foreign code, a guard stands in between: `SubscriberGuard` before a user's subscriber,
  `PublisherGuard` after a foreign publisher.
* A method of an operator has the parameters of the function with its name in
  `penstock.streams.ops`, and calls it. Its docstring is the first sentence of that function's
  docstring. A test compares both.
* Every source has the operators as methods, and an operator is made of a `Source`. So this file and
  `ops` import one another. The import here is the last line.
"""

import inspect
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Generic, Protocol, TypeAlias, TypeGuard, TypeVar, overload

import trio

from penstock.api import MakesTaps, Publisher, Subscriber, UsageError, shown
from penstock.core import (
    CLEANUP_SECONDS,
    Report,
    Scope,
    SubscriberGuard,
    check_cleanup_timeout,
    check_hook,
    log_violation,
    name_of,
)
from penstock.reader import DEFAULT_DEMAND
from penstock.streams._slow_subscribers import SlowPolicy, hold_up_bound_of

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
A_contra = TypeVar("A_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)
K = TypeVar("K")
K_co = TypeVar("K_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)


class Operator(Protocol[A_contra, B_co]):
    """The type of an operator: any function from a source of A to a source of B. `Source.pipe`
    and `penstock.pipe` take them.
    """

    # A protocol, so that a plain function of another package is an operator without inheriting
    # anything.
    @abstractmethod  # an operator class derives from OperatorBase, which defines it
    def __call__(self, source: "Source[A_contra]", /) -> "Source[B_co]":
        """Return the source that has the elements of `source` after this operator. Nothing runs
        before it is subscribed to.
        """


class Source(ABC, Generic[T_co]):
    """The blueprint of a stream. Give it to `subscribe` or a sink,
    or bind it to a nursery with `publisher`.

    Each operator of `penstock.streams.ops` is a method with the same parameters. A method returns a
    new source and runs nothing. The demand, buffer and ends of an operator are documented there.

    >>> await collect(from_iterable([1, 2, 3, 4]).filter(lambda n: n > 1).map(str).take(2))
    ['2', '3']

    `pipe` applies operators that are not methods. Subclasses define `attach`.
    """

    # subclasses also have slots: a program may make a source for each request.
    __slots__ = ("__weakref__",)

    @abstractmethod
    def attach(self, subscriber: Subscriber[T_co], scope: Scope) -> None:
        """Begin a stream for `subscriber`. Its tasks belong to `scope`.

        For authors of sources and operators; the rules of this file bind both sides.
        """

    @property
    def prefetch(self) -> int:
        """How many elements `subscribe` requests before its reader asks for one, if the program
        gives no `demand`: 256 for most sources.

        0 means that each element is requested when the reader asks for it, so that the reader gets
        no element from an old buffer.
        `latest` and `drop` return 0. A source of your own may override it.
        """
        return DEFAULT_DEMAND

    def publisher(
        self,
        nursery: trio.Nursery,
        *,
        on_violation: Report = log_violation,
        cleanup_timeout: float = CLEANUP_SECONDS,
    ) -> Publisher[T_co]:
        """Bind this blueprint to `nursery` and return a plain `Publisher` with one method,
        `subscribe`.

        Its tasks run in `nursery`. If the nursery is cancelled, every stream
        that has tasks there ends with `on_error`.
        `on_violation` is called when a subscriber raises in a signal (rule 2.13);
        by default that is logged.
        """
        # Checked here, where the program can see its mistake.
        # The first task starts only with the first request.
        if not isinstance(nursery, trio.Nursery):
            raise UsageError(
                f"publisher() was given {shown(nursery)}; give the nursery that shall run this "
                "stream's tasks"
            )
        return BoundPublisher(
            self, nursery, check_hook(on_violation), check_cleanup_timeout(cleanup_timeout)
        )

    # --- operators of any origin

    # Six operators keep their types. mypy infers no more from one signature;
    # a longer chain can be cut in two.
    @overload
    def pipe(self, /) -> "Source[T_co]": ...
    @overload
    def pipe(self, a: Operator[T_co, B], /) -> "Source[B]": ...
    @overload
    def pipe(self, a: Operator[T_co, B], b: Operator[B, C], /) -> "Source[C]": ...
    @overload
    def pipe(
        self, a: Operator[T_co, B], b: Operator[B, C], c: Operator[C, D], /
    ) -> "Source[D]": ...
    @overload
    def pipe(
        self, a: Operator[T_co, B], b: Operator[B, C], c: Operator[C, D], d: Operator[D, E], /
    ) -> "Source[E]": ...
    @overload
    def pipe(
        self,
        a: Operator[T_co, B],
        b: Operator[B, C],
        c: Operator[C, D],
        d: Operator[D, E],
        e: Operator[E, F],
        /,
    ) -> "Source[F]": ...
    @overload
    def pipe(
        self,
        a: Operator[T_co, B],
        b: Operator[B, C],
        c: Operator[C, D],
        d: Operator[D, E],
        e: Operator[E, F],
        f: Operator[F, G],
        /,
        *more: Operator[Any, Any],
    ) -> "Source[Any]": ...
    def pipe(self, /, *operators: Operator[Any, Any]) -> "Source[Any]":
        """Return the source that results if `operators` are applied to this source,
        the first operator first.

        ``source.pipe(a, b)`` is ``penstock.pipe(source, a, b)``. An operator is any function from a
        source to a source, so operators of other packages and your own functions stand in a chain
        of methods.

        >>> await collect(from_iterable([1, 2, 3]).pipe(lambda source: source.zip(source)).map(sum))
        [2, 4, 6]

        Raises UsageError if one of `operators` is not an operator.
        """
        piped: Source[Any] = self
        for operator in operators:
            piped = _apply(operator, piped)
        return piped

    # --- elements left out

    # The TypeGuard comes first: a checker takes the first overload that fits,
    # and only this one narrows the type.
    @overload
    def filter(self, predicate: Callable[[T_co], TypeGuard[B]], /) -> "Source[B]": ...
    @overload
    def filter(
        self, predicate: Callable[[T_co], object] | Callable[[T_co], Awaitable[object]], /
    ) -> "Source[T_co]": ...
    def filter(self, predicate: Callable[[T_co], object], /) -> "Source[Any]":
        """Pass on the elements for which ``predicate(element)`` is true."""
        return self.pipe(ops.filter(predicate))

    def take(self, count: int) -> "Source[T_co]":
        """Pass on the first `count` elements, complete with the last of them,
        and cancel upstream.
        """
        return self.pipe(ops.take(count))

    def skip(self, count: int) -> "Source[T_co]":
        """Leave out the first `count` elements and pass on the rest."""
        return self.pipe(ops.skip(count))

    def take_while(
        self, predicate: Callable[[T_co], object] | Callable[[T_co], Awaitable[object]], /
    ) -> "Source[T_co]":
        """Pass on elements up to the first one for which ``predicate(element)`` is false."""
        return self.pipe(ops.take_while(predicate))

    def first(
        self,
        predicate: Callable[[T_co], object] | Callable[[T_co], Awaitable[object]] | None = None,
        /,
    ) -> "Source[T_co]":
        """Pass on the first element (for which ``predicate(element)`` is true),
        complete with it, and cancel upstream.
        """
        return self.pipe(ops.first(predicate))

    def distinct_until_changed(
        self, key: Callable[[T_co], object] | Callable[[T_co], Awaitable[object]] | None = None, /
    ) -> "Source[T_co]":
        """Leave out each element that equals the one before it,
        or whose ``key(element)`` equals the key before it.
        """
        return self.pipe(ops.distinct_until_changed(key))

    def take_until(self, stop: "Streamable[object]", /) -> "Source[T_co]":
        """Pass on the elements of the source until `stop` gives its first element."""
        return self.pipe(ops.take_until(stop))

    # --- elements changed

    # The async overload comes first: a coroutine function is also a function
    # that returns something.
    @overload
    def map(self, function: Callable[[T_co], Awaitable[B]], /) -> "Source[B]": ...
    @overload
    def map(self, function: Callable[[T_co], B], /) -> "Source[B]": ...
    def map(self, function: Callable[[T_co], Any], /) -> "Source[Any]":
        """Pass on ``function(element)`` for each element."""
        return self.pipe(ops.map(function))

    # The accumulator B is found from `initial` and the function together,
    # in the async overload first.
    @overload
    def scan(self, function: Callable[[B, T_co], Awaitable[B]], initial: B) -> "Source[B]": ...
    @overload
    def scan(self, function: Callable[[B, T_co], B], initial: B) -> "Source[B]": ...
    def scan(self, function: Callable[[Any, T_co], Any], initial: Any) -> "Source[Any]":
        """Pass on the running result ``total = function(total, element)`` of each element."""
        return self.pipe(ops.scan(function, initial))

    def tap(
        self, function: Callable[[T_co], object] | Callable[[T_co], Awaitable[object]], /
    ) -> "Source[T_co]":
        """Call `function` with each element, for its effect, and pass the element on."""
        return self.pipe(ops.tap(function))

    def record(self, recorder: MakesTaps, name: str) -> "Source[T_co]":
        """Record the signals between this place and the next one, under `name`: see
        `penstock.recording.Recorder`.
        """
        return self.pipe(ops.record(recorder, name))

    def pairwise(self) -> "Source[tuple[T_co, T_co]]":
        """Pass on each element together with the one before it,
        as a tuple ``(before, element)``.
        """
        return self.pipe(ops.pairwise())

    # The overloads are those of scan. `initial` is required: without it an empty source would have
    # no result.
    @overload
    def reduce(self, function: Callable[[B, T_co], Awaitable[B]], initial: B) -> "Source[B]": ...
    @overload
    def reduce(self, function: Callable[[B, T_co], B], initial: B) -> "Source[B]": ...
    def reduce(self, function: Callable[[Any, T_co], Any], initial: Any) -> "Source[Any]":
        """Pass on one element: the result of ``total = function(total, element)`` over the whole
        stream.
        """
        return self.pipe(ops.reduce(function, initial))

    # --- elements held

    def batch(self, count: int, seconds: float | None = None) -> "Source[list[T_co]]":
        """Pass on lists of `count` elements; the last one may be shorter."""
        # A batch is a new list: the subscriber may keep it.
        return self.pipe(ops.batch(count, seconds))

    def buffer(self, size: int) -> "Source[T_co]":
        """Request up to `size` elements ahead, and hold them until they are requested."""
        return self.pipe(ops.buffer(size))

    def drop(self, *, on_drop: Callable[[T_co], object] | None = None) -> "Source[T_co]":
        """Take every element of upstream at its own pace, and drop each one
        that is not requested when it arrives.
        """
        return self.pipe(ops.drop(on_drop=on_drop))

    def latest(self, *, on_drop: Callable[[T_co], object] | None = None) -> "Source[T_co]":
        """Take every element of upstream at its own pace,
        and keep only the newest one until it is requested.
        """
        # `on_drop` is called for each element that is replaced by a newer one;
        # without it the loss is silent.
        return self.pipe(ops.latest(on_drop=on_drop))

    # --- several sources

    # Up to four sources keep their own types.
    # More sources share one type, because Python has no union of any length.
    @overload
    def merge(self, b: "Streamable[B]", c: "Streamable[C]", /) -> "Source[T_co | B | C]": ...
    @overload
    def merge(
        self, b: "Streamable[B]", c: "Streamable[C]", d: "Streamable[D]", /
    ) -> "Source[T_co | B | C | D]": ...
    @overload
    def merge(self, *others: "Streamable[B]") -> "Source[T_co | B]": ...
    def merge(self, *others: "Streamable[Any]") -> "Source[Any]":
        """Pass on the elements of the source and of all `others` as they arrive."""
        return self.pipe(ops.merge(*others))

    # Up to four sources have a tuple with a type for each place. More have a tuple of Any.
    @overload
    def zip(self, b: "Streamable[B]", /) -> "Source[tuple[T_co, B]]": ...
    @overload
    def zip(self, b: "Streamable[B]", c: "Streamable[C]", /) -> "Source[tuple[T_co, B, C]]": ...
    @overload
    def zip(
        self, b: "Streamable[B]", c: "Streamable[C]", d: "Streamable[D]", /
    ) -> "Source[tuple[T_co, B, C, D]]": ...
    @overload
    def zip(self, *others: "Streamable[Any]") -> "Source[tuple[Any, ...]]": ...
    def zip(self, *others: "Streamable[Any]") -> "Source[Any]":
        """Pass on tuples: the first element of the source and of each of `others`,
        then the second ones, and so on.
        """
        return self.pipe(ops.zip(*others))

    # As for zip.
    @overload
    def combine_latest(self, b: "Streamable[B]", /) -> "Source[tuple[T_co, B]]": ...
    @overload
    def combine_latest(
        self, b: "Streamable[B]", c: "Streamable[C]", /
    ) -> "Source[tuple[T_co, B, C]]": ...
    @overload
    def combine_latest(
        self, b: "Streamable[B]", c: "Streamable[C]", d: "Streamable[D]", /
    ) -> "Source[tuple[T_co, B, C, D]]": ...
    @overload
    def combine_latest(self, *others: "Streamable[Any]") -> "Source[tuple[Any, ...]]": ...
    def combine_latest(self, *others: "Streamable[Any]") -> "Source[Any]":
        """Pass on, for each element that arrives,
        a tuple of the latest elements of the source and of all `others`.
        """
        return self.pipe(ops.combine_latest(*others))

    # As for merge.
    @overload
    def concat(self, b: "Streamable[B]", c: "Streamable[C]", /) -> "Source[T_co | B | C]": ...
    @overload
    def concat(
        self, b: "Streamable[B]", c: "Streamable[C]", d: "Streamable[D]", /
    ) -> "Source[T_co | B | C | D]": ...
    @overload
    def concat(self, *others: "Streamable[B]") -> "Source[T_co | B]": ...
    def concat(self, *others: "Streamable[Any]") -> "Source[Any]":
        """Pass on all elements of the source, then those of each of `others`."""
        return self.pipe(ops.concat(*others))

    # The async overload comes first, as for map. The bound on `concurrency` bounds the
    # subscriptions, and with them the buffers.
    @overload
    def flat_map(
        self, function: "Callable[[T_co], Awaitable[Streamable[B]]]", /, *, concurrency: int = 16
    ) -> "Source[B]": ...
    @overload
    def flat_map(
        self, function: "Callable[[T_co], Streamable[B]]", /, *, concurrency: int = 16
    ) -> "Source[B]": ...
    def flat_map(
        self, function: Callable[[T_co], Any], /, *, concurrency: int = 16
    ) -> "Source[Any]":
        """Pass on the elements of the streams that ``function(element)`` returns, at most
        `concurrency` streams at a time.
        """
        return self.pipe(ops.flat_map(function, concurrency=concurrency))

    # As for flat_map, with one subscription at a time.
    @overload
    def switch_map(
        self, function: "Callable[[T_co], Awaitable[Streamable[B]]]", /
    ) -> "Source[B]": ...
    @overload
    def switch_map(self, function: "Callable[[T_co], Streamable[B]]", /) -> "Source[B]": ...
    def switch_map(self, function: Callable[[T_co], Any], /) -> "Source[Any]":
        """Pass on the elements of the stream that ``function(element)`` returns, until the next
        element arrives: then cancel that stream.
        """
        return self.pipe(ops.switch_map(function))

    def window(self, count: int, seconds: float | None = None) -> "Source[Source[T_co]]":
        """Pass on streams of `count` elements each; the last one may be shorter."""
        # The last window may be shorter: the source has ended, or `seconds` have passed.
        return self.pipe(ops.window(count, seconds))

    # As for map: the async overload comes first.
    @overload
    def group_by(
        self,
        key: Callable[[T_co], Awaitable[K]],
        /,
        *,
        max_groups: int = 64,
        evict: bool = False,
        slow: SlowPolicy = SlowPolicy.WAIT,
        buffer: int | None = None,
    ) -> "Source[Group[K, T_co]]": ...
    @overload
    def group_by(
        self,
        key: Callable[[T_co], K],
        /,
        *,
        max_groups: int = 64,
        evict: bool = False,
        slow: SlowPolicy = SlowPolicy.WAIT,
        buffer: int | None = None,
    ) -> "Source[Group[K, T_co]]": ...
    def group_by(
        self,
        key: Callable[[T_co], Any],
        /,
        *,
        max_groups: int = 64,
        evict: bool = False,
        slow: SlowPolicy = SlowPolicy.WAIT,
        buffer: int | None = None,
    ) -> "Source[Any]":
        """Pass on a stream for each different ``key(element)``, with the elements of that key."""
        # `max_groups` and `buffer` together bound what is held.
        return self.pipe(
            ops.group_by(key, max_groups=max_groups, evict=evict, slow=slow, buffer=buffer)
        )

    def share(
        self,
        nursery: trio.Nursery,
        *,
        slow: SlowPolicy = SlowPolicy.WAIT,
        buffer: int | None = None,
        max_hold_up: float | None = None,
        on_violation: Report = log_violation,
    ) -> "Source[T_co]":
        """Subscribe to the source once, for all subscribers of the pipe."""
        # The nursery is given here and not taken from a scope:
        # the shared run outlives each of its subscribers.
        return self.pipe(
            ops.share(
                nursery,
                slow=slow,
                buffer=buffer,
                max_hold_up=max_hold_up,
                on_violation=on_violation,
            )
        )

    def start_with(self, *elements: B) -> "Source[T_co | B]":
        """Pass on `elements`, then the elements of the source."""
        return self.pipe(ops.start_with(*elements))

    # As for zip: the element of this source stands first.
    @overload
    def with_latest_from(self, b: "Streamable[B]", /) -> "Source[tuple[T_co, B]]": ...
    @overload
    def with_latest_from(
        self, b: "Streamable[B]", c: "Streamable[C]", /
    ) -> "Source[tuple[T_co, B, C]]": ...
    @overload
    def with_latest_from(
        self, b: "Streamable[B]", c: "Streamable[C]", d: "Streamable[D]", /
    ) -> "Source[tuple[T_co, B, C, D]]": ...
    @overload
    def with_latest_from(self, *others: "Streamable[Any]") -> "Source[tuple[Any, ...]]": ...
    def with_latest_from(self, *others: "Streamable[Any]") -> "Source[Any]":
        """Pass on, for each element of the source, a tuple of it
        and the latest element of each of `others`.
        """
        return self.pipe(ops.with_latest_from(*others))

    # --- time

    def debounce(self, seconds: float) -> "Source[T_co]":
        """Pass on an element if no newer one follows within `seconds` of asking for it; an
        element that a newer one follows is left out.
        """
        return self.pipe(ops.debounce(seconds))

    def throttle(self, seconds: float) -> "Source[T_co]":
        """Pass on an element at once, then leave out the elements
        that arrive within `seconds` of it.
        """
        return self.pipe(ops.throttle(seconds))

    def timeout(self, seconds: float) -> "Source[T_co]":
        """Fail with `StreamTimeout` and cancel upstream if an element is requested
        and no signal arrives for `seconds`.
        """
        return self.pipe(ops.timeout(seconds))

    def delay(self, seconds: float, *, size: int = DEFAULT_DEMAND) -> "Source[T_co]":
        """Pass on each element `seconds` after it arrived."""
        # `size` bounds what is held: a source is never asked for more than that ahead.
        return self.pipe(ops.delay(seconds, size=size))

    def sample(self, seconds: float) -> "Source[T_co]":
        """Every `seconds` pass on the newest element that arrived since the last time;
        the others are left out.
        """
        return self.pipe(ops.sample(seconds))

    # --- subscribing again

    def retry(
        self,
        attempts: int | None,
        *,
        backoff: float = 0.0,
        factor: float = 2.0,
        max_backoff: float = 30.0,
        jitter: Callable[[], float] | None = random.random,
        when: type[Exception]
        | tuple[type[Exception], ...]
        | Callable[[Exception], object]
        | None = None,
        consecutive: bool = False,
    ) -> "Source[T_co]":
        """After an error subscribe to the source again, up to `attempts` times (None: no limit)."""
        return self.pipe(
            ops.retry(
                attempts,
                backoff=backoff,
                factor=factor,
                max_backoff=max_backoff,
                jitter=jitter,
                when=when,
                consecutive=consecutive,
            )
        )

    def repeat(self, count: int | None, *, pause: float = 0.0) -> "Source[T_co]":
        """Pass on the elements of the source `count` times in all (None: without end)."""
        return self.pipe(ops.repeat(count, pause=pause))

    def on_error_resume(self, source: "Replacement[B]", /) -> "Source[T_co | B]":
        """After an error go on with another source, or with the source
        that ``source(error)`` returns.
        """
        return self.pipe(ops.on_error_resume(source))


def _apply(operator: object, source: Source[Any]) -> Source[Any]:
    """Return ``operator(source)``. Raises UsageError if `operator` is not an operator: mostly it is
    a function of one element, and the error says what to write.
    """
    if not callable(operator):
        raise UsageError(
            f"pipe() was given {shown(operator)}, which is not an operator; {_advice(operator)}"
        )
    try:
        result: object = operator(source)
    except (TypeError, AttributeError) as error:
        # A function of one element fails so when it gets a source.
        error.add_note(f"pipe() calls an operator with a source; {_advice(operator)}")
        raise
    if isinstance(result, Source):
        return result
    if inspect.iscoroutine(result):
        result.close()  # else Python warns that it was never awaited, which is not the mistake
    raise UsageError(
        f"pipe() was given {name_of(operator)}, which is not an operator: it returned "
        f"{shown(result)} and not a source; {_advice(operator)}"
    )


def _advice(operator: object) -> str:
    return f"to apply a function to each element, write map({name_of(operator)})"


class BoundPublisher(Publisher[T_co]):
    """A source and the nursery that runs its streams, as a `Publisher` of the standard."""

    __slots__ = ("__weakref__", "_cleanup_timeout", "_nursery", "_on_violation", "_source")

    def __init__(
        self,
        source: Source[T_co],
        nursery: trio.Nursery,
        on_violation: Report,
        cleanup_timeout: float,
    ) -> None:
        self._source = source
        self._nursery = nursery
        self._on_violation = on_violation
        self._cleanup_timeout = cleanup_timeout

    def subscribe(self, subscriber: Subscriber[T_co], /) -> None:
        # A scope for each subscriber: its failures and its end concern no other one.
        scope = Scope(
            self._nursery,
            on_violation=self._on_violation,
            cleanup_timeout=self._cleanup_timeout,
            max_hold_up=hold_up_bound_of(subscriber),
        )
        SubscriberGuard.insert_between(
            partial(self._source.attach, scope=scope), subscriber, self._on_violation
        )

    def __repr__(self) -> str:
        return f"<publisher of {self._source!r}>"


class Group(Source[T_co], Generic[K_co, T_co]):
    """The stream of the elements of one key, from `group_by`."""

    # Here and not beside the operator: the method `group_by` of a source names this type.
    __slots__ = ()

    @property
    @abstractmethod
    def key(self) -> K_co:
        """The value that the function of `group_by` returned for each element of this group."""


Streamable: TypeAlias = (
    Source[A]
    | Publisher[A]
    | AsyncIterable[A]
    | Iterable[A]
    | Callable[[], AsyncIterable[A]]
    | Callable[[], Iterable[A]]
)
"""The types that `as_source` turns into a source, and that can therefore be subscribed to."""

Replacement: TypeAlias = (
    Streamable[A]
    | Callable[[Exception], Streamable[A]]
    | Callable[[Exception], Awaitable[Streamable[A]]]
)
"""What `on_error_resume` takes: a source, or a function of the error that returns one."""

# The methods of `Source` are the operators, and each operator is made of a `Source`: a circle of
# imports, and the only one that is there when a program runs. It closes here, where every name that
# the operators need is defined.
from penstock.streams import ops  # noqa: E402  # at the top the operators would find no `Source`
