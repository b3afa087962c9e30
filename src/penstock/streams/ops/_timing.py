"""Operators that use the clock: `debounce`, `throttle`, `timeout`, `delay`, `sample`.

They do not relax demand. Their clock runs only while elements are requested from upstream, because
without demand a source has to be silent. If a source must not wait for a slow subscriber, put
`drop` or `latest` before them.
"""

from abc import abstractmethod
from collections import deque
from math import inf
from typing import Final, TypeVar

import trio

from penstock.api import StreamTimeout, Subscriber, UsageError, add_demand
from penstock.core import Scope, check_seconds, held_bytes
from penstock.reader import DEFAULT_DEMAND
from penstock.streams.ops._holding_stage import HoldingStage
from penstock.streams.ops._operator import SameTypeOperator
from penstock.streams.ops._stage import Stage, StageOperator
from penstock.streams.ops._timer import Timer

A = TypeVar("A")

DELAY_SIZE: Final = DEFAULT_DEMAND
"""How many elements `delay` may hold by default: as many as a stream requests by default."""


def debounce(seconds: float) -> SameTypeOperator:
    """Pass on an element if no newer one follows within `seconds` of asking for it; an element that
    a newer one follows is left out.

    Upstream demand: 1 at a time, renewed while downstream demand is left: 1 per downstream demand,
    1 more for each element left out, and 1 more that is already under way.
    Buffer: 1 element. If it arrives after demand has run out, it waits,
    and its time begins with the next request.
    On completion the waiting element is passed on, once requested, then completion.
    An error passes at once, and that element is dropped. A cancel drops it too.
    `subscribe` without `demand` requests one element ahead of its reader,
    so the reader gets no older ones.
    """
    seconds = check_seconds(seconds, "debounce(seconds)")
    label = f"debounce({seconds:g})"
    return StageOperator(
        label,
        lambda downstream, scope: _DebounceStage(downstream, scope, seconds, label),
        prefetch=1,
    )


def throttle(seconds: float) -> SameTypeOperator:
    """Pass on an element at once, then leave out the elements that arrive within `seconds` of it.

    No element is passed on late, not even the last one left out. The next one passed on is the
    first that arrives after that time.

    Upstream demand: 1 per downstream demand, and 1 more for each element left out. Buffer: none.
    Completion, errors and cancellation pass straight through.
    """
    seconds = check_seconds(seconds, "throttle(seconds)")
    return StageOperator(
        f"throttle({seconds:g})", lambda downstream, scope: _ThrottleStage(downstream, seconds)
    )


def timeout(seconds: float) -> SameTypeOperator:
    """Fail with `StreamTimeout` and cancel upstream if an element is requested
    and no signal arrives for `seconds`.

    The time begins with the request, and again with each element while more are requested.
    It never runs without demand.

    Upstream demand: 1 per downstream demand. Buffer: none.
    Completion, errors and cancellation pass straight through.
    """
    seconds = check_seconds(seconds, "timeout(seconds)")
    label = f"timeout({seconds:g})"
    return StageOperator(
        label, lambda downstream, scope: _TimeoutStage(downstream, scope, seconds, label)
    )


def delay(seconds: float, *, size: int = DELAY_SIZE) -> SameTypeOperator:
    """Pass on each element `seconds` after it arrived. The order and the distances stay.

    >>> await collect(pipe(interval(1), ops.delay(0.5), ops.take(3)))
    [0, 1, 2]

    Upstream demand: 1 per downstream demand, at most `size` (by default 256) ahead. Buffer:
    `size` elements.
    So at most `size` elements pass within `seconds`; a faster source waits.
    Completion comes after the held elements. An error passes at once, and held elements are
    dropped. A cancel drops them too.
    """
    seconds = check_seconds(seconds, "delay(seconds)")
    if type(size) is not int or size < 1:
        raise UsageError(
            f"delay(size={size!r}): give how many elements it may hold, an integer of at least 1"
        )
    label = f"delay({seconds:g})"
    return StageOperator(
        label, lambda downstream, scope: _DelayStage(downstream, scope, seconds, size, label)
    )


def sample(seconds: float) -> SameTypeOperator:
    """Every `seconds` pass on the newest element that arrived since the last time;
    the others are left out.

    If no element arrived since the last time, none is passed on. The clock runs while elements are
    requested, and its first period begins with the request.

    >>> await collect(pipe(interval(0.3), ops.sample(1), ops.take(2)))
    [2, 5]

    Upstream demand: 1 at a time, renewed while downstream demand is left: 1 per downstream demand,
    1 more for each element left out, and 1 more that is already under way.
    Buffer: 1 element. If it arrives after demand has run out,
    it waits for the first period after the next request.
    On completion the waiting element is passed on, once requested, then completion.
    An error passes at once, and that element is dropped. A cancel drops it too.
    `subscribe` without `demand` requests one element ahead of its reader,
    so the reader gets no older ones.
    """
    seconds = check_seconds(seconds, "sample(seconds)")
    label = f"sample({seconds:g})"
    return StageOperator(
        label, lambda downstream, scope: _SampleStage(downstream, scope, seconds, label), prefetch=1
    )


class _NewestStage(HoldingStage[A, A]):
    """Holds the newest element until it is due, and requests one element at a time."""

    __slots__ = ("_is_due", "_is_outstanding", "_newest", "_seconds", "_timer")

    def __init__(self, downstream: Subscriber[A], scope: Scope, seconds: float, label: str) -> None:
        super().__init__(downstream)
        self._seconds = seconds
        self._newest: A | None = None
        self._is_outstanding = False  # True between request(1) and its element
        self._is_due = False  # for debounce until the next element, for sample in _on_deadline
        self._timer = Timer(scope, label, on_deadline=self._on_deadline, fail=self._fail)

    @abstractmethod
    def _on_deadline(self) -> None:
        """Let the newest element be due, and pass it on."""

    def _has_held(self) -> bool:
        return self._newest is not None

    def _next_due(self) -> A | None:
        if not (self._is_due or self._upstream_completed):
            return None
        newest, self._newest = self._newest, None
        return newest

    @property
    def _held_count(self) -> int:
        return int(self._newest is not None)

    def _release(self) -> None:
        self._newest = None
        self._timer.stop()


class _DebounceStage(_NewestStage[A]):
    __slots__ = ()

    def on_next(self, element: A, /) -> None:
        if self._is_over:
            return
        self._newest = element
        self._is_outstanding = self._is_due = False
        self._pass_on()

    def _on_deadline(self) -> None:
        self._is_due = True
        self._pass_on()

    def _request_upstream(self) -> None:
        if self._is_outstanding or not self._demand:
            return
        self._is_outstanding = True
        if self._newest is not None:  # its time begins now, with the request for a newer element
            self._timer.set(self._seconds)
        self._upstream.request(1)


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
                f"no signal arrived within {self._seconds:g} s of a request. Give timeout() more "
                "seconds, find out why the source is silent, or go on with retry() or "
                "on_error_resume() after it"
            )
        )

    def _release(self) -> None:
        self._timer.stop()


class _DelayStage(HoldingStage[A, A]):
    """No more is requested than downstream has requested, so each element is requested
    when its time has come.
    """

    __slots__ = ("_bytes", "_held", "_outstanding", "_seconds", "_size", "_timer")

    def __init__(
        self, downstream: Subscriber[A], scope: Scope, seconds: float, size: int, label: str
    ) -> None:
        super().__init__(downstream)
        self._bytes = held_bytes(scope.memory)
        self._seconds = seconds
        self._size = size
        # With the time when each is due; bounded by size.
        self._held: deque[tuple[float, A]] = deque()
        self._outstanding = 0  # requested from upstream and not yet arrived
        self._timer = Timer(scope, label, on_deadline=self._on_deadline, fail=self._fail)

    def on_next(self, element: A, /) -> None:
        if self._is_over:
            return
        self._outstanding -= 1
        self._held.append((trio.current_time() + self._seconds, element))
        if len(self._held) == 1:
            self._timer.set(self._seconds)
        if self._bytes is not None:
            self._bytes.add(element)

    def _on_deadline(self) -> None:
        self._pass_on()
        if self._held:
            self._timer.set(self._held[0][0] - trio.current_time())

    def _has_held(self) -> bool:
        return bool(self._held)

    def _next_due(self) -> A | None:
        if self._held and self._held[0][0] <= trio.current_time():
            element = self._held.popleft()[1]
            if self._bytes is not None:
                self._bytes.take((element,))
            return element
        return None

    def _request_upstream(self) -> None:
        used = self._outstanding + len(self._held)
        missing = min(self._demand, self._size) - used
        # Half of size at a time, or everything that downstream has requested:
        # one call for each element would be slower.
        if missing > 0 and (missing >= self._size // 2 or used + missing == self._demand):
            self._outstanding += missing
            self._upstream.request(missing)

    @property
    def _held_count(self) -> int:
        return len(self._held)

    def _release(self) -> None:
        self._held.clear()
        if self._bytes is not None:
            self._bytes.clear()
        self._timer.stop()


class _SampleStage(_NewestStage[A]):
    __slots__ = ("_is_ticking",)

    def __init__(self, downstream: Subscriber[A], scope: Scope, seconds: float, label: str) -> None:
        super().__init__(downstream, scope, seconds, label)
        self._is_ticking = False  # the timer is set

    def on_next(self, element: A, /) -> None:
        if self._is_over:
            return
        self._newest = element
        self._is_outstanding = False
        self._pass_on()

    def _on_deadline(self) -> None:
        self._is_ticking = False
        self._is_due = True
        self._pass_on()
        self._is_due = False

    def _request_upstream(self) -> None:
        if not self._demand:
            return
        if not self._is_ticking:
            self._is_ticking = True
            self._timer.set(self._seconds)
        if not self._is_outstanding:
            self._is_outstanding = True
            self._upstream.request(1)
