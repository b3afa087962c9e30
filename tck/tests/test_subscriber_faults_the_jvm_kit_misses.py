"""Subscriber and processor faults that the JVM kit misses, each with a saboteur
that the given check of this kit catches.

The JVM kit's blackbox check of 2.1 sends no element. Its checks of 2.9 and 2.10 fail only for an
exception. Its checks of 2.3 look at the call stack, and not at later calls. It has no check of 2.2,
2.4, 2.6, 2.7, 2.11, 2.12 and the handlers' half of 2.13.
"""

import attrs
import pytest
from penstock_tck import Outcome, run_checks

from tck.tests._saboteur import all_saboteurs

tck_verifies_nothing = "the saboteurs are run by run_checks, one check at a time"


@attrs.frozen(kw_only=True)
class MissedFault:
    """A fault that passes the JVM kit, the saboteur with this fault, and the check here
    that catches it.
    """

    passes: str
    saboteur: str
    check: str


MISSED_FAULTS = [
    MissedFault(
        passes="on_next raises every time",
        saboteur="RaisesOnEachElement",
        check="elements_are_requested_and_accepted",
    ),
    MissedFault(
        passes="elements never reach a handler",
        saboteur="HidesOneElementFromItsHandler",
        check="requested_elements_reach_the_handlers_until_a_cancel",
    ),
    MissedFault(
        passes="elements inside request are lost",
        saboteur="DropsElementsInsideRequest",
        check="elements_signalled_inside_request_are_handled",
    ),
    MissedFault(
        passes="an early completion is lost",
        saboteur="OverlooksAnEarlyCompletion",
        check="completion_before_a_request_is_handled",
    ),
    MissedFault(
        passes="a late completion is lost",
        saboteur="OverlooksACompletionThatOwesElements",
        check="completion_after_a_request_is_handled",
    ),
    MissedFault(
        passes="an early failure is lost",
        saboteur="OverlooksAnEarlyFailure",
        check="failure_before_a_request_is_handled",
    ),
    MissedFault(
        passes="a handler gets a completion twice",
        saboteur="HandlesCompletionTwice",
        check="completion_after_a_request_is_handled",
    ),
    MissedFault(
        passes="a call put off by on_complete",
        saboteur="CancelsLaterAfterCompletion",
        check="on_complete_makes_no_call",
    ),
    MissedFault(
        passes="a call put off by on_error",
        saboteur="CancelsLaterAfterFailure",
        check="on_error_makes_no_call",
    ),
    MissedFault(
        passes="demand renewed after the end",
        saboteur="RenewsDemandAfterTheEnd",
        check="after_on_complete_the_subscription_is_not_used",
    ),
    MissedFault(
        passes="a cancel long after on_error",
        saboteur="StaysSubscribedAfterFailure",
        check="after_on_error_the_subscription_is_not_used",
    ),
    MissedFault(
        passes="a second subscription cancels the first",
        saboteur="CancelsTheFirst",
        check="a_second_subscription_is_cancelled",
    ),
    MissedFault(
        passes="on_subscribe repeated",
        saboteur="RequestsAgainWhenRepeated",
        check="a_repeated_on_subscribe_makes_no_request",
    ),
    MissedFault(
        passes="a shutdown that cancels nothing",
        saboteur="CancelsOnlyAfterARequest",
        check="a_shutdown_cancels_the_subscription",
    ),
    MissedFault(
        passes="requests from a thread",
        saboteur="RequestsFromAThread",
        check="calls_come_from_the_thread_of_the_run",
    ),
    MissedFault(
        passes="handlers in a thread",
        saboteur="HandlesInAThread",
        check="handlers_see_all_signals_in_order",
    ),
    MissedFault(
        passes="elements out of order",
        saboteur="SwapsElements",
        check="handlers_see_all_signals_in_order",
    ),
    MissedFault(
        passes="handlers inside on_next, although declared later",
        saboteur="HandlesAtOnce",
        check="on_next_returns_before_its_handler_runs",
    ),
    MissedFault(
        passes="an end that crosses a cancel",
        saboteur="RaisesAtAnEndAfterItsCancel",
        check="an_end_after_a_cancel_is_accepted",
    ),
    MissedFault(
        passes="a raising handler that harms the publisher",
        saboteur="LetsItsHandlerRaise",
        check="a_handler_that_raises_cancels_the_subscription",
    ),
    MissedFault(
        passes="a raising handler that is ignored",
        saboteur="RequestsAfterItsHandlerRaised",
        check="a_handler_that_raises_cancels_the_subscription",
    ),
    MissedFault(
        passes="demand that replaces demand",
        saboteur="OverwritesItsDemand",
        check="requested_numbers_add_up",
    ),
    MissedFault(
        passes="errors that wait behind elements",
        saboteur="ErrorsWaitForDemand",
        check="errors_overtake_waiting_elements",
    ),
    MissedFault(
        passes="a recovery that uses the failed subscription",
        saboteur="RequestsFromTheFailedSubscription",
        check="a_recovery_does_not_use_the_failed_subscription",
    ),
    MissedFault(
        passes="no subscriber left, and no cancel upstream",
        saboteur="KeepsItsUpstream",
        check="cancel_of_the_last_subscriber_cancels_upstream",
    ),
    MissedFault(
        passes="a completion that waits for demand",
        saboteur="CompletionWaits",
        check="completion_passes_without_demand",
    ),
    MissedFault(
        passes="the slowest blocks after its cancel",
        saboteur="BlocksAfterTheSlowestCancelled",
        check="cancel_of_the_slowest_subscriber_unblocks_the_others",
    ),
]


@pytest.mark.parametrize("fault", MISSED_FAULTS, ids=lambda fault: fault.passes.replace(" ", "-"))
def test_the_given_check_catches_the_fault(fault: MissedFault) -> None:
    """The check fails for the saboteur, with the text that the saboteur declares."""
    (saboteur,) = (each for each in all_saboteurs() if each.name == fault.saboteur)
    (result,) = run_checks(saboteur.verification, [fault.check])
    assert result.outcome is Outcome.FAILED
    assert saboteur.caught[fault.check] in result.seen
