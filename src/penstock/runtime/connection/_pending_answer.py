"""The task that waits for the one value of a request."""

from typing import Any

import trio

from penstock.api import NoElement, Subscriber, Subscription
from penstock.runtime.connection._send_batcher import SendBatcher


class PendingAnswer(Subscriber[Any]):
    """Takes one element, and wakes the task that waits for it. If it gets a subscription, it requests the element."""

    __slots__ = ("_batcher", "_error", "_is_over", "_task", "_value", "subscription")

    subscription: Subscription

    def __init__(self, batcher: SendBatcher) -> None:
        self._batcher = batcher
        self._value: Any = None
        self._error: BaseException | None = None
        self._is_over = False
        self._task: trio.lowlevel.Task | None = None  # the task in `receive`; still set after it was woken, and None after a cancel

    async def receive(self) -> Any:
        """Return the value. A cancel is passed on to the peer. Raises the error that the stream ends with. Checkpoints."""
        if self._is_over:
            await trio.lowlevel.checkpoint()
        else:
            self._task = trio.lowlevel.current_task()
            try:
                await trio.lowlevel.wait_task_rescheduled(self._abort)
            finally:
                # `_end` has counted this task as woken. Other requests wait until it is counted off.
                if self._task is not None:
                    self._batcher.task_resumed()
        # Taken out: the object must not keep the exception alive, which refers to this task's frames.
        error, self._error = self._error, None
        if error is None:
            return self._value
        try:
            raise error
        finally:
            del error  # it refers to this frame through its traceback, and the frame to all that the caller holds

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        subscription.request(1)

    def on_next(self, element: Any, /) -> None:
        # One element was requested, so this is the only one.
        self._value = element
        self._end()

    def on_error(self, error: BaseException, /) -> None:
        if not self._is_over:
            self._error = error
            self._end()

    def on_complete(self, /) -> None:
        # After the value on_complete is expected, and changes nothing.
        if not self._is_over:
            self.on_error(NoElement("the peer ended the request without a value"))

    def _end(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._batcher.woken += 1
            # The task runs in the next scheduler pass, with all others that this batch of answers wakes.
            trio.lowlevel.reschedule(self._task)

    def _abort(self, _: Any) -> trio.lowlevel.Abort:
        # None: this task was not woken by `_end`, so it must not be counted off.
        self._is_over, self._task = True, None
        self.subscription.cancel()
        return trio.lowlevel.Abort.SUCCEEDED
