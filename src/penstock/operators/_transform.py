"""Operators that turn each element into another: `map`, `scan`, `tap`."""

from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any, TypeVar, overload

from penstock.api import Subscriber, UsageError
from penstock.operators._stage import Operator, Stage
from penstock.operators._step import Step, checked_element, step_operator

A = TypeVar("A")
B = TypeVar("B")


@overload
def map(function: Callable[[A], B] | Callable[[A], Awaitable[B]], /) -> Operator[A, B]: ...  # noqa: A001  # the usual name of this operator
@overload
def map(function: Callable[[A], Awaitable[B]], /) -> Operator[A, B]: ...  # noqa: A001  # the usual name; mypy cannot choose in a union
def map(function: Callable[[Any], Any], /) -> Operator[Any, Any]:  # noqa: A001  # the usual name
    """Pass on ``function(element)`` for each element.

    Upstream demand: 1 per downstream demand.
    Buffer: none; up to 16 with an async function, which is awaited for one element at a time, in order.
    If the function raises or returns None, the stream ends with an error.
    Completion, errors and cancellation pass straight through.
    """
    return step_operator("map", function, lambda: _MapStep(function), _MapStage)


def tap(function: Callable[[A], Any], /) -> Operator[A, A]:
    """Call `function` with each element, for its effect, and pass the element on.

    Upstream demand: 1 per downstream demand. Buffer: none; up to 16 with an async function.
    If the function raises, the stream ends with that error. Completion, errors and cancellation pass straight through.
    """
    return step_operator("tap", function, lambda: _TapStep(function))


@overload
def scan(function: Callable[[B, A], B] | Callable[[B, A], Awaitable[B]], initial: B) -> Operator[A, B]: ...
@overload
def scan(function: Callable[[B, A], Awaitable[B]], initial: B) -> Operator[A, B]: ...
def scan(function: Callable[[Any, Any], Any], initial: Any) -> Operator[Any, Any]:
    """Pass on the running result ``total = function(total, element)`` of each element. It begins with `initial`, which is not passed on.

    Upstream demand: 1 per downstream demand. Buffer: none but the last result; up to 16 with an async function.
    If the function raises or returns None, the stream ends with an error.
    Completion, errors and cancellation pass straight through.
    """
    if initial is None:
        raise UsageError("scan(…, None): give the value to begin with; None is never an element (rule 2.13)")
    return step_operator("scan", function, lambda: _ScanStep(function, initial))


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
    """`map` with a plain function. It has its own stage to save the two calls of a step for each element."""

    __slots__ = ("_function", "_label")

    def __init__(self, downstream: Subscriber[B], function: Callable[[A], B], label: str) -> None:
        super().__init__(downstream)
        self._function = function
        self._label = label

    def on_next(self, element: A, /) -> None:
        try:
            result = self._function(element)
            # Only for the values that checked_element refuses: a call for each result would slow down every element.
            if result is None or type(result) is CoroutineType:
                checked_element(result, self._label)
        except Exception as error:  # boundary: the user's function
            self._fail(error)
            return
        self._downstream.on_next(result)
