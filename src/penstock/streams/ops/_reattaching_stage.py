"""`ReattachingStage`: a stage that attaches one source after another, each in its own task. For
`retry`, `on_error_resume`, `repeat`.

Rules of this file:

* The next source is attached in its own task, never inside the signal that ended the one before. A
  source that ends at once, 10,000 times, then costs 10,000 scheduler passes and no stack depth;
  other tasks run in between, and a cancelled nursery ends the stream.
* Demand survives: elements requested and not received from one source are requested from the next
  source, and no others.
* The subscription of a source that has ended is never called again (rule 2.4).
"""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

from penstock.api import Subscriber, Subscription, add_demand
from penstock.core import Scope
from penstock.streams._source import Source
from penstock.streams.ops._stage import Stage

A = TypeVar("A")


class ReattachingStage(Stage[A, A], Generic[A]):
    """A stage that may attach further sources.
    A subclass decides when, and starts the task that does it.
    """

    __slots__ = ("_demand", "_has_subscribed", "_label", "_scope", "_task_scope")

    def __init__(self, downstream: Subscriber[A], scope: Scope, label: str) -> None:
        super().__init__(downstream)
        self._scope = scope
        self._label = label
        self._demand = 0  # requested by downstream and not yet passed on
        self._has_subscribed = False
        self._task_scope: trio.CancelScope | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if not self._has_subscribed:
            self._has_subscribed = True
            # rule 2.12: downstream gets one on_subscribe, even with several sources.
            super().on_subscribe(subscription)
        elif self._is_over:
            subscription.cancel()  # rule 2.6: the stream ended while the source was being attached
        else:
            self._upstream = subscription
            if self._demand:
                subscription.request(self._demand)

    def request(self, n: int, /) -> None:
        self._demand = add_demand(self._demand, n)
        self._upstream.request(n)

    def on_next(self, element: A, /) -> None:
        # Also of unbounded demand: the next source then gets 2^63-1 less the elements that arrived.
        self._demand -= 1
        self._downstream.on_next(element)

    # --- for subclasses

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        """Start the task that attaches the next source.
        Raises UsageError if the nursery has closed.
        """
        self._task_scope = self._scope.spawn(work, name=f"penstock {self._label}")

    def _attach(self, source: Source[A]) -> None:
        """Attach the next source. If `attach` raises, fail the stream with that error."""
        try:
            source.attach(self, self._scope)
        except Exception as raised:
            # boundary: the source may be user code, and this task has no caller
            # that could handle it.
            self._fail(raised)

    def _release(self) -> None:
        if self._task_scope is not None:
            self._task_scope.cancel()
