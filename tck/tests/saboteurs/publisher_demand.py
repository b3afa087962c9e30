"""Publishers that count demand wrongly."""

from typing import Any

from tck.tests._honest_publishers import HonestLine, HonestPublisher, TaskLine
from tck.tests._saboteur import publisher_class_saboteur, publisher_saboteur


class OverwritesDemand(HonestLine):
    """request() puts its number in the place of the demand. It shows where requests meet before an element is signalled."""

    def add(self, n: int) -> None:
        self.demand = n


class OverwritesDemandInATask(TaskLine):
    """request() of a publisher with a task puts its number in the place of the demand."""

    def add(self, n: int) -> None:
        self.demand = n


class KeepsTheLargerDemand(HonestLine):
    """Of two requests the larger one counts."""

    def add(self, n: int) -> None:
        self.demand = max(self.demand, n)


class EmitsOneTooMany(HonestLine):
    """Each burst is one element longer than the demand."""

    def step(self) -> None:
        super().step()
        if not self.demand and self.subscriber is not None and self.position < self.publisher.count:
            self.position += 1
            self.signal("on_next", self.publisher.element(self.position - 1))


class StartsWithoutDemand(HonestLine):
    """The first of five elements comes without a request."""

    def begin(self) -> None:
        self.demand = 1 if self.publisher.count == 5 else 0
        super().begin()


class FloodsInATask(TaskLine):
    """A task signals everything that there is as soon as anything was requested."""

    def due(self) -> bool:
        self.demand += self.position > 0
        return super().due()


class Silent(HonestLine):
    """on_subscribe comes, and nothing more, whatever is requested."""

    def due(self) -> bool:
        return False


class WaitsForTheDemandToBeUsedUp(HonestLine):
    """The end is signalled only where no demand is left."""

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
        OverwritesDemand,
        {"requests_add_up": "expected on_next, but nothing arrived"},
        also=[
            "any_number_of_requests_is_supported",
            "demand_beyond_its_limit_counts_as_without_bound",
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
            "demand_beyond_its_limit_counts_as_without_bound",
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
        {"elements_come_as_requested_and_no_others": "element 2 arrived, but only 1 were requested"},
        also=[
            "a_cancelled_nursery_ends_the_stream_by_one_error_or_in_silence",
            "a_finite_stream_ends_with_on_complete",
            "a_source_that_raises_is_told_to_one_that_requests_one_by_one",
            "any_number_of_requests_is_supported",
            "cancel_drops_the_subscriber",
            "cancel_returns_normally_in_every_state",
            "every_subscriber_is_served_or_told",
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
        {"elements_come_as_requested_and_no_others": "element 1 arrived, but only 0 were requested"},
        also=[
            "a_cancelled_nursery_ends_the_stream_by_one_error_or_in_silence",
            "requests_add_up",
            "subscribers_share_elements_that_they_take_one_by_one",
        ],
    ),
    publisher_saboteur(
        FloodsInATask,
        {"elements_come_as_requested_and_no_others": "element 2 arrived, but only 1 were requested"},
        also=[
            "a_cancelled_nursery_ends_the_stream_by_one_error_or_in_silence",
            "a_finite_stream_ends_with_on_complete",
            "a_source_that_raises_is_told_to_one_that_requests_one_by_one",
            "cancel_drops_the_subscriber",
            "every_subscriber_is_served_or_told",
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
            "every_subscriber_is_served_or_told": "got neither an element nor an end",
        },
        also=[
            "a_cancel_inside_on_next_drops_the_subscriber",
            "a_demand_is_refused_inside_signals_too",
            "a_demand_without_bound_is_supported",
            "a_finite_stream_ends_with_on_complete",
            "a_source_that_raises_ends_the_stream_with_on_error",
            "a_source_that_raises_is_told_to_one_that_requests_one_by_one",
            "a_subscriber_that_cancels_leaves_its_neighbours_alone",
            "a_subscriber_that_raises_is_dropped",
            "after_on_complete_the_subscription_counts_as_cancelled",
            "an_eager_publisher_completes_with_its_last_element",
            "any_number_of_requests_is_supported",
            "cancel_signals_nothing_itself",
            "cancel_stops_a_stream_of_endless_demand",
            "demand_beyond_its_limit_counts_as_without_bound",
            "demand_that_passes_its_limit_does_not_stall_the_stream",
            "every_signal_arrives_in_the_thread_of_the_run",
            "fewer_elements_than_requested_end_with_on_complete",
            "further_cancels_do_nothing",
            "nothing_comes_after_a_cancel_between_signals",
            "nothing_comes_after_a_cancel_inside_on_next",
            "nothing_follows_on_complete",
            "nothing_follows_the_failure_of_the_source",
            "on_complete_drops_the_subscriber",
            "on_next_is_nested_no_deeper_than_declared",
            "one_that_raises_in_on_complete_harms_nobody",
            "one_that_raises_in_on_next_is_cut_off",
            "one_that_raises_is_reported",
            "one_that_raises_leaves_its_neighbours_alone",
            "requests_add_up",
            "requests_from_within_signals_are_served",
            "subscribers_share_elements_that_they_request_at_once",
            "subscribers_share_elements_that_they_take_one_by_one",
            "subscribers_share_the_end",
            "the_same_subscriber_twice_does_not_harm_its_first_stream",
            "the_stack_does_not_grow_with_the_stream",
        ],
    ),
    publisher_saboteur(
        WaitsForTheDemandToBeUsedUp,
        {"fewer_elements_than_requested_end_with_on_complete": "expected on_complete, but nothing arrived"},
        also=[
            "a_demand_without_bound_is_supported",
            "a_source_that_raises_ends_the_stream_with_on_error",
            "after_on_complete_the_subscription_counts_as_cancelled",
            "demand_that_passes_its_limit_does_not_stall_the_stream",
            "nothing_follows_on_complete",
            "nothing_follows_the_failure_of_the_source",
            "on_complete_drops_the_subscriber",
            "one_that_raises_in_on_complete_harms_nobody",
            "one_that_raises_leaves_its_neighbours_alone",
            "requests_from_within_signals_are_served",
            "subscribers_share_the_end",
        ],
    ),
    publisher_class_saboteur(
        OneElementShort,
        {
            "fewer_elements_than_requested_end_with_on_complete": "expected on_next, but got on_complete",
            "a_finite_stream_ends_with_on_complete": "expected on_next, but got on_complete",
        },
        also=[
            "a_demand_without_bound_is_supported",
            "a_subscriber_that_cancels_leaves_its_neighbours_alone",
            "one_that_raises_leaves_its_neighbours_alone",
            "subscribers_share_elements_that_they_request_at_once",
            "subscribers_share_the_end",
            "the_same_subscriber_twice_does_not_harm_its_first_stream",
        ],
    ),
    publisher_class_saboteur(
        OneElementMore,
        {
            "fewer_elements_than_requested_end_with_on_complete": "expected on_complete, but got on_next",
            "a_finite_stream_ends_with_on_complete": "expected on_complete, but got on_next",
        },
        also=[
            "a_demand_without_bound_is_supported",
            "one_that_raises_leaves_its_neighbours_alone",
            "subscribers_share_the_end",
        ],
    ),
]
