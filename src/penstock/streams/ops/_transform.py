"""Operators that turn elements into others: `map`, `scan`, `tap`, `pairwise`, `reduce`."""

from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any, Final, TypeVar, overload

from penstock.api import UNBOUNDED, Subscriber, UsageError
from penstock.core import Scope
from penstock.reader import DEFAULT_DEMAND
from penstock.streams._source import Operator, Source
from penstock.streams.ops._holding_stage import HoldingStage
from penstock.streams.ops._operator import OperatorBase, PairOperator
from penstock.streams.ops._stage import Stage, StageOperator
from penstock.streams.ops._step import Step, checked_element, step_operator

A = TypeVar("A")
B = TypeVar("B")

REDUCE_RENEWAL: Final = DEFAULT_DEMAND // 2
"""How many elements `reduce` has used when it requests that number again: half, so that the
source works on the other half.
"""


@overload
def map(function: Callable[[A], B] | Callable[[A], Awaitable[B]], /) -> Operator[A, B]: ...  # noqa: A001  # the usual name of this operator
@overload
def map(function: Callable[[A], Awaitable[B]], /) -> Operator[A, B]: ...  # noqa: A001  # the usual name; mypy cannot choose in a union
def map(function: Callable[[Any], Any], /) -> Operator[Any, Any]:  # noqa: A001  # the usual name
    """Pass on ``function(element)`` for each element.

    Upstream demand: 1 per downstream demand.
    Buffer: none; up to 16 with an async function, which is awaited for one element at a time,
    in order.
    If the function raises or returns None, the stream ends with an error.
    Completion, errors and cancellation pass straight through.
    """
    return step_operator("map", function, lambda: _MapStep(function), _MapStage)


def tap(function: Callable[[A], object] | Callable[[A], Awaitable[object]], /) -> Operator[A, A]:
    """Call `function` with each element, for its effect, and pass the element on.

    Upstream demand: 1 per downstream demand. Buffer: none; up to 16 with an async function.
    If the function raises, the stream ends with that error.
    Completion, errors and cancellation pass straight through.
    """
    return step_operator("tap", function, lambda: _TapStep(function))


@overload
def scan(
    function: Callable[[B, A], B] | Callable[[B, A], Awaitable[B]], initial: B
) -> Operator[A, B]: ...
@overload
def scan(function: Callable[[B, A], Awaitable[B]], initial: B) -> Operator[A, B]: ...
def scan(function: Callable[[Any, Any], Any], initial: Any) -> Operator[Any, Any]:
    """Pass on the running result ``total = function(total, element)`` of each element. It begins
    with `initial`, which is not passed on.

    Upstream demand: 1 per downstream demand. Buffer: none but the last result;
    up to 16 with an async function.
    If the function raises or returns None, the stream ends with an error.
    Completion, errors and cancellation pass straight through.
    """
    if initial is None:
        raise UsageError(
            "scan(…, None): give the value to begin with; None is never an element (rule 2.13)"
        )
    return step_operator("scan", function, lambda: _ScanStep(function, initial))


def pairwise() -> PairOperator:
    """Pass on each element together with the one before it, as a tuple ``(before, element)``.

    A stream of one element passes on nothing.

    >>> await collect(pipe([1, 2, 3], ops.pairwise()))
    [(1, 2), (2, 3)]

    Upstream demand: 1 per downstream demand, and 1 more with the first. Buffer:
    none but the last element.
    Completion, errors and cancellation pass straight through.
    """
    return StageOperator("pairwise()", lambda downstream, scope: _PairwiseStage(downstream))


@overload
def reduce(
    function: Callable[[B, A], B] | Callable[[B, A], Awaitable[B]], initial: B
) -> Operator[A, B]: ...
@overload
def reduce(function: Callable[[B, A], Awaitable[B]], initial: B) -> Operator[A, B]: ...
def reduce(function: Callable[[Any, Any], Any], initial: Any) -> Operator[Any, Any]:
    """Pass on one element: the result of ``total = function(total, element)`` over the whole
    stream. It begins with `initial`.

    Over a stream without elements the result is `initial`. `scan` passes on every total.

    >>> await collect(pipe([1, 2, 3], ops.reduce(operator.add, 0)))
    [6]

    Upstream demand: 256 with the first downstream demand, renewed by halves;
    16 at a time with an async function.
    Buffer: none but the last result; up to 16 with an async function.
    On completion the result is passed on, once requested, then completion.
    If the function raises or returns None, the stream ends with an error.
    Errors and cancellation pass straight through.
    """
    if initial is None:
        raise UsageError(
            "reduce(…, None): give the value to begin with; None is never an element (rule 2.13)"
        )
    return _Reduce(step_operator("reduce", function, lambda: _ScanStep(function, initial)), initial)


class _Reduce(OperatorBase[Any, Any]):
    """`scan`, and after it a stage that keeps the last total."""

    __slots__ = ("_initial", "_totals")

    def __init__(self, totals: OperatorBase[Any, Any], initial: Any) -> None:
        self._totals = totals
        self._initial = initial

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        self._totals.attach(source, _LastTotalStage(subscriber, self._initial), scope)

    def __repr__(self) -> str:
        return repr(self._totals)


class _MapStep(Step):
    __slots__ = ()

    def decide(self, element: Any, result: Any) -> Any:
        return result


class _TapStep(Step):
    __slots__ = ()

    def decide(self, element: Any, result: Any) -> Any:
        return element


class _ScanStep(Step):
    __slots__ = ("_total",)

    def __init__(self, function: Callable[..., Any], initial: Any) -> None:
        super().__init__(function)
        self._total = initial

    def invoke(self, element: Any) -> Any:
        return self.function(self._total, element)

    def decide(self, element: Any, result: Any) -> Any:
        self._total = result
        return result


class _MapStage(Stage[A, B]):
    """`map` with a plain function.
    It has its own stage to save the two calls of a step for each element.
    """

    __slots__ = ("_function", "_label")

    def __init__(self, downstream: Subscriber[B], function: Callable[[A], B], label: str) -> None:
        super().__init__(downstream)
        self._function = function
        self._label = label

    def on_next(self, element: A, /) -> None:
        try:
            result = self._function(element)
            # Only for the values that checked_element refuses:
            # a call for each result would slow down every element.
            if result is None or type(result) is CoroutineType:
                checked_element(result, self._label)
        except Exception as error:  # boundary: the user's function
            self._fail(error)
            return
        self._downstream.on_next(result)


class _PairwiseStage(Stage[A, tuple[A, A]]):
    __slots__ = ("_before", "_has_requested")

    def __init__(self, downstream: Subscriber[tuple[A, A]]) -> None:
        super().__init__(downstream)
        self._before: A | None = None
        self._has_requested = False

    def request(self, n: int, /) -> None:
        if not self._has_requested:
            self._has_requested = True
            n = min(UNBOUNDED, n + 1)
        self._upstream.request(n)

    def on_next(self, element: A, /) -> None:
        before, self._before = self._before, element
        if before is not None:
            self._downstream.on_next((before, element))

    def _release(self) -> None:
        self._before = None


class _LastTotalStage(HoldingStage[A, A]):
    """Requests every element once downstream has requested the result,
    and passes on the last one at the end.
    """

    __slots__ = ("_outstanding", "_total")

    def __init__(self, downstream: Subscriber[A], initial: A) -> None:
        super().__init__(downstream)
        self._total: A | None = initial
        self._outstanding = 0  # requested and not yet arrived

    def on_next(self, total: A, /) -> None:
        self._total = total
        self._outstanding -= 1
        self._request_upstream()

    def _has_held(self) -> bool:
        return self._total is not None

    def _next_due(self) -> A | None:
        if not self._upstream_completed:
            return None
        total, self._total = self._total, None
        return total

    def _request_upstream(self) -> None:
        missing = DEFAULT_DEMAND - self._outstanding if self._demand else 0
        if missing >= REDUCE_RENEWAL:
            self._outstanding += missing
            self._upstream.request(missing)

    def _release(self) -> None:
        self._total = None
