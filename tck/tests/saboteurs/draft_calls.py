"""Publishers of the draft whose request_more or cancel is wrong (sleeps use the kit's
MockClock).
"""

from typing import Any

import trio

from penstock.api import UNBOUNDED, add_demand
from tck.tests._honest_draft import (
    DraftPublisher,
    HonestDraftSubscription,
    SlowDraftPublisher,
    SlowDraftSubscription,
)
from tck.tests._honest_publishers import HonestSubscription
from tck.tests._saboteur import draft_publisher_saboteur, publisher_saboteur


class IgnoresRequestsWhenOver(HonestDraftSubscription):
    """request_more on a cancelled subscription is ignored."""

    def refuse_when_over(self, method: str) -> None:
        if method != "request_more":
            super().refuse_when_over(method)


class OverwritesDemand(HonestDraftSubscription):
    """request_more overwrites the demand instead of adding to it."""

    def add(self, n: int) -> None:
        self.demand = n


class SignalsOneTooMany(HonestDraftSubscription):
    """One element more than requested is signalled."""

    def due(self) -> bool:
        return (
            self.subscriber is not None
            and self.demand > -1
            and self.position < self.publisher.count
            and self.has_requested
        )

    has_requested = False

    def add(self, n: int) -> None:
        self.has_requested = True
        super().add(n)


class CutsDemandToFit(HonestDraftSubscription):
    """A demand above 2^63-1 counts as 2^63-1."""

    def is_too_much(self, n: int) -> bool:
        return False

    def add(self, n: int) -> None:
        self.demand = add_demand(self.demand, n)


class LooksAtOneRequestOnly(HonestDraftSubscription):
    """Only a single request above 2^63-1 is answered with on_error, and not a total above it."""

    def is_too_much(self, n: int) -> bool:
        return n > UNBOUNDED


class OverflowsWithTheWrongType(HonestDraftSubscription):
    """A demand above 2^63-1 is answered with a ValueError."""

    def overflow(self) -> None:
        self.end("on_error", ValueError("too much"))


class OverflowsAtTheBound(HonestDraftSubscription):
    """A demand of 2^63-1 is refused."""

    def is_too_much(self, n: int) -> bool:
        return self.demand + n >= UNBOUNDED


class RefusesTheBoundSynchronously(HonestDraftSubscription):
    """It signals inside request_more, and refuses a demand of exactly 2^63-1."""

    pump = HonestSubscription.pump

    def is_too_much(self, n: int) -> bool:
        return self.demand + n >= UNBOUNDED


class IgnoresZero(HonestDraftSubscription):
    """request_more(0) is ignored."""

    def refuse_demand(self, n: int) -> None:
        if n:
            super().refuse_demand(n)


class AnswersZeroWithOnError(HonestDraftSubscription):
    """request_more(0) is answered with on_error, as in the modern rules."""

    def refuse_demand(self, n: int) -> None:
        if n:
            super().refuse_demand(n)
        else:
            self.end("on_error", ValueError("request_more(0)"))


class IgnoresNegatives(HonestDraftSubscription):
    """A negative request_more is ignored."""

    def refuse_demand(self, n: int) -> None:
        if not n:
            super().refuse_demand(n)


class SubtractsNegatives(HonestDraftSubscription):
    """A negative request_more raises, but reduces the demand."""

    def refuse_demand(self, n: int) -> None:
        self.add(n)
        super().refuse_demand(n)


class _SignalsAtOnce(SlowDraftSubscription):
    def pump(self) -> None:
        while self.due():
            self.step()
        self.finish()


class InventsElements(SlowDraftPublisher):
    """request_more signals an element that is not available yet."""

    subscription_class = _SignalsAtOnce


class _ForgetsDemand(SlowDraftSubscription):
    def pump(self) -> None:
        self.demand = 0


class ForgetsDemandForMissingElements(SlowDraftPublisher):
    """request_more forgets demand that it cannot serve at once."""

    subscription_class = _ForgetsDemand


class IgnoresASecondCancel(HonestDraftSubscription):
    """cancel on a cancelled subscription is ignored."""

    def refuse_when_over(self, method: str) -> None:
        if method != "cancel":
            super().refuse_when_over(method)


class GoesOnAfterACancel(HonestDraftSubscription):
    """cancel closes the subscription, but its elements keep coming."""

    def cancel(self) -> None:
        subscriber = self.subscriber
        super().cancel()
        if self.position < self.publisher.count - 1 and self.demand:
            self.publisher.nursery.start_soon(self.signal_later, subscriber)

    async def signal_later(self, subscriber: Any) -> None:
        for index in range(self.position, self.position + 100_000):
            await trio.lowlevel.checkpoint()
            self.deliver(subscriber, "on_next", index)


class SignalsOneElementLongAfterACancel(HonestDraftSubscription):
    """Half a minute after a cancel one more element is signalled."""

    def cancel(self) -> None:
        subscriber, open_demand = self.subscriber, self.demand
        super().cancel()
        if open_demand:
            self.publisher.nursery.start_soon(self.signal_later, subscriber)

    async def signal_later(self, subscriber: Any) -> None:
        await trio.sleep(30)
        self.deliver(subscriber, "on_next", self.position)


class KeepsItsSubscribers(DraftPublisher):
    """The publisher keeps a list of all subscribers that it ever had."""

    def accept(self, subscriber: Any) -> None:
        self.__dict__.setdefault("ever", []).append(subscriber)
        super().accept(subscriber)


SABOTEURS = [
    publisher_saboteur(
        RefusesTheBoundSynchronously,
        {
            "a_demand_at_the_bound_is_served": (
                "expected on_next, but got on_error(InvalidStateError"
            ),
            "cancel_stops_an_endless_stream": "no element came of a demand of 2^63-1",
        },
    ),
    publisher_saboteur(
        IgnoresRequestsWhenOver,
        {
            "request_more_on_a_cancelled_subscription_raises": (
                "returned normally, but it must raise InvalidStateError"
            )
        },
    ),
    publisher_saboteur(
        OverwritesDemand,
        {
            "elements_come_as_requested_by_the_draft": "expected on_next, but nothing arrived",
        },
    ),
    publisher_saboteur(
        SignalsOneTooMany,
        {
            "elements_come_as_requested_by_the_draft": (
                "element 2 arrived, but only 1 were requested"
            ),
        },
        also=[
            "all_subscribers_get_the_same_elements_one_by_one",
            "cancel_drops_the_subscriber_of_the_draft",
            "equal_subscribers_that_are_not_identical_are_both_served",
            "a_late_subscriber_starts_with_the_oldest_element",
        ],
    ),
    publisher_saboteur(
        CutsDemandToFit,
        {
            "a_demand_above_the_bound_ends_the_stream": "s1: expected on_error, but got on_next(0)",
        },
    ),
    publisher_saboteur(
        LooksAtOneRequestOnly,
        {
            "a_demand_above_the_bound_ends_the_stream": "s2: expected on_error, but got on_next(0)",
        },
    ),
    publisher_saboteur(
        OverflowsWithTheWrongType,
        {
            "a_demand_above_the_bound_ends_the_stream": (
                "expected on_error(InvalidStateError), but got on_error(ValueError"
            ),
        },
    ),
    publisher_saboteur(
        OverflowsAtTheBound,
        {
            "a_demand_at_the_bound_is_served": (
                "expected on_next, but got on_error(InvalidStateError"
            ),
            "cancel_stops_an_endless_stream": "no element came of a demand of 2^63-1",
        },
    ),
    publisher_saboteur(
        IgnoresZero,
        {
            "request_more_zero_raises": "request(0) returned normally, but it must raise ValueError",
        },
    ),
    publisher_saboteur(
        AnswersZeroWithOnError,
        {
            "request_more_zero_raises": "request(0) returned normally, but it must raise ValueError",
        },
    ),
    publisher_saboteur(
        IgnoresNegatives,
        {
            "a_negative_request_more_raises": (
                "request(-1) returned normally, but it must raise ValueError"
            ),
        },
    ),
    publisher_saboteur(
        SubtractsNegatives,
        {
            "a_negative_request_more_raises": "expected on_next, but nothing arrived",
        },
    ),
    draft_publisher_saboteur(
        InventsElements,
        {
            "request_more_does_not_wait_for_an_element": (
                "an element arrived before request_more returned"
            ),
        },
        serves_as="slow_class",
    ),
    draft_publisher_saboteur(
        ForgetsDemandForMissingElements,
        {
            "request_more_does_not_wait_for_an_element": "expected on_next, but nothing arrived",
        },
        serves_as="slow_class",
    ),
    publisher_saboteur(
        IgnoresASecondCancel,
        {
            "a_second_cancel_raises": (
                "cancel() returned normally, but it must raise InvalidStateError"
            ),
        },
    ),
    publisher_saboteur(
        GoesOnAfterACancel,
        {
            "cancel_stops_an_endless_stream": (
                "turns of the run loop after cancel() elements still arrive"
            ),
        },
    ),
    publisher_saboteur(
        SignalsOneElementLongAfterACancel,
        {
            "cancel_stops_an_endless_stream": (
                "on_next arrived although the subscription was cancelled long ago"
            ),
        },
    ),
    draft_publisher_saboteur(
        KeepsItsSubscribers,
        {
            "cancel_drops_the_subscriber_of_the_draft": (
                "the subscriber is still referred to by a builtins.list"
            ),
        },
    ),
]
