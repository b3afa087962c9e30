"""`repeat`: the same source again after its completion."""

from typing import Any, TypeVar

import trio

from penstock.api import Subscriber, UsageError, add_demand
from penstock.core import Scope, check_seconds
from penstock.streams._source import Source
from penstock.streams.ops._operator import OperatorBase, SameTypeOperator
from penstock.streams.ops._reattaching_stage import ReattachingStage
from penstock.streams.ops._stage import ENDED_UPSTREAM, stopped_error

A = TypeVar("A")


def repeat(count: int | None, *, pause: float = 0.0) -> SameTypeOperator:
    """Pass on the elements of the source `count` times in all (None: without end). Each run
    subscribes to the source again.

    A run begins `pause` seconds after the one before has completed, and
    when elements are requested.
    A source without elements is repeated too, one scheduler pass after the other:
    give a `pause` if that is possible.
    To subscribe again after an error, use `retry`.

    >>> await collect(pipe([1, 2], ops.repeat(2)))
    [1, 2, 1, 2]

    Upstream demand: 1 per downstream demand; demand that one run left goes to the next. Buffer:
    none.
    Completes with the last run. Errors and cancellation pass straight through;
    a cancel also ends the pause.
    """
    if count is not None and (type(count) is not int or count < 1):
        raise UsageError(
            f"repeat({count!r}): give how many times in all, an integer of at least 1, or None for "
            "no end"
        )
    return _Repeat(count, check_seconds(pause, "repeat(pause=…)", zero=True))


class _Repeat(OperatorBase[Any, Any]):
    __slots__ = ("_count", "_pause")

    def __init__(self, count: int | None, pause: float) -> None:
        self._count = count
        self._pause = pause

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        source.attach(_RepeatStage(subscriber, scope, source, self._count, self._pause), scope)

    def __repr__(self) -> str:
        return f"<operator repeat({self._count})>"


class _RepeatStage(ReattachingStage[A]):
    __slots__ = ("_pause", "_runs_left", "_source")

    def __init__(
        self,
        downstream: Subscriber[A],
        scope: Scope,
        source: Source[A],
        count: int | None,
        pause: float,
    ) -> None:
        super().__init__(downstream, scope, f"repeat({count})")
        self._source = source
        self._runs_left = count  # runs that have not completed; None: no end
        self._pause = pause

    def request(self, n: int, /) -> None:
        # Between two runs upstream has ended.
        # If no task attaches the next run yet, the run before left no demand.
        if self._upstream is not ENDED_UPSTREAM or self._task_scope is not None:
            super().request(n)
        elif not self._is_over:
            self._demand = add_demand(self._demand, n)
            self._start_run()

    def on_complete(self, /) -> None:
        if self._runs_left is not None:
            self._runs_left -= 1
        if self._runs_left == 0:
            super().on_complete()
            return
        self._upstream = ENDED_UPSTREAM
        if self._demand:
            self._start_run()

    def _start_run(self) -> None:
        try:
            self._spawn(self._run_again)
        except UsageError as closed:
            self._fail(closed)

    async def _run_again(self) -> None:
        try:
            await trio.sleep(self._pause)  # also a checkpoint without a pause
        except BaseException:
            # No effect if the end of the stream was what cancelled this task.
            self._fail(stopped_error(self._label))
            raise
        if not self._is_over:
            # First: the source may complete inside attach, and so start the next task.
            self._task_scope = None
            self._attach(self._source)
