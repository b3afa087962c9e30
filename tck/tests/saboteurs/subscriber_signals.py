"""Subscribers that handle their subscriptions or their signals wrongly (rules 2.2, 2.5, 2.6,
2.7, 2.11, 2.12, 2.13).
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tck.tests._honest_subscribers import (
    DispatchingSubscriber,
    HonestSubscriber,
    ManualHonestSubscriber,
)
from tck.tests._saboteur import subscriber_saboteur


class AcceptsASecond(HonestSubscriber):
    """A second subscription replaces the first one, and gets a request."""

    def on_second_subscription(self, subscription: Any) -> None:
        if subscription is self.subscription:
            return
        self.subscription = subscription
        self.first_request()


class RequestsFromTheSecond(HonestSubscriber):
    """A second subscription gets a request before it is cancelled."""

    def on_second_subscription(self, subscription: Any) -> None:
        if subscription is not self.subscription:
            subscription.cancel()
            subscription.request(1)


class CancelsTheFirst(HonestSubscriber):
    """A second subscription makes it cancel both."""

    def on_second_subscription(self, subscription: Any) -> None:
        subscription.cancel()
        self.shut_down()


class RequestsAgainWhenRepeated(HonestSubscriber):
    """A repeated on_subscribe makes it request from its own subscription again."""

    def on_second_subscription(self, subscription: Any) -> None:
        if subscription is self.subscription:
            self.first_request()
        else:
            subscription.cancel()


class DropsWithoutCancelling(HonestSubscriber):
    """A shutdown drops the subscription without a cancel."""

    def shut_down(self) -> None:
        self.subscription = None
        self.over = True


class CancelsOnlyAfterARequest(ManualHonestSubscriber):
    """A shutdown before the first request does not cancel."""

    has_requested = False

    def request(self, n: int) -> None:
        self.has_requested = True
        super().request(n)

    def shut_down(self) -> None:
        if self.has_requested:
            super().shut_down()


class RequestsAfterItsShutdown(HonestSubscriber):
    """A shutdown cancels and then requests once more."""

    def shut_down(self) -> None:
        subscription = self.subscription
        super().shut_down()
        if subscription is not None:
            subscription.request(1)


class HandlesAtOnce(HonestSubscriber):
    """It declares that handlers run later, but calls them inside on_next."""


class NeverHandles(DispatchingSubscriber):
    """The first element is never handled."""

    first = True

    def handle(self, element: Any) -> None:
        if self.first:
            self.first = False
            self.next_request()
        else:
            super().handle(element)


def _in_a_thread(call: Callable[..., Any], *arguments: Any) -> None:
    thread = threading.Thread(target=call, args=arguments)
    thread.start()
    thread.join()


class RequestsFromAThread(HonestSubscriber):
    """It requests more from a thread."""

    def next_request(self) -> None:
        _in_a_thread(super().next_request)


class CancelsFromAThread(HonestSubscriber):
    """It cancels from a thread."""

    def shut_down(self) -> None:
        _in_a_thread(super().shut_down)


class HandlesInAThread(HonestSubscriber):
    """The handler of on_next runs in a thread."""

    def __init__(self, on_element: Any, *handlers: Any) -> None:
        def run_in_thread(element: Any) -> None:
            raised: list[Exception] = []
            _in_a_thread(_record_exception, on_element, element, raised)
            if raised:
                raise raised[0]

        super().__init__(run_in_thread, *handlers)


def _record_exception(call: Callable[..., Any], argument: Any, raised: list[Exception]) -> None:
    try:
        call(argument)
    except Exception as error:
        raised.append(error)


class SwapsElements(HonestSubscriber):
    """The handlers get the newest waiting element first."""

    held: Any = None

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        if self.over or element in range(6):
            super().on_next(element)
        elif self.held is None:
            self.held = element
            self.next_request()
        else:
            super().on_next(element)
            held, self.held = self.held, None
            self.on_element(held)


class CompletionOvertakes(DispatchingSubscriber):
    """The completion is handled at once, before elements that are in the mailbox."""

    def on_complete(self) -> None:
        self.forget_subscription()
        self.on_end()


class AcceptsNoneAtFirst(HonestSubscriber):
    """on_subscribe(None) returns if it has no subscription yet."""

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is not None or self.subscription is not None:
            super().on_subscribe(subscription)


class AcceptsNoneAsASecond(HonestSubscriber):
    """on_subscribe(None) returns if it has a subscription."""

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is not None or self.subscription is None:
            super().on_subscribe(subscription)


class AcceptsNoneAsAnElement(HonestSubscriber):
    """on_next(None) returns."""

    def on_next(self, element: Any, /) -> None:
        if element is not None:
            super().on_next(element)


class RefusesNoneInOtherWords(HonestSubscriber):
    """on_next(None) raises a ValueError."""

    def on_next(self, element: Any, /) -> None:
        if element is None:
            raise ValueError("no element")
        super().on_next(element)


class AcceptsNoneAsAnError(HonestSubscriber):
    """on_error(None) returns."""

    def on_error(self, error: Any, /) -> None:
        if error is not None:
            super().on_error(error)


class AcceptsATextAsAnError(HonestSubscriber):
    """on_error with a text returns."""

    def refuse_non_exception(self, error: Any) -> None:
        """Do nothing."""


class LetsItsHandlerRaise(HonestSubscriber):
    """on_next raises the exception of the handler."""

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        if self.subscription is not None:
            try:
                self.on_element(element)
            except Exception:
                self.shut_down()
                raise
            self.next_request()


class RequestsAfterItsHandlerRaised(HonestSubscriber):
    """The exception of the handler is dropped, and it requests more."""

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        if self.subscription is not None:
            with suppress(Exception):
                self.on_element(element)
            self.next_request()


_ANOTHER_THREAD = "was called from another thread than the run's"

_CANCELLING = [
    "a_handler_that_raises_cancels_the_subscription",
    "an_end_after_a_cancel_is_accepted",
    "requested_elements_reach_the_handlers_until_a_cancel",
    "late_elements_after_a_cancel_are_accepted",
]
_RENEWING = [
    "after_on_complete_the_subscription_is_not_used",
    "after_on_error_the_subscription_is_not_used",
    "requested_elements_reach_the_handlers_until_a_cancel",
    "elements_are_requested_and_accepted",
    "handlers_see_all_signals_in_order",
]
_HANDLING = [
    *_RENEWING,
    "calls_come_from_the_thread_of_the_run",
    "elements_signalled_inside_request_are_handled",
]

SABOTEURS = [
    subscriber_saboteur(
        AcceptsASecond,
        {"a_second_subscription_is_cancelled": "expected cancel, but the subscriber did not call"},
    ),
    subscriber_saboteur(
        RequestsFromTheSecond,
        {
            "a_second_subscription_is_cancelled": (
                "the second subscription got a request for [1] elements"
            )
        },
    ),
    subscriber_saboteur(
        CancelsTheFirst,
        {"a_second_subscription_is_cancelled": "the first subscription was cancelled"},
    ),
    subscriber_saboteur(
        RequestsAgainWhenRepeated,
        {"a_repeated_on_subscribe_makes_no_request": "made it request [2] again"},
    ),
    subscriber_saboteur(
        DropsWithoutCancelling,
        {"a_shutdown_cancels_the_subscription": "expected cancel, but the subscriber did not call"},
        _CANCELLING,
    ),
    subscriber_saboteur(
        CancelsOnlyAfterARequest,
        {"a_shutdown_cancels_the_subscription": "expected cancel, but the subscriber did not call"},
    ),
    subscriber_saboteur(
        RequestsAfterItsShutdown,
        {"a_shutdown_cancels_the_subscription": "expected no calls, but got request(1)"},
    ),
    subscriber_saboteur(
        HandlesAtOnce,
        {"on_next_returns_before_its_handler_runs": "a handler saw the element before"},
        dispatches=True,
    ),
    subscriber_saboteur(
        NeverHandles,
        {"on_next_returns_before_its_handler_runs": "no handler saw the element"},
        also=[
            "a_handler_that_raises_cancels_the_subscription",
            "requested_elements_reach_the_handlers_until_a_cancel",
            "elements_signalled_inside_request_are_handled",
            "handlers_see_all_signals_in_order",
        ],
    ),
    subscriber_saboteur(
        RequestsFromAThread,
        {"calls_come_from_the_thread_of_the_run": f"request {_ANOTHER_THREAD}"},
        _RENEWING,
    ),
    subscriber_saboteur(
        CancelsFromAThread,
        {"a_shutdown_cancels_the_subscription": f"cancel {_ANOTHER_THREAD}"},
        _CANCELLING,
    ),
    subscriber_saboteur(
        HandlesInAThread,
        {"handlers_see_all_signals_in_order": "saw on_next in another thread"},
        _HANDLING,
    ),
    subscriber_saboteur(
        SwapsElements,
        {"handlers_see_all_signals_in_order": "but the handlers saw [0, 1, 2, 3, 4, 5, 7, 6"},
    ),
    subscriber_saboteur(
        CompletionOvertakes, {"handlers_see_all_signals_in_order": "not on_complete"}
    ),
    subscriber_saboteur(
        AcceptsNoneAtFirst, {"on_subscribe_refuses_none": "a fresh subscriber answered"}
    ),
    subscriber_saboteur(AcceptsNoneAsASecond, {"on_subscribe_refuses_none": "returned normally"}),
    subscriber_saboteur(
        AcceptsNoneAsAnElement, {"on_next_refuses_none": "on_next(None) returned normally"}
    ),
    subscriber_saboteur(
        RefusesNoneInOtherWords, {"on_next_refuses_none": "it must raise TypeError"}
    ),
    subscriber_saboteur(
        AcceptsNoneAsAnError, {"on_error_refuses_none": "on_error(None) returned normally"}
    ),
    subscriber_saboteur(
        AcceptsATextAsAnError,
        {
            "on_error_refuses_a_value_that_is_not_an_exception": (
                "on_error('a text') returned normally"
            )
        },
    ),
    subscriber_saboteur(
        LetsItsHandlerRaise,
        {"a_handler_that_raises_cancels_the_subscription": "on_next raised ValueError"},
    ),
    subscriber_saboteur(
        RequestsAfterItsHandlerRaised,
        {
            "a_handler_that_raises_cancels_the_subscription": (
                "expected cancel, but the subscriber did not call"
            )
        },
    ),
]
