"""Subscribers of the draft that act inside signals, or use a subscription that has ended."""

from typing import Any

from penstock_tck import checks_of

from tck.tests._honest_draft_subscribers import HonestDraftSubscriber, refuse_none
from tck.tests._honest_verifications import HonestDraftSubscriberStage
from tck.tests._saboteur import subscriber_saboteur


class RequestsInsideOnSubscribe(HonestDraftSubscriber):
    """on_subscribe requests at once."""

    def on_subscribe(self, subscription: Any, /) -> None:
        super().on_subscribe(subscription)
        subscription.request_more(1)


class NeverRequests(HonestDraftSubscriber):
    """It keeps its subscription and never requests, also if it is told to."""

    def request(self, n: int) -> None:
        """Do nothing."""


class HandlesInsideOnNext(HonestDraftSubscriber):
    """on_next calls the handler."""

    def on_next(self, element: Any, /) -> None:
        refuse_none(element)
        if not self.shut:
            self.on_element(element)
            self.post(self.request, 1)


class RequestsInsideOnNext(HonestDraftSubscriber):
    """on_next requests the next element at once."""

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        if not self.shut:
            self.request(1)


class HandlesInsideOnComplete(HonestDraftSubscriber):
    """on_complete calls the handler."""

    def on_complete(self) -> None:
        self.forget_subscription()
        self.on_end()


class HandlesInsideOnError(HonestDraftSubscriber):
    """on_error calls the handler."""

    def on_error(self, error: Any, /) -> None:
        refuse_none(error)
        self.forget_subscription()
        self.on_failure(error)


class RequestsAfterCompletion(HonestDraftSubscriber):
    """After on_complete, work that was scheduled earlier still uses the subscription."""

    def on_complete(self) -> None:
        self.post(self.forget_subscription)
        self.post(self.on_end)


class RequestsAfterAFailure(HonestDraftSubscriber):
    """After on_error, work that was scheduled earlier still uses the subscription."""

    def on_error(self, error: Any, /) -> None:
        refuse_none(error)
        self.post(self.forget_subscription)
        self.post(self.on_failure, error)


class CancelsAtShutdownAfterTheEnd(HonestDraftSubscriber):
    """A shutdown cancels a subscription that has ended."""

    kept: Any = None

    def forget_subscription(self) -> None:
        self.kept = self.subscription
        super().forget_subscription()

    def shut_down(self) -> None:
        super().shut_down()
        if self.kept is not None:
            self.kept.cancel()


class TakesASecond(HonestDraftSubscriber):
    """A second subscription replaces the first one."""

    def on_second_subscription(self, subscription: Any) -> None:
        self.subscription = subscription
        self.post(self.request, self.batch)


class IgnoresASecond(HonestDraftSubscriber):
    """A second subscription is neither used nor reported."""

    def on_second_subscription(self, subscription: Any) -> None:
        """Do nothing."""


class CancelsASecond(HonestDraftSubscriber):
    """A second subscription is cancelled, as in the modern rules."""

    def on_second_subscription(self, subscription: Any) -> None:
        self.post(subscription.cancel)
        super().on_second_subscription(subscription)


class ForgetsToCancel(HonestDraftSubscriber):
    """A shutdown does not cancel the subscription."""

    def shut_down(self) -> None:
        self.shut = True


class CancelsTwiceAtShutdown(HonestDraftSubscriber):
    """A shutdown cancels an open subscription twice."""

    def shut_down(self) -> None:
        subscription = self.subscription
        super().shut_down()
        if subscription is not None:
            self.post(subscription.cancel)


class RequestsAfterItsCancel(HonestDraftSubscriber):
    """A request goes to a cancelled subscription."""

    kept: Any = None

    def cancel(self) -> None:
        self.kept = self.subscription
        super().cancel()

    def request(self, n: int) -> None:
        if self.kept is not None:
            self.kept.request_more(n)
        super().request(n)


class CancelsAgain(HonestDraftSubscriber):
    """A second cancel goes to the cancelled subscription."""

    kept: Any = None

    def cancel(self) -> None:
        if self.kept is not None:
            self.kept.cancel()
        self.kept = self.subscription
        super().cancel()


class RaisesOnLateElements(HonestDraftSubscriber):
    """An element after the cancel makes on_next raise."""

    def on_next(self, element: Any, /) -> None:
        if self.shut:
            raise RuntimeError("I have cancelled")
        super().on_next(element)


class RaisesOnCompletionWithDemand(HonestDraftSubscriber):
    """on_complete raises if requested elements are missing."""

    due = 0

    def request(self, n: int) -> None:
        self.due += n
        super().request(n)

    def on_complete(self) -> None:
        if self.due:
            raise RuntimeError("there should have been more")
        super().on_complete()


class LosesCompletionWithDemand(HonestDraftSubscriber):
    """on_complete is lost if no element has come for a request."""

    hungry = False

    def request(self, n: int) -> None:
        self.hungry = True
        super().request(n)

    def on_next(self, element: Any, /) -> None:
        self.hungry = False
        super().on_next(element)

    def on_complete(self) -> None:
        self.forget_subscription()
        if not self.hungry:
            self.post(self.on_end)


class LosesEarlyCompletion(HonestDraftSubscriber):
    """on_complete is lost if nothing was requested before."""

    has_requested = False

    def request(self, n: int) -> None:
        self.has_requested = True
        super().request(n)

    def on_complete(self) -> None:
        self.forget_subscription()
        if self.has_requested:
            self.post(self.on_end)


class LosesFailuresWithDemand(HonestDraftSubscriber):
    """on_error is lost if no element has come for a request."""

    hungry = False

    def request(self, n: int) -> None:
        self.hungry = True
        super().request(n)

    def on_next(self, element: Any, /) -> None:
        self.hungry = False
        super().on_next(element)

    def on_error(self, error: Any, /) -> None:
        refuse_none(error)
        self.forget_subscription()
        if not self.hungry:
            self.post(self.on_failure, error)


class LosesEarlyFailures(HonestDraftSubscriber):
    """on_error is lost if nothing was requested before."""

    has_requested = False

    def request(self, n: int) -> None:
        self.has_requested = True
        super().request(n)

    def on_error(self, error: Any, /) -> None:
        refuse_none(error)
        self.forget_subscription()
        if self.has_requested:
            self.post(self.on_failure, error)


class WrapsFailures(HonestDraftSubscriber):
    """The handler gets a different error than on_error."""

    def on_error(self, error: Any, /) -> None:
        super().on_error(RuntimeError(str(error)))


_EVERYTHING_ELSE = [
    check.name
    for check in checks_of(HonestDraftSubscriberStage)
    if check.name != "on_subscribe_only_schedules"
]  # each check subscribes it

SABOTEURS = [
    subscriber_saboteur(
        RequestsInsideOnSubscribe,
        {
            "on_subscribe_only_schedules": (
                "rule D5.2, step 3, p1: request_more was called from inside on_subscribe"
            ),
        },
        also=_EVERYTHING_ELSE,
    ),
    subscriber_saboteur(
        NeverRequests,
        {
            "on_subscribe_only_schedules": "expected request, but the subscriber did not call",
        },
        also=[
            "a_shutdown_cancels_once",
            "nothing_is_requested_after_a_cancel",
            "nothing_is_cancelled_twice",
            "elements_after_a_cancel_are_accepted",
            "completion_is_accepted_after_a_request",
            "a_failure_is_accepted_after_a_request",
            "on_next_only_schedules",
        ],
    ),
    subscriber_saboteur(
        HandlesInsideOnNext,
        {
            "on_next_only_schedules": "a handler saw on_next before on_next returned",
        },
    ),
    subscriber_saboteur(
        RequestsInsideOnNext,
        {
            "on_next_only_schedules": "request_more was called from inside on_next",
        },
        also=["nothing_is_called_after_on_complete", "nothing_is_called_after_on_error"],
    ),
    subscriber_saboteur(
        HandlesInsideOnComplete,
        {
            "on_complete_only_schedules": "a handler saw on_complete before on_complete returned",
        },
    ),
    subscriber_saboteur(
        HandlesInsideOnError,
        {
            "on_error_only_schedules": "a handler saw on_error before on_error returned",
        },
    ),
    subscriber_saboteur(
        RequestsAfterCompletion,
        {
            "nothing_is_called_after_on_complete": "rule D6.3",
            "completion_is_accepted_without_a_request": "request_more was called after the end",
        },
    ),
    subscriber_saboteur(
        RequestsAfterAFailure,
        {
            "nothing_is_called_after_on_error": "rule D6.3",
            "a_failure_is_accepted_without_a_request": "request_more was called after the end",
        },
    ),
    subscriber_saboteur(
        CancelsAtShutdownAfterTheEnd,
        {
            "nothing_is_called_after_on_complete": "cancel was called after the end",
            "nothing_is_called_after_on_error": "cancel was called after the end",
        },
    ),
    subscriber_saboteur(
        TakesASecond,
        {
            "a_second_subscription_is_reported_and_not_used": (
                "the second subscription was called: request_more(2)"
            ),
        },
    ),
    subscriber_saboteur(
        IgnoresASecond,
        {
            "a_second_subscription_is_reported_and_not_used": (
                "a second subscription was accepted without an error"
            ),
        },
    ),
    subscriber_saboteur(
        CancelsASecond,
        {
            "a_second_subscription_is_reported_and_not_used": (
                "the second subscription was called: cancel()"
            ),
        },
    ),
    subscriber_saboteur(
        ForgetsToCancel,
        {
            "a_shutdown_cancels_once": "expected cancel, but the subscriber did not call",
        },
    ),
    subscriber_saboteur(
        CancelsTwiceAtShutdown,
        {
            "a_shutdown_cancels_once": (
                "rule D7.4, step 6, p1: cancel was called on a cancelled subscription"
            ),
        },
    ),
    subscriber_saboteur(
        RequestsAfterItsCancel,
        {
            "nothing_is_requested_after_a_cancel": (
                "rule D7.3, step 6, p1: request_more was called on a cancelled subscription"
            ),
        },
    ),
    subscriber_saboteur(
        CancelsAgain,
        {
            "nothing_is_cancelled_twice": "cancel was called on a cancelled subscription",
        },
    ),
    subscriber_saboteur(
        RaisesOnLateElements,
        {
            "elements_after_a_cancel_are_accepted": "on_next raised RuntimeError",
        },
    ),
    subscriber_saboteur(
        RaisesOnCompletionWithDemand,
        {
            "completion_is_accepted_after_a_request": "on_complete raised RuntimeError",
        },
        also=[
            "on_subscribe_only_schedules",
            "on_next_only_schedules",
            "on_complete_only_schedules",
            "nothing_is_called_after_on_complete",
            "a_second_subscription_is_reported_and_not_used",
        ],
    ),
    subscriber_saboteur(
        LosesCompletionWithDemand,
        {
            "completion_is_accepted_after_a_request": "the handlers saw nothing",
            "on_complete_only_schedules": "no handler saw on_complete",
        },
    ),
    subscriber_saboteur(
        LosesEarlyCompletion,
        {
            "completion_is_accepted_without_a_request": (
                "the handlers saw nothing; they must see on_complete once"
            ),
        },
    ),
    subscriber_saboteur(
        LosesFailuresWithDemand,
        {
            "a_failure_is_accepted_after_a_request": "the handlers saw nothing",
            "on_error_only_schedules": "no handler saw on_error",
        },
    ),
    subscriber_saboteur(
        LosesEarlyFailures,
        {
            "a_failure_is_accepted_without_a_request": (
                "the handlers saw nothing; they must see on_error once"
            ),
        },
    ),
    subscriber_saboteur(
        WrapsFailures,
        {
            "a_failure_is_accepted_after_a_request": "the handlers saw",
            "a_failure_is_accepted_without_a_request": "the handlers saw",
        },
    ),
]
