"""Operators that select elements:
`filter`, `take`, `skip`, `take_while`, `first`, `distinct_until_changed`.
"""

from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any, Final, TypeVar, overload

from penstock.api import UNBOUNDED, Subscriber, Subscription
from penstock.core import check_count
from penstock.streams._source import Operator
from penstock.streams.ops._operator import SameTypeOperator
from penstock.streams.ops._stage import Stage, StageOperator
from penstock.streams.ops._step import END, SKIP, Last, Step, checked_element, step_operator

A = TypeVar("A")

_NO_KEY: Final = object()


def filter(  # noqa: A001  # the usual name
    predicate: Callable[[A], object] | Callable[[A], Awaitable[object]], /
) -> Operator[A, A]:
    """Pass on the elements for which ``predicate(element)`` is true.

    Upstream demand: 1 per downstream demand, and 1 more for each element left out. Buffer: none; up
    to 16 with an async function.
    If the function raises, the stream ends with that error.
    Completion, errors and cancellation pass straight through.
    """
    return step_operator("filter", predicate, lambda: _FilterStep(predicate), _FilterStage)


def take(count: int) -> SameTypeOperator:
    """Pass on the first `count` elements, complete with the last of them, and cancel upstream.

    Upstream demand: 1 per downstream demand, never more than `count` in all. Buffer: none.
    Completes earlier if the source does; ``take(0)`` completes at once.
    Errors and cancellation pass straight through.
    """
    count = check_count(count, "take: count")
    return StageOperator(f"take({count})", lambda downstream, scope: _TakeStage(downstream, count))


def skip(count: int) -> SameTypeOperator:
    """Leave out the first `count` elements and pass on the rest.

    Upstream demand: 1 per downstream demand, and `count` more with the first. Buffer: none.
    Completion, errors and cancellation pass straight through.
    """
    count = check_count(count, "skip: count")
    return StageOperator(f"skip({count})", lambda downstream, scope: _SkipStage(downstream, count))


def take_while(
    predicate: Callable[[A], object] | Callable[[A], Awaitable[object]], /
) -> Operator[A, A]:
    """Pass on elements up to the first one for which ``predicate(element)`` is false. Leave that
    one out, complete, and cancel upstream.

    Upstream demand: 1 per downstream demand. Buffer: none; up to 16 with an async function.
    If the function raises, the stream ends with that error.
    Completion, errors and cancellation pass straight through.
    """
    return step_operator("take_while", predicate, lambda: _TakeWhileStep(predicate))


@overload
def first(predicate: None = None, /) -> SameTypeOperator: ...
@overload
def first(
    predicate: Callable[[A], object] | Callable[[A], Awaitable[object]], /
) -> Operator[A, A]: ...
def first(predicate: Callable[[Any], Any] | None = None, /) -> Operator[Any, Any]:
    """Pass on the first element (for which ``predicate(element)`` is true), complete with it,
    and cancel upstream.

    If the source ends without such an element, the stream completes without one; the sink
    `penstock.first` then raises `NoElement`. Upstream demand: 1 per downstream demand, and 1 more
    for each element left out. Buffer: none; up to 16 with an async function.
    If the function raises, the stream ends with that error.
    Errors and cancellation pass straight through.
    """
    if predicate is None:
        return take(1)
    return step_operator("first", predicate, lambda: _FirstStep(predicate))


@overload
def distinct_until_changed(key: None = None, /) -> SameTypeOperator: ...
@overload
def distinct_until_changed(
    key: Callable[[A], object] | Callable[[A], Awaitable[object]], /
) -> Operator[A, A]: ...
def distinct_until_changed(key: Callable[[Any], Any] | None = None, /) -> Operator[Any, Any]:
    """Leave out each element that equals the one before it,
    or whose ``key(element)`` equals the key before it.

    Upstream demand: 1 per downstream demand, and 1 more for each element left out.
    Buffer: none but the last key; up to 16 with an async function.
    If the function raises, the stream ends with that error.
    Completion, errors and cancellation pass straight through.
    """
    function = _identity if key is None else key
    return step_operator("distinct_until_changed", function, lambda: _DistinctStep(function))


def _identity(element: A) -> A:
    return element


class _FilterStep(Step):
    __slots__ = ()

    def decide(self, element: Any, result: Any) -> Any:
        return element if result else SKIP


class _TakeWhileStep(Step):
    __slots__ = ()

    def decide(self, element: Any, result: Any) -> Any:
        return element if result else END


class _FirstStep(Step):
    __slots__ = ()

    def decide(self, element: Any, result: Any) -> Any:
        return Last(element) if result else SKIP


class _DistinctStep(Step):
    __slots__ = ("_last",)

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._last: Any = _NO_KEY

    def decide(self, element: Any, result: Any) -> Any:
        if self._last is not _NO_KEY and result == self._last:
            return SKIP
        self._last = result
        return element


class _FilterStage(Stage[A, A]):
    """`filter` with a plain function.
    It has its own stage to save the two calls of a step for each element.
    """

    __slots__ = ("_label", "_predicate")

    def __init__(
        self, downstream: Subscriber[A], predicate: Callable[[A], object], label: str
    ) -> None:
        super().__init__(downstream)
        self._predicate = predicate
        self._label = label

    def on_next(self, element: A, /) -> None:
        try:
            wanted = self._predicate(element)
            if wanted and type(wanted) is CoroutineType:
                checked_element(wanted, self._label)
        except Exception as error:  # boundary: the user's function
            self._fail(error)
            return
        if wanted:
            self._downstream.on_next(element)
        else:
            self._upstream.request(1)


class _TakeStage(Stage[A, A]):
    __slots__ = ("_outstanding", "_remaining")

    def __init__(self, downstream: Subscriber[A], count: int) -> None:
        super().__init__(downstream)
        self._remaining = count
        self._outstanding = 0

    def on_subscribe(self, subscription: Subscription, /) -> None:
        super().on_subscribe(subscription)
        if not self._remaining:
            self._complete()

    def request(self, n: int, /) -> None:
        # Request only what will be passed on:
        # a source would produce elements beyond `count` in vain.
        wanted = min(n, self._remaining - self._outstanding)
        if wanted > 0:
            self._outstanding += wanted
            self._upstream.request(wanted)

    def on_next(self, element: A, /) -> None:
        self._remaining -= 1
        self._outstanding -= 1
        self._downstream.on_next(element)
        if not self._remaining:
            self._complete()


class _SkipStage(Stage[A, A]):
    __slots__ = ("_has_requested", "_remaining")

    def __init__(self, downstream: Subscriber[A], count: int) -> None:
        super().__init__(downstream)
        self._remaining = count
        self._has_requested = False

    def request(self, n: int, /) -> None:
        if not self._has_requested:
            self._has_requested = True
            n = min(UNBOUNDED, n + self._remaining)
        self._upstream.request(n)

    def on_next(self, element: A, /) -> None:
        if self._remaining:
            self._remaining -= 1
        else:
            self._downstream.on_next(element)
