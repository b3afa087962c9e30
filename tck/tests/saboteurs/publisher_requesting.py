"""Publishers whose request() is wrong in itself."""

from typing import Any

from penstock.api import IllegalDemand
from tck.tests._honest_publishers import HonestLine
from tck.tests._saboteur import publisher_saboteur


class IgnoresZero(HonestLine):
    """request(0) is ignored."""

    def request(self, n: int, /) -> None:
        if n != 0:
            super().request(n)


class RaisesBelowZero(HonestLine):
    """A negative request raises to the caller."""

    def request(self, n: int, /) -> None:
        if n < 0:
            raise ValueError("a negative request")
        super().request(n)


class RefusesWithTheWrongType(HonestLine):
    """A negative request is answered with a RuntimeError."""

    def request(self, n: int, /) -> None:
        if n < 0 and self.subscriber is not None:
            self.end("on_error", RuntimeError("a negative request"))
            return
        super().request(n)


class ExplainsNothing(HonestLine):
    """The error that refuses a demand has no text."""

    def refuse(self, error: IllegalDemand) -> None:
        del error
        self.end("on_error", ValueError())


class IgnoresHugeNegatives(HonestLine):
    """Only a request below -2^31 is ignored."""

    def request(self, n: Any, /) -> None:
        if n > -(2**31):
            super().request(n)


SABOTEURS = [
    publisher_saboteur(
        IgnoresZero,
        {
            "request_zero_is_answered_with_on_error": "expected on_error, but nothing arrived",
            "nothing_follows_the_refusal_of_a_demand": "expected on_error, but nothing arrived",
        },
    ),
    publisher_saboteur(
        RaisesBelowZero,
        {
            "request_below_zero_is_answered_with_on_error": "request(-1) raised ValueError",
            "the_refusal_of_a_demand_explains_itself": "it must return normally",
        },
    ),
    publisher_saboteur(
        RefusesWithTheWrongType,
        {
            "request_below_zero_is_answered_with_on_error": "expected on_error(ValueError), but got on_error(RuntimeError",
            "the_refusal_of_a_demand_explains_itself": "expected on_error(ValueError)",
        },
    ),
    publisher_saboteur(ExplainsNothing, {"the_refusal_of_a_demand_explains_itself": "does not say what was wrong"}),
    publisher_saboteur(IgnoresHugeNegatives, {"request_below_zero_is_answered_with_on_error": "nothing arrived"}),
]
