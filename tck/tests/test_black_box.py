"""A subscriber of which nothing but the interface is known is judged all the same: without one hook, these faults are seen."""

import pytest
from penstock_tck import Outcome, run_checks

from tck.tests._honest_verifications import HonestBlackBox
from tck.tests.saboteurs import subscriber, subscriber_endings, subscriber_signals

tck_verifies_nothing = "the verifications are run by run_checks, one check at a time"

_NOT_ASKED = "expected request, but the subscriber did not call"

FAULTS = [
    (subscriber.NeverAsks, "elements_are_requested_and_taken", _NOT_ASKED),
    (subscriber.NeverAsks, "completion_after_a_request_is_taken", _NOT_ASKED),
    (subscriber.RaisesOnEachElement, "elements_are_requested_and_taken", "on_next raised RuntimeError"),
    (subscriber_endings.RequestsInOnComplete, "on_complete_itself_calls_nothing", "request was called from inside on_complete"),
    (subscriber_endings.CancelsInOnComplete, "on_complete_itself_calls_nothing", "cancel was called from inside on_complete"),
    (subscriber_endings.RequestsInOnError, "on_error_itself_calls_nothing", "request was called from inside on_error"),
    (subscriber_endings.CancelsInOnError, "on_error_itself_calls_nothing", "cancel was called from inside on_error"),
    (subscriber_endings.RaisesInOnComplete, "completion_after_a_request_is_taken", "on_complete raised RuntimeError"),
    (subscriber_endings.RaisesInOnComplete, "completion_before_a_request_is_taken", "on_complete raised RuntimeError"),
    (subscriber_endings.RaisesInOnError, "failure_after_a_request_is_taken", "on_error raised RuntimeError"),
    (subscriber_endings.RaisesInOnError, "failure_before_a_request_is_taken", "on_error raised RuntimeError"),
    (subscriber_signals.AcceptsASecond, "a_second_subscription_is_cancelled", "expected cancel, but the subscriber did not call"),
    (subscriber_signals.AsksTheSecond, "a_second_subscription_is_cancelled", "was asked for [1] elements"),
    (subscriber_signals.AsksItsOwnAgain, "its_own_subscription_again_is_not_asked_again", "made it request [2] again"),
    (subscriber_signals.AsksFromAThread, "calls_come_from_the_runs_thread", "from another thread"),
    (subscriber_signals.AcceptsNoneAtFirst, "on_subscribe_refuses_none", "a fresh subscriber answered"),
    (subscriber_signals.AcceptsNoneAsAnElement, "on_next_refuses_none", "on_next(None) returned normally"),
    (subscriber_signals.AcceptsNoneAsAnError, "on_error_refuses_none", "on_error(None) returned normally"),
]


@pytest.mark.parametrize(("culprit", "check", "words"), FAULTS, ids=lambda part: getattr(part, "__name__", ""))
def test_a_fault_is_seen_without_hooks(culprit: type, check: str, words: str) -> None:
    """The check fails, with the same words as where the box is open."""
    (result,) = run_checks(type(culprit.__name__, (HonestBlackBox,), {"subscriber_class": culprit}), [check])
    assert result.outcome is Outcome.FAILED
    assert words in result.seen


def test_what_only_a_hook_can_show_is_said_not_to_apply() -> None:
    """Without hooks nine checks name the hook that they need."""
    lacking = {result.check: result.seen for result in run_checks(HonestBlackBox) if result.outcome is Outcome.NOT_APPLICABLE}
    assert set(lacking) == {
        "a_handler_that_raises_cancels",
        "an_end_that_was_on_its_way_is_taken",
        "demand_elements_and_a_cancel_take_their_way",
        "elements_that_come_inside_request_are_taken",
        "elements_that_were_on_their_way_are_taken",
        "handlers_see_what_was_signalled_in_order",
        "on_next_returns_before_its_handler_runs",
        "what_is_asked_for_adds_up",
        "what_is_not_needed_any_more_is_cancelled",
    }
    assert all(seen.startswith(("it does not declare ", "it does not override ")) for seen in lacking.values())
