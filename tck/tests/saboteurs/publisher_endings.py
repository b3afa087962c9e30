"""Publishers that do not know when the stream has ended, or signal the end wrongly."""

from typing import Any

from penstock.api import IllegalDemand
from tck.tests._honest_publishers import HonestSubscription
from tck.tests._saboteur import publisher_saboteur


class _GoesOn(HonestSubscription):
    """A subscription that remembers its subscriber after the end,
    and signals again at a request.
    """

    ended_subscriber: Any = None

    def goes_on_after(self, signal: str) -> bool:
        raise ValueError(f"{signal}: say after which end it goes on")

    def end(self, signal: str, *arguments: Any) -> None:
        if self.goes_on_after(signal):
            self.ended_subscriber = self.subscriber
        super().end(signal, *arguments)

    def request(self, n: int, /) -> None:
        if self.ended_subscriber is not None and n > 0:
            self.deliver(self.ended_subscriber, "on_next", "one more")
        super().request(n)


class GoesOnAfterCompletion(_GoesOn):
    """After on_complete a request is answered with one more element."""

    def goes_on_after(self, signal: str) -> bool:
        return signal == "on_complete"


class GoesOnAfterFailure(_GoesOn):
    """After the on_error of a failed publisher a request is answered with one more element."""

    def goes_on_after(self, signal: str) -> bool:
        return signal == "on_error" and self.publisher.count == 0


class GoesOnAfterRefusal(_GoesOn):
    """After the on_error that refuses a demand a request is answered with one more element."""

    def goes_on_after(self, signal: str) -> bool:
        return signal == "on_error" and self.demand == 0 and self.publisher.error is None


class GoesOnAfterItsSourceFailed(HonestSubscription):
    """After the on_error of a failed source one more element and on_complete come."""

    def end(self, signal: str, *arguments: Any) -> None:
        subscriber = self.subscriber
        super().end(signal, *arguments)
        if signal == "on_error" and self.publisher.error is not None and self.publisher.count:
            self.deliver(subscriber, "on_next", "one more")
            self.deliver(subscriber, "on_complete")


class RefusesAfterCompletion(HonestSubscription):
    """After on_complete an illegal demand is still answered with on_error."""

    ended_subscriber: Any = None

    def end(self, signal: str, *arguments: Any) -> None:
        self.ended_subscriber = self.subscriber if signal == "on_complete" else None
        super().end(signal, *arguments)

    def request(self, n: int, /) -> None:
        if self.ended_subscriber is not None and n <= 0:
            self.deliver(
                self.ended_subscriber, "on_error", IllegalDemand("demand is at least 1 (rule 3.9)")
            )
        super().request(n)


class RefusesTwice(HonestSubscription):
    """After an on_error for an illegal demand the next illegal demand is answered with another
    one.
    """

    ended_subscriber: Any = None

    def refuse(self, error: IllegalDemand) -> None:
        self.ended_subscriber = self.subscriber
        super().refuse(error)

    def request(self, n: int, /) -> None:
        if self.ended_subscriber is not None and n <= 0:
            self.deliver(
                self.ended_subscriber, "on_error", IllegalDemand("demand is at least 1 (rule 3.9)")
            )
        super().request(n)


class NeverSignalsItsFailure(HonestSubscription):
    """A failed publisher calls on_subscribe and nothing else."""

    def finish(self) -> None:
        if self.publisher.error is None or self.publisher.count:
            super().finish()


class FailsWithAText(HonestSubscription):
    """A failed publisher signals a text instead of an exception."""

    def end(self, signal: str, *arguments: Any) -> None:
        super().end(signal, *(map(str, arguments) if self.publisher.count == 0 else arguments))


class NeverCompletes(HonestSubscription):
    """Finite streams stop without an end."""

    def finish(self) -> None:
        if self.publisher.error is not None:
            super().finish()


class ForgetsTheEndBetweenRequests(HonestSubscription):
    """If the last element uses up the demand, on_complete is forgotten."""

    def finish(self) -> None:
        if self.demand or not self.publisher.count or self.publisher.error is not None:
            super().finish()
        elif self.position >= self.publisher.count:
            self.forget()


class EmptyNeverCompletes(HonestSubscription):
    """A stream without elements never completes."""

    def finish(self) -> None:
        if self.publisher.count or self.publisher.error is not None:
            super().finish()


class CompletesLazily(HonestSubscription):
    """It declares eager completion, but completes only at one more request."""

    def finish(self) -> None:
        if self.demand or self.publisher.error is not None or not self.publisher.count:
            super().finish()


class CompletesTwice(HonestSubscription):
    """An empty stream completes twice."""

    def end(self, signal: str, *arguments: Any) -> None:
        subscriber = self.subscriber
        super().end(signal, *arguments)
        if signal == "on_complete" and not self.publisher.count:
            self.deliver(subscriber, signal)


SABOTEURS = [
    publisher_saboteur(
        GoesOnAfterCompletion,
        {"nothing_follows_on_complete": "on_next arrived after the end"},
        also=[
            "cancel_returns_normally_after_on_complete",
            "after_on_complete_the_subscription_counts_as_cancelled",
            "demand_above_the_limit_counts_as_unbounded",
            "fewer_elements_than_requested_end_with_on_complete",
            "on_complete_drops_the_subscriber",
            "a_subscriber_that_raises_in_on_complete_does_no_harm",
            "request_returns_normally_in_every_state",
            "signals_do_not_overlap",
        ],
    ),
    publisher_saboteur(
        GoesOnAfterFailure,
        {"nothing_follows_the_failure_of_the_publisher": "on_next arrived after the end"},
        also=[
            "cancel_returns_normally_after_a_failure",
            "a_source_that_raises_ends_the_stream_with_on_error",
            "the_error_of_the_source_arrives_unwrapped",
            "the_failure_of_the_source_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        GoesOnAfterRefusal,
        {"nothing_follows_the_refusal_of_a_demand": "on_next arrived after the end"},
        also=[
            "a_source_that_cannot_be_opened_signals_on_error",
            "after_on_error_the_subscription_counts_as_cancelled",
            "a_subscriber_that_raises_in_on_error_does_no_harm",
            "the_refusal_of_a_demand_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        GoesOnAfterItsSourceFailed,
        {"nothing_follows_the_failure_of_the_source": "on_complete arrived after the end"},
        also=[
            "a_source_that_raises_ends_the_stream_with_on_error",
            "a_source_that_raises_ends_a_stream_requested_one_by_one",
        ],
    ),
    publisher_saboteur(
        RefusesAfterCompletion,
        {
            "after_on_complete_the_subscription_counts_as_cancelled": (
                "on_error arrived after the end"
            )
        },
        also=[
            "on_complete_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        RefusesTwice,
        {"after_on_error_the_subscription_counts_as_cancelled": "on_error arrived after the end"},
        also=[
            "request_returns_normally_in_every_state",
            "the_refusal_of_a_demand_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        NeverSignalsItsFailure,
        {
            "a_failed_publisher_signals_on_error": "expected on_error, but nothing arrived",
            "a_failed_publisher_calls_on_subscribe_before_on_error": (
                "expected on_error, but nothing arrived"
            ),
        },
        also=[
            "a_source_that_raises_ends_the_stream_with_on_error",
            "cancel_returns_normally_after_a_failure",
            "nothing_follows_the_failure_of_the_publisher",
            "the_error_of_the_source_arrives_unwrapped",
            "the_failure_of_the_source_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        FailsWithAText,
        {"a_failed_publisher_signals_on_error": "which is not an exception"},
        also=[
            "a_failed_publisher_calls_on_subscribe_before_on_error",
            "a_source_that_raises_ends_the_stream_with_on_error",
            "an_error_arrives_in_the_thread_of_the_run",
            "cancel_returns_normally_after_a_failure",
            "nothing_follows_the_failure_of_the_publisher",
            "the_error_of_the_source_arrives_unwrapped",
            "the_failure_of_the_source_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        NeverCompletes,
        {
            "a_finite_stream_ends_with_on_complete": "expected on_complete, but nothing arrived",
            "subscribers_share_the_end": "expected on_complete, but nothing arrived",
        },
        also=[
            "a_completed_publisher_signals_on_complete",
            "unbounded_demand_is_supported",
            "after_on_complete_the_subscription_counts_as_cancelled",
            "an_eager_publisher_completes_with_its_last_element",
            "an_empty_stream_ends_with_on_complete",
            "demand_above_the_limit_does_not_stall_the_stream",
            "fewer_elements_than_requested_end_with_on_complete",
            "nothing_follows_on_complete",
            "on_complete_drops_the_subscriber",
            "a_subscriber_that_raises_in_on_complete_does_no_harm",
            "a_subscriber_that_raises_does_not_affect_the_others",
            "requests_inside_signals_are_served",
        ],
    ),
    publisher_saboteur(
        ForgetsTheEndBetweenRequests,
        {"a_finite_stream_ends_with_on_complete": "expected on_complete, but nothing arrived"},
        also=[
            "an_eager_publisher_completes_with_its_last_element",
        ],
    ),
    publisher_saboteur(
        EmptyNeverCompletes,
        {
            "an_empty_stream_ends_with_on_complete": "expected on_complete, but nothing arrived",
            "a_completed_publisher_signals_on_complete": "expected on_complete, but nothing arrived",
        },
        also=[
            "an_eager_publisher_completes_with_its_last_element",
            "fewer_elements_than_requested_end_with_on_complete",
        ],
    ),
    publisher_saboteur(
        CompletesLazily,
        {
            "an_eager_publisher_completes_with_its_last_element": (
                "expected on_complete, but nothing arrived"
            )
        },
    ),
    publisher_saboteur(
        CompletesTwice,
        {"an_empty_stream_ends_with_on_complete": "on_complete arrived after the end"},
        also=[
            "a_completed_publisher_signals_on_complete",
            "an_eager_publisher_completes_with_its_last_element",
            "fewer_elements_than_requested_end_with_on_complete",
            "subscribe_calls_on_subscribe_first_and_once",
        ],
    ),
]
