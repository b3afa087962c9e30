"""Subscribers that keep the rules in unusual ways. No check may fail for them.

Each uses a freedom that the standard leaves: to call the subscription of another stream at the end,
to act some time after it is told to, to want only one element, to request everything at once.
"""

from typing import Any

import trio

from penstock.api import UNBOUNDED
from tck.tests._honest_subscribers import HonestSubscriber, ManualHonestSubscriber
from tck.tests._honest_verifications import HonestBlackBox, HonestSubscriberStage

tck_verifies_nothing = "these are run by run_checks"


class _CallsAnotherSubscription(HonestSubscriber):
    """At both ends it requests from, and cancels, a subscription to another stream."""

    other: Any = None

    def on_complete(self) -> None:
        super().on_complete()
        self.call_the_other_stream()

    def on_error(self, error: Any, /) -> None:
        super().on_error(error)
        self.call_the_other_stream()

    def call_the_other_stream(self) -> None:
        self.other.request(1)
        self.other.shut_down()


class CallsAnotherStream(HonestSubscriberStage):
    """Calls on another subscription, inside on_complete and on_error, break no rule."""

    subscriber_class = _CallsAnotherSubscription

    def create_subscriber(self) -> Any:
        subscriber = super().create_subscriber()
        subscriber.other = HonestSubscriber()
        self.manual_publisher().subscribe(subscriber.other)
        return subscriber


class SlowToAct(HonestSubscriberStage):
    """It acts some seconds after it is told to."""

    subscriber_class = ManualHonestSubscriber
    settle_seconds = 5.0

    async def _later(self, act: Any, *arguments: Any) -> None:
        await trio.sleep(3)
        act(*arguments)

    def trigger_request(self, n: int) -> None:
        self.env.nursery.start_soon(self._later, self.subscriber.request, n)

    def trigger_cancel(self) -> None:
        self.env.nursery.start_soon(self._later, self.subscriber.shut_down)

    trigger_shutdown = trigger_cancel


class _CancelsAfterOneElement(HonestSubscriber):
    """It cancels when it has got one element."""

    def next_request(self) -> None:
        self.shut_down()


class WantsOneElement(HonestBlackBox):
    """A subscriber that needs only the first element."""

    reports = True
    subscriber_class = _CancelsAfterOneElement

    def create_subscriber(self) -> Any:
        return self.subscriber_class(self.saw_next, self.saw_error, self.saw_complete)


class _RequestsEverything(ManualHonestSubscriber):
    """It requests 2^63-1, once."""

    def first_request(self) -> None:
        self.subscription.request(UNBOUNDED)


class WantsEverything(HonestSubscriberStage):
    """A subscriber with demand of 2^63-1."""

    subscriber_class = _RequestsEverything


SUBSCRIBERS = (CallsAnotherStream, SlowToAct, WantsOneElement, WantsEverything)
