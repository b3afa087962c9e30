"""Publishers that get an act of one subscriber wrong
if it happens inside a signal of another (rules 1.8, 1.11, 3.2).
"""

from typing import Any

from tck.tests._honest_publishers import HonestSubscription, TaskSubscription
from tck.tests._saboteur import publisher_saboteur


class _Watches(HonestSubscription):
    """Notes on its publisher which subscription signals."""

    def signal(self, name: str, *arguments: Any) -> None:
        outer = getattr(self.publisher, "signalling", None)
        self.publisher.signalling = self  # type: ignore[attr-defined]  # a note of this file
        super().signal(name, *arguments)
        self.publisher.signalling = outer  # type: ignore[attr-defined]  # as above

    @property
    def is_inside_another(self) -> bool:
        return getattr(self.publisher, "signalling", None) not in (None, self)


class ForgetsARequestInsideASignalOfAnother(_Watches):
    """A request that is made inside a signal to another subscriber is forgotten."""

    def add(self, n: int) -> None:
        if not self.is_inside_another:
            super().add(n)


class ForgetsTheDemandOfAnotherWhenItSubscribes(_Watches):
    """A subscriber that comes inside a signal to another one ends the demand of that one."""

    def begin(self) -> None:
        if self.is_inside_another:
            self.publisher.signalling.demand = 0  # type: ignore[attr-defined]  # a note of this file
        super().begin()


class LosesASubscriberThatComesInsideASignal(_Watches):
    """A subscriber that comes inside a signal to another one gets no element."""

    def begin(self) -> None:
        lost = self.is_inside_another
        super().begin()
        if lost:
            self.forget()

    def pump(self) -> None:
        if not self.is_inside_another:
            super().pump()


class LosesASubscriberThatComesInsideTheLastSignal(_Watches):
    """A subscriber that comes inside the on_next that uses up the demand of another one gets no
    element.
    """

    def begin(self) -> None:
        lost = self.is_inside_another and not self.publisher.signalling.demand  # type: ignore[attr-defined]  # a note of this file
        super().begin()
        if lost:
            self.forget()

    def pump(self) -> None:
        if not self.is_inside_another or self.publisher.signalling.demand:  # type: ignore[attr-defined]  # as above
            super().pump()


class IgnoresACancelInsideASignalOfAnother(_Watches, TaskSubscription):
    """A cancel that is made inside a signal to another subscriber is ignored."""

    publisher: Any

    def cancel(self) -> None:
        if not self.is_inside_another:
            super().cancel()


SABOTEURS = [
    publisher_saboteur(
        ForgetsARequestInsideASignalOfAnother,
        {"a_request_inside_a_signal_of_another_is_served": "requested 4 elements, and got 0"},
    ),
    publisher_saboteur(
        ForgetsTheDemandOfAnotherWhenItSubscribes,
        {"a_subscribe_inside_a_signal_of_another_is_served": "requested 5 elements, and got 1"},
    ),
    publisher_saboteur(
        LosesASubscriberThatComesInsideTheLastSignal,
        {"a_subscribe_inside_a_signal_of_another_is_served": "requested 4 elements, and got 0"},
    ),
    publisher_saboteur(
        LosesASubscriberThatComesInsideASignal,
        {"a_subscribe_inside_a_signal_of_another_is_served": "requested 4 elements, and got 0"},
    ),
    publisher_saboteur(
        IgnoresACancelInsideASignalOfAnother,
        {"a_cancel_inside_a_signal_of_another_is_obeyed": "1.8"},
    ),
]
