"""`window`: a stream as streams of a number of elements, or of a time."""

from collections import deque
from typing import Any, TypeVar

from penstock.api import UNBOUNDED, Subscriber
from penstock.core import Scope, check_count, check_seconds
from penstock.streams._slow_subscribers import SlowPolicy
from penstock.streams._source import Source
from penstock.streams.ops._holding_stage import HoldingStage
from penstock.streams.ops._inner_source import InnerSource
from penstock.streams.ops._operator import WindowOperator
from penstock.streams.ops._output_queue import End, OutputQueue, Overflow, QueueOwner
from penstock.streams.ops._stage import ENDED_UPSTREAM, StageOperator
from penstock.streams.ops._timer import Timer

A = TypeVar("A")


def window(count: int, seconds: float | None = None) -> WindowOperator:
    """Pass on streams of `count` elements each; the last one may be shorter.
    `batch` passes on lists.

    A window opens with its first element, and its elements can be read as they arrive. With
    `seconds`, it completes at the latest `seconds` after it has opened. A window can be subscribed
    to once. Elements of a window whose subscriber has cancelled are dropped.

    >>> total = lambda part: pipe(part, ops.reduce(operator.add, 0))
    >>> await collect(pipe([1, 2, 3, 4, 5], ops.window(2), ops.flat_map(total)))
    [3, 7, 5]

    Upstream demand: `count` per downstream demand; with `seconds` at most 2·`count` at a time.
    Buffer: `count` elements in a window, until they are requested from it; with `seconds`
    2·`count`, because a short window uses up downstream demand while elements are under way.
    On completion the open window completes first. An error passes at once, to the open window too,
    and waiting elements are dropped.
    After a cancel an open window with a subscriber goes on to its end,
    and upstream is cancelled then; otherwise at once.
    """
    count = check_count(count, "window: count", least=1)
    if seconds is not None:
        seconds = check_seconds(seconds, "window(seconds=…)")
    label = f"window({count})" if seconds is None else f"window({count}, seconds={seconds:g})"
    return StageOperator(
        label, lambda downstream, scope: _WindowStage(downstream, scope, count, seconds, label)
    )


class _WindowStage(HoldingStage[A, Source[A]], QueueOwner):
    """Fills one window at a time.
    Elements are held outside of a window only if no window is requested.
    """

    __slots__ = ("_count", "_filled", "_held", "_open", "_outstanding", "_seconds", "_timer")

    def __init__(
        self,
        downstream: Subscriber[Source[A]],
        scope: Scope,
        count: int,
        seconds: float | None,
        label: str,
    ) -> None:
        super().__init__(downstream)
        self._count = count
        self._seconds = seconds
        self._open: OutputQueue[A] | None = None
        self._filled = 0  # elements that the open window has got
        # Bounded: no more than 2 * count are requested at a time,
        # and without `seconds` none is held.
        self._held: deque[A] = deque()
        self._outstanding = 0  # requested from upstream and not yet arrived
        self._timer = Timer(scope, label, on_deadline=self._on_deadline, fail=self._fail)

    # --- called by upstream

    def on_next(self, element: A, /) -> None:
        self._outstanding -= 1
        if self._open is not None:
            self._add(self._open, element)
        elif self._demand and not self._is_passing_on:
            # Outside the loop of _pass_on nothing is held while there is demand, so this element
            # opens a window without the loop.
            self._demand -= 1
            # Opened before the signal: it fails the stream if the timer cannot start.
            window = self._open_window(element)
            self._downstream.on_next(window)
            if not self._is_over:
                self._request_upstream()
        elif not self._is_over:
            self._held.append(element)

    def on_complete(self, /) -> None:
        self._upstream = ENDED_UPSTREAM
        self._close_window(End(None))
        super().on_complete()

    def on_error(self, error: BaseException, /) -> None:
        self._upstream = ENDED_UPSTREAM
        self._close_window(End(error))
        super().on_error(error)

    # --- called by downstream, and by the windows

    def cancel(self, /) -> None:
        if self._mark_over():
            self._detach_downstream()
            if self._open is None or not self._open.has_subscriber:
                self._end_after_cancel()

    def on_queue_demand(self, queue: OutputQueue[Any]) -> None:
        """Do nothing: every element of a window is requested when the window is."""

    def on_queue_closed(self, queue: OutputQueue[Any]) -> None:
        if self._is_over and queue is self._open:
            self._end_after_cancel()

    # --- the windows

    def _open_window(self, element: A) -> Source[A]:
        self._filled = 0
        self._open = window = OutputQueue[A](self, Overflow(SlowPolicy.WAIT, self._count))
        self._add(window, element)
        while self._held and self._open is window:
            self._add(window, self._held.popleft())
        if self._open is window:
            if self._upstream_completed:
                self._close_window(End(None))
            elif self._seconds is not None:
                self._timer.set(self._seconds)
        return InnerSource(window)

    def _add(self, window: OutputQueue[A], element: A) -> None:
        self._filled += 1
        is_full = self._filled == self._count
        window.push(element)
        # Its subscriber may have cancelled both streams inside on_next.
        if is_full and self._open is window:
            self._close_window(End(None))

    def _close_window(self, end: End) -> None:
        window, self._open = self._open, None
        self._timer.clear()
        if window is not None:
            window.end(end)
            if self._is_over:
                self._end_after_cancel()

    def _on_deadline(self) -> None:
        self._close_window(End(None))
        self._pass_on()

    def _end_after_cancel(self) -> None:
        """Drop the open window and cancel upstream:
        the outer stream was cancelled, and no window is read any more.
        """
        window, self._open = self._open, None
        self._timer.stop()
        self._cancel_upstream()
        if window is not None:
            window.cancel()

    def _fail(self, error: BaseException) -> None:
        window, self._open = self._open, None
        if self._is_over:
            self._end_after_cancel()
        else:
            super()._fail(error)
        if window is not None:
            window.end(End(error))

    # --- for the base class

    def _has_held(self) -> bool:
        return bool(self._held)

    def _next_due(self) -> Source[A] | None:
        if self._open is not None or not self._held:
            return None
        return self._open_window(self._held.popleft())

    def _request_upstream(self) -> None:
        rest = self._count - self._filled if self._open is not None else 0
        # With `seconds` one window ahead: a short one uses up demand, and the elements that were
        # requested for it must be held then.
        windows = self._demand if self._seconds is None else min(self._demand, 1)
        missing = min(UNBOUNDED, rest + windows * self._count) - self._outstanding - len(self._held)
        if missing > 0:
            self._outstanding += missing
            self._upstream.request(missing)

    @property
    def _held_count(self) -> int:
        return len(self._held)

    def _release(self) -> None:
        self._held.clear()
        if self._open is None or not self._open.has_subscriber:
            self._timer.stop()
