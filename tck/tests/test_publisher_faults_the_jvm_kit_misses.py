"""Publisher faults that the JVM kit misses, each with a saboteur
that the given check of this kit catches.

Each row says why the fault passes there. The rows for subscribers and processors are in
test_subscriber_faults_the_jvm_kit_misses.py.
"""

import attrs
import pytest
from penstock_tck import Outcome, run_checks

from tck.tests._saboteur import all_saboteurs

tck_verifies_nothing = "the saboteurs are run by run_checks, one check at a time"


@attrs.frozen(kw_only=True)
class MissedFault:
    """A fault, why it passes the JVM kit, the saboteur with this fault, and the check here
    that catches it.
    """

    passes: str
    because: str
    saboteur: str
    check: str


# A check of the JVM kit must ask for the violations that its probes record.
# Its optional checks never do.
_VIOLATION_NOT_READ = "violations in its optional checks are never read"
_NO_CHECK = "the JVM kit has no check of the rule"

MISSED_FAULTS = [
    # --- ends that never come, or that are not the end
    MissedFault(
        passes="an empty stream never completes",
        because=_VIOLATION_NOT_READ,
        saboteur="EmptyNeverCompletes",
        check="an_empty_stream_ends_with_on_complete",
    ),
    MissedFault(
        passes="a multicast signals the end to one subscriber only",
        because=_VIOLATION_NOT_READ,
        saboteur="CompletesForTheFirstOnly",
        check="subscribers_share_the_end",
    ),
    MissedFault(
        passes="on_error is followed by an element and by on_complete",
        because="it looks for silence after on_complete only",
        saboteur="GoesOnAfterItsSourceFailed",
        check="nothing_follows_the_failure_of_the_source",
    ),
    MissedFault(
        passes="a failed publisher serves a request after its on_error",
        because="it looks for silence after on_complete only",
        saboteur="GoesOnAfterFailure",
        check="nothing_follows_the_failure_of_the_publisher",
    ),
    MissedFault(
        passes="a refused demand is followed by elements",
        because="it looks for silence after on_complete only",
        saboteur="GoesOnAfterRefusal",
        check="nothing_follows_the_refusal_of_a_demand",
    ),
    MissedFault(
        passes="after the end an illegal demand is answered again",
        because=_NO_CHECK,
        saboteur="RefusesAfterCompletion",
        check="after_on_complete_the_subscription_counts_as_cancelled",
    ),
    MissedFault(
        passes="a failure of the source is signalled as completion",
        because="it has no factory for a publisher that fails after its first request",
        saboteur="CompletesWhereItsSourceFails",
        check="a_source_that_raises_ends_the_stream_with_on_error",
    ),
    MissedFault(
        passes="request raises the exception of the source",
        because=_NO_CHECK,
        saboteur="RaisesWhereItsSourceFails",
        check="a_source_that_raises_ends_the_stream_with_on_error",
    ),
    # --- cancels that do not work
    MissedFault(
        passes="cancel does nothing",
        because="its check of 3.12 counts elements against demand, and demand was honoured",
        saboteur="IgnoresCancelInATask",
        check="cancel_stops_a_stream_with_unbounded_demand",
    ),
    MissedFault(
        passes="an endless synchronous publisher does not stop",
        because="the JVM kit does not end a test whose publisher never returns",
        saboteur="IgnoresCancel",
        check="cancel_stops_a_stream_with_unbounded_demand",
    ),
    MissedFault(
        passes="an element in transit is delivered after a cancel",
        because="it cancels after all requested elements have arrived",
        saboteur="DeliversElementsAfterACancel",
        check="cancel_stops_elements_of_a_slow_source",
    ),
    MissedFault(
        passes="on_complete comes long after a cancel",
        because=_NO_CHECK,
        saboteur="CompletesAfterACancel",
        check="nothing_comes_after_a_cancel_between_signals",
    ),
    MissedFault(
        passes="an illegal demand after a cancel is answered",
        because="after a cancel it requests 1 and nothing else",
        saboteur="RefusesAfterACancel",
        check="requests_after_a_cancel_do_nothing",
    ),
    MissedFault(
        passes="cancel inside on_subscribe raises",
        because=_NO_CHECK,
        saboteur="RaisesInOnSubscribe",
        check="cancel_returns_normally_in_every_state",
    ),
    MissedFault(
        passes="a second cancel removes another subscriber",
        because="its check of repeated cancels has only one subscriber",
        saboteur="CountsItsCancels",
        check="further_cancels_do_nothing",
    ),
    # --- demand
    MissedFault(
        passes="demand above 2^63-1 stalls the stream",
        because="it asserts that no on_error came, not that elements did",
        saboteur="StallsOnOverflow",
        check="demand_above_the_limit_does_not_stall_the_stream",
    ),
    MissedFault(
        passes="demand that adds up to 2^63 becomes negative",
        because=(
            "a synchronous publisher has signalled everything before the second request, so "
            "demand does not add up"
        ),
        saboteur="WrapsOnOverflow",
        check="demand_above_the_limit_counts_as_unbounded",
    ),
    MissedFault(
        passes="requests inside on_subscribe are lost",
        because="its check of 3.2 asserts that no fault was seen, not that an element arrived",
        saboteur="IgnoresRequestsInOnSubscribe",
        check="requests_inside_signals_are_served",
    ),
    MissedFault(
        passes="a request overwrites the demand, in a publisher with a task",
        because="there it depends on timing whether two requests meet",
        saboteur="OverwritesDemandInATask",
        check="requests_add_up",
    ),
    MissedFault(
        passes="the larger of two requests counts",
        because="there it depends on timing whether two requests meet",
        saboteur="KeepsTheLargerDemand",
        check="requests_add_up",
    ),
    MissedFault(
        passes="more than 256 requests at a time do not fit",
        because="it never makes more than a handful of requests",
        saboteur="QueuesRequests",
        check="any_number_of_requests_is_supported",
    ),
    MissedFault(
        passes="a request never returns",
        because="the JVM kit does not end a test whose publisher never returns",
        saboteur="CountsDemandInALoop",
        check="demand_above_the_limit_does_not_stall_the_stream",
    ),
    MissedFault(
        passes="a request beyond 64 bits raises",
        because="in Java a request is a number of 64 bits",
        saboteur="RaisesOnRequestsAbove64Bits",
        check="request_returns_normally_in_every_state",
    ),
    MissedFault(
        passes="an illegal demand inside a signal is ignored",
        because="it requests 0 only outside of signals",
        saboteur="RefusesNothingInsideSignals",
        check="an_illegal_demand_inside_a_signal_is_refused",
    ),
    MissedFault(
        passes="the stack grows with the stream, though on_next is never inside itself",
        because="it counts how deep on_next is, and takes two elements",
        saboteur="CallsItselfForTheNext",
        check="the_stack_does_not_grow_with_the_stream",
    ),
    MissedFault(
        passes="a request signals more than is declared before it returns",
        because=_NO_CHECK,
        saboteur="SignalsAllAtOnce",
        check="request_signals_no_more_than_declared_before_it_returns",
    ),
    # --- subscribers
    MissedFault(
        passes="one subscriber's request interrupts another one's signal",
        because="its check of 1.3 has one subscriber, and permits nesting in one thread",
        saboteur="InterruptsSignals",
        check="signals_do_not_overlap",
    ),
    MissedFault(
        passes="a second subscription of one object ends its first stream",
        because=_NO_CHECK,
        saboteur="OneSubscriptionForEachObject",
        check="subscribing_twice_does_not_harm_the_first_stream",
    ),
    MissedFault(
        passes="a multicast refuses its second subscriber",
        because="a failed optional check of the JVM kit counts as skipped",
        saboteur="RefusesTheSecond",
        check="subscribers_share_elements_that_they_request_at_once",
    ),
    MissedFault(
        passes="a cancel ends the streams of other subscribers",
        because="it never cancels one subscriber of several",
        saboteur="CancelsAllSubscribers",
        check="a_cancel_does_not_affect_other_subscribers",
    ),
    MissedFault(
        passes="a subscriber that raised is still served",
        because="the JVM kit checks this rule only for subscribers",
        saboteur="ServesAfterARaiseInOnNext",
        check="a_subscriber_that_raises_in_on_next_is_cancelled",
    ),
    MissedFault(
        passes="request raises the exception of a subscriber",
        because="the JVM kit checks this rule only for subscribers",
        saboteur="LetsOnCompleteRaise",
        check="a_subscriber_that_raises_in_on_complete_does_no_harm",
    ),
    MissedFault(
        passes="after an exception of one subscriber the next one misses an element",
        because="the JVM kit checks this rule only for subscribers",
        saboteur="SkipsSubscribersAfterARaise",
        check="a_subscriber_that_raises_does_not_affect_the_others",
    ),
    # --- references
    MissedFault(
        passes="the subscriber is kept after on_complete",
        because="it looks after a cancel only",
        saboteur="KeepsACompletedSubscriber",
        check="on_complete_drops_the_subscriber",
    ),
    MissedFault(
        passes="the subscriber is kept after an error",
        because="it looks after a cancel only",
        saboteur="KeepsAFailedSubscriber",
        check="the_failure_of_the_source_drops_the_subscriber",
    ),
    MissedFault(
        passes="a subscriber that never requested is kept",
        because="it looks after a cancel in mid-stream only",
        saboteur="KeepsASubscriberWithoutRequests",
        check="a_cancel_before_any_request_drops_the_subscriber",
    ),
    MissedFault(
        passes="a task that waits for the source keeps the subscriber",
        because="it cancels when no element is awaited",
        saboteur="KeepsASubscriberWhileItWaits",
        check="a_cancel_before_a_slow_element_drops_the_subscriber",
    ),
    # --- faults that only Python has
    MissedFault(
        passes="an error arrives in an exception group",
        because="Java has no such thing",
        saboteur="WrapsErrorsInAGroup",
        check="the_error_of_the_source_arrives_unwrapped",
    ),
    MissedFault(
        passes="a cancelled nursery looks like the end of the stream",
        because="Java has no such thing",
        saboteur="TakesACancellationForTheEnd",
        check="a_cancelled_nursery_signals_at_most_one_error",
    ),
    MissedFault(
        passes="an error that is not an exception",
        because="the Java compiler refuses it",
        saboteur="FailsWithAText",
        check="a_failed_publisher_signals_on_error",
    ),
    MissedFault(
        passes="True counts as a demand of 1",
        because="the Java compiler refuses it",
        saboteur="TakesTrueForOne",
        check="a_demand_that_is_not_an_integer_is_refused",
    ),
]


@pytest.mark.parametrize("fault", MISSED_FAULTS, ids=lambda fault: fault.passes.replace(" ", "-"))
def test_the_given_check_catches_the_fault(fault: MissedFault) -> None:
    """The check fails for the saboteur, with the text that the saboteur declares."""
    (saboteur,) = (each for each in all_saboteurs() if each.name == fault.saboteur)
    (result,) = run_checks(saboteur.verification, [fault.check])
    assert result.outcome is Outcome.FAILED
    assert saboteur.caught[fault.check] in result.seen


def test_each_row_has_a_reason() -> None:
    """Each row says why the fault passes the JVM kit."""
    assert [fault.passes for fault in MISSED_FAULTS if not fault.because] == []
