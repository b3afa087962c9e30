"""Subscribers that ask wrongly, and those that take a second subscription."""

from typing import Any

from tck.tests._honest_subscribers import HonestSubscriber
from tck.tests._saboteur import subscriber_saboteur


class NeverAsks(HonestSubscriber):
    """It keeps its subscription and requests nothing, whoever tells it to."""

    def first_request(self) -> None:
        """Nothing."""

    def next_request(self) -> None:
        """Nothing."""

    def request(self, n: int) -> None:
        """Nothing."""


class RaisesOnEachElement(HonestSubscriber):
    """on_next raises."""

    def on_next(self, element: Any, /) -> None:
        raise RuntimeError("I cannot take this")


class AcceptsASecond(HonestSubscriber):
    """A second subscription takes the place of the first one, and is asked for elements."""

    def second(self, subscription: Any) -> None:
        self.subscription = subscription
        self.first_request()


class CancelsTheFirst(HonestSubscriber):
    """A second subscription makes it cancel both."""

    def second(self, subscription: Any) -> None:
        subscription.cancel()
        self.shut_down()


SABOTEURS = [
    subscriber_saboteur(NeverAsks, {"elements_are_requested_and_taken": "expected request, but the subscriber did not call"}),
    subscriber_saboteur(RaisesOnEachElement, {"elements_are_requested_and_taken": "on_next raised RuntimeError"}),
    subscriber_saboteur(AcceptsASecond, {"a_second_subscription_is_cancelled": "expected cancel, but the subscriber did not call"}),
    subscriber_saboteur(CancelsTheFirst, {"a_second_subscription_is_cancelled": "the first subscription was cancelled"}),
]
