"""A subscriber made of plain functions, for programs
that want to be called instead of iterating.
"""

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from penstock.api import UNBOUNDED, RuleViolation, Subscriber, Subscription, UsageError, shown
from penstock.core import Report, check_function, check_hook, log_violation, name_of, report
from penstock.reader import DEFAULT_DEMAND

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class CallbackSubscriber(Subscriber[T], Generic[T]):
    """Calls `next` with each element, and `error` or `complete` at the end. Requests `demand`
    elements at a time, renewed in halves.

    The functions are plain: they run inside the signal, so they must not take long (rule 2.2). If a
    function raises, the subscription is cancelled and the exception goes to `on_violation`; it
    never reaches the publisher (rule 2.13).
    """

    __slots__ = (
        "__weakref__",
        "_complete",
        "_demand",
        "_error",
        "_is_over",
        "_next",
        "_on_violation",
        "_renewal_size",
        "_subscription",
        "_unrenewed",
    )

    def __init__(
        self,
        next: Callable[[T], Any],  # noqa: A002  # named after the signal
        *,
        error: Callable[[BaseException], Any] | None = None,
        complete: Callable[[], Any] | None = None,
        demand: int = DEFAULT_DEMAND,
        on_violation: Report = log_violation,
    ) -> None:
        if type(demand) is not int or demand < 1:
            raise UsageError(
                f"demand={shown(demand)}; give how many elements may be under way at a time, at "
                "least 1"
            )
        self._next = _check_plain(next, "next", "one argument, the element")
        self._error = (
            None if error is None else _check_plain(error, "error", "one argument, the exception")
        )
        self._complete = (
            None if complete is None else _check_plain(complete, "complete", "no argument")
        )
        self._demand = min(demand, UNBOUNDED)
        # half: the publisher works on one half while this handles the other.
        self._renewal_size = max(1, self._demand // 2)
        self._on_violation = check_hook(on_violation)
        self._unrenewed = 0  # elements that were handled and not yet requested anew
        self._is_over = False
        self._subscription: Subscription | None = None

    def cancel(self) -> None:
        """Stop. No function is called any more."""
        self._is_over = True  # first: the publisher may answer the cancel with a signal
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.cancel()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None): a subscription is needed (rule 2.13)")
        if subscription is self._subscription:
            # Rule 2.5 demands to cancel the second one, which is the first.
            # So the stream ends, and no signal will say so.
            self.cancel()
            report(
                self._on_violation,
                RuleViolation(
                    "the publisher signalled on_subscribe twice with one subscription", rule="2.12"
                ),
            )
            return
        if self._is_over or self._subscription is not None:
            subscription.cancel()  # rule 2.5
            return
        # Before the request: a synchronous publisher signals inside it, and on_next requests more.
        self._subscription = subscription
        subscription.request(self._demand)

    def on_next(self, element: T, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        if self._is_over:
            return  # rule 2.8
        self._call("next", self._next, element)
        # rule 2.1: requested at the very end of the signal, so
        # that a synchronous publisher does not nest its signals
        self._unrenewed += 1
        if self._unrenewed >= self._renewal_size and self._subscription is not None:
            count, self._unrenewed = self._unrenewed, 0
            self._subscription.request(count)

    def on_error(self, error: BaseException, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError(f"on_error({shown(error)}): an exception is needed (rule 2.13)")
        # `_end` first: the stream is over also without a callback for the error.
        if self._end() and self._error is not None:
            self._call("error", self._error, error)

    def on_complete(self, /) -> None:
        if self._end() and self._complete is not None:
            self._call("complete", self._complete)

    def _end(self) -> bool:
        """Treat the subscription as cancelled (rule 2.4);
        return whether the stream was live until now.
        """
        # The subscription is forgotten, not cancelled:
        # after a terminal signal no call on it is legal (rule 2.3).
        was_live, self._is_over, self._subscription = not self._is_over, True, None
        return was_live

    def _call(self, name: str, function: Callable[..., Any], *args: object) -> None:
        try:
            function(*args)
        except Exception as error:  # boundary: the user's callback (rule 2.13)
            self.cancel()
            violation = RuleViolation(
                f"the `{name}` callback raised {shown(error)}; its subscription was cancelled. "
                "Handle the error inside the callback, or use `async for`, where it is yours to "
                "catch",
                rule="2.13",
            )
            violation.__cause__ = error
            report(self._on_violation, violation)

    def __repr__(self) -> str:
        return (
            "<callback subscriber "
            f"{'over' if self._is_over else 'live' if self._subscription else 'new'}>"
        )


def _check_plain(function: F, what: str, of: str) -> F:
    """Return `function` if it is a plain function.
    An async one would never run, because a signal cannot await it.
    """
    if inspect.iscoroutinefunction(check_function(function, f"`{what}`", of)):
        raise UsageError(
            f"`{what}` is {name_of(function)}, which is async; a signal cannot wait. For async "
            "work there is for_each()"
        )
    return function
