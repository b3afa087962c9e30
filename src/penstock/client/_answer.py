"""The wait for one value without I/O: the answer to a request."""

from collections.abc import Callable
from typing import Any

from penstock.api import NoElement, Subscriber, Subscription


class AnswerBuffer(Subscriber[Any]):
    """Takes one element: the answer to a request."""

    __slots__ = ("_error", "_subscription", "is_over", "value", "wake")

    def __init__(self) -> None:
        self._subscription: Subscription | None = None
        self._error: BaseException | None = None
        self.value: Any = None
        self.is_over: bool = False
        self.wake: Callable[[], None] | None = None
        """Called when the answer is here, while a task waits."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        # One: the next element would be sent and dropped.
        subscription.request(1)

    def on_next(self, element: Any, /) -> None:
        # An element after the answer, or after `give_up`, changes nothing.
        if not self.is_over:
            self.value = element
            self._end(None)

    def on_error(self, error: BaseException, /) -> None:
        if not self.is_over:
            self._end(error)

    def on_complete(self, /) -> None:
        if not self.is_over:
            self._end(NoElement("the peer ended the request without a value"))

    def take(self) -> Any:
        """Return the answer. Raises the error that came in its place."""
        # Moved out: an exception that is raised twice collects the frames of both.
        error, self._error = self._error, None
        if error is None:
            return self.value
        try:
            raise error
        finally:
            del error  # it refers to this frame through its traceback

    def give_up(self) -> None:
        """Cancel the stream, unless it has ended: a publisher may go on after its first element."""
        # Over before the cancel: the stream may answer it with a signal.
        self.is_over = True
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.cancel()

    def _end(self, error: BaseException | None) -> None:
        self._error, self.is_over = error, True
        wake, self.wake = self.wake, None
        if wake is not None:
            wake()
