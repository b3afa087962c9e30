"""`Step`: an operator that looks at one element at a time and decides whether it goes on,
is left out, or ends the stream.

A step only decides: it maps the element and the result of the function to a verdict.
Two stages act on the verdict.
`SyncStage` calls a plain function inside `on_next`. `AsyncStage` awaits an async function in its
own task, one element at a time.

Rules of this file:

* Upstream demand is 1 per downstream demand, and 1 more for each element left out.
* `AsyncStage` holds at most `WINDOW` elements.
  It never requests more than downstream has requested.
"""

import inspect
from collections import deque
from collections.abc import Callable
from types import CoroutineType
from typing import Any, Final, TypeVar

import trio

from penstock.api import PipePart, Subscriber, UsageError, add_demand
from penstock.core import WOKEN, Scope, name_of
from penstock.streams.ops._stage import ENDED_UPSTREAM, Stage, StageOperator, stopped_error

A = TypeVar("A")
B = TypeVar("B")

WINDOW: Final = 16
"""How many elements an async stage or a join input may be ahead of its use of them.
It bounds their buffers.
"""

SKIP: Final = object()
"""Verdict: leave this element out."""

END: Final = object()
"""Verdict: leave this element out and complete."""


class Last:
    """Verdict: pass on `element`, then complete."""

    __slots__ = ("element",)

    def __init__(self, element: object) -> None:
        self.element = element


class Step:
    """The decision of one operator and its state between elements. Each stream has its own step."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def invoke(self, element: Any) -> Any:
        """Call the user's function with `element`.
        Its result (awaited, if the function is async) goes to `decide`.
        """
        return self.function(element)

    def decide(self, element: Any, result: Any) -> Any:
        """Return the element to pass on (never None), SKIP, END or Last(element).
        An exception fails the stream.
        """
        raise AssertionError(f"{type(self).__name__} does not define decide()")


FINISHED_STEP: Final = Step(callable)
"""Replaces the step of a stage that is over, so that the stage refers to no element
and to no function of a user.
"""


def step_operator(
    name: str,
    function: Callable[..., Any],
    make_step: Callable[[], Step],
    sync_stage: Callable[..., Stage[Any, Any]] | None = None,
) -> StageOperator:
    """Return the operator of a step: a `SyncStage` (or `sync_stage`) for a plain `function`, an
    `AsyncStage` for an async one.
    """
    if not callable(function):
        raise UsageError(f"{name}() was given {function!r}; it takes a function, plain or async")
    label = f"{name}({name_of(function)})"
    if is_async(function):
        return StageOperator(
            label, lambda downstream, scope: AsyncStage(downstream, scope, make_step(), label)
        )
    if sync_stage is not None:
        return StageOperator(
            label, lambda downstream, scope: sync_stage(downstream, function, label)
        )
    return StageOperator(label, lambda downstream, scope: SyncStage(downstream, make_step(), label))


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a call of `function` returns an awaitable."""
    # __call__ is looked up on the type, as Python does. On the object itself, a class with an async
    # __call__ would count as async.
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004  # the question is whether __call__ is async, not whether it exists
    )


def checked_element(result: Any, label: str) -> Any:
    """Return `result` if it can be an element.
    Raise UsageError for None and for a coroutine that was not awaited.
    """
    if result is None:
        raise UsageError(
            f"{label} returned None, which is never an element (rule 2.13). Use filter() to leave "
            "elements out"
        )
    if type(result) is CoroutineType:
        result.close()
        raise UsageError(
            f"{label} returned a coroutine, so the function is async. Give the `async def` "
            "function itself, not a lambda around it"
        )
    return result


class SyncStage(Stage[Any, Any]):
    """Runs a step with a plain function, inside `on_next`."""

    __slots__ = ("_label", "_step")

    def __init__(self, downstream: Subscriber[Any], step: Step, label: str) -> None:
        super().__init__(downstream)
        self._step = step
        self._label = label

    def on_next(self, element: Any, /) -> None:
        step = self._step
        try:
            result = step.invoke(element)
            # A lambda around an async function; as a predicate it would always be true.
            if type(result) is CoroutineType:
                checked_element(result, self._label)
            verdict = step.decide(element, result)
            if verdict is None:
                checked_element(verdict, self._label)
        except Exception as error:  # boundary: the user's function
            self._fail(error)
            return
        # Outside the try: an error that a neighbour raises is not an error of the function, and
        # must not end the stream as one.
        if verdict is SKIP:
            self._upstream.request(1)
        elif verdict is END:
            self._complete()
        elif type(verdict) is Last:
            self._downstream.on_next(verdict.element)
            self._complete()
        else:
            self._downstream.on_next(verdict)

    @property
    def _part_label(self) -> str:
        return self._label

    def _release(self) -> None:
        self._step = FINISHED_STEP


class AsyncStage(Stage[Any, Any]):
    """Runs a step with an async function:
    elements wait in a queue, and one task processes them in order.

    The task starts with the first element and ends with the stream.
    """

    __slots__ = (
        "_demand",
        "_label",
        "_outstanding",
        "_parked_task",
        "_queue",
        "_scope",
        "_step",
        "_task",
        "_task_scope",
        "_upstream_completed",
    )

    def __init__(self, downstream: Subscriber[Any], scope: Scope, step: Step, label: str) -> None:
        super().__init__(downstream)
        self._scope = scope
        self._step = step
        self._label = label
        self._queue: deque[Any] = deque()  # bounded by _outstanding, which never exceeds WINDOW
        self._demand = 0  # requested by downstream and not yet passed on
        # requested from upstream and not yet decided; at most min(_demand, WINDOW).
        self._outstanding = 0
        # True: queued elements are still processed, and then on_complete follows.
        self._upstream_completed = False
        self._task_scope: trio.CancelScope | None = None
        self._parked_task: trio.lowlevel.Task | None = None
        self._task: trio.lowlevel.Task | None = None  # while it runs

    def request(self, n: int, /) -> None:
        if not self._is_over:
            self._demand = add_demand(self._demand, n)
            # At once: a hot source upstream may drop elements that have no demand yet.
            self._top_up(least=1)

    def on_next(self, element: Any, /) -> None:
        self._queue.append(element)
        if self._task_scope is None:  # the first element: a stream without elements needs no task
            self._start_task()
        else:
            self._wake()

    def on_complete(self, /) -> None:
        self._upstream_completed = True
        self._upstream = ENDED_UPSTREAM
        if self._task_scope is None:
            super().on_complete()
        else:
            self._wake()

    @property
    def _part_label(self) -> str:
        return self._label

    @property
    def _held_count(self) -> int:
        return len(self._queue)

    def pipe_part(self) -> PipePart:
        """Return the part for those who look at the pipe, with the task while its function runs."""
        is_parked = self._parked_task is not None
        return super().pipe_part()._replace(task=None if is_parked else self._task)

    # --- the task

    def _start_task(self) -> None:
        try:
            self._task_scope = self._scope.spawn(self._run_task, name=f"penstock {self._label}")
        except UsageError as closed:
            self._fail(closed)

    async def _run_task(self) -> None:
        self._task = trio.lowlevel.current_task()
        try:
            while not self._is_over:
                if self._queue:
                    await self._process(self._queue.popleft())
                elif self._upstream_completed:
                    # After the queue is empty: completion does not overtake elements.
                    super().on_complete()
                else:
                    self._parked_task = trio.lowlevel.current_task()
                    await trio.lowlevel.wait_task_rescheduled(self._abort_park)
        finally:
            self._task = None
            if not self._is_over:  # the nursery of this task was cancelled, not the stream
                self._fail(stopped_error(self._label))

    async def _process(self, element: Any) -> None:
        try:
            verdict = checked_element(
                self._step.decide(element, await self._step.invoke(element)), self._label
            )
        except Exception as error:  # boundary: the user's function
            if self._is_over:
                # raised during cancellation: no subscriber is left to signal it to.
                self._scope.report_failure(error)
            self._fail(error)
            return
        # The stream may have ended during the await, and the function may have ignored the cancel.
        if not self._is_over:
            self._outstanding -= 1
            self._apply(verdict)

    def _apply(self, verdict: Any) -> None:
        if verdict is END:
            self._complete()
        elif verdict is SKIP:
            self._top_up()
        else:
            last = type(verdict) is Last
            self._demand -= 1
            self._downstream.on_next(verdict.element if last else verdict)
            if last:
                self._complete()
            elif not self._is_over:  # the subscriber may have cancelled inside on_next
                self._top_up()

    def _top_up(self, *, least: int = WINDOW // 2) -> None:
        """Request what is missing up to WINDOW, at least `least` elements unless none is
        outstanding. Half a window is one call per 8.
        """
        missing = 0 if self._upstream_completed else min(self._demand, WINDOW) - self._outstanding
        if missing >= least or (missing > 0 and not self._outstanding):
            self._outstanding += missing
            self._upstream.request(missing)

    def _release(self) -> None:
        # An error from upstream drops the queue: errors do not wait for elements (rule 4.2).
        self._queue.clear()
        self._step = FINISHED_STEP
        if self._task_scope is not None:
            self._task_scope.cancel()

    def _wake(self) -> None:
        if self._parked_task is not None:
            parked, self._parked_task = self._parked_task, None
            trio.lowlevel.reschedule(parked, WOKEN)

    def _abort_park(self, _: Any) -> trio.lowlevel.Abort:
        self._parked_task = None
        return trio.lowlevel.Abort.SUCCEEDED
