"""One value from the peer, waited for."""

from typing import Any

import trio

from penstock.api import NoElement, Subscriber, Subscription
from penstock.runtime.connection._send_batcher import SendBatcher


class PendingAnswer(Subscriber[Any]):
    """Asks for one element, unless that is said with the request, and wakes the task that waits for it."""

    __slots__ = ("_company", "_error", "_is_over", "_task", "_value", "subscription")

    subscription: Subscription

    def __init__(self, company: SendBatcher) -> None:
        self._company = company
        self._value: Any = None
        self._error: BaseException | None = None
        self._is_over = False
        self._task: trio.lowlevel.Task | None = None  # who waits; or who waited, and was woken

    async def receive(self) -> Any:
        """Return the value. Cancelled, the peer is told. Raises what the stream ends with. Checkpoints."""
        if self._is_over:
            await trio.lowlevel.checkpoint()
        else:
            self._task = trio.lowlevel.current_task()
            try:
                await trio.lowlevel.wait_task_rescheduled(self._give_up)
            finally:
                if self._task is not None:
                    self._company.went_on()
        error, self._error = self._error, None
        if error is None:
            return self._value
        try:
            raise error
        finally:
            del error  # it refers to this frame, and through it to all that the caller holds

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        subscription.request(1)

    def on_next(self, element: Any, /) -> None:
        self._value = element
        self._end()

    def on_error(self, error: BaseException, /) -> None:
        if not self._is_over:
            self._error = error
            self._end()

    def on_complete(self, /) -> None:
        if not self._is_over:
            self.on_error(NoElement("the peer ended the request without a value"))

    def _end(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._company.due += 1
            trio.lowlevel.reschedule(self._task)

    def _give_up(self, _: Any) -> trio.lowlevel.Abort:
        self._is_over, self._task = True, None
        self.subscription.cancel()
        return trio.lowlevel.Abort.SUCCEEDED
