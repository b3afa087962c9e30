"""Steps: operators that look at one element at a time and decide whether it goes on, is left out, or ends the stream.

A `Step` is the decision alone, a plain function of the element and of what the user's function said about it. Two stages act on it:
`SyncStage` calls a plain function where it stands, `AsyncStage` awaits an async one in a task of its own, in order, one at a time.

Rules of this file:

* Upstream demand per downstream demand is 1, and 1 more for each element that was left out.
* `AsyncStage` holds at most `WINDOW` elements, all of which it requested; it never requests more than downstream has.
"""

import inspect
from collections import deque
from collections.abc import Callable
from types import CoroutineType
from typing import Any, Final, TypeVar

import trio

from penstock.api import Subscriber, UsageError, add_demand
from penstock.core import Scope, name_of
from penstock.operators._stage import ENDED_UPSTREAM, Operator, Stage, StageOperator, stopped_error

A = TypeVar("A")
B = TypeVar("B")

WINDOW: Final = 16
"""Elements that an async stage asks for ahead of its function: enough to keep a source busy, few enough to hold."""

SKIP: Final = object()
"""The verdict "leave this element out"."""

END: Final = object()
"""The verdict "leave this element out, and complete"."""


class Last:
    """The verdict "pass this on, and complete with it"."""

    __slots__ = ("element",)

    def __init__(self, element: object) -> None:
        self.element = element


class Step:
    """One operator's decision, with what it remembers from one element to the next; made anew for each stream."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def invoke(self, element: Any) -> Any:
        """Call the user's function about `element`; what it returns, or what its awaitable gives, goes to `decide`."""
        return self.function(element)

    def decide(self, element: Any, result: Any) -> Any:
        """Return what goes on (never None), or SKIP, END, or Last(element). What this raises ends the stream."""
        raise AssertionError("every step decides")


FINISHED_STEP: Final = Step(callable)
"""What a stage holds when its stream has ended: a step that remembers no element."""


def step_operator(
    name: str, function: Callable[..., Any], make_step: Callable[[], Step], sync_stage: Callable[..., Stage[Any, Any]] | None = None
) -> Operator[Any, Any]:
    """Return the operator for a step: in place for a plain `function`, in a task for an async one."""
    if not callable(function):
        raise UsageError(f"{name}() was given {function!r}; it takes a function, plain or async")
    label = f"{name}({name_of(function)})"
    if is_async(function):
        return StageOperator(label, lambda downstream, scope: AsyncStage(downstream, scope, make_step(), label))
    if sync_stage is not None:
        return StageOperator(label, lambda downstream, scope: sync_stage(downstream, function, label))
    return StageOperator(label, lambda downstream, scope: SyncStage(downstream, make_step(), label))


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether calling `function` gives something to await."""
    # Of the type, because that is where Python looks for it: a class whose objects are async functions is itself a plain one.
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(type(function), "__call__", None))  # noqa: B004  # the question is whether __call__ is async, not whether it is there


def checked_element(result: Any, label: str) -> Any:
    """Return `result` where it can be an element; raise UsageError for None and for what was not awaited."""
    if result is None:
        raise UsageError(f"{label} returned None, which is never an element (rule 2.13). Use filter() to leave elements out")
    if type(result) is CoroutineType:
        result.close()
        raise UsageError(
            f"{label} returned a coroutine: it is async in disguise. Give the `async def` function itself, not a lambda around it"
        )
    return result


class SyncStage(Stage[Any, Any]):
    """Runs a step where the element arrives."""

    __slots__ = ("_label", "_step")

    def __init__(self, downstream: Subscriber[Any], step: Step, label: str) -> None:
        super().__init__(downstream)
        self._step = step
        self._label = label

    def on_next(self, element: Any, /) -> None:
        step = self._step
        try:
            result = step.invoke(element)
            if type(result) is CoroutineType:
                checked_element(result, self._label)
            verdict = step.decide(element, result)
            if verdict is None:
                checked_element(verdict, self._label)
        except Exception as error:  # boundary: the user's function
            self._fail(error)
            return
        if verdict is SKIP:
            self._upstream.request(1)
        elif verdict is END:
            self._complete()
        elif type(verdict) is Last:
            self._downstream.on_next(verdict.element)
            self._complete()
        else:
            self._downstream.on_next(verdict)

    def _release(self) -> None:
        self._step = FINISHED_STEP


class AsyncStage(Stage[Any, Any]):
    """Runs a step whose function is async: what arrives waits in an inbox, and one task takes it from there in order.

    The task begins with the first element and ends with the stream.
    """

    __slots__ = ("_demand", "_label", "_outstanding", "_parked_task", "_queue", "_scope", "_step", "_task_scope", "_upstream_completed")

    def __init__(self, downstream: Subscriber[Any], scope: Scope, step: Step, label: str) -> None:
        super().__init__(downstream)
        self._scope = scope
        self._step = step
        self._label = label
        self._queue: deque[Any] = deque()  # bounded by _outstanding, which never exceeds WINDOW
        self._demand = 0  # requested from below and not yet passed on
        self._outstanding = 0  # requested from above and not yet decided; at most min(_demand, WINDOW)
        self._upstream_completed = False  # completed above; what waits in the inbox is still to be done
        self._task_scope: trio.CancelScope | None = None
        self._parked_task: trio.lowlevel.Task | None = None

    def request(self, n: int, /) -> None:
        if not self._is_over:
            self._demand = add_demand(self._demand, n)
            self._top_up(least=1)  # at once: a source above may drop what it finds no demand for

    def on_next(self, element: Any, /) -> None:
        self._queue.append(element)
        if self._task_scope is None:
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

    # --- the task

    def _start_task(self) -> None:
        try:
            self._task_scope = self._scope.spawn(self._run_task, name=f"penstock {self._label}")
        except UsageError as closed:
            self._fail(closed)

    async def _run_task(self) -> None:
        try:
            while not self._is_over:
                if self._queue:
                    await self._process(self._queue.popleft())
                elif self._upstream_completed:
                    super().on_complete()
                else:
                    self._parked_task = trio.lowlevel.current_task()
                    await trio.lowlevel.wait_task_rescheduled(self._abort_park)
        finally:
            if not self._is_over:  # this task was cancelled from outside
                self._fail(stopped_error(self._label))

    async def _process(self, element: Any) -> None:
        try:
            verdict = checked_element(self._step.decide(element, await self._step.invoke(element)), self._label)
        except Exception as error:  # boundary: the user's function
            if self._is_over:
                self._scope.fail(error)  # it raised while it was being cancelled: nobody listens any more
            self._fail(error)
            return
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
            elif not self._is_over:
                self._top_up()

    def _top_up(self, *, least: int = WINDOW // 2) -> None:
        """Request from above what may come: half a window at a time, so that asking is cheap."""
        missing = 0 if self._upstream_completed else min(self._demand, WINDOW) - self._outstanding
        if missing >= least or (missing > 0 and not self._outstanding):
            self._outstanding += missing
            self._upstream.request(missing)

    def _release(self) -> None:
        # An error from above overtakes what waits here: it is no event in the stream that may be queued.
        self._queue.clear()
        self._step = FINISHED_STEP
        if self._task_scope is not None:
            self._task_scope.cancel()

    def _wake(self) -> None:
        if self._parked_task is not None:
            parked, self._parked_task = self._parked_task, None
            trio.lowlevel.reschedule(parked)

    def _abort_park(self, _: Any) -> trio.lowlevel.Abort:
        self._parked_task = None
        return trio.lowlevel.Abort.SUCCEEDED
