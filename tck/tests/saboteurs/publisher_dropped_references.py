"""Publishers that keep references which they should drop."""

from typing import Any

import trio

from penstock.api import IllegalDemand
from tck.tests._honest_publishers import HonestSubscription, TaskSubscription
from tck.tests._saboteur import publisher_saboteur


class _KeepsReferences(HonestSubscription):
    """A subscription with a field for a reference."""

    kept: Any = None


class KeepsACancelledSubscriber(_KeepsReferences):
    """After a cancel the subscriber stays in a field."""

    def cancel(self) -> None:
        self.kept = self.kept or self.subscriber
        super().cancel()


class KeepsASubscriberWithoutRequests(_KeepsReferences):
    """A subscriber that cancels before it has requested anything stays in a field."""

    has_requested = False

    def request(self, n: int, /) -> None:
        self.has_requested = True
        super().request(n)

    def cancel(self) -> None:
        if not self.has_requested:
            self.kept = self.kept or self.subscriber
        super().cancel()


class KeepsASubscriberThatCancelsInASignal(_KeepsReferences):
    """A subscriber that cancels inside on_next stays in a field."""

    def cancel(self) -> None:
        if self.busy and self.position:
            self.kept = self.kept or self.subscriber
        super().cancel()


class KeepsASubscriberWhileItWaits(TaskSubscription):
    """The task that waits for the source keeps the subscriber in a variable until the source
    answers.
    """

    async def run(self) -> None:
        while self.due():
            subscriber = self.subscriber
            await trio.sleep(self.publisher.seconds)
            del subscriber
            if self.due():
                self.step()
        self.busy = False
        self.finish()


class KeepsACompletedSubscriber(_KeepsReferences):
    """After on_complete the subscriber stays in a field."""

    def end(self, signal: str, *arguments: Any) -> None:
        if signal == "on_complete":
            self.kept = self.subscriber
        super().end(signal, *arguments)


class KeepsARefusedSubscriber(_KeepsReferences):
    """After the on_error for an illegal demand the subscriber stays in a field."""

    def refuse(self, error: IllegalDemand) -> None:
        self.kept = self.subscriber
        super().refuse(error)


class KeepsAFailedSubscriber(_KeepsReferences):
    """After the on_error of its source the subscriber stays in a field."""

    def finish(self) -> None:
        if self.publisher.error is not None:
            self.kept = self.kept or self.subscriber
        super().finish()


class KeepsASubscriberThatRaised(_KeepsReferences):
    """A subscriber that raised stays in a field."""

    def deliver(self, subscriber: Any, name: str, *arguments: Any) -> None:
        super().deliver(subscriber, name, *arguments)
        if self.publisher.reports:
            self.kept = subscriber


SABOTEURS = [
    publisher_saboteur(
        KeepsACancelledSubscriber,
        {"cancel_drops_the_subscriber": "is still referred to by"},
        also=[
            "a_cancel_before_any_request_drops_the_subscriber",
            "a_cancel_inside_on_next_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        KeepsASubscriberWithoutRequests,
        {"a_cancel_before_any_request_drops_the_subscriber": "is still referred to by"},
    ),
    publisher_saboteur(
        KeepsASubscriberThatCancelsInASignal,
        {"a_cancel_inside_on_next_drops_the_subscriber": "is still referred to by"},
    ),
    publisher_saboteur(
        KeepsASubscriberWhileItWaits,
        {"a_cancel_before_a_slow_element_drops_the_subscriber": "is still referred to by"},
    ),
    publisher_saboteur(
        KeepsACompletedSubscriber, {"on_complete_drops_the_subscriber": "is still referred to by"}
    ),
    publisher_saboteur(
        KeepsARefusedSubscriber,
        {"the_refusal_of_a_demand_drops_the_subscriber": "is still referred to by"},
    ),
    publisher_saboteur(
        KeepsAFailedSubscriber,
        {"the_failure_of_the_source_drops_the_subscriber": "is still referred to by"},
    ),
    publisher_saboteur(
        KeepsASubscriberThatRaised,
        {"a_subscriber_that_raises_is_dropped": "is still referred to by"},
    ),
]
