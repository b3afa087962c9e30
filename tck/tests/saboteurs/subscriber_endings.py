"""Subscribers that handle the end wrongly, or make a call after it (rules 2.3, 2.4, 2.9, 2.10)."""

from typing import Any

from tck.tests._honest_subscribers import (
    DispatchingSubscriber,
    HonestSubscriber,
    ManualHonestSubscriber,
)
from tck.tests._saboteur import subscriber_saboteur


class RequestsInOnComplete(HonestSubscriber):
    """on_complete requests."""

    def on_complete(self) -> None:
        self.request(1)
        super().on_complete()


class CancelsInOnComplete(HonestSubscriber):
    """on_complete cancels."""

    def on_complete(self) -> None:
        self.shut_down()
        super().on_complete()


class RequestsInOnError(HonestSubscriber):
    """on_error requests."""

    def on_error(self, error: Any, /) -> None:
        if isinstance(error, BaseException):
            self.request(1)
        super().on_error(error)


class CancelsInOnError(HonestSubscriber):
    """on_error cancels."""

    def on_error(self, error: Any, /) -> None:
        if isinstance(error, BaseException):
            self.shut_down()
        super().on_error(error)


class _CancelsLater(DispatchingSubscriber):
    """It keeps its subscription after the end, and cancels it from its task."""

    def cancel_later(self, subscription: Any) -> None:
        if subscription is not None:
            self.post(subscription.cancel)


class CancelsLaterAfterCompletion(_CancelsLater):
    """on_complete schedules a cancel."""

    def on_complete(self) -> None:
        subscription = self.subscription
        super().on_complete()
        self.cancel_later(subscription)


class CancelsLaterAfterFailure(_CancelsLater):
    """on_error schedules a cancel."""

    def on_error(self, error: Any, /) -> None:
        subscription = self.subscription
        super().on_error(error)
        self.cancel_later(subscription)


class RenewsDemandAfterTheEnd(DispatchingSubscriber):
    """The end takes effect only when it is handled:
    elements that are handled before it still request more.
    """

    def forget_subscription(self) -> None:
        self.over = True

    def on_complete(self) -> None:
        super().on_complete()
        self.post(super().forget_subscription)

    def on_error(self, error: Any, /) -> None:
        super().on_error(error)
        self.post(super().forget_subscription)


class _StaysSubscribed(HonestSubscriber):
    """It remembers its subscription after one of the ends, and cancels it when it is told to."""

    kept: Any = None

    def shut_down(self) -> None:
        super().shut_down()
        if self.kept is not None:
            self.kept.cancel()


class StaysSubscribedAfterCompletion(_StaysSubscribed):
    """A shutdown after on_complete cancels the ended subscription."""

    def on_complete(self) -> None:
        self.kept = self.subscription
        super().on_complete()


class StaysSubscribedAfterFailure(_StaysSubscribed):
    """A shutdown after on_error cancels the failed subscription."""

    def on_error(self, error: Any, /) -> None:
        self.kept = self.subscription
        super().on_error(error)


class _RemembersRequests(ManualHonestSubscriber):
    """It remembers whether it has requested anything."""

    has_requested = False

    def request(self, n: int) -> None:
        self.has_requested = True
        super().request(n)


class OverlooksAnEarlyCompletion(_RemembersRequests):
    """No handler gets a completion before the first request."""

    def on_complete(self) -> None:
        if not self.has_requested:
            self.on_end = lambda: None
        super().on_complete()


class OverlooksACompletionThatOwesElements(_RemembersRequests):
    """No handler gets a completion while requested elements are missing."""

    due = 0

    def request(self, n: int) -> None:
        self.due += n
        super().request(n)

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.due -= 1

    def on_complete(self) -> None:
        if self.due:
            self.on_end = lambda: None
        super().on_complete()


class OverlooksAnEarlyFailure(_RemembersRequests):
    """No handler gets a failure before the first request."""

    def on_error(self, error: Any, /) -> None:
        if not self.has_requested:
            self.on_failure = lambda _: None
        super().on_error(error)


class OverlooksALateFailure(_RemembersRequests):
    """No handler gets a failure after the first request."""

    def on_error(self, error: Any, /) -> None:
        if self.has_requested:
            self.on_failure = lambda _: None
        super().on_error(error)


class RaisesInOnComplete(HonestSubscriber):
    """on_complete raises."""

    def on_complete(self) -> None:
        super().on_complete()
        raise RuntimeError("I did not expect this")


class RaisesInOnError(HonestSubscriber):
    """on_error raises."""

    def on_error(self, error: Any, /) -> None:
        super().on_error(error)
        raise RuntimeError("I did not expect this")


class WrapsTheFailure(HonestSubscriber):
    """The handler gets another error than the signalled one."""

    def on_error(self, error: Any, /) -> None:
        super().on_error(ValueError(str(error)) if type(error) is ValueError else error)


class HandlesCompletionTwice(HonestSubscriber):
    """The handler gets the completion twice."""

    def on_complete(self) -> None:
        super().on_complete()
        self.on_end()


class RaisesAtAnEndAfterItsCancel(HonestSubscriber):
    """on_complete raises when it crosses the cancel."""

    def on_complete(self) -> None:
        if self.over:
            raise RuntimeError("I have cancelled")
        super().on_complete()


class RaisesAtAFailureAfterItsCancel(HonestSubscriber):
    """on_error raises when it crosses the cancel."""

    def on_error(self, error: Any, /) -> None:
        if self.over:
            raise RuntimeError("I have cancelled")
        super().on_error(error)


_INSIDE_COMPLETE = "was called from inside on_complete"
_INSIDE_ERROR = "was called from inside on_error"
_UNSEEN = "the handlers saw nothing; they must see"

_COMPLETING = [
    "a_second_subscription_is_cancelled",
    "after_on_complete_the_subscription_is_not_used",
    "calls_come_from_the_thread_of_the_run",
    "completion_after_a_request_is_handled",
    "completion_before_a_request_is_handled",
    "elements_are_requested_and_accepted",
    "handlers_see_all_signals_in_order",
    "on_complete_makes_no_call",
    "on_error_refuses_none",
    "on_error_refuses_a_value_that_is_not_an_exception",
    "on_next_refuses_none",
    "on_subscribe_refuses_none",
    "requested_numbers_add_up",
]
_FAILING = [
    "after_on_error_the_subscription_is_not_used",
    "failure_after_a_request_is_handled",
    "failure_before_a_request_is_handled",
    "on_error_makes_no_call",
]

SABOTEURS = [
    subscriber_saboteur(
        RequestsInOnComplete,
        {"on_complete_makes_no_call": f"request {_INSIDE_COMPLETE}"},
        _COMPLETING,
    ),
    subscriber_saboteur(
        CancelsInOnComplete,
        {"on_complete_makes_no_call": f"cancel {_INSIDE_COMPLETE}"},
        _COMPLETING,
    ),
    subscriber_saboteur(
        RequestsInOnError, {"on_error_makes_no_call": f"request {_INSIDE_ERROR}"}, _FAILING
    ),
    subscriber_saboteur(
        CancelsInOnError, {"on_error_makes_no_call": f"cancel {_INSIDE_ERROR}"}, _FAILING
    ),
    subscriber_saboteur(
        CancelsLaterAfterCompletion,
        {"on_complete_makes_no_call": "cancel was called after the end"},
        also=[*_COMPLETING, "on_next_returns_before_its_handler_runs"],
    ),
    subscriber_saboteur(
        CancelsLaterAfterFailure,
        {"on_error_makes_no_call": "cancel was called after the end"},
        _FAILING,
    ),
    subscriber_saboteur(
        RenewsDemandAfterTheEnd,
        {
            "after_on_complete_the_subscription_is_not_used": "request was called after the end",
            "after_on_error_the_subscription_is_not_used": "request was called after the end",
        },
        also=["handlers_see_all_signals_in_order"],
    ),
    subscriber_saboteur(
        StaysSubscribedAfterCompletion,
        {"after_on_complete_the_subscription_is_not_used": "cancel was called after the end"},
    ),
    subscriber_saboteur(
        StaysSubscribedAfterFailure,
        {"after_on_error_the_subscription_is_not_used": "cancel was called after the end"},
    ),
    subscriber_saboteur(
        OverlooksAnEarlyCompletion, {"completion_before_a_request_is_handled": _UNSEEN}
    ),
    subscriber_saboteur(
        OverlooksACompletionThatOwesElements, {"completion_after_a_request_is_handled": _UNSEEN}
    ),
    subscriber_saboteur(OverlooksAnEarlyFailure, {"failure_before_a_request_is_handled": _UNSEEN}),
    subscriber_saboteur(OverlooksALateFailure, {"failure_after_a_request_is_handled": _UNSEEN}),
    subscriber_saboteur(
        RaisesInOnComplete,
        {"completion_after_a_request_is_handled": "on_complete raised RuntimeError"},
        also=[
            *_COMPLETING,
            "an_end_after_a_cancel_is_accepted",
            "elements_signalled_inside_request_are_handled",
        ],
    ),
    subscriber_saboteur(
        RaisesInOnError,
        {"failure_after_a_request_is_handled": "on_error raised RuntimeError"},
        also=[*_FAILING, "an_end_after_a_cancel_is_accepted"],
    ),
    subscriber_saboteur(
        WrapsTheFailure,
        {
            "failure_after_a_request_is_handled": "with the object that was signalled",
            "failure_before_a_request_is_handled": "with the object that was signalled",
        },
    ),
    subscriber_saboteur(
        HandlesCompletionTwice,
        {
            "completion_after_a_request_is_handled": (
                "saw on_complete(), on_complete(); they must see on_complete once"
            ),
            "completion_before_a_request_is_handled": (
                "saw on_complete(), on_complete(); they must see on_complete once"
            ),
        },
    ),
    subscriber_saboteur(
        RaisesAtAnEndAfterItsCancel,
        {"an_end_after_a_cancel_is_accepted": "on_complete raised RuntimeError"},
    ),
    subscriber_saboteur(
        RaisesAtAFailureAfterItsCancel,
        {"an_end_after_a_cancel_is_accepted": "on_error raised RuntimeError"},
    ),
]
