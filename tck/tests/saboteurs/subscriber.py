"""Subscribers that request wrongly, or handle elements wrongly (rules 2.1, 2.8, 3.8)."""

from typing import Any

from tck.tests._honest_subscribers import HonestSubscriber, ManualHonestSubscriber
from tck.tests._saboteur import subscriber_saboteur


class NeverRequestsAnything(ManualHonestSubscriber):
    """It keeps its subscription and never requests, also if it is told to."""

    def request(self, n: int) -> None:
        """Do nothing."""


class LosesItsSubscription(HonestSubscriber):
    """on_subscribe does not store the subscription."""

    def on_subscribe(self, subscription: Any, /) -> None:
        self.refuse_none(subscription)
        if self.over:
            subscription.cancel()
        self.over = True


class RaisesOnEachElement(HonestSubscriber):
    """on_next raises."""

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        raise RuntimeError("I cannot take this")


class HidesOneElementFromItsHandler(HonestSubscriber):
    """Elements are accepted, but no handler gets the second one."""

    count = 0

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        self.count += 1
        if self.count == 2:
            self.next_request()
        else:
            super().on_next(element)


class DropsElementsInsideRequest(ManualHonestSubscriber):
    """It records its demand after request() has returned, and drops elements that came before."""

    due = 0

    def request(self, n: int) -> None:
        super().request(n)
        self.due += n

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        if self.due:
            self.due -= 1
            super().on_next(element)


class OverwritesItsDemand(ManualHonestSubscriber):
    """A number that it is told to request replaces its open demand instead of being added."""

    due = 0

    def request(self, n: int) -> None:
        more, self.due = n - self.due, max(n, self.due)
        if more > 0:
            super().request(more)

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.due -= 1


class RequestsAHundredAtMost(ManualHonestSubscriber):
    """Requests at most a hundred at a time, and forgets the rest of a larger number."""

    def request(self, n: int) -> None:
        super().request(min(n, 100))


class RequestsOneOnly(ManualHonestSubscriber):
    """It requests one element, and ignores the number that it is told to request."""

    def request(self, n: int) -> None:
        super().request(1)


class RaisesAfterItsCancel(HonestSubscriber):
    """An element that arrives after its cancel makes on_next raise."""

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        if self.over:
            raise RuntimeError("I have cancelled")
        super().on_next(element)


class _CountsItsElements(HonestSubscriber):
    """Requests in batches, and the next one when a batch has come."""

    count = 0

    def next_request(self) -> None:
        self.count += 1
        self.renew()

    def renew(self) -> None:
        if self.count == self.batch and self.subscription is not None:
            self.count = 0
            self.subscription.request(self.batch)


class StopsAfterFifty(HonestSubscriber):
    """It requests no more after 50 elements."""

    count = 0

    def next_request(self) -> None:
        self.count += 1
        if self.count < 50:
            super().next_request()


class RenewsOneElementLate(_CountsItsElements):
    """It requests the next batch at the first element of that batch."""

    def renew(self) -> None:
        if self.count > self.batch and self.subscription is not None:
            self.count = 0
            self.subscription.request(self.batch)


class ResetsItsCountAfterItsFirstRequest(_CountsItsElements):
    """Elements that come inside its first request are not counted."""

    def first_request(self) -> None:
        super().first_request()
        self.count = 0


_ASKING = [
    "a_handler_that_raises_cancels_the_subscription",
    "after_on_complete_the_subscription_is_not_used",
    "after_on_error_the_subscription_is_not_used",
    "an_end_after_a_cancel_is_accepted",
    "completion_after_a_request_is_handled",
    "requested_elements_reach_the_handlers_until_a_cancel",
    "elements_signalled_inside_request_are_handled",
    "late_elements_after_a_cancel_are_accepted",
    "failure_after_a_request_is_handled",
    "on_complete_makes_no_call",
    "on_error_makes_no_call",
    "requested_numbers_add_up",
]
_TAKING = [
    "a_handler_that_raises_cancels_the_subscription",
    "after_on_complete_the_subscription_is_not_used",
    "after_on_error_the_subscription_is_not_used",
    "calls_come_from_the_thread_of_the_run",
    "requested_elements_reach_the_handlers_until_a_cancel",
    "elements_signalled_inside_request_are_handled",
    "late_elements_after_a_cancel_are_accepted",
    "handlers_see_all_signals_in_order",
]

SABOTEURS = [
    subscriber_saboteur(
        StopsAfterFifty,
        {"demand_is_renewed_to_the_end": "after 51 elements it requests no more"},
        renews_demand=True,
    ),
    subscriber_saboteur(
        RenewsOneElementLate,
        {"demand_is_renewed_to_the_end": "after 2 elements it requests no more"},
        renews_demand=True,
    ),
    subscriber_saboteur(
        ResetsItsCountAfterItsFirstRequest,
        {"demand_is_renewed_to_the_end": "some came inside request() it requests no more"},
        renews_demand=True,
    ),
    subscriber_saboteur(
        NeverRequestsAnything,
        {
            "elements_are_requested_and_accepted": (
                "expected request, but the subscriber did not call"
            )
        },
        _ASKING,
    ),
    subscriber_saboteur(
        LosesItsSubscription,
        {
            "elements_are_requested_and_accepted": (
                "expected request, but the subscriber did not call"
            ),
            "a_shutdown_cancels_the_subscription": (
                "expected cancel, but the subscriber did not call"
            ),
        },
        _ASKING,
    ),
    subscriber_saboteur(
        RaisesOnEachElement,
        {"elements_are_requested_and_accepted": "on_next raised RuntimeError"},
        _TAKING,
    ),
    subscriber_saboteur(
        HidesOneElementFromItsHandler,
        {
            "requested_elements_reach_the_handlers_until_a_cancel": "but the handlers saw [0]",
            "elements_signalled_inside_request_are_handled": "but handlers saw [0, 2, 3, 4]",
            "handlers_see_all_signals_in_order": "but the handlers saw [0, 2, 3,",
        },
    ),
    subscriber_saboteur(
        DropsElementsInsideRequest,
        {"elements_signalled_inside_request_are_handled": "but handlers saw [1, 2, 3, 4]"},
    ),
    subscriber_saboteur(
        OverwritesItsDemand,
        {"requested_numbers_add_up": "told to request 2 and 3, but requested 3 in all"},
    ),
    subscriber_saboteur(
        RequestsAHundredAtMost,
        {"requested_numbers_add_up": "told to request 300, but requested 100 in all"},
    ),
    subscriber_saboteur(
        RequestsOneOnly,
        {"requested_numbers_add_up": "told to request 2 and 3, but requested 2 in all"},
    ),
    subscriber_saboteur(
        RaisesAfterItsCancel,
        {
            "late_elements_after_a_cancel_are_accepted": (
                "on_next raised RuntimeError('I have cancelled')"
            )
        },
        also=["a_handler_that_raises_cancels_the_subscription"],
    ),
]
