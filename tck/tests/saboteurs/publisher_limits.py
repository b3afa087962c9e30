"""Publishers that handle a large demand wrongly (rule 3.17)."""

import itertools
from typing import Any

from penstock.api import UNBOUNDED, check_demand
from tck.tests._honest_publishers import HonestSubscription, TaskSubscription
from tck.tests._saboteur import publisher_saboteur


class FailsAtTheTop(HonestSubscription):
    """A demand of exactly 2^63-1 is answered with on_error."""

    def add(self, n: int) -> None:
        super().add(n)
        if self.demand == UNBOUNDED and n == UNBOUNDED:
            self.end("on_error", OverflowError("this is too much"))


class FailsOnOverflow(HonestSubscription):
    """Demand that adds up to more than 2^63-1 is answered with on_error."""

    def add(self, n: int) -> None:
        too_much = self.demand + n > UNBOUNDED
        super().add(n)
        if too_much:
            self.end("on_error", OverflowError("this is too much"))


class StallsOnOverflow(TaskSubscription):
    """Demand that adds up to more than 2^63-1 is set to zero, as an unchecked counter does."""

    def add(self, n: int) -> None:
        self.demand = self.demand + n if self.demand + n <= UNBOUNDED else 0


class WrapsOnOverflow(HonestSubscription):
    """Demand that adds up to more than 2^63-1 becomes negative,
    as a signed counter of 64 bits does.
    """

    def add(self, n: int) -> None:
        self.demand = (self.demand + n + 2**63) % 2**64 - 2**63


class IgnoresRequestsAbove64Bits(HonestSubscription):
    """A single request above 2^63-1 is ignored, because it does not fit into 64 bits."""

    def request(self, n: Any, /) -> None:
        if not isinstance(n, int) or n <= UNBOUNDED:
            super().request(n)


class QueuesRequests(TaskSubscription):
    """It keeps each request as an entry in a queue of 256, and ignores requests that do not fit."""

    entries = 0

    def add(self, n: int) -> None:
        if self.entries < 256:
            self.entries += 1
            super().add(n)

    def step(self) -> None:
        super().step()
        self.entries = max(0, self.entries - 1)


class CountsDemandInALoop(HonestSubscription):
    """A request of 2^63-2 is counted one by one, in a loop that never returns to the run loop."""

    def request(self, n: int, /) -> None:
        if n == UNBOUNDED - 1:
            for _ in itertools.count():
                check_demand(n)
        super().request(n)


SABOTEURS = [
    publisher_saboteur(
        FailsAtTheTop,
        {"unbounded_demand_is_supported": "but got on_error(OverflowError"},
        also=[
            "cancel_stops_a_stream_with_unbounded_demand",
            "demand_above_the_limit_counts_as_unbounded",
        ],
    ),
    publisher_saboteur(
        FailsOnOverflow,
        {
            "demand_above_the_limit_counts_as_unbounded": (
                "20 elements and no on_error were expected, but on_error(OverflowError"
            ),
            "demand_above_the_limit_does_not_stall_the_stream": "but got on_error(OverflowError",
        },
    ),
    publisher_saboteur(
        StallsOnOverflow,
        {
            "demand_above_the_limit_counts_as_unbounded": (
                "20 elements were expected by now, but 0 arrived"
            ),
            "demand_above_the_limit_does_not_stall_the_stream": (
                "expected on_next, but nothing arrived"
            ),
        },
    ),
    publisher_saboteur(
        WrapsOnOverflow,
        {
            "demand_above_the_limit_counts_as_unbounded": (
                "20 elements were expected by now, but 0 arrived"
            ),
            "demand_above_the_limit_does_not_stall_the_stream": (
                "expected on_next, but nothing arrived"
            ),
        },
    ),
    publisher_saboteur(
        IgnoresRequestsAbove64Bits,
        {
            "demand_above_the_limit_counts_as_unbounded": (
                "20 elements were expected by now, but 0 arrived"
            )
        },
    ),
    publisher_saboteur(
        QueuesRequests,
        {
            "any_number_of_requests_is_supported": (
                "1000 elements were expected by now, but 256 arrived"
            )
        },
    ),
    publisher_saboteur(
        CountsDemandInALoop,
        {"demand_above_the_limit_does_not_stall_the_stream": "something in it is endless"},
        watchdog_seconds=1.5,
    ),
]
