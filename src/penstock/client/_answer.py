"""The wait for one value, the answer to a request, without I/O.

`AwaitedAnswer` decides what ends the wait. A subclass adds how its program waits: `AnswerBuffer`
calls a function, and on trio (`PendingAnswer`) a task is woken.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.api import NoElement, Subscriber, Subscription


class AwaitedAnswer(Subscriber[Any]):
    """Takes one element, or the error in its place. Later signals change nothing."""

    if not TYPE_CHECKING:  # a type checker knows no slots that the subclasses have
        __slots__ = ()

    # The constructors of the subclasses set these.
    _value: Any
    _error: BaseException | None
    is_over: bool
    """The answer is here, or none will come."""

    def on_next(self, element: Any, /) -> None:
        if not self.is_over:
            self._value, self.is_over = element, True
            self._wake()

    def on_error(self, error: BaseException, /) -> None:
        if not self.is_over:
            self._error, self.is_over = error, True
            self._wake()

    def on_complete(self, /) -> None:
        # After the value on_complete is expected, and changes nothing.
        if not self.is_over:
            self.on_error(NoElement("the peer ended the request without a value"))

    @abstractmethod
    def give_up(self) -> None:
        """Cancel the stream, unless it has ended: a publisher may go on after its first element."""

    # --- for subclasses

    @abstractmethod
    def _wake(self) -> None:
        """Let the reader go on, if it waits."""

    def _raise_error(self) -> NoReturn:
        """Raise the error that came in place of the value. Call it if there is one."""
        # Moved out: the object must not keep the exception alive, which refers to the frames of
        # the reader; and an exception that is raised twice collects the frames of both.
        error: Any = self._error
        self._error = None
        try:
            raise error
        finally:
            # It refers to this frame through its traceback, and the frame to all that the callers
            # hold.
            del error


class AnswerBuffer(AwaitedAnswer):
    """Keeps the answer, and calls a function when it is here."""

    __slots__ = ("_error", "_subscription", "_value", "is_over", "wake")

    is_over: bool

    def __init__(self) -> None:
        self._subscription: Subscription | None = None
        self._value = self._error = None
        self.is_over = False
        self.wake: Callable[[], None] | None = None
        """Called when the answer is here, while a task waits."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        # One: the next element would be sent and dropped.
        subscription.request(1)

    def take(self) -> Any:
        """Return the answer. Raises the error that came in its place."""
        if self._error is not None:
            self._raise_error()
        return self._value

    def give_up(self) -> None:
        # Over before the cancel: the stream may answer it with a signal.
        self.is_over = True
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.cancel()

    def _wake(self) -> None:
        wake, self.wake = self.wake, None
        if wake is not None:
            wake()
