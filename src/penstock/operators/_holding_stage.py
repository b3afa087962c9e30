"""A stage that holds elements back until they are due and asked for, and passes them on one at a time.

Rules of this file:

* What is held goes on in one place, `_pass_on`. It is never entered twice: a signal or a request that arrives from inside
  a neighbour's `on_next` is noted, and acted on when that has returned. So signals stay serial (rule 1.3) and nothing recurses.
* More is asked of upstream only after all that may go on has gone on: what is held never exceeds its bound, not even for a moment.
* Completion waits for what is held, and needs no demand of its own; an error overtakes it (rule 4.2), a cancel drops it.
"""

from abc import abstractmethod
from typing import Generic, TypeVar

from penstock.api import Subscriber, add_demand
from penstock.operators._stage import ENDED_UPSTREAM, Stage

A = TypeVar("A")
B = TypeVar("B")


class HoldingStage(Stage[A, B], Generic[A, B]):
    """Subclasses say what is held (`_has_held`), what of it may go on now (`_next_due`), and what to ask of upstream (`_request_upstream`).

    They drop what is held in `_release`, so that nothing is left to take when the stream is over.
    """

    __slots__ = ("_demand", "_is_passing_on", "_upstream_completed")

    def __init__(self, downstream: Subscriber[B]) -> None:
        super().__init__(downstream)
        self._demand = 0  # requested from below and not yet passed on
        self._upstream_completed = False  # completed above; what is held is still to go on
        self._is_passing_on = False

    @abstractmethod
    def _has_held(self) -> bool:
        """Tell whether anything is held."""

    @abstractmethod
    def _next_due(self) -> B | None:
        """Take what is to go on now, or None (which is never an element). When `_upstream_completed`, all that is held is to go on."""

    @abstractmethod
    def _request_upstream(self) -> None:
        """Request from above what is wanted now; called whenever demand may have changed, while upstream is live."""

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
        if self._is_over:
            return
        if not self._upstream_completed:
            self._request_upstream()
        elif not self._has_held():
            super().on_complete()
