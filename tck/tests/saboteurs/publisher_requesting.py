"""Publishers whose request() is wrong."""

from typing import Any

from penstock.api import UNBOUNDED, IllegalDemand
from tck.tests._honest_publishers import HonestSubscription
from tck.tests._saboteur import publisher_saboteur

# ---------------------------------------------------------------------- what it refuses


class IgnoresZero(HonestSubscription):
    """request(0) is ignored."""

    def request(self, n: int, /) -> None:
        if n != 0:
            super().request(n)


class RaisesBelowZero(HonestSubscription):
    """A negative request raises."""

    def request(self, n: Any, /) -> None:
        if isinstance(n, int) and n < 0:
            raise ValueError("a negative request")
        super().request(n)


class RefusesWithTheWrongType(HonestSubscription):
    """A negative request is answered with a RuntimeError."""

    def request(self, n: Any, /) -> None:
        if isinstance(n, int) and n < 0 and self.subscriber is not None:
            self.end("on_error", RuntimeError("a negative request"))
            return
        super().request(n)


class ExplainsNothing(HonestSubscription):
    """The error that refuses a demand has no text."""

    def refuse(self, error: IllegalDemand) -> None:
        del error
        self.end("on_error", ValueError())


class IgnoresHugeNegatives(HonestSubscription):
    """A request below -2^31 is ignored."""

    def request(self, n: Any, /) -> None:
        if not isinstance(n, int) or n > -(2**31):
            super().request(n)


class RefusesNothingInsideSignals(HonestSubscription):
    """An illegal demand inside a signal is ignored."""

    def refuse(self, error: IllegalDemand) -> None:
        if not self.busy:
            super().refuse(error)


class TakesTrueForOne(HonestSubscription):
    """request(True) counts as request(1)."""

    def request(self, n: int, /) -> None:
        super().request(1 if n is True else n)


class RaisesOnTexts(HonestSubscription):
    """request("1") raises."""

    def request(self, n: Any, /) -> None:
        super().request(n + 0 if isinstance(n, str) else n)


# ---------------------------------------------------------------------- where it may be called


class IgnoresRequestsInOnSubscribe(HonestSubscription):
    """A request inside on_subscribe is lost."""

    greeted = False

    def signal(self, name: str, *arguments: Any) -> None:
        super().signal(name, *arguments)
        self.greeted = True

    def add(self, n: int) -> None:
        if self.greeted:
            super().add(n)


class IgnoresRequestsInOnNext(HonestSubscription):
    """A request inside on_next is lost."""

    def add(self, n: int) -> None:
        if not (self.busy and self.position):
            super().add(n)


class FailsOnRequestsInOnSubscribe(HonestSubscription):
    """A request inside on_subscribe is answered with on_error."""

    def add(self, n: int) -> None:
        super().add(n)
        if self.busy and not self.position:
            self.end("on_error", RuntimeError("it is not ready yet"))


# ---------------------------------------------------------- how deep, how long, and that it returns


class SignalsInsideSignals(HonestSubscription):
    """request() calls on_next directly, also inside on_next."""

    def request(self, n: int, /) -> None:
        if self.position:
            self.busy = False
        super().request(n)


class CallsItselfForTheNext(HonestSubscription):
    """The function that signals an element calls itself for the next one."""

    def pump(self) -> None:
        if self.busy:
            return
        if self.due():
            self.busy = True
            self.step()
            self.busy = False
            self.pump()
        else:
            self.finish()


class SignalsAllAtOnce(HonestSubscription):
    """It declares that a request signals at most ten elements before it returns,
    but signals all.
    """


class RaisesOnRequestsAbove64Bits(HonestSubscription):
    """A request above 2^63-1 raises, as `struct.pack` does."""

    def request(self, n: Any, /) -> None:
        if isinstance(n, int) and n > UNBOUNDED:
            raise OverflowError("this does not fit into eight bytes")
        super().request(n)


class RaisesAfterACancel(HonestSubscription):
    """A request on a cancelled subscription raises."""

    cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
        super().cancel()

    def request(self, n: int, /) -> None:
        if self.cancelled and not self.position:
            raise RuntimeError("it is cancelled")
        super().request(n)


class CountsSevenInsideOnNextTwice(HonestSubscription):
    """A request of 7 inside on_next counts twice."""

    def add(self, n: int) -> None:
        super().add(2 * n if self.busy and self.position and n == 7 else n)


SABOTEURS = [
    publisher_saboteur(
        CountsSevenInsideOnNextTwice,
        {"numbers_requested_inside_on_next_are_served_exactly": "were requested"},
    ),
    publisher_saboteur(
        IgnoresZero,
        {"request_zero_is_answered_with_on_error": "expected on_error, but nothing arrived"},
        also=[
            "an_illegal_demand_inside_a_signal_is_refused",
            "after_on_error_the_subscription_counts_as_cancelled",
            "nothing_follows_the_refusal_of_a_demand",
            "a_subscriber_that_raises_in_on_error_does_no_harm",
            "a_subscriber_that_raises_is_reported",
            "the_refusal_of_a_demand_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        RaisesBelowZero,
        {
            "request_below_zero_is_answered_with_on_error": "request(-1) raised ValueError",
            "request_returns_normally_in_every_state": "request(-1) raised ValueError",
        },
        also=[
            "after_on_complete_the_subscription_counts_as_cancelled",
            "after_on_error_the_subscription_counts_as_cancelled",
            "requests_after_a_cancel_do_nothing",
            "the_refusal_of_a_demand_explains_itself",
        ],
    ),
    publisher_saboteur(
        RefusesWithTheWrongType,
        {
            "request_below_zero_is_answered_with_on_error": (
                "expected on_error(ValueError), but got on_error(RuntimeError"
            )
        },
        also=[
            "the_refusal_of_a_demand_explains_itself",
        ],
    ),
    publisher_saboteur(
        ExplainsNothing, {"the_refusal_of_a_demand_explains_itself": "does not say what was wrong"}
    ),
    publisher_saboteur(
        IgnoresHugeNegatives, {"request_below_zero_is_answered_with_on_error": "nothing arrived"}
    ),
    publisher_saboteur(
        RefusesNothingInsideSignals,
        {"an_illegal_demand_inside_a_signal_is_refused": "expected on_error, but nothing arrived"},
    ),
    publisher_saboteur(
        TakesTrueForOne,
        {
            "a_demand_that_is_not_an_integer_is_refused": (
                "element 1 arrived, but only 0 were requested"
            )
        },
    ),
    publisher_saboteur(
        RaisesOnTexts,
        {"a_demand_that_is_not_an_integer_is_refused": "request('1') raised TypeError"},
    ),
    publisher_saboteur(
        IgnoresRequestsInOnSubscribe,
        {"requests_inside_signals_are_served": "expected on_next, but nothing arrived"},
        also=[
            "any_number_of_requests_is_supported",
            "demand_above_the_limit_counts_as_unbounded",
            "requests_add_up",
            "the_stack_does_not_grow_with_the_stream",
        ],
    ),
    publisher_saboteur(
        IgnoresRequestsInOnNext,
        {"requests_inside_signals_are_served": "expected on_next, but nothing arrived"},
        also=[
            "demand_above_the_limit_does_not_stall_the_stream",
            "on_next_is_nested_no_deeper_than_declared",
            "the_stack_does_not_grow_with_the_stream",
        ],
    ),
    publisher_saboteur(
        FailsOnRequestsInOnSubscribe,
        {"requests_inside_signals_are_served": "but got on_error(RuntimeError"},
        also=[
            "any_number_of_requests_is_supported",
            "demand_above_the_limit_counts_as_unbounded",
            "requests_add_up",
            "the_stack_does_not_grow_with_the_stream",
        ],
    ),
    publisher_saboteur(
        SignalsInsideSignals,
        {
            "on_next_is_nested_no_deeper_than_declared": (
                "on_next is 2 calls deep inside itself; 1 is the declared bound"
            )
        },
        also=[
            "demand_above_the_limit_does_not_stall_the_stream",
            "request_returns_normally_in_every_state",
            "requests_inside_signals_are_served",
            "signals_do_not_overlap",
            "the_stack_does_not_grow_with_the_stream",
        ],
    ),
    publisher_saboteur(
        CallsItselfForTheNext,
        {"the_stack_does_not_grow_with_the_stream": "the stack grew by"},
        also=[
            "any_number_of_requests_is_supported",
        ],
    ),
    publisher_saboteur(
        SignalsAllAtOnce,
        {
            "request_signals_no_more_than_declared_before_it_returns": (
                "more than 1010 signals arrived"
            )
        },
        synchronous_bound=10,
    ),
    publisher_saboteur(
        RaisesOnRequestsAbove64Bits,
        {"request_returns_normally_in_every_state": "raised OverflowError"},
        also=[
            "demand_above_the_limit_counts_as_unbounded",
        ],
    ),
    publisher_saboteur(
        RaisesAfterACancel,
        {
            "request_returns_normally_in_every_state": "raised RuntimeError",
            "requests_after_a_cancel_do_nothing": "raised RuntimeError",
        },
        also=[
            "cancel_makes_no_signal",
            "cancel_returns_normally_after_a_failure",
            "nothing_comes_after_a_cancel_inside_on_subscribe",
            "after_on_error_the_subscription_counts_as_cancelled",
            "cancel_returns_normally_in_every_state",
        ],
    ),
]
