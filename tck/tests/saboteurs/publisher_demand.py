"""Publishers that count demand wrongly."""

from typing import Any

from tck.tests._honest_publishers import HonestPublisher, HonestSubscription, TaskSubscription
from tck.tests._saboteur import publisher_class_saboteur, publisher_saboteur


class OverwritesDemand(HonestSubscription):
    """request() replaces the demand with its number.
    This shows if two requests come before an element is signalled.
    """

    def add(self, n: int) -> None:
        self.demand = n


class OverwritesDemandInATask(TaskSubscription):
    """request() of a publisher with a task replaces the demand with its number."""

    def add(self, n: int) -> None:
        self.demand = n


class KeepsTheLargerDemand(HonestSubscription):
    """Of two requests the larger one counts."""

    def add(self, n: int) -> None:
        self.demand = max(self.demand, n)


class EmitsOneTooMany(HonestSubscription):
    """Each burst is one element longer than the demand."""

    def step(self) -> None:
        super().step()
        if not self.demand and self.subscriber is not None and self.position < self.publisher.count:
            self.position += 1
            self.signal("on_next", self.publisher.element(self.position - 1))


class RoundsALargeDemandUp(HonestSubscription):
    """A demand for more than twenty elements is rounded up to bursts of sixteen."""

    def add(self, n: int) -> None:
        super().add(-(-n // 16) * 16 if 20 < n < 1000 else n)


class StartsWithoutDemand(HonestSubscription):
    """The first of 57 elements comes without a request."""

    def begin(self) -> None:
        self.demand = 1 if self.publisher.count == 57 else 0
        super().begin()


class FloodsInATask(TaskSubscription):
    """A task signals all elements as soon as one is requested."""

    def due(self) -> bool:
        self.demand += self.position > 0
        return super().due()


class Silent(HonestSubscription):
    """Only on_subscribe comes, also after a request."""

    def due(self) -> bool:
        return False


class WaitsForTheDemandToBeUsedUp(HonestSubscription):
    """The end is signalled only if no demand is left."""

    def finish(self) -> None:
        if not self.demand or not self.publisher.count:
            super().finish()


class OneElementShort(HonestPublisher):
    """A stream of three elements has two."""

    def __init__(self, count: int, *arguments: Any, **more: Any) -> None:
        super().__init__(2 if count == 3 else count, *arguments, **more)


class OneElementMore(HonestPublisher):
    """A stream of three elements has four."""

    def __init__(self, count: int, *arguments: Any, **more: Any) -> None:
        super().__init__(4 if count == 3 else count, *arguments, **more)


SABOTEURS = [
    publisher_saboteur(
        RoundsALargeDemandUp,
        {"elements_come_as_requested_and_no_others": "rule 1.1"},
    ),
    publisher_saboteur(
        OverwritesDemand,
        {"requests_add_up": "expected on_next, but nothing arrived"},
        also=[
            "any_number_of_requests_is_supported",
            "demand_above_the_limit_counts_as_unbounded",
        ],
    ),
    publisher_saboteur(
        OverwritesDemandInATask,
        {
            "requests_add_up": "expected on_next, but nothing arrived",
            "elements_come_as_requested_and_no_others": "expected on_next, but nothing arrived",
        },
        also=[
            "any_number_of_requests_is_supported",
            "demand_above_the_limit_counts_as_unbounded",
        ],
    ),
    publisher_saboteur(
        KeepsTheLargerDemand,
        {"requests_add_up": "expected on_next, but nothing arrived"},
        also=[
            "any_number_of_requests_is_supported",
        ],
    ),
    publisher_saboteur(
        EmitsOneTooMany,
        {
            "elements_come_as_requested_and_no_others": (
                "element 2 arrived, but only 1 were requested"
            )
        },
        also=[
            "a_cancelled_nursery_signals_at_most_one_error",
            "a_finite_stream_ends_with_on_complete",
            "a_source_that_raises_ends_a_stream_requested_one_by_one",
            "any_number_of_requests_is_supported",
            "cancel_drops_the_subscriber",
            "cancel_returns_normally_in_every_state",
            "every_subscriber_is_served_or_refused",
            "further_cancels_do_nothing",
            "nothing_comes_after_a_cancel_between_signals",
            "request_returns_normally_in_every_state",
            "requests_add_up",
            "signals_do_not_overlap",
            "subscribers_share_elements_that_they_take_one_by_one",
        ],
    ),
    publisher_saboteur(
        StartsWithoutDemand,
        {
            "elements_come_as_requested_and_no_others": (
                "element 1 arrived, but only 0 were requested"
            )
        },
    ),
    publisher_saboteur(
        FloodsInATask,
        {
            "elements_come_as_requested_and_no_others": (
                "element 2 arrived, but only 1 were requested"
            )
        },
        also=[
            "a_cancelled_nursery_signals_at_most_one_error",
            "a_finite_stream_ends_with_on_complete",
            "a_source_that_raises_ends_a_stream_requested_one_by_one",
            "cancel_drops_the_subscriber",
            "every_subscriber_is_served_or_refused",
            "further_cancels_do_nothing",
            "nothing_comes_after_a_cancel_between_signals",
            "request_returns_normally_in_every_state",
            "requests_add_up",
            "subscribers_share_elements_that_they_take_one_by_one",
        ],
    ),
    publisher_saboteur(
        Silent,
        {
            "elements_come_as_requested_and_no_others": "expected on_next, but nothing arrived",
            "every_subscriber_is_served_or_refused": "got neither an element nor an end",
        },
        also=[
            "a_cancel_inside_on_next_drops_the_subscriber",
            "an_illegal_demand_inside_a_signal_is_refused",
            "unbounded_demand_is_supported",
            "a_finite_stream_ends_with_on_complete",
            "a_source_that_raises_ends_the_stream_with_on_error",
            "a_source_that_raises_ends_a_stream_requested_one_by_one",
            "a_cancel_does_not_affect_other_subscribers",
            "a_subscriber_that_raises_is_dropped",
            "after_on_complete_the_subscription_counts_as_cancelled",
            "an_eager_publisher_completes_with_its_last_element",
            "any_number_of_requests_is_supported",
            "cancel_makes_no_signal",
            "cancel_stops_a_stream_with_unbounded_demand",
            "demand_above_the_limit_counts_as_unbounded",
            "demand_above_the_limit_does_not_stall_the_stream",
            "every_signal_arrives_in_the_thread_of_the_run",
            "fewer_elements_than_requested_end_with_on_complete",
            "further_cancels_do_nothing",
            "nothing_comes_after_a_cancel_between_signals",
            "nothing_comes_after_a_cancel_inside_on_next",
            "nothing_follows_on_complete",
            "nothing_follows_the_failure_of_the_source",
            "on_complete_drops_the_subscriber",
            "on_next_is_nested_no_deeper_than_declared",
            "a_subscriber_that_raises_in_on_complete_does_no_harm",
            "a_subscriber_that_raises_in_on_next_is_cancelled",
            "a_subscriber_that_raises_is_reported",
            "a_subscriber_that_raises_does_not_affect_the_others",
            "requests_add_up",
            "requests_inside_signals_are_served",
            "subscribers_share_elements_that_they_request_at_once",
            "subscribers_share_elements_that_they_take_one_by_one",
            "subscribers_share_the_end",
            "subscribing_twice_does_not_harm_the_first_stream",
            "the_stack_does_not_grow_with_the_stream",
        ],
    ),
    publisher_saboteur(
        WaitsForTheDemandToBeUsedUp,
        {
            "fewer_elements_than_requested_end_with_on_complete": (
                "expected on_complete, but nothing arrived"
            )
        },
        also=[
            "unbounded_demand_is_supported",
            "a_source_that_raises_ends_the_stream_with_on_error",
            "after_on_complete_the_subscription_counts_as_cancelled",
            "demand_above_the_limit_does_not_stall_the_stream",
            "nothing_follows_on_complete",
            "nothing_follows_the_failure_of_the_source",
            "on_complete_drops_the_subscriber",
            "a_subscriber_that_raises_in_on_complete_does_no_harm",
            "a_subscriber_that_raises_does_not_affect_the_others",
            "requests_inside_signals_are_served",
            "subscribers_share_the_end",
        ],
    ),
    publisher_class_saboteur(
        OneElementShort,
        {
            "fewer_elements_than_requested_end_with_on_complete": (
                "expected on_next, but got on_complete"
            ),
            "a_finite_stream_ends_with_on_complete": "expected on_next, but got on_complete",
        },
        also=[
            "unbounded_demand_is_supported",
            "a_cancel_does_not_affect_other_subscribers",
            "a_subscriber_that_raises_does_not_affect_the_others",
            "subscribers_share_elements_that_they_request_at_once",
            "subscribers_share_the_end",
            "subscribing_twice_does_not_harm_the_first_stream",
        ],
    ),
    publisher_class_saboteur(
        OneElementMore,
        {
            "fewer_elements_than_requested_end_with_on_complete": (
                "expected on_complete, but got on_next"
            ),
            "a_finite_stream_ends_with_on_complete": "expected on_complete, but got on_next",
        },
        also=[
            "unbounded_demand_is_supported",
            "a_subscriber_that_raises_does_not_affect_the_others",
            "subscribers_share_the_end",
        ],
    ),
]
