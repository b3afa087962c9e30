"""Objects of the draft with a fault that hides between two steps.
The checks against the models catch each of them.
"""

from typing import Any

import trio

from tck.tests._honest_draft import HonestDraftSubscription
from tck.tests._honest_draft_subscribers import HonestDraftSubscriber
from tck.tests._saboteur import (
    DRAFT_MODEL,
    DRAFT_SUBSCRIBER_MODEL,
    publisher_saboteur,
    subscriber_saboteur,
)


class WritesBackItsDemand(HonestDraftSubscription):
    """A request during the checkpoint of the task is forgotten:
    the task writes back the demand that it has read before.
    """

    async def run(self) -> None:
        while self.due():
            demand = self.demand
            await trio.sleep(self.publisher.seconds)
            if self.due():
                self.demand = demand
                self.step()
        self.busy = False
        self.finish()


class CountsALateRequestTwice(HonestDraftSubscription):
    """A request counts twice while the task runs and three elements have come."""

    def add(self, n: int) -> None:
        super().add(2 * n if self.busy and self.position >= 3 else n)


class IgnoresACancelDuringAStep(HonestDraftSubscription):
    """A cancel is ignored if the task has begun and two elements have come."""

    def cancel(self) -> None:
        if not (self.subscriber is not None and self.busy and self.position >= 2):
            super().cancel()


class IgnoresALateCancelOfTheDraft(HonestDraftSubscription):
    """A cancel after 30 elements is ignored."""

    def cancel(self) -> None:
        if self.subscriber is None or self.position < 30:
            super().cancel()


class DropsAnElementWhileItWorks(HonestDraftSubscriber):
    """An element is dropped if two others wait for the task."""

    def on_next(self, element: Any, /) -> None:
        if element is None or len(self.waiting) < 2:
            super().on_next(element)


class DropsTheEndBehindElements(HonestDraftSubscriber):
    """An end is dropped if two elements wait for the task."""

    def on_complete(self) -> None:
        if len(self.waiting) < 2:
            super().on_complete()
        else:
            self.forget_subscription()


SABOTEURS = [
    publisher_saboteur(WritesBackItsDemand, {DRAFT_MODEL: "were requested, and"}),
    publisher_saboteur(CountsALateRequestTwice, {DRAFT_MODEL: "D4.1"}),
    publisher_saboteur(
        IgnoresACancelDuringAStep,
        {
            DRAFT_MODEL: "D3.2",
            "cancel_stops_an_endless_stream": "turns of the run loop after cancel()",
        },
    ),
    publisher_saboteur(IgnoresALateCancelOfTheDraft, {DRAFT_MODEL: "D3.2"}),
    subscriber_saboteur(
        DropsAnElementWhileItWorks, {DRAFT_SUBSCRIBER_MODEL: "were signalled, but the handlers saw"}
    ),
    subscriber_saboteur(
        DropsTheEndBehindElements,
        {DRAFT_SUBSCRIBER_MODEL: "on_complete was signalled, but the handlers saw none"},
    ),
]
