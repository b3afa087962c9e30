"""Operators that run several sources side by side:
`merge`, `zip`, `combine_latest`, `with_latest_from`.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar, overload

from penstock.api import Subscriber
from penstock.core import Scope
from penstock.streams._source import Operator, Streamable
from penstock.streams.ops._join import HALF_WINDOW, NO_ELEMENT, JoinInput, JoinStage, join_operator
from penstock.streams.ops._operator import TupleOperator, UnionOperator
from penstock.streams.ops._step import WINDOW

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


@overload
def merge(b: Streamable[B], c: Streamable[C], /) -> UnionOperator[B | C]: ...
@overload
def merge(b: Streamable[B], c: Streamable[C], d: Streamable[D], /) -> UnionOperator[B | C | D]: ...
@overload
def merge(*others: Streamable[B]) -> UnionOperator[B]: ...
def merge(*others: Streamable[Any]) -> Operator[Any, Any]:
    """Pass on the elements of the source and of all `others` as they arrive. If several sources
    have elements waiting, they take turns.

    Upstream demand: 1 per downstream demand from each source, at most 16 ahead. Buffer:
    up to 16 for each source.
    Completes when all sources have completed. An error does not wait for the buffer and cancels the
    other sources; a cancel cancels all.
    """
    return join_operator("merge", MergeStage, others)


@overload
def zip(b: Streamable[B], /) -> TupleOperator[B]: ...  # noqa: A001  # the usual name of this operator
@overload
def zip(b: Streamable[B], c: Streamable[C], /) -> TupleOperator[B, C]: ...  # noqa: A001  # the usual name
@overload
def zip(b: Streamable[B], c: Streamable[C], d: Streamable[D], /) -> TupleOperator[B, C, D]: ...  # noqa: A001  # the usual name
@overload
def zip(*others: Streamable[Any]) -> Operator[Any, tuple[Any, ...]]: ...  # noqa: A001  # the usual name
def zip(*others: Streamable[Any]) -> Operator[Any, Any]:  # noqa: A001  # the usual name
    """Pass on tuples: the first element of the source and of each of `others`,
    then the second ones, and so on.

    Upstream demand: 1 per downstream demand from each source, at most 16 ahead. Buffer:
    up to 16 for each source.
    Completes when a source has ended and its buffer is empty;
    this needs no demand, and cancels the other sources.
    An error does not wait for the buffer and cancels the other sources; a cancel cancels all.
    """
    return join_operator("zip", _ZipStage, others)


@overload
def combine_latest(b: Streamable[B], /) -> TupleOperator[B]: ...
@overload
def combine_latest(b: Streamable[B], c: Streamable[C], /) -> TupleOperator[B, C]: ...
@overload
def combine_latest(
    b: Streamable[B], c: Streamable[C], d: Streamable[D], /
) -> TupleOperator[B, C, D]: ...
@overload
def combine_latest(*others: Streamable[Any]) -> Operator[Any, tuple[Any, ...]]: ...
def combine_latest(*others: Streamable[Any]) -> Operator[Any, Any]:
    """Pass on, for each element that arrives, a tuple of the latest elements of the source
    and of all `others`.

    The first tuple needs one element of each source;
    until then a newer element of a source replaces its older one.
    After that each element makes its own tuple.
    Elements that arrive without downstream demand wait, in order of arrival.

    Upstream demand: 1 per downstream demand from each source, at most 16 ahead,
    and 1 more for each element that was replaced.
    Buffer: up to 16 for each source, and the latest element of each.
    Completes when all sources have completed, or when a source has completed without an element.
    An error does not wait for the buffer and cancels the other sources; a cancel cancels all.
    """
    return join_operator("combine_latest", _CombineLatestStage, others)


@overload
def with_latest_from(b: Streamable[B], /) -> TupleOperator[B]: ...
@overload
def with_latest_from(b: Streamable[B], c: Streamable[C], /) -> TupleOperator[B, C]: ...
@overload
def with_latest_from(
    b: Streamable[B], c: Streamable[C], d: Streamable[D], /
) -> TupleOperator[B, C, D]: ...
@overload
def with_latest_from(*others: Streamable[Any]) -> Operator[Any, tuple[Any, ...]]: ...
def with_latest_from(*others: Streamable[Any]) -> Operator[Any, Any]:
    """Pass on, for each element of the source, a tuple of it
    and the latest element of each of `others`.

    The source is asked for its first element when each of `others` has given one. So no element of
    a source that waits for demand is left out. Elements of `others` go on with an element of the
    source only.

    >>> await collect(pipe([1, 2], ops.with_latest_from(["a"])))
    [(1, 'a'), (2, 'a')]

    Upstream demand: 1 per downstream demand from the source, at most 16 ahead. From each of
    `others`, 16 with the first downstream demand, renewed by halves: these sources run at their own
    pace, also without downstream demand.
    Buffer: up to 16 for the source, and the latest element of each of `others`.
    Completes when the source has completed and its buffer is empty, or when one of `others` has
    completed without an element.
    An error of any source does not wait for the buffer and cancels the other sources;
    a cancel cancels all.
    """
    return join_operator("with_latest_from", _WithLatestStage, others)


class MergeStage(JoinStage):
    """Passes on each element as it arrives.
    If more elements wait than are requested, the inputs take turns.
    """

    __slots__ = ("_ready",)

    def __init__(self, downstream: Subscriber[Any], scope: Scope) -> None:
        super().__init__(downstream, scope)
        # inputs with waiting elements, each once, in the order of their turns.
        self._ready: deque[JoinInput] = deque()

    def on_input_next(self, input_: JoinInput, element: Any) -> None:
        if self._is_running or not self._demand:
            if not input_.waiting:
                self._ready.append(input_)
            input_.waiting.append(element)
            self._run_loop()
            return
        # With demand left nothing waits, so this element is the next one. This is one pass of the
        # loop without the list and the deque, for the common case of a subscriber that keeps up.
        self._is_running = True
        try:
            self._pass_on(element)
            self._after_input_change(input_)
        finally:
            self._is_running = False
        if self._must_rerun:
            self._run_loop()

    def _advance(self) -> bool:
        if self._ready and self._demand:
            input_ = self._ready.popleft()
            element = input_.waiting.pop(0)
            if input_.waiting:
                self._ready.append(input_)
            self._pass_on(element)
            self._after_input_change(input_)
            return True
        return self._request_new_demand()

    def _after_input_change(self, input_: JoinInput) -> None:
        if not input_.ended:
            self._refill(input_)
        elif not input_.waiting and self._inputs.pop(input_, False):
            self._on_input_removed()

    def _on_input_removed(self) -> None:
        """Called once for each input that has ended and whose elements have all gone on."""
        self._completion_due = not self._inputs

    def _release(self) -> None:
        self._ready.clear()


class _ZipStage(JoinStage):
    __slots__ = ("_empty_inputs",)

    def _prepare_inputs(self, inputs: Sequence[JoinInput]) -> None:
        # inputs without a waiting element; a tuple can be made when it is 0.
        self._empty_inputs = len(inputs)

    def on_input_next(self, input_: JoinInput, element: Any) -> None:
        if not input_.waiting:
            self._empty_inputs -= 1
        input_.waiting.append(element)
        self._run_loop()

    def _advance(self) -> bool:
        if self._empty_inputs or not self._demand:
            return self._request_new_demand()
        row = tuple([input_.waiting.pop(0) for input_ in self._inputs])
        self._empty_inputs = sum(not input_.waiting for input_ in self._inputs)
        self._pass_on(row)
        for input_ in tuple(self._inputs):
            self._after_input_change(input_)
        return True

    def _after_input_change(self, input_: JoinInput) -> None:
        if not input_.ended:
            self._refill(input_)
        elif not input_.waiting:
            self._completion_due = True

    def _max_ahead(self) -> int:
        # The waiting elements of an ended source bound how many more tuples there can be; further
        # elements of other sources are useless.
        return min(
            [
                super()._max_ahead(),
                *(len(input_.waiting) for input_ in self._inputs if input_.ended),
            ]
        )


class _CombineLatestStage(JoinStage):
    __slots__ = ("_arrivals", "_inputs_without_element", "_latest")

    def _prepare_inputs(self, inputs: Sequence[JoinInput]) -> None:
        # One entry per waiting element, in order of arrival.
        self._arrivals: deque[JoinInput] = deque()
        self._latest: dict[JoinInput, Any] = dict.fromkeys(inputs, NO_ELEMENT)
        self._inputs_without_element = len(inputs)  # no tuple is passed on before this is 0

    def on_input_next(self, input_: JoinInput, element: Any) -> None:
        input_.waiting.append(element)
        self._arrivals.append(input_)
        self._run_loop()

    def _advance(self) -> bool:
        if not self._arrivals or not self._demand:
            return self._request_new_demand()
        input_ = self._arrivals.popleft()
        self._inputs_without_element -= self._latest[input_] is NO_ELEMENT
        self._latest[input_] = input_.waiting.pop(0)
        if not self._inputs_without_element:
            self._pass_on(tuple(self._latest.values()))
        self._after_input_change(input_)
        return True

    def _after_input_change(self, input_: JoinInput) -> None:
        if not input_.ended:
            self._refill(input_)
        elif not input_.waiting:
            self._inputs.pop(input_, None)
            # A source that ended without an element makes any tuple impossible.
            self._completion_due = (
                self._completion_due or not self._inputs or self._latest[input_] is NO_ELEMENT
            )

    def _release(self) -> None:
        self._arrivals.clear()
        self._latest.clear()


class _WithLatestStage(MergeStage):
    """A merge of one source. The other sources only replace what its elements are joined with."""

    __slots__ = ("_latest", "_main", "_others_without_element")

    def _prepare_inputs(self, inputs: Sequence[JoinInput]) -> None:
        self._main, *others = inputs
        self._latest: dict[JoinInput, Any] = dict.fromkeys(others, NO_ELEMENT)
        self._others_without_element = len(others)  # the source gets no request before this is 0

    def on_input_next(self, input_: JoinInput, element: Any) -> None:
        if input_ is self._main:
            super().on_input_next(input_, element)
            return
        if self._latest[input_] is NO_ELEMENT:
            self._others_without_element -= 1
        self._latest[input_] = element
        if input_.outstanding <= HALF_WINDOW:
            input_.request(WINDOW - input_.outstanding)
        self._run_loop()

    def _pass_on(self, element: Any) -> None:
        super()._pass_on((element, *self._latest.values()))

    def _request_new_demand(self) -> bool:
        if not self._has_new_demand:
            return False
        if self._others_without_element:
            return self._request_first_of_others()
        self._has_new_demand = False
        self._request_missing(self._main)
        return True

    def _request_first_of_others(self) -> bool:
        """Request from each other source that was not asked before.
        Return False if all were asked.
        """
        fresh = [
            input_
            for input_ in self._latest
            if not input_.outstanding and not input_.ended and self._latest[input_] is NO_ELEMENT
        ]
        for input_ in fresh:
            input_.request(WINDOW)
        return bool(fresh)

    def _after_input_change(self, input_: JoinInput) -> None:
        if input_ is self._main:
            super()._after_input_change(input_)
        elif self._latest.get(input_) is NO_ELEMENT:
            self._completion_due = True  # no tuple is possible

    def _on_input_removed(self) -> None:
        self._completion_due = True

    def _release(self) -> None:
        super()._release()
        self._latest.clear()
