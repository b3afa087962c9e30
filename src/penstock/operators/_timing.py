"""Operators that use the clock: `debounce`, `throttle`, `timeout`.

They do not relax demand. Their clock runs only while elements are requested from upstream, because without demand a source has to be
silent. If a source must not wait for a slow subscriber, put `drop` or `latest` before them.
"""

from math import inf
from typing import TypeVar

import trio

from penstock.api import StreamTimeout, Subscriber, add_demand
from penstock.core import Scope, check_seconds
from penstock.operators._holding_stage import HoldingStage
from penstock.operators._stage import Operator, Stage, StageOperator
from penstock.operators._timer import Timer

A = TypeVar("A")


def debounce(seconds: float) -> Operator[A, A]:
    """Pass on an element if no newer one follows within `seconds` of asking for it; an element that a newer one follows is left out.

    Upstream demand: 1 at a time, renewed while downstream demand is left: 1 per downstream demand, 1 more for each element left out,
    and 1 more that is already under way.
    Buffer: 1 element. If it arrives after demand has run out, it waits, and its time begins with the next request.
    On completion the waiting element is passed on, once requested, then completion.
    An error passes at once, and that element is dropped. A cancel drops it too.
    `subscribe` without `demand` requests one element ahead of its reader, so the reader gets no older ones.
    """
    seconds = check_seconds(seconds, "debounce(seconds)")
    label = f"debounce({seconds:g})"
    return StageOperator(label, lambda downstream, scope: _DebounceStage(downstream, scope, seconds, label), prefetch=1)


def throttle(seconds: float) -> Operator[A, A]:
    """Pass on an element at once, then leave out the elements that arrive within `seconds` of it.

    No element is passed on late, not even the last one left out. The next one passed on is the first that arrives after that time.

    Upstream demand: 1 per downstream demand, and 1 more for each element left out. Buffer: none.
    Completion, errors and cancellation pass straight through.
    """
    seconds = check_seconds(seconds, "throttle(seconds)")
    return StageOperator(f"throttle({seconds:g})", lambda downstream, scope: _ThrottleStage(downstream, seconds))


def timeout(seconds: float) -> Operator[A, A]:
    """Fail with `StreamTimeout` and cancel upstream if an element is requested and no signal arrives for `seconds`.

    The time begins with the request, and again with each element while more are requested. It never runs without demand.

    Upstream demand: 1 per downstream demand. Buffer: none.
    Completion, errors and cancellation pass straight through.
    """
    seconds = check_seconds(seconds, "timeout(seconds)")
    label = f"timeout({seconds:g})"
    return StageOperator(label, lambda downstream, scope: _TimeoutStage(downstream, scope, seconds, label))


class _DebounceStage(HoldingStage[A, A]):
    __slots__ = ("_is_due", "_is_outstanding", "_newest", "_seconds", "_timer")

    def __init__(self, downstream: Subscriber[A], scope: Scope, seconds: float, label: str) -> None:
        super().__init__(downstream)
        self._seconds = seconds
        self._newest: A | None = None
        self._is_outstanding = False  # True between request(1) and its element
        self._is_due = False
        self._timer = Timer(scope, label, on_deadline=self._on_deadline, fail=self._fail)

    def on_next(self, element: A, /) -> None:
        if self._is_over:
            return
        self._newest = element
        self._is_outstanding = self._is_due = False
        self._pass_on()

    def _on_deadline(self) -> None:
        self._is_due = True
        self._pass_on()

    def _has_held(self) -> bool:
        return self._newest is not None

    def _next_due(self) -> A | None:
        if not (self._is_due or self._upstream_completed):
            return None
        newest, self._newest = self._newest, None
        return newest

    def _request_upstream(self) -> None:
        if self._is_outstanding or not self._demand:
            return
        self._is_outstanding = True
        if self._newest is not None:  # its time begins now, with the request for a newer element
            self._timer.set(self._seconds)
        self._upstream.request(1)

    def _release(self) -> None:
        self._newest = None
        self._timer.stop()


class _ThrottleStage(Stage[A, A]):
    """Needs no task: the clock is read when an element arrives."""

    __slots__ = ("_opens_at", "_seconds")

    def __init__(self, downstream: Subscriber[A], seconds: float) -> None:
        super().__init__(downstream)
        self._seconds = seconds
        self._opens_at = -inf

    def on_next(self, element: A, /) -> None:
        now = trio.current_time()
        if now >= self._opens_at:
            self._opens_at = now + self._seconds
            self._downstream.on_next(element)
        else:
            self._upstream.request(1)


class _TimeoutStage(Stage[A, A]):
    __slots__ = ("_demand", "_seconds", "_timer")

    def __init__(self, downstream: Subscriber[A], scope: Scope, seconds: float, label: str) -> None:
        super().__init__(downstream)
        self._demand = 0  # requested and not yet arrived
        self._seconds = seconds
        self._timer = Timer(scope, label, on_deadline=self._on_deadline, fail=self._fail)

    def request(self, n: int, /) -> None:
        if self._is_over:
            return
        if not self._demand:  # a further request does not move the deadline of the first one
            self._timer.set(self._seconds)
        self._demand = add_demand(self._demand, n)
        self._upstream.request(n)

    def on_next(self, element: A, /) -> None:
        self._demand -= 1
        if self._demand:
            self._timer.set(self._seconds)
        else:
            self._timer.clear()
        self._downstream.on_next(element)

    def _on_deadline(self) -> None:
        self._fail(
            StreamTimeout(
                f"no signal arrived within {self._seconds:g} s of a request. Give timeout() more seconds, "
                "find out why the source is silent, or go on with retry() or on_error_resume() after it"
            )
        )

    def _release(self) -> None:
        self._timer.stop()
