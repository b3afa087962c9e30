"""Operators that make one stream from several: `concat` and `start_with` one after the other,
`flat_map` several at a time, `switch_map` the newest.

Rules of this file:

* Demand that one source has not used goes to the next source, exactly.
* If the function of `flat_map` or `switch_map` is async, it runs in its own task, and starts when
  its inner stream first gets demand.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar, overload

import trio

from penstock.api import Subscriber, Subscription, UsageError, add_demand
from penstock.core import Scope, name_of
from penstock.streams._source import Operator, Source, Streamable
from penstock.streams._sources import as_source
from penstock.streams.ops._combine import MergeStage
from penstock.streams.ops._holding_stage import HoldingStage
from penstock.streams.ops._join import JoinInput, JoinOperator, JoinStage, join_operator
from penstock.streams.ops._operator import UnionOperator
from penstock.streams.ops._stage import ENDED_UPSTREAM, Stage, StageOperator, stopped_error
from penstock.streams.ops._step import checked_element, is_async

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


@overload
def concat(b: Streamable[B], c: Streamable[C], /) -> UnionOperator[B | C]: ...
@overload
def concat(b: Streamable[B], c: Streamable[C], d: Streamable[D], /) -> UnionOperator[B | C | D]: ...
@overload
def concat(*others: Streamable[B]) -> UnionOperator[B]: ...
def concat(*others: Streamable[Any]) -> Operator[Any, Any]:
    """Pass on all elements of the source, then those of each of `others`. Each source is subscribed
    to when the one before has completed.

    Upstream demand: 1 per downstream demand; demand that one source leaves goes to the next.
    Buffer: none.
    Completes with the last source. An error ends the stream,
    and the sources after it are never subscribed to.
    Cancelling cancels the current source.
    """
    return join_operator("concat", _ConcatStage, others)


def start_with(*elements: B) -> UnionOperator[B]:
    """Pass on `elements`, then the elements of the source. The source is subscribed to at once.

    >>> await collect(pipe([1, 2], ops.start_with("ready")))
    ['ready', 1, 2]

    Upstream demand: 1 per downstream demand, less the demand that `elements` use. Buffer:
    none but `elements`.
    Completion comes after `elements`.
    An error passes at once, and those of `elements` that were not requested are dropped.
    A cancel drops them too.
    """
    if any(element is None for element in elements):
        raise UsageError("start_with(None): None is never an element (rule 2.13)")
    return StageOperator(
        f"start_with of {len(elements)} elements",
        lambda downstream, scope: _StartWithStage(downstream, elements),
    )


def flat_map(
    function: Callable[[A], Streamable[B]] | Callable[[A], Awaitable[Streamable[B]]],
    /,
    *,
    concurrency: int = 16,
) -> Operator[A, B]:
    """Pass on the elements of the streams that ``function(element)`` returns,
    at most `concurrency` streams at a time.

    The function may return anything that can be subscribed to. An async function is awaited when
    its stream first gets demand, so up to `concurrency` calls run at a time. Elements go on as they
    arrive. If several inner streams have elements waiting, they take turns.

    Upstream demand: `concurrency` with the first downstream demand,
    then 1 for each inner stream that has ended.
    Buffer: up to 16 for each inner stream, so 16 times `concurrency` in all.
    Each inner stream gets the demand of downstream, at most 16 elements ahead.
    Completes when upstream and all inner streams have completed.
    If the function raises, the stream ends with that error.
    Any error ends the stream without waiting for the buffer, and cancels upstream and all inner
    streams. A cancel cancels them too.
    """
    label, to_source = _inner_maker("flat_map", function)
    if type(concurrency) is not int or concurrency < 1:
        raise UsageError(
            f"flat_map(concurrency={concurrency!r}): give how many inner streams may run at a "
            "time, an integer of at least 1"
        )
    return JoinOperator(
        label, lambda downstream, scope: _FlatMapStage(downstream, scope, to_source, concurrency)
    )


def switch_map(
    function: Callable[[A], Streamable[B]] | Callable[[A], Awaitable[Streamable[B]]], /
) -> Operator[A, B]:
    """Pass on the elements of the stream that ``function(element)`` returns, until the next element
    arrives: then cancel that stream.

    The function may return anything that can be subscribed to. An async function is awaited when
    its stream first gets demand, and a newer element cancels it. Elements of a cancelled stream
    that have not gone on are dropped.

    >>> inner = lambda n: pipe(interval(0.4), ops.map(lambda m: (n, m)), ops.take(3))
    >>> await collect(pipe(interval(1), ops.take(2), ops.switch_map(inner)))
    [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]

    Upstream demand: 1 at a time, renewed while downstream demand is left; so one element may be
    under way without downstream demand. Buffer: up to 16. The inner stream gets the demand of
    downstream, at most 16 elements ahead.
    Completes when upstream and the last inner stream have completed. If the function raises, the
    stream ends with that error.
    Any error ends the stream without waiting for the buffer, and cancels upstream and the inner
    stream. A cancel cancels them too.
    """
    label, to_source = _inner_maker("switch_map", function)
    return JoinOperator(
        label, lambda downstream, scope: _SwitchMapStage(downstream, scope, to_source)
    )


def _inner_maker(
    name: str, function: Callable[[Any], Any]
) -> tuple[str, Callable[[Any], Source[Any]]]:
    """Return the label of an operator, and the function
    that makes the inner source of an element.
    """
    if not callable(function):
        raise UsageError(
            f"{name}() was given {function!r}; it takes a function, plain or async, that returns a "
            "stream for an element"
        )
    label = f"{name}({name_of(function)})"
    return label, partial(_DeferredSource if is_async(function) else _inner_source, function, label)


class _ConcatStage(JoinStage):
    """Passes signals and requests straight through between downstream and the current source."""

    __slots__ = ("_current", "_remaining")

    def start(self, sources: Sequence[Source[Any]]) -> None:
        self._remaining = iter(sources)
        # None while a source is being attached: it may not get demand twice.
        self._current: JoinInput | None = None
        self._downstream.on_subscribe(self)
        self._is_running = False
        self._run_loop()

    def request(self, n: int, /) -> None:
        if self._is_live:
            self._demand = add_demand(self._demand, n)
            if self._current is not None:
                # No effect if it has ended; _switch_to requests all of _demand from the next
                # source.
                self._current.request(n)

    def on_input_next(self, input_: JoinInput, element: Any) -> None:
        self._pass_on(element)

    def _advance(self) -> bool:
        if self._current is not None and not self._current.ended:
            return False
        source = next(self._remaining, None)
        if source is None:
            self._completion_due = True
        else:
            self._switch_to(source)
        return True

    def _switch_to(self, source: Source[Any]) -> None:
        input_ = JoinInput(self)
        self._inputs = {input_: True}
        self._attach(source, input_)
        if self._is_live:
            self._current = input_
            if self._demand:  # one request for all of it, including requests during attach
                input_.request(self._demand)

    def _after_input_change(self, input_: JoinInput) -> None:
        """Do nothing: `_advance` sees that the current source has ended."""

    def _release(self) -> None:
        self._remaining = iter(())
        self._current = None


class _StartWithStage(HoldingStage[Any, Any]):
    """Upstream gets its first request when all of `elements` have gone on.
    So its elements never wait.
    """

    __slots__ = ("_held",)

    def __init__(self, downstream: Subscriber[Any], elements: tuple[Any, ...]) -> None:
        super().__init__(downstream)
        self._held = deque(elements)

    def request(self, n: int, /) -> None:
        if self._held or self._is_passing_on:
            super().request(n)
        else:
            self._upstream.request(n)

    def _has_held(self) -> bool:
        return bool(self._held)

    def _next_due(self) -> Any:
        return self._held.popleft() if self._held else None

    def _request_upstream(self) -> None:
        demand, self._demand = self._demand, 0
        if demand:
            self._upstream.request(demand)

    @property
    def _held_count(self) -> int:
        return len(self._held)

    def _release(self) -> None:
        self._held.clear()


class _FlatMapStage(MergeStage):
    """A merge of inner streams. Each element of upstream adds an input."""

    __slots__ = ("_outer", "_to_source", "_unrequested")

    def __init__(
        self,
        downstream: Subscriber[Any],
        scope: Scope,
        to_source: Callable[[Any], Source[Any]],
        concurrency: int,
    ) -> None:
        super().__init__(downstream, scope)
        self._to_source = to_source
        # upstream elements for which an inner stream may be opened, and
        # which are not requested yet.
        self._unrequested = concurrency

    def _prepare_inputs(self, inputs: Sequence[JoinInput]) -> None:
        (self._outer,) = inputs
        # Only the inner streams; upstream is not one of the inputs that take turns.
        self._inputs = {}

    def on_input_next(self, input_: JoinInput, element: Any) -> None:
        if input_ is self._outer:
            self._open_inner(element)
        else:
            super().on_input_next(input_, element)

    def on_input_complete(self, input_: JoinInput) -> None:
        if input_ is self._outer:
            self._completion_due = not self._inputs
            self._run_loop()
        else:
            super().on_input_complete(input_)

    def _open_inner(self, element: Any) -> None:
        try:
            source = self._to_source(element)
        except Exception as error:  # boundary: the user's function
            self.fail(error)
            return
        if not self._is_live:
            return  # the function has cancelled its own stream
        input_ = JoinInput(self)
        self._inputs[input_] = True
        self._attach(source, input_)
        self._request_missing(input_)

    def _advance(self) -> bool:
        # Upstream last: without downstream demand it gets no request,
        # because an inner stream would run for no reader.
        return super()._advance() or (self._demand > 0 and self._request_outer())

    def _request_outer(self) -> bool:
        """Request elements from upstream. Return False if none is to be requested now."""
        if not self._unrequested:
            return False
        unrequested, self._unrequested = self._unrequested, 0
        self._outer.request(unrequested)
        return True

    def _on_input_removed(self) -> None:
        self._unrequested += 1
        self._completion_due = self._outer.ended and not self._inputs

    def _release(self) -> None:
        super()._release()
        self._outer.close()


class _SwitchMapStage(_FlatMapStage):
    """A merge of one inner stream, which the next one replaces."""

    __slots__ = ()

    def __init__(
        self, downstream: Subscriber[Any], scope: Scope, to_source: Callable[[Any], Source[Any]]
    ) -> None:
        super().__init__(downstream, scope, to_source, concurrency=1)

    def _open_inner(self, element: Any) -> None:
        inner, self._inputs = self._inputs, {}
        self._ready.clear()
        for input_ in inner:
            input_.close()
        super()._open_inner(element)
        self._run_loop()  # requests the next element of upstream

    def _request_outer(self) -> bool:
        if self._outer.outstanding or self._outer.ended:
            return False
        self._outer.request(1)
        return True

    def _on_input_removed(self) -> None:
        self._completion_due = self._outer.ended and not self._inputs


def _inner_source(function: Callable[[Any], Any], label: str, element: Any) -> Source[Any]:
    """Return the source that the plain function returns for `element`."""
    return _as_inner_source(function(element), label)


def _as_inner_source(result: Any, label: str) -> Source[Any]:
    if result is None:
        raise UsageError(
            f"{label} returned None; it returns a stream for each element. For one without "
            "elements, return empty()"
        )
    if type(result) is CoroutineType:
        checked_element(result, label)
    try:
        return as_source(result)
    except UsageError as wrong:
        raise UsageError(f"{label} returned an object that is not a stream: {wrong}") from wrong


class _DeferredSource(Source[Any]):
    """The inner stream of an async function: calls the function at the first demand, and
    attaches the source that it returns.
    """

    __slots__ = ("_element", "_function", "_label")

    def __init__(self, function: Callable[[Any], Awaitable[Any]], label: str, element: Any) -> None:
        self._function = function
        self._label = label
        self._element = element

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        stage = _DeferredStage(
            subscriber, scope, partial(self._function, self._element), self._label
        )
        subscriber.on_subscribe(stage)


class _DeferredStage(Stage[Any, Any]):
    """Keeps demand until the async function has returned its source, then passes requests
    and signals straight through.
    """

    __slots__ = ("_call", "_demand", "_label", "_scope", "_task_scope")

    def __init__(
        self,
        downstream: Subscriber[Any],
        scope: Scope,
        call: Callable[[], Awaitable[Any]],
        label: str,
    ) -> None:
        super().__init__(downstream)
        self._upstream = ENDED_UPSTREAM
        self._scope = scope
        self._call: Callable[[], Awaitable[Any]] | None = call
        self._label = label
        self._demand = 0  # requested before the source was attached
        self._task_scope: trio.CancelScope | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._is_over:
            subscription.cancel()  # rule 2.6: the stream ended while the source was being attached
            return
        self._upstream = subscription
        demand, self._demand = self._demand, 0
        # At least 1, because the task that attaches the source starts with the first request.
        subscription.request(demand)

    def request(self, n: int, /) -> None:
        if self._is_over:
            return  # rule 3.6: no effect after the end
        if self._upstream is not ENDED_UPSTREAM:
            self._upstream.request(n)
            return
        self._demand = add_demand(self._demand, n)
        if self._task_scope is None:
            self._start_task()

    def _start_task(self) -> None:
        try:
            self._task_scope = self._scope.spawn(self._run_task, name=f"penstock {self._label}")
        except UsageError as closed:
            self._fail(closed)

    async def _run_task(self) -> None:
        call, self._call = self._call, None
        if call is None:
            return  # the stream ended before the task ran
        try:
            source = _as_inner_source(await call(), self._label)
        except Exception as error:  # boundary: the user's function
            if self._is_over:
                # raised during cancellation: no subscriber is left to signal it to.
                self._scope.report_failure(error)
            self._fail(error)
        except BaseException:
            # No effect if the end of the stream was what cancelled this task.
            self._fail(stopped_error(self._label))
            raise
        else:
            self._attach_source(source)

    def _attach_source(self, source: Source[Any]) -> None:
        if self._is_over:
            return  # the function returned although it was cancelled
        try:
            source.attach(self, self._scope)
        except Exception as error:  # boundary: the source may be user code
            self._fail(error)

    def _release(self) -> None:
        self._call = None
        if self._task_scope is not None:
            self._task_scope.cancel()
