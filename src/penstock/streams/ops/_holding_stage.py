"""`HoldingStage`: a stage that holds elements until they are due and requested,
and passes them on one at a time.

Rules of this file:

* `_pass_on` is the only place where held elements go on, and it never runs inside itself. A signal
  or request that arrives during a neighbour's `on_next` only changes the state; the loop in
  `_pass_on` sees it afterwards. So signals stay serial (rule 1.3) and nothing recurses (rule 3.3).
* `_request_upstream` runs only after every due element has gone on. Otherwise a source that answers
  inside `request` could make the stage hold more than its bound.
* Completion waits for the held elements and needs no demand. An error does not wait (rule 4.2), and
  a cancel drops the held elements.
"""

from abc import abstractmethod
from typing import Generic, TypeVar

from penstock.api import Subscriber, add_demand
from penstock.streams.ops._stage import ENDED_UPSTREAM, Stage

A = TypeVar("A")
B = TypeVar("B")


class HoldingStage(Stage[A, B], Generic[A, B]):
    """Base of stages with a buffer. A subclass owns the buffer and implements `_has_held`,
    `_next_due` and `_request_upstream`.

    Its `_release` must empty the buffer, so that `_next_due` finds nothing after the end of the
    stream.
    """

    __slots__ = ("_demand", "_is_passing_on", "_upstream_completed")

    def __init__(self, downstream: Subscriber[B]) -> None:
        super().__init__(downstream)
        self._demand = 0  # requested by downstream and not yet passed on
        self._upstream_completed = False  # True: held elements still go on, and then on_complete
        # True while the loop in _pass_on runs, so that calls from inside on_next return at once.
        self._is_passing_on = False

    @abstractmethod
    def _has_held(self) -> bool:
        """Return whether an element is held."""

    @abstractmethod
    def _next_due(self) -> B | None:
        """Remove and return the next element that is due, or None.
        After `_upstream_completed` every held element is due.
        """

    @abstractmethod
    def _request_upstream(self) -> None:
        """Request elements from upstream.
        Called after each change of demand while upstream is live.
        """

    def request(self, n: int, /) -> None:
        if not self._is_over:
            self._demand = add_demand(self._demand, n)
            self._pass_on()

    def on_complete(self, /) -> None:
        self._upstream_completed = True
        self._upstream = ENDED_UPSTREAM
        self._pass_on()

    def _pass_on(self) -> None:
        if self._is_passing_on:
            return
        self._is_passing_on = True
        try:
            while self._demand and (element := self._next_due()) is not None:
                self._demand -= 1
                self._downstream.on_next(element)
        finally:
            self._is_passing_on = False
        if self._is_over:  # the subscriber has cancelled inside on_next
            return
        if not self._upstream_completed:
            self._request_upstream()
        elif not self._has_held():
            super().on_complete()
