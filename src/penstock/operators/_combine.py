"""Operators that run several sources side by side: `merge`, `zip`, `combine_latest`."""

from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar, overload

from penstock.api import Subscriber
from penstock.core import Scope, Streamable
from penstock.operators._join import NOTHING, JoinInput, JoinStage, joint
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
    return joint("merge", MergeStage, others)


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
    return joint("zip", _ZipStage, others)


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
    return joint("combine_latest", _CombineLatestStage, others)


class MergeStage(JoinStage):
    """Whatever arrives goes on; where more waits than may go on, the inlets take turns."""

    __slots__ = ("_ready",)

    def __init__(self, downstream: Subscriber[Any], scope: Scope) -> None:
        super().__init__(downstream, scope)
        self._ready: deque[JoinInput] = deque()  # inlets in which something waits, in the order of their turns; each of them once

    def arrived(self, inlet: JoinInput, element: Any) -> None:
        if self._busy or not self._demand:
            if not inlet.waiting:
                self._ready.append(inlet)
            inlet.waiting.append(element)
            self._run()
            return
        # While there is demand nothing waits, so this one is next: a turn of the loop, without the detour through what waits.
        self._busy = True
        try:
            self._pass_on(element)
            self._settle(inlet)
        finally:
            self._busy = False
        if self._missed:
            self._run()

    def _step(self) -> bool:
        if self._ready and self._demand:
            inlet = self._ready.popleft()
            element = inlet.waiting.pop(0)
            if inlet.waiting:
                self._ready.append(inlet)
            self._pass_on(element)
            self._settle(inlet)
            return True
        return self._renew_all()

    def _settle(self, inlet: JoinInput) -> None:
        if not inlet.ended:
            self._renew(inlet)
        elif not inlet.waiting and self._inlets.pop(inlet, False):
            self._retired()

    def _retired(self) -> None:
        """Nothing more comes out of an inlet: called once for each."""
        self._done = not self._inlets

    def _release(self) -> None:
        self._ready.clear()


class _ZipStage(JoinStage):
    __slots__ = ("_lacking",)

    def _prepare(self, inlets: Sequence[JoinInput]) -> None:
        self._lacking = len(inlets)  # inlets in which nothing waits

    def arrived(self, inlet: JoinInput, element: Any) -> None:
        if not inlet.waiting:
            self._lacking -= 1
        inlet.waiting.append(element)
        self._run()

    def _step(self) -> bool:
        if self._lacking or not self._demand:
            return self._renew_all()
        row = tuple([inlet.waiting.pop(0) for inlet in self._inlets])
        self._lacking = sum(not inlet.waiting for inlet in self._inlets)
        self._pass_on(row)
        for inlet in tuple(self._inlets):
            self._settle(inlet)
        return True

    def _settle(self, inlet: JoinInput) -> None:
        if not inlet.ended:
            self._renew(inlet)
        elif not inlet.waiting:
            self._done = True

    def _ahead(self) -> int:
        # Where a source has ended, its last elements need as many partners; beyond that, others would be asked for nothing.
        return min([super()._ahead(), *(len(inlet.waiting) for inlet in self._inlets if inlet.ended)])


class _CombineLatestStage(JoinStage):
    __slots__ = ("_arrivals", "_latest", "_missing")

    def _prepare(self, inlets: Sequence[JoinInput]) -> None:
        self._arrivals: deque[JoinInput] = deque()  # an entry for each element that waits, in order of arrival
        self._latest: dict[JoinInput, Any] = dict.fromkeys(inlets, NOTHING)
        self._missing = len(inlets)  # sources that have not given an element yet

    def arrived(self, inlet: JoinInput, element: Any) -> None:
        inlet.waiting.append(element)
        self._arrivals.append(inlet)
        self._run()

    def _step(self) -> bool:
        if not self._arrivals or not self._demand:
            return self._renew_all()
        inlet = self._arrivals.popleft()
        self._missing -= self._latest[inlet] is NOTHING
        self._latest[inlet] = inlet.waiting.pop(0)
        if not self._missing:
            self._pass_on(tuple(self._latest.values()))
        self._settle(inlet)
        return True

    def _settle(self, inlet: JoinInput) -> None:
        if not inlet.ended:
            self._renew(inlet)
        elif not inlet.waiting:
            self._inlets.pop(inlet, None)
            self._done = self._done or not self._inlets or self._latest[inlet] is NOTHING

    def _release(self) -> None:
        self._arrivals.clear()
        self._latest.clear()
