"""A subscriber of which only the interface is known is also judged: these faults are found without
any hook.
"""

import pytest
from penstock_tck import Outcome, run_checks

from tck.tests._honest_verifications import HonestBlackBox
from tck.tests.saboteurs import subscriber, subscriber_endings, subscriber_signals

tck_verifies_nothing = "the verifications are run by run_checks, one check at a time"

_NOT_ASKED = "expected request, but the subscriber did not call"

FAULTS = [
    (subscriber.NeverRequestsAnything, "elements_are_requested_and_accepted", _NOT_ASKED),
    (subscriber.NeverRequestsAnything, "completion_after_a_request_is_handled", _NOT_ASKED),
    (
        subscriber.RaisesOnEachElement,
        "elements_are_requested_and_accepted",
        "on_next raised RuntimeError",
    ),
    (
        subscriber_endings.RequestsInOnComplete,
        "on_complete_makes_no_call",
        "request was called from inside on_complete",
    ),
    (
        subscriber_endings.CancelsInOnComplete,
        "on_complete_makes_no_call",
        "cancel was called from inside on_complete",
    ),
    (
        subscriber_endings.RequestsInOnError,
        "on_error_makes_no_call",
        "request was called from inside on_error",
    ),
    (
        subscriber_endings.CancelsInOnError,
        "on_error_makes_no_call",
        "cancel was called from inside on_error",
    ),
    (
        subscriber_endings.RaisesInOnComplete,
        "completion_after_a_request_is_handled",
        "on_complete raised RuntimeError",
    ),
    (
        subscriber_endings.RaisesInOnComplete,
        "completion_before_a_request_is_handled",
        "on_complete raised RuntimeError",
    ),
    (
        subscriber_endings.RaisesInOnError,
        "failure_after_a_request_is_handled",
        "on_error raised RuntimeError",
    ),
    (
        subscriber_endings.RaisesInOnError,
        "failure_before_a_request_is_handled",
        "on_error raised RuntimeError",
    ),
    (
        subscriber_signals.AcceptsASecond,
        "a_second_subscription_is_cancelled",
        "expected cancel, but the subscriber did not call",
    ),
    (
        subscriber_signals.RequestsFromTheSecond,
        "a_second_subscription_is_cancelled",
        "got a request for [1] elements",
    ),
    (
        subscriber_signals.RequestsAgainWhenRepeated,
        "a_repeated_on_subscribe_makes_no_request",
        "made it request [2] again",
    ),
    (
        subscriber_signals.RequestsFromAThread,
        "calls_come_from_the_thread_of_the_run",
        "from another thread",
    ),
    (
        subscriber_signals.AcceptsNoneAtFirst,
        "on_subscribe_refuses_none",
        "a fresh subscriber answered",
    ),
    (
        subscriber_signals.AcceptsNoneAsAnElement,
        "on_next_refuses_none",
        "on_next(None) returned normally",
    ),
    (
        subscriber_signals.AcceptsNoneAsAnError,
        "on_error_refuses_none",
        "on_error(None) returned normally",
    ),
]


@pytest.mark.parametrize(
    ("culprit", "check", "words"), FAULTS, ids=lambda part: getattr(part, "__name__", "")
)
def test_a_fault_is_seen_without_hooks(culprit: type, check: str, words: str) -> None:
    """The check fails, with the same text as for a subscriber with hooks."""
    (result,) = run_checks(
        type(culprit.__name__, (HonestBlackBox,), {"subscriber_class": culprit}), [check]
    )
    assert result.outcome is Outcome.FAILED
    assert words in result.seen


def test_checks_that_need_a_hook_do_not_apply() -> None:
    """Without hooks nine checks do not apply. Each names the hook that it needs."""
    lacking = {
        result.check: result.seen
        for result in run_checks(HonestBlackBox)
        if result.outcome is Outcome.NOT_APPLICABLE
    }
    assert set(lacking) == {
        "a_handler_that_raises_cancels_the_subscription",
        "an_end_after_a_cancel_is_accepted",
        "requested_elements_reach_the_handlers_until_a_cancel",
        "elements_signalled_inside_request_are_handled",
        "late_elements_after_a_cancel_are_accepted",
        "handlers_see_all_signals_in_order",
        "on_next_returns_before_its_handler_runs",
        "requested_numbers_add_up",
        "a_shutdown_cancels_the_subscription",
    }
    assert all(
        seen.startswith(("it does not declare ", "it does not override "))
        for seen in lacking.values()
    )
