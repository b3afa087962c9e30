"""Operators that hold elements: `batch`, and `buffer`, `drop` and `latest`, the only operators
that relax demand.

Everywhere else in penstock a source is asked only for elements that a subscriber has requested.
These three request more, each under its own name, so that a reader of a pipe sees where
back-pressure ends.
"""

from collections import deque
from collections.abc import Callable
from types import CoroutineType
from typing import Any, Final, TypeAlias, TypeVar, overload

import trio

from penstock.api import UNBOUNDED, Subscriber, Subscription, UsageError, add_demand
from penstock.core import Scope, check_count, check_seconds, held_bytes
from penstock.reader import DEFAULT_DEMAND
from penstock.streams._source import Operator
from penstock.streams.ops._holding_stage import HoldingStage
from penstock.streams.ops._operator import ListOperator, SameTypeOperator
from penstock.streams.ops._stage import ENDED_UPSTREAM, Stage, StageOperator
from penstock.streams.ops._step import is_async
from penstock.streams.ops._timer import Timer

A = TypeVar("A")

# The second type says nothing more than the first.
# With a union, mypy accepts a lambda inside pipe().
OnDrop: TypeAlias = Callable[[A], object] | Callable[[A], None]

BATCHES_AHEAD: Final = 2
"""How many batches a timed `batch` requests at a time: one fills while another one goes on. It
may have to hold all of them.
"""


def batch(count: int, seconds: float | None = None) -> ListOperator:
    """Pass on lists of `count` elements; the last one may be shorter.

    With `seconds`, a list is passed on at the latest `seconds` after its first element arrived,
    even if it is short, or, without downstream demand at that time, with the next request.

    Upstream demand: `count` per downstream demand; with `seconds` at most 2·`count` at a time.
    Buffer: `count` elements; with `seconds` 2·`count`, because a short list uses up downstream
    demand while elements are under way.
    On completion the rest is passed on as a shorter list, once requested, then completion.
    An error passes at once, and the rest is dropped. A cancel drops it too.
    """
    count = check_count(count, "batch: count", least=1)
    if seconds is None:
        return StageOperator(
            f"batch({count})", lambda downstream, scope: _BatchStage(downstream, scope, count)
        )
    seconds = check_seconds(seconds, "batch(seconds=…)")
    label = f"batch({count}, seconds={seconds:g})"
    return StageOperator(
        label, lambda downstream, scope: _TimedBatchStage(downstream, scope, count, seconds, label)
    )


def buffer(size: int) -> SameTypeOperator:
    """Request up to `size` elements ahead, and hold them until they are requested.
    No element is lost.

    Upstream demand: `size` at once, then 1 per downstream demand. Buffer: `size` elements.
    Completion comes after the held elements. An error passes at once, and held elements are
    dropped. A cancel drops them too.
    """
    size = check_count(size, "buffer: size", least=1)
    return StageOperator(
        f"buffer({size})",
        lambda downstream, scope: _BufferStage(downstream, scope, size),
        prefetch=DEFAULT_DEMAND,
    )


@overload
def drop(*, on_drop: None = None) -> SameTypeOperator: ...
@overload
def drop(*, on_drop: OnDrop[A]) -> Operator[A, A]: ...
def drop(*, on_drop: Callable[[Any], object] | None = None) -> Operator[Any, Any]:
    """Take every element of upstream at its own pace, and drop each one that is not requested
    when it arrives.

    ``on_drop(element)``, a plain function, is called with each dropped element. If it raises, the
    stream ends with that error.
    Upstream demand: unbounded, at once. Buffer: none.
    Completion, errors and cancellation pass straight through.
    `subscribe` without `demand` requests an element when its reader asks for one,
    so each element came after that.
    """
    on_drop = _check_on_drop(on_drop, "drop")
    return StageOperator(
        "drop()", lambda downstream, scope: _DropStage(downstream, on_drop), prefetch=0
    )


@overload
def latest(*, on_drop: None = None) -> SameTypeOperator: ...
@overload
def latest(*, on_drop: OnDrop[A]) -> Operator[A, A]: ...
def latest(*, on_drop: Callable[[Any], object] | None = None) -> Operator[Any, Any]:
    """Take every element of upstream at its own pace,
    and keep only the newest one until it is requested.

    ``on_drop(element)``, a plain function, is called with each element that a newer one replaces.
    If it raises, the stream ends with that error.
    Upstream demand: unbounded, at once. Buffer: 1 element.
    Completion comes after the held element. An error passes at once, and that element is dropped.
    A cancel drops it too.
    `subscribe` without `demand` requests an element when its reader asks for one, so each element
    is the newest at that time.
    """
    on_drop = _check_on_drop(on_drop, "latest")
    return StageOperator(
        "latest()", lambda downstream, scope: _LatestStage(downstream, on_drop), prefetch=0
    )


def _check_on_drop(on_drop: Callable[[A], object] | None, name: str) -> Callable[[A], object]:
    if on_drop is None:
        return _ignore_dropped
    if not callable(on_drop) or is_async(on_drop):  # type: ignore[redundant-expr]  # users give anything
        raise UsageError(
            f"{name}(on_drop={on_drop!r}): give a plain function of one element. "
            "It cannot be async: dropped elements would have to wait for it, and nothing would "
            "bound how many wait"
        )
    return on_drop


def _ignore_dropped(element: object) -> None:
    pass


class _BatchStage(Stage[A, list[A]]):
    """`batch` without a time. It requests `count` times the demand,
    so a full list always has demand and nothing waits.
    """

    __slots__ = ("_bytes", "_count", "_partial")

    def __init__(self, downstream: Subscriber[list[A]], scope: Scope, count: int) -> None:
        super().__init__(downstream)
        self._bytes = held_bytes(scope.memory)
        self._count = count
        self._partial: list[A] = []

    def request(self, n: int, /) -> None:
        self._upstream.request(min(UNBOUNDED, n * self._count))  # demand saturates (rule 3.17)

    def on_next(self, element: A, /) -> None:
        partial = self._partial
        partial.append(element)
        if self._bytes is not None:
            self._bytes.add(element)
        if len(partial) == self._count:
            self._partial = []
            if self._bytes is not None:
                self._bytes.clear()
            self._downstream.on_next(partial)

    def on_complete(self, /) -> None:
        if self._partial:
            rest, self._partial = self._partial, []
            if self._bytes is not None:
                self._bytes.clear()
            # Before the signal: the subscriber may cancel inside it.
            self._upstream = ENDED_UPSTREAM
            self._downstream.on_next(rest)
        super().on_complete()

    @property
    def _held_count(self) -> int:
        return len(self._partial)

    def _release(self) -> None:
        self._partial = []
        if self._bytes is not None:
            self._bytes.clear()


class _TimedBatchStage(HoldingStage[A, list[A]]):
    """`batch` with a time. A short list uses up a demand for `count` elements; those still under
    way are held until requested.
    """

    __slots__ = (
        "_bytes",
        "_count",
        "_deadline",
        "_full_batches",
        "_outstanding",
        "_partial",
        "_seconds",
        "_timer",
    )

    def __init__(
        self, downstream: Subscriber[list[A]], scope: Scope, count: int, seconds: float, label: str
    ) -> None:
        super().__init__(downstream)
        self._bytes = held_bytes(scope.memory)
        self._count = count
        self._seconds = seconds
        # Bounded: with _partial at most BATCHES_AHEAD * _count elements,
        # because no more are ever requested.
        self._full_batches: deque[list[A]] = deque()
        self._partial: list[A] = []
        self._outstanding = 0  # requested from upstream and not yet arrived
        self._deadline = 0.0  # when _partial is due; without a meaning while _partial is empty
        self._timer = Timer(scope, label, on_deadline=self._pass_on, fail=self._fail)

    def on_next(self, element: A, /) -> None:
        if self._is_over:
            return
        self._outstanding -= 1
        self._partial.append(element)
        if len(self._partial) == 1 < self._count:
            self._deadline = self._timer.set(self._seconds)
        if self._bytes is not None:
            self._bytes.add(element)
        if len(self._partial) == self._count:
            self._full_batches.append(self._partial)
            self._partial = []
            self._pass_on()

    def _has_held(self) -> bool:
        return bool(self._full_batches or self._partial)

    def _next_due(self) -> list[A] | None:
        due = None
        if self._full_batches:
            due = self._full_batches.popleft()
        elif self._partial and (self._upstream_completed or trio.current_time() >= self._deadline):
            due, self._partial = self._partial, []
        if due and self._bytes is not None:
            self._bytes.take(due)
        return due

    def _request_upstream(self) -> None:
        held = len(self._full_batches) * self._count + len(self._partial)
        missing = min(self._demand, BATCHES_AHEAD) * self._count - self._outstanding - held
        if missing > 0:
            self._outstanding += missing
            self._upstream.request(missing)

    @property
    def _part_label(self) -> str:
        return "batch"

    @property
    def _held_count(self) -> int:
        return len(self._partial) + sum(map(len, self._full_batches))

    def _release(self) -> None:
        self._full_batches.clear()
        self._partial = []
        if self._bytes is not None:
            self._bytes.clear()
        self._timer.stop()


class _BufferStage(HoldingStage[A, A]):
    """Upstream demand is always `size` more than downstream demand,
    so at most `size` elements are held.
    """

    __slots__ = ("_bytes", "_held", "_unrequested")

    def __init__(self, downstream: Subscriber[A], scope: Scope, size: int) -> None:
        super().__init__(downstream)
        self._bytes = held_bytes(scope.memory)
        self._unrequested = size  # to be requested from upstream
        self._held: deque[A] = deque()  # bounded by size

    def on_subscribe(self, subscription: Subscription, /) -> None:
        super().on_subscribe(subscription)
        # After on_subscribe of downstream, so that its first request goes up with `size` in one
        # call.
        self._request_upstream()

    def request(self, n: int, /) -> None:
        self._unrequested = add_demand(self._unrequested, n)
        super().request(n)

    def on_next(self, element: A, /) -> None:
        # With demand left, and outside the loop of _pass_on, no element is held:
        # this one goes on without the detour.
        if self._demand and not self._is_passing_on:
            self._demand -= 1
            self._downstream.on_next(element)
        elif not self._is_over:
            self._held.append(element)
            if self._bytes is not None:
                self._bytes.add(element)

    def _has_held(self) -> bool:
        return bool(self._held)

    def _next_due(self) -> A | None:
        if not self._held:
            return None
        element = self._held.popleft()
        if self._bytes is not None:
            self._bytes.take((element,))
        return element

    def _request_upstream(self) -> None:
        unrequested, self._unrequested = self._unrequested, 0
        if unrequested:
            self._upstream.request(unrequested)

    @property
    def _held_count(self) -> int:
        return len(self._held)

    def _release(self) -> None:
        self._held.clear()
        if self._bytes is not None:
            self._bytes.clear()


class _DropStage(Stage[A, A]):
    __slots__ = ("_demand", "_on_drop")

    def __init__(self, downstream: Subscriber[A], on_drop: Callable[[A], object]) -> None:
        super().__init__(downstream)
        self._on_drop = on_drop
        self._demand = 0

    def on_subscribe(self, subscription: Subscription, /) -> None:
        super().on_subscribe(subscription)
        self._upstream.request(UNBOUNDED)

    def request(self, n: int, /) -> None:
        self._demand = add_demand(self._demand, n)

    def on_next(self, element: A, /) -> None:
        if self._demand:
            self._demand -= 1
            self._downstream.on_next(element)
        elif not self._is_over:
            _report_dropped(self._on_drop, element, self._fail)


class _LatestStage(HoldingStage[A, A]):
    __slots__ = ("_newest", "_on_drop")

    def __init__(self, downstream: Subscriber[A], on_drop: Callable[[A], object]) -> None:
        super().__init__(downstream)
        self._on_drop = on_drop
        self._newest: A | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        super().on_subscribe(subscription)
        self._upstream.request(UNBOUNDED)

    def on_next(self, element: A, /) -> None:
        if self._is_over:
            return
        # Before on_drop, which may cancel the stream: _release then clears it.
        replaced, self._newest = self._newest, element
        if replaced is not None:
            _report_dropped(self._on_drop, replaced, self._fail)
        self._pass_on()

    def _has_held(self) -> bool:
        return self._newest is not None

    def _next_due(self) -> A | None:
        newest, self._newest = self._newest, None
        return newest

    def _request_upstream(self) -> None:
        """Do nothing: `on_subscribe` has requested everything."""

    @property
    def _held_count(self) -> int:
        return int(self._newest is not None)

    def _release(self) -> None:
        self._newest = None


def _report_dropped(
    on_drop: Callable[[Any], object], element: object, fail: Callable[[BaseException], None]
) -> None:
    try:
        answer = on_drop(element)
    except Exception as error:  # boundary: the user's function
        fail(error)
        return
    if type(answer) is CoroutineType:
        answer.close()
        fail(
            UsageError(
                "on_drop returned a coroutine, so it is async, and dropped elements cannot wait "
                "for it. Give a plain function"
            )
        )
