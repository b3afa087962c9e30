"""Publishers with a fault that hides between two steps.
The check against the model catches each of them.
"""

import trio

from tck.tests._honest_publishers import HonestSubscription, TaskSubscription
from tck.tests._saboteur import MODEL, publisher_saboteur


class ForgetsARequestDuringACheckpoint(TaskSubscription):
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


class CountsARequestInsideOnNextTwice(HonestSubscription):
    """A request inside the third on_next counts twice."""

    def add(self, n: int) -> None:
        super().add(2 * n if self.busy and self.position == 3 else n)


class ReplacesTheDemandInsideOnNext(HonestSubscription):
    """A request inside on_next replaces what is outstanding, if that is less."""

    def add(self, n: int) -> None:
        if self.busy and self.position and n > self.demand:
            self.demand = n
        else:
            super().add(n)


class IgnoresACancelInsideOnSubscribe(HonestSubscription):
    """A cancel inside on_subscribe is ignored if a request came before it."""

    def cancel(self) -> None:
        if not (self.busy and not self.position and self.demand):
            super().cancel()


class IgnoresACancelInsideOnNext(TaskSubscription):
    """A cancel inside the second on_next is ignored."""

    def cancel(self) -> None:
        if not (self.busy and self.position == 2):
            super().cancel()


class IgnoresACancelBehindTheFirstRequest(TaskSubscription):
    """A cancel right behind the first request is ignored: the task has not begun."""

    def cancel(self) -> None:
        if not (self.busy and not self.position):
            super().cancel()


class IgnoresALateCancel(HonestSubscription):
    """A cancel after 30 elements is ignored."""

    def cancel(self) -> None:
        if self.position < 30:
            super().cancel()


SABOTEURS = [
    publisher_saboteur(ForgetsARequestDuringACheckpoint, {MODEL: "were requested, and"}),
    publisher_saboteur(CountsARequestInsideOnNextTwice, {MODEL: "1.1"}),
    publisher_saboteur(ReplacesTheDemandInsideOnNext, {MODEL: "were requested, and"}),
    publisher_saboteur(
        IgnoresACancelInsideOnSubscribe,
        {MODEL: "1.8"},
        also=["nothing_comes_after_a_cancel_inside_on_subscribe"],
    ),
    publisher_saboteur(
        IgnoresACancelInsideOnNext,
        {MODEL: "1.8"},
        also=["nothing_comes_after_a_cancel_inside_on_next"],
    ),
    publisher_saboteur(
        IgnoresACancelBehindTheFirstRequest,
        {MODEL: "1.8"},
        also=[
            "request_signals_no_more_than_declared_before_it_returns",
            "a_cancel_before_a_slow_element_drops_the_subscriber",
            "cancel_makes_no_signal",
            "cancel_returns_normally_in_every_state",
            "nothing_comes_after_a_cancel_inside_on_subscribe",
        ],
    ),
    publisher_saboteur(IgnoresALateCancel, {MODEL: "1.8"}),
]
