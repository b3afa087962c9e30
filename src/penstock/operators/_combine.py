"""Operators that run several sources side by side: `merge`, `zip`, `combine_latest`."""

from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar, overload

from penstock.api import Subscriber
from penstock.core import Scope, Streamable
from penstock.operators._join import NO_ELEMENT, JoinInput, JoinStage, join_operator
from penstock.operators._stage import Operator

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


def merge(*others: Streamable[B]) -> Operator[A, A | B]:
    """Pass on the elements of the source and of all `others` as they arrive; those that wait take turns by source.

    Upstream demand: 1 per downstream demand from each source, at most 16 ahead. Buffer: up to 16 for each source.
    Completes when all sources have. An error overtakes what waits and cancels the other sources; cancelling cancels them all.
    """
    return join_operator("merge", MergeStage, others)


@overload
def zip(b: Streamable[B], /) -> Operator[A, tuple[A, B]]: ...  # noqa: A001  # the word that everybody knows
@overload
def zip(b: Streamable[B], c: Streamable[C], /) -> Operator[A, tuple[A, B, C]]: ...  # noqa: A001  # the same word
@overload
def zip(b: Streamable[B], c: Streamable[C], d: Streamable[D], /) -> Operator[A, tuple[A, B, C, D]]: ...  # noqa: A001  # the same word
@overload
def zip(*others: Streamable[Any]) -> Operator[Any, tuple[Any, ...]]: ...  # noqa: A001  # the same word
def zip(*others: Streamable[Any]) -> Operator[Any, Any]:  # noqa: A001  # the same word
    """Pass on tuples: of the first elements of the source and of each of `others`, then of the second ones, and so on.

    Upstream demand: 1 per downstream demand from each source, at most 16 ahead. Buffer: up to 16 for each source.
    Completes, and cancels the others, when a source has ended and nothing of it waits; that needs no demand.
    An error overtakes what waits and cancels the other sources; cancelling cancels them all.
    """
    return join_operator("zip", _ZipStage, others)


@overload
def combine_latest(b: Streamable[B], /) -> Operator[A, tuple[A, B]]: ...
@overload
def combine_latest(b: Streamable[B], c: Streamable[C], /) -> Operator[A, tuple[A, B, C]]: ...
@overload
def combine_latest(b: Streamable[B], c: Streamable[C], d: Streamable[D], /) -> Operator[A, tuple[A, B, C, D]]: ...
@overload
def combine_latest(*others: Streamable[Any]) -> Operator[Any, tuple[Any, ...]]: ...
def combine_latest(*others: Streamable[Any]) -> Operator[Any, Any]:
    """Pass on, for each element that arrives, a tuple of the latest elements of the source and of all `others`.

    It begins when each source has given one; until then a source's newer element replaces its older one.
    From then on each element makes a tuple of its own: what arrives without demand below waits, in order of arrival.

    Upstream demand: 1 per downstream demand from each source, at most 16 ahead, and 1 more for each element that was replaced.
    Buffer: up to 16 for each source, and the latest element of each.
    Completes when all sources have, or when one has that never gave an element.
    An error overtakes what waits and cancels the other sources; cancelling cancels them all.
    """
    return join_operator("combine_latest", _CombineLatestStage, others)


class MergeStage(JoinStage):
    """Whatever arrives goes on; where more waits than may go on, the inlets take turns."""

    __slots__ = ("_ready",)

    def __init__(self, downstream: Subscriber[Any], scope: Scope) -> None:
        super().__init__(downstream, scope)
        self._ready: deque[JoinInput] = deque()  # inlets in which something waits, in the order of their turns; each of them once

    def on_input_next(self, input_: JoinInput, element: Any) -> None:
        if self._is_running or not self._demand:
            if not input_.waiting:
                self._ready.append(input_)
            input_.waiting.append(element)
            self._run_loop()
            return
        # While there is demand nothing waits, so this one is next: a turn of the loop, without the detour through what waits.
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
        """Nothing more comes out of an inlet: called once for each."""
        self._completion_due = not self._inputs

    def _release(self) -> None:
        self._ready.clear()


class _ZipStage(JoinStage):
    __slots__ = ("_empty_inputs",)

    def _prepare_inputs(self, inputs: Sequence[JoinInput]) -> None:
        self._empty_inputs = len(inputs)  # inlets in which nothing waits

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
        # Where a source has ended, its last elements need as many partners; beyond that, others would be asked for nothing.
        return min([super()._max_ahead(), *(len(input_.waiting) for input_ in self._inputs if input_.ended)])


class _CombineLatestStage(JoinStage):
    __slots__ = ("_arrivals", "_inputs_without_element", "_latest")

    def _prepare_inputs(self, inputs: Sequence[JoinInput]) -> None:
        self._arrivals: deque[JoinInput] = deque()  # an entry for each element that waits, in order of arrival
        self._latest: dict[JoinInput, Any] = dict.fromkeys(inputs, NO_ELEMENT)
        self._inputs_without_element = len(inputs)  # sources that have not given an element yet

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
            self._completion_due = self._completion_due or not self._inputs or self._latest[input_] is NO_ELEMENT

    def _release(self) -> None:
        self._arrivals.clear()
        self._latest.clear()
