"""Subscribers that keep the rules in other ways than most: none of them may set off a false alarm.

Each uses a freedom that the standard leaves: to call another stream's subscription at the end, to be slow with what it is told, to want
one element only, to ask for all there is, to take a second subscription's cancel as its answer and go on.
"""

from typing import Any

import trio

from penstock.api import UNBOUNDED
from tck.tests._honest_subscribers import HonestSubscriber, ManualHonestSubscriber
from tck.tests._honest_verifications import HonestBlackBox, HonestSubscriberStage

tck_verifies_nothing = "these are run by run_checks"


class _CallsAnotherSubscription(HonestSubscriber):
    """At either end it requests from, and cancels, a stream of its own that has nothing to do with the one that ended."""

    other: Any = None

    def on_complete(self) -> None:
        super().on_complete()
        self.turn_to_the_other()

    def on_error(self, error: Any, /) -> None:
        super().on_error(error)
        self.turn_to_the_other()

    def turn_to_the_other(self) -> None:
        self.other.request(1)
        self.other.shut_down()


class CallsAnotherStream(HonestSubscriberStage):
    """Calls on another subscription, from inside on_complete and on_error, are nobody's breach."""

    subscriber_class = _CallsAnotherSubscription

    def create_subscriber(self) -> Any:
        subscriber = super().create_subscriber()
        subscriber.other = HonestSubscriber()
        self.manual_publisher().subscribe(subscriber.other)
        return subscriber


class SlowToAct(HonestSubscriberStage):
    """What it is told, it does some seconds later."""

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
    """It cancels when it has one element."""

    def next_request(self) -> None:
        self.shut_down()


class WantsOneElement(HonestBlackBox):
    """A subscriber that has had enough after the first element."""

    reports = True
    subscriber_class = _CancelsAfterOneElement

    def create_subscriber(self) -> Any:
        return self.subscriber_class(self.saw_next, self.saw_error, self.saw_complete)


class _RequestsEverything(ManualHonestSubscriber):
    """It requests all there is, once."""

    def first_request(self) -> None:
        self.subscription.request(UNBOUNDED)


class WantsEverything(HonestSubscriberStage):
    """A subscriber with demand of 2^63-1."""

    subscriber_class = _RequestsEverything


SUBSCRIBERS = (CallsAnotherStream, SlowToAct, WantsOneElement, WantsEverything)
