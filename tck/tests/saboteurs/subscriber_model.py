"""Subscribers with a fault that hides inside a request, or between two steps of a task. The
check against the model catches each.
"""

from typing import Any

from tck.tests._honest_fan_out import HonestFanOut
from tck.tests._honest_subscribers import DispatchingSubscriber, HonestSubscriber
from tck.tests._saboteur import SUBSCRIBER_MODEL, processor_saboteur, subscriber_saboteur


class KeepsItsSubscriptionTooLate(HonestSubscriber):
    """It keeps the subscription after it has requested:
    elements that come inside that request are dropped.
    """

    def on_subscribe(self, subscription: Any, /) -> None:
        self.refuse_none(subscription)
        if self.subscription is not None or self.over:
            subscription.cancel()
            return
        subscription.request(self.batch)
        self.subscription = subscription


class RevivesItsSubscriptionAfterTheEnd(HonestSubscriber):
    """It keeps the subscription once more after it has requested, also
    if the stream has ended inside the request.
    """

    def on_subscribe(self, subscription: Any, /) -> None:
        self.refuse_none(subscription)
        if self.subscription is not None or self.over:
            subscription.cancel()
            return
        self.subscription = subscription
        subscription.request(self.batch)
        self.subscription = subscription


class RequestsBeforeItHandles(HonestSubscriber):
    """It requests before its handler gets the element:
    elements that come inside that request are handled first.
    """

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        if self.subscription is None:
            return
        self.next_request()
        try:
            self.on_element(element)
        except Exception:
            self.shut_down()


class DropsTheEndWhileItIsBusy(DispatchingSubscriber):
    """An end is dropped if more than two elements wait for their handler."""

    def on_complete(self) -> None:
        if len(self.mail) <= 2:
            super().on_complete()
        else:
            self.forget_subscription()


class ForgetsARequestWhileItIsBusy(DispatchingSubscriber):
    """It requests only when it is told to, and forgets that
    if more than one element waits for its handler.
    """

    def first_request(self) -> None:
        """Request nothing."""

    def next_request(self) -> None:
        """Request nothing."""

    def request(self, n: int) -> None:
        if len(self.mail) <= 1:
            super().request(n)


class SwapsWaitingElements(DispatchingSubscriber):
    """An element that finds three others waiting is handled before them."""

    def post(self, call: Any, *arguments: Any) -> None:
        super().post(call, *arguments)
        if len(self.mail) == 4:
            self.mail.rotate(1)


class DropsElementsInsideOnSubscribe(HonestFanOut):
    """Elements that come inside its request in on_subscribe are dropped."""

    is_subscribing = False

    def on_subscribe(self, subscription: Any, /) -> None:
        self.is_subscribing = subscription is not None
        super().on_subscribe(subscription)
        self.is_subscribing = False

    def keep(self, element: Any) -> None:
        if not self.is_subscribing:
            super().keep(element)


SABOTEURS = [
    subscriber_saboteur(KeepsItsSubscriptionTooLate, {SUBSCRIBER_MODEL: "inside the next request"}),
    subscriber_saboteur(RevivesItsSubscriptionAfterTheEnd, {SUBSCRIBER_MODEL: "2.4"}),
    subscriber_saboteur(
        RequestsBeforeItHandles, {SUBSCRIBER_MODEL: "were signalled, but the handlers saw"}
    ),
    subscriber_saboteur(
        DropsTheEndWhileItIsBusy,
        {SUBSCRIBER_MODEL: "on_complete was signalled, but the handlers saw none"},
    ),
    subscriber_saboteur(ForgetsARequestWhileItIsBusy, {SUBSCRIBER_MODEL: "in all, but requested"}),
    subscriber_saboteur(
        SwapsWaitingElements, {SUBSCRIBER_MODEL: "were signalled, but the handlers saw"}
    ),
    processor_saboteur(
        DropsElementsInsideOnSubscribe, {SUBSCRIBER_MODEL: "were signalled, but the handlers saw"}
    ),
]
