"""Subscribers that ask wrongly, or take elements wrongly (rules 2.1, 2.8, 3.8)."""

from typing import Any

from tck.tests._honest_subscribers import HonestSubscriber, ManualHonestSubscriber
from tck.tests._saboteur import subscriber_saboteur


class NeverAsks(ManualHonestSubscriber):
    """It keeps its subscription and requests nothing, whoever tells it to."""

    def request(self, n: int) -> None:
        """Nothing."""


class LosesItsSubscription(HonestSubscriber):
    """on_subscribe keeps nothing."""

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


class KeepsOneToItself(HonestSubscriber):
    """Elements are taken, but no handler sees the second one."""

    count = 0

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        self.count += 1
        if self.count == 2:
            self.next_request()
        else:
            super().on_next(element)


class DropsWhatComesTooSoon(ManualHonestSubscriber):
    """It counts what is due after request() has returned, and drops elements that came before."""

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
    """What it is told to request replaces what is under way, instead of coming on top of it."""

    due = 0

    def request(self, n: int) -> None:
        more, self.due = n - self.due, max(n, self.due)
        if more > 0:
            super().request(more)

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.due -= 1


class AsksForOne(ManualHonestSubscriber):
    """Whatever number it is told, it requests one."""

    def request(self, n: int) -> None:
        super().request(1)


class RaisesAfterItsCancel(HonestSubscriber):
    """An element that arrives after its cancel makes on_next raise."""

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        if self.over:
            raise RuntimeError("I have cancelled")
        super().on_next(element)


_ASKING = [
    "a_handler_that_raises_cancels",
    "after_on_complete_the_subscription_is_not_used",
    "after_on_error_the_subscription_is_not_used",
    "an_end_that_was_on_its_way_is_taken",
    "completion_after_a_request_is_taken",
    "demand_elements_and_a_cancel_take_their_way",
    "elements_that_come_inside_request_are_taken",
    "elements_that_were_on_their_way_are_taken",
    "failure_after_a_request_is_taken",
    "on_complete_itself_calls_nothing",
    "on_error_itself_calls_nothing",
    "what_is_asked_for_adds_up",
]
_TAKING = [
    "a_handler_that_raises_cancels",
    "after_on_complete_the_subscription_is_not_used",
    "after_on_error_the_subscription_is_not_used",
    "calls_come_from_the_runs_thread",
    "demand_elements_and_a_cancel_take_their_way",
    "elements_that_come_inside_request_are_taken",
    "elements_that_were_on_their_way_are_taken",
    "handlers_see_what_was_signalled_in_order",
]

SABOTEURS = [
    subscriber_saboteur(NeverAsks, {"elements_are_requested_and_taken": "expected request, but the subscriber did not call"}, _ASKING),
    subscriber_saboteur(
        LosesItsSubscription,
        {
            "elements_are_requested_and_taken": "expected request, but the subscriber did not call",
            "what_is_not_needed_any_more_is_cancelled": "expected cancel, but the subscriber did not call",
        },
        _ASKING,
    ),
    subscriber_saboteur(RaisesOnEachElement, {"elements_are_requested_and_taken": "on_next raised RuntimeError"}, _TAKING),
    subscriber_saboteur(
        KeepsOneToItself,
        {
            "demand_elements_and_a_cancel_take_their_way": "but the handlers saw [0]",
            "elements_that_come_inside_request_are_taken": "but handlers saw [0, 2, 3, 4]",
            "handlers_see_what_was_signalled_in_order": "but the handlers saw [0, 2, 3,",
        },
    ),
    subscriber_saboteur(DropsWhatComesTooSoon, {"elements_that_come_inside_request_are_taken": "but handlers saw [1, 2, 3, 4]"}),
    subscriber_saboteur(OverwritesItsDemand, {"what_is_asked_for_adds_up": "told to request 2 and 3, but requested 3 in all"}),
    subscriber_saboteur(AsksForOne, {"what_is_asked_for_adds_up": "told to request 2 and 3, but requested 2 in all"}),
    subscriber_saboteur(
        RaisesAfterItsCancel,
        {"elements_that_were_on_their_way_are_taken": "on_next raised RuntimeError('I have cancelled')"},
        also=["a_handler_that_raises_cancels"],
    ),
]
