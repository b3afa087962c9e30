"""`take_until`: the elements of a source until another stream, `stop`, gives its first element.

Rules of this file:

* `stop` is subscribed to first, and one element of it is requested at once.
* If `stop` has its element at hand, no element of the source goes on. Some sources signal such an
  element inside `request`: a topic with retained elements, `single`. Others signal it from another
  task, one or two scheduler passes later: a list, a generator, a channel. So the source gets no
  request during the head start of `stop`.
* The head start ends when `stop` has begun no further task for `QUIET_PASSES` scheduler passes: an
  operator with an async function begins a task when an element reaches it.
* A stop that begins no task has signalled inside `request`, or has nothing at hand.
  It gets no head start, and costs no task.
"""

from collections.abc import Sequence
from typing import Any, Final

import trio

from penstock.api import Subscriber, UsageError
from penstock.core import Scope
from penstock.streams._source import Source, Streamable
from penstock.streams.ops._join import JoinInput, JoinStage, join_operator
from penstock.streams.ops._operator import SameTypeOperator

QUIET_PASSES: Final = 3
"""Scheduler passes without a new task: a pump signals in the first one, a memory channel and
`timer(0)` in the second one.
"""

MOST_PASSES: Final = 64
"""The longest head start: other streams of the same scope may begin tasks all the time."""


def take_until(stop: Streamable[object], /) -> SameTypeOperator:
    """Pass on the elements of the source until `stop` gives its first element.
    Then complete, and cancel both.

    `stop` is subscribed to first. If it has an element at hand, nothing is passed on, with any kind
    of source: a list, a generator that yields before it waits, a channel with an element, a topic
    with a retained one. If `stop` completes without an element, it changes nothing. A
    `penstock.timer` as `stop` ends the stream after a time.

    >>> await collect(pipe(interval(1), ops.take_until(interval(3.5))))
    [0, 1, 2]
    >>> await collect(pipe([1, 2, 3], ops.take_until(["now"])))
    []

    Upstream demand: 1 per downstream demand; 1 element of `stop`, at once. Buffer: none.
    Completion of the source, errors of both and cancellation pass straight through.
    """
    return join_operator("take_until", _TakeUntilStage, (stop,))


class _TakeUntilStage(JoinStage):
    """Passes signals and requests straight through. Only an element of `stop` is looked at."""

    __slots__ = ("_head_start", "_main", "_stop")

    def __init__(self, downstream: Subscriber[Any], scope: Scope) -> None:
        super().__init__(downstream, scope)
        # around the task that waits for the end of the head start.
        self._head_start: trio.CancelScope | None = None

    def _prepare_inputs(self, inputs: Sequence[JoinInput]) -> None:
        self._main, self._stop = inputs

    def _attach_all(self, inputs: Sequence[JoinInput], sources: Sequence[Source[Any]]) -> None:
        main, stop = sources
        before = self._scope.begun
        super()._attach_all([self._stop], [stop])
        if self._is_live and not self._stop.ended:
            self._stop.request(1)
        if (
            self._stop.outstanding
            and self._scope.begun != before
            and self._is_live
            and not self._completion_due
        ):
            self._begin_head_start()
        super()._attach_all([self._main], [main])

    def _begin_head_start(self) -> None:
        try:
            self._head_start = self._scope.spawn(
                self._wait_for_stop, name="penstock head start of the stop of take_until"
            )
        except UsageError as closed:
            self.fail(closed)

    async def _wait_for_stop(self) -> None:
        quiet = 0
        for _ in range(MOST_PASSES):
            before = self._scope.begun
            await trio.lowlevel.checkpoint()
            quiet = quiet + 1 if self._scope.begun == before else 0
            if quiet == QUIET_PASSES:
                break
        self._head_start = None
        self._run_loop()

    def on_input_next(self, input_: JoinInput, element: Any) -> None:
        if input_ is self._stop:
            # At once: the completion may have to wait for the end of an on_next further up the
            # stack.
            self._main.close()
            self._completion_due = True
            self._run_loop()
            return
        was_running, self._is_running = self._is_running, True
        try:
            self._pass_on(element)
        finally:
            self._is_running = was_running
        if self._must_rerun and not was_running:
            self._run_loop()

    def _advance(self) -> bool:
        missing = self._demand - self._main.outstanding
        if missing == 0 or self._main.ended or self._head_start is not None:
            return False
        self._main.request(missing)
        return True

    def _after_input_change(self, input_: JoinInput) -> None:
        if input_ is self._main:
            self._completion_due = True
        elif self._head_start is not None:
            self._head_start.cancel()  # `stop` has completed without an element
            self._head_start = None

    def _release(self) -> None:
        if self._head_start is not None:
            self._head_start.cancel()
            self._head_start = None
