"""The verifications of the publishers, subscribers and processors of other forms, and the check
that catches each of their faults.

`FAULTS`, `SUBSCRIBER_FAULTS` and `PROCESSOR_FAULTS` map each switch to one check that must fail in
every form.
"""

from collections.abc import Mapping
from typing import Any, Final

from penstock_tck import (
    Outcome,
    ProcessorVerification,
    PublisherVerification,
    SubscriberVerification,
    Verification,
    run_checks,
)

from tck.tests._other_forms import FORMS
from tck.tests._other_subscribers import SUBSCRIBERS, TaskProcessor
from tck.tests._saboteur import MODEL, SUBSCRIBER_MODEL

tck_verifies_nothing = "these are run by run_checks"

HONEST: Final = "honest"

FAULTS: Final[Mapping[str, str]] = {
    "a-raise-changes-nothing": "a_subscriber_that_raises_in_on_subscribe_is_cancelled",
    "cancel-after-30-ignored": MODEL,
    "cancel-before-a-request-ignored": "a_cancel_before_any_request_drops_the_subscriber",
    "cancel-behind-a-request-ignored": "nothing_comes_after_a_cancel_inside_on_subscribe",
    "cancel-ignored": "requests_after_a_cancel_do_nothing",
    "cancel-in-on-subscribe-ignored": "nothing_comes_after_a_cancel_inside_on_subscribe",
    "cancel-inside-on-next-ignored": "nothing_comes_after_a_cancel_inside_on_next",
    "completes-after-cancel": "cancel_drops_the_subscriber",
    "dries-up-after-25": "demand_does_not_dry_up",
    "element-first": "subscribe_calls_on_subscribe_first_and_once",
    "ends-twice": "a_finite_stream_ends_with_on_complete",
    "failure-completes": "a_source_that_raises_ends_the_stream_with_on_error",
    "failure-in-a-group": "the_error_of_the_source_arrives_unwrapped",
    "failure-is-silent": "a_source_that_raises_ends_the_stream_with_on_error",
    "goes-on-after-refusal": "request_zero_is_answered_with_on_error",
    "goes-on-after-the-end": "after_on_complete_the_subscription_counts_as_cancelled",
    "keeps-subscribers": "cancel_drops_the_subscriber",
    "keeps-the-ended": "on_complete_drops_the_subscriber",
    "never-completes": "a_finite_stream_ends_with_on_complete",
    "none-accepted": "subscribe_refuses_none",
    "on-subscribe-twice": "subscribe_calls_on_subscribe_first_and_once",
    "one-less-of-three": MODEL,
    "overflow-refused": "demand_above_the_limit_counts_as_unbounded",
    "pushes-one": "several_subscribers_without_demand_get_no_elements",
    "refuses-after-cancel": "cancel_drops_the_subscriber",
    "request-in-a-checkpoint-forgotten": MODEL,
    "request-in-on-subscribe-forgotten": "requests_inside_signals_are_served",
    "request-inside-on-next-forgotten": "requests_inside_signals_are_served",
    "request-inside-on-next-twice": MODEL,
    "request-replaces": "requests_add_up",
    "rounds-above-100": "large_numbers_are_served_exactly",
    "second-cancel-raises": "cancel_returns_normally_in_every_state",
    "sums-in-63-bits": "demand_above_the_limit_counts_as_unbounded",
    "the-tenth-comes-twice": "large_numbers_are_served_exactly",
    "unbounded-ends-at-4096": "unbounded_demand_is_never_used_up",
    "zero-ignored": "request_zero_is_answered_with_on_error",
    "zero-inside-ignored": "an_illegal_demand_inside_a_signal_is_refused",
    "zero-raises": "request_zero_is_answered_with_on_error",
}
"""The switches of the publishers."""

NOT_IN: Final[Mapping[str, str]] = {"request-in-a-checkpoint-forgotten": "trampoline"}
"""The form that cannot have the fault: `Trampoline` has no checkpoint."""

SUBSCRIBER_FAULTS: Final[Mapping[str, str]] = {
    "a-raise-does-not-cancel": "a_handler_that_raises_cancels_the_subscription",
    "another-error": "failure_after_a_request_is_handled",
    "asks-at-the-end": "on_complete_makes_no_call",
    "asks-for-less-than-nothing": "handlers_see_all_signals_in_order",
    "cancels-at-the-end": "on_error_makes_no_call",
    "completion-is-silent": "completion_after_a_request_is_handled",
    "ends-need-an-element": "completion_before_a_request_is_handled",
    "late-elements-raise": "late_elements_after_a_cancel_are_accepted",
    "loses-elements-inside-request": SUBSCRIBER_MODEL,
    "never-asks": "elements_are_requested_and_accepted",
    "never-cancels": "a_shutdown_cancels_the_subscription",
    "none-accepted": "on_next_refuses_none",
    "raises-at-the-50th": "a_long_stream_is_handled",
    "reports-twice": "a_long_stream_is_handled",
    "second-subscription-ignored": "a_second_subscription_is_cancelled",
    "second-subscription-replaces": "a_second_subscription_is_cancelled",
    "skips-the-30th": "a_long_stream_is_handled",
    "the-end-overtakes": "handlers_see_all_signals_in_order",
    "uses-it-after-the-end": "after_on_complete_the_subscription_is_not_used",
}
"""The switches of the subscribers."""

PROCESSOR_FAULTS: Final[Mapping[str, str]] = {
    "another-error": "errors_pass_at_once_without_demand",
    "cancel-stays-here": "cancel_of_the_last_subscriber_cancels_upstream",
    "completion-drops-the-kept": "elements_read_ahead_come_before_the_end",
    "completion-waits-for-demand": "completion_passes_without_demand",
    "early-demand-forgotten": "demand_before_upstream_has_come_is_kept",
    "errors-wait": "errors_overtake_waiting_elements",
    "keeps-two-more": "no_more_is_kept_than_declared",
    "loses-the-20th": "large_numbers_are_served_exactly",
    "request-in-a-checkpoint-forgotten": MODEL,
    "stops-asking-after-64": "large_numbers_are_served_exactly",
}
"""The switches of the processor."""


def fails(verification_class: type[Verification], check: str) -> bool:
    """Run one check. Return whether it fails."""
    (result,) = run_checks(verification_class, [check])
    return result.outcome is Outcome.FAILED


def alarms(honest: type[Verification]) -> list[str]:
    """Run every check over an honest object. Return the messages of those that failed, and one
    if hardly any check passed.
    """
    results = run_checks(honest)
    passed = sum(result.outcome is Outcome.PASSED for result in results)
    return [result.message for result in results if result.failed] + [f"{passed} checks passed"] * (
        passed < 20
    )


def verification(form: str, fault: str, *, seeds: int = 300) -> type[PublisherVerification]:
    """Return the verification of a publisher of this form with this fault."""
    faults = frozenset({fault} - {HONEST})

    class OtherForm(PublisherVerification):
        eager_completion = True
        multicast = True
        model_seeds = seeds

        def create_publisher(self, elements: int) -> Any:
            return FORMS[form](self.env.nursery, elements, faults)

        def create_completed_publisher(self) -> Any:
            return FORMS[form](self.env.nursery, 0, faults)

        def create_failed_publisher(self) -> Any:
            return FORMS[form](self.env.nursery, 0, faults, ValueError("the publisher had failed"))

        def create_faulty_publisher(self, elements: int, error: Exception) -> Any:
            return FORMS[form](self.env.nursery, elements, faults, error)

    return OtherForm


class SlowGenerator(PublisherVerification):
    """Each element takes 0.4 seconds. It declares a second:
    more than an element takes, and less than three elements take.
    """

    eager_completion = True
    multicast = True
    settle_seconds = 1.0

    def create_publisher(self, elements: int) -> Any:
        publisher = FORMS["generator"](self.env.nursery, elements, frozenset())
        publisher.pause = 0.4
        return publisher


def subscriber_verification(form: str, fault: str) -> type[SubscriberVerification]:
    """Return the verification of a subscriber of this form with this fault."""
    faults = frozenset({fault} - {HONEST})

    class OtherForm(SubscriberVerification):
        reports = True
        dispatches = True

        def create_subscriber(self) -> Any:
            return SUBSCRIBERS[form](
                self.env.nursery, faults, self.saw_next, self.saw_error, self.saw_complete
            )

        def create_raising_subscriber(self, error: Exception) -> Any:
            def handler(_: Any) -> None:
                raise error

            return SUBSCRIBERS[form](
                self.env.nursery, faults, handler, self.saw_error, self.saw_complete
            )

        def trigger_request(self, n: int) -> None:
            self.subscriber.request(n)

        def trigger_cancel(self) -> None:
            self.subscriber.shut_down()

        def trigger_shutdown(self) -> None:
            self.subscriber.shut_down()

    return OtherForm


def processor_verification(fault: str) -> type[ProcessorVerification]:
    """Return the verification of the processor with this fault."""
    faults = frozenset({fault} - {HONEST})

    class OtherForm(ProcessorVerification):
        eager_completion = True
        reads_ahead = True
        buffer_size = TaskProcessor.window

        def create_processor(self) -> Any:
            return TaskProcessor(self.env.nursery, faults)

    return OtherForm
