"""What the kit of the JVM lets pass on the side of subscribers and processors, each with a saboteur that ours catches by this very check.

The JVM kit's blackbox check of 2.1 sends no element; its checks of 2.9 and 2.10 fail only by an exception; its checks of 2.3 look at the
call stack and nothing later; 2.2, 2.4, 2.6, 2.7, 2.11, 2.12 and the handlers' half of 2.13 have no check there at all.
"""

from dataclasses import dataclass

import pytest
from penstock_tck import Outcome, run_checks

from tck.tests._saboteur import all_saboteurs

tck_verifies_nothing = "the saboteurs are run by run_checks, one check at a time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """What passes there, who does it, and which check of ours sees it."""

    passes: str
    saboteur: str
    check: str


HOLES = [
    Hole(passes="on_next raises every time", saboteur="RaisesOnEachElement", check="elements_are_requested_and_taken"),
    Hole(passes="elements never reach a handler", saboteur="KeepsOneToItself", check="demand_elements_and_a_cancel_take_their_way"),
    Hole(passes="elements inside request are lost", saboteur="DropsWhatComesTooSoon", check="elements_that_come_inside_request_are_taken"),
    Hole(passes="an early completion is lost", saboteur="OverlooksAnEarlyCompletion", check="completion_before_a_request_is_taken"),
    Hole(passes="a late completion is lost", saboteur="OverlooksACompletionThatOwesElements", check="completion_after_a_request_is_taken"),
    Hole(passes="an early failure is lost", saboteur="OverlooksAnEarlyFailure", check="failure_before_a_request_is_taken"),
    Hole(passes="a completion is told twice", saboteur="HearsOfCompletionTwice", check="completion_after_a_request_is_taken"),
    Hole(passes="a call put off by on_complete", saboteur="CancelsLaterAfterCompletion", check="on_complete_itself_calls_nothing"),
    Hole(passes="a call put off by on_error", saboteur="CancelsLaterAfterFailure", check="on_error_itself_calls_nothing"),
    Hole(passes="demand renewed after the end", saboteur="RenewsDemandAfterTheEnd", check="after_on_complete_the_subscription_is_not_used"),
    Hole(
        passes="a cancel long after on_error", saboteur="StaysSubscribedAfterFailure", check="after_on_error_the_subscription_is_not_used"
    ),
    Hole(passes="the first subscription dies with a second", saboteur="CancelsTheFirst", check="a_second_subscription_is_cancelled"),
    Hole(passes="on_subscribe repeated", saboteur="AsksItsOwnAgain", check="its_own_subscription_again_is_not_asked_again"),
    Hole(passes="a shutdown that cancels nothing", saboteur="CancelsOnlyWhatItAsked", check="what_is_not_needed_any_more_is_cancelled"),
    Hole(passes="requests from a thread", saboteur="AsksFromAThread", check="calls_come_from_the_runs_thread"),
    Hole(passes="handlers in a thread", saboteur="HandlesInAThread", check="handlers_see_what_was_signalled_in_order"),
    Hole(passes="elements out of order", saboteur="SwapsElements", check="handlers_see_what_was_signalled_in_order"),
    Hole(
        passes="handlers inside on_next, though declared later", saboteur="HandlesAtOnce", check="on_next_returns_before_its_handler_runs"
    ),
    Hole(passes="an end that crosses a cancel", saboteur="RaisesAtAnEndAfterItsCancel", check="an_end_that_was_on_its_way_is_taken"),
    Hole(passes="a raising handler that harms the publisher", saboteur="LetsItEscape", check="a_handler_that_raises_cancels"),
    Hole(passes="a raising handler that is ignored", saboteur="GoesOnRegardless", check="a_handler_that_raises_cancels"),
    Hole(passes="demand that replaces demand", saboteur="OverwritesItsDemand", check="what_is_asked_for_adds_up"),
    Hole(passes="errors behind elements", saboteur="ErrorsWaitInLine", check="errors_overtake_what_waits_for_demand"),
    Hole(passes="a recovery that uses what failed", saboteur="AsksWhatFailed", check="a_recovery_leaves_the_failed_subscription_alone"),
    Hole(passes="nobody left below, and upstream goes on", saboteur="StaysAbove", check="the_last_to_leave_cancels_above"),
    Hole(passes="a completion that waits for demand", saboteur="CompletionWaits", check="completion_passes_without_demand"),
    Hole(passes="the slowest blocks after it left", saboteur="StaysBlocked", check="the_slowest_gives_way_when_it_leaves"),
]


@pytest.mark.parametrize("hole", HOLES, ids=lambda hole: hole.passes.replace(" ", "-"))
def test_what_the_jvm_kit_lets_pass_ours_catches(hole: Hole) -> None:
    """The saboteur fails this very check, with the words that it declares."""
    (saboteur,) = (each for each in all_saboteurs() if each.name == hole.saboteur)
    (result,) = run_checks(saboteur.verification, [hole.check])
    assert result.outcome is Outcome.FAILED
    assert saboteur.caught[hole.check] in result.seen
