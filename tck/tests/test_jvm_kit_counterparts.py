"""Coverage measured against the JVM kit: each of its publisher checks has a counterpart here, and
each fault of its self-test is caught.

Its checks are numbered P1 to P38 as its `PublisherVerification` lists them. The checks that it
leaves empty ("untested") also have a counterpart.
"""

import pytest
from penstock_tck import Kind, PublisherVerification, checks_of

from tck.tests._honest_variants import VARIANTS
from tck.tests._honest_verifications import HONEST
from tck.tests._saboteur import all_saboteurs

tck_verifies_nothing = "it compares names"

COUNTERPARTS: dict[str, tuple[str, ...]] = {
    "P3 a stream of one element": ("fewer_elements_than_requested_end_with_on_complete",),
    "P4 a stream of three elements": (
        "a_finite_stream_ends_with_on_complete",
        "fewer_elements_than_requested_end_with_on_complete",
    ),
    "P5 1.1 as many elements as requested": (
        "elements_come_as_requested_and_no_others",
        "requests_add_up",
    ),
    "P6 1.2 fewer than requested": ("fewer_elements_than_requested_end_with_on_complete",),
    "P7 1.3 one signal after the other": ("signals_do_not_overlap",),
    "P8 1.4 on_error when it fails": (
        "a_failed_publisher_signals_on_error",
        "a_source_that_raises_ends_the_stream_with_on_error",
    ),
    "P9 1.5 on_complete of a finite stream": ("a_finite_stream_ends_with_on_complete",),
    "P10 1.5 on_complete of an empty stream": ("an_empty_stream_ends_with_on_complete",),
    "P11 1.6 cancelled by the end (empty there)": (
        "after_on_complete_the_subscription_counts_as_cancelled",
        "after_on_error_the_subscription_counts_as_cancelled",
    ),
    "P12 1.7 silence after on_complete": ("nothing_follows_on_complete",),
    "P13 1.7 silence after on_error (empty there)": (
        "nothing_follows_the_failure_of_the_publisher",
        "nothing_follows_the_failure_of_the_source",
        "nothing_follows_the_refusal_of_a_demand",
    ),
    "P14 1.8 silence after a cancel (empty there)": (
        "nothing_comes_after_a_cancel_inside_on_subscribe",
        "nothing_comes_after_a_cancel_inside_on_next",
        "nothing_comes_after_a_cancel_between_signals",
    ),
    "P15 1.9 subscribe raises nothing (empty there)": (
        "a_source_that_cannot_be_opened_signals_on_error",
        "a_failed_publisher_calls_on_subscribe_before_on_error",
    ),
    "P16 1.9 subscribe(None)": ("subscribe_refuses_none",),
    "P17 1.9 on_subscribe comes first": ("subscribe_calls_on_subscribe_first_and_once",),
    "P18 1.9 refusals": (
        "a_failed_publisher_calls_on_subscribe_before_on_error",
        "a_refusal_is_on_error_after_on_subscribe",
    ),
    "P19 1.10 the same subscriber twice (empty there)": (
        "subscribing_twice_does_not_harm_the_first_stream",
    ),
    "P20 1.11 several subscribers": ("several_subscribers_without_demand_get_no_elements",),
    "P21 1.11 each of them is served": (
        "every_subscriber_is_served_or_refused",
        "subscribers_share_elements_that_they_request_at_once",
    ),
    "P22 1.11 the same elements one by one": (
        "subscribers_share_elements_that_they_take_one_by_one",
    ),
    "P23 1.11 the same elements at once": ("subscribers_share_elements_that_they_request_at_once",),
    "P24 1.11 and the same end": ("subscribers_share_the_end",),
    "P25 3.2 requests inside signals": ("requests_inside_signals_are_served",),
    "P26 3.3 bounded recursion": (
        "on_next_is_nested_no_deeper_than_declared",
        "the_stack_does_not_grow_with_the_stream",
    ),
    "P27 3.4 a request returns soon (empty there)": (
        "request_signals_no_more_than_declared_before_it_returns",
    ),
    "P28 3.5 a cancel returns soon (empty there)": ("cancel_makes_no_signal",),
    "P29 3.6 requests after a cancel": ("requests_after_a_cancel_do_nothing",),
    "P30 3.7 cancels after a cancel": ("further_cancels_do_nothing", "cancel_makes_no_signal"),
    "P31 3.9 request(0)": ("request_zero_is_answered_with_on_error",),
    "P32 3.9 a negative request": ("request_below_zero_is_answered_with_on_error",),
    "P33 3.9 in words": ("the_refusal_of_a_demand_explains_itself",),
    "P34 3.12 a cancel stops the signals": (
        "cancel_stops_a_stream_with_unbounded_demand",
        "nothing_comes_after_a_cancel_inside_on_next",
        "elements_come_as_requested_and_no_others",
    ),
    "P35 3.13 references are dropped": ("cancel_drops_the_subscriber",),
    "P36 3.17 a demand of 2^63-1": ("unbounded_demand_is_supported",),
    "P37 3.17 demand that adds up to 2^63-1": (
        "demand_above_the_limit_counts_as_unbounded",
        "unbounded_demand_is_supported",
    ),
    "P38 3.17 demand above 2^63-1": ("demand_above_the_limit_does_not_stall_the_stream",),
}
"""P1 and P2 check the declarations, not the publisher.
Here `validate` does so before the first check.
"""

FAULTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "on_subscribe and nothing more": ("Silent", ("P5", "P6")),
    "signals n + 1 elements for n, synchronously": ("EmitsOneTooMany", ("P5",)),
    "ignores demand, from a task": ("FloodsInATask", ("P34",)),
    "two threads signal at once": ("ServesFromAWorkerAtOnce", ("P7",)),
    "raises out of subscribe": ("RaisesItsFailure", ("P8", "P18")),
    "forgets on_complete": ("NeverCompletes", ("P9",)),
    "has an element after its end": ("OneElementMore", ("P6", "P9")),
    "an empty one completes without on_subscribe": (
        "CompletesWithoutASubscription",
        ("P10", "P17"),
    ),
    "completes and serves later requests": ("GoesOnAfterCompletion", ("P12",)),
    "subscribe(None) returns": ("AcceptsNone", ("P16",)),
    "begins with on_next": ("BeginsWithAnElement", ("P5",)),
    "begins with on_error": ("FailsWithoutASubscription", ("P18",)),
    "a failed one calls on_subscribe only": ("NeverSignalsItsFailure", ("P8", "P18")),
    "the second subscriber gets on_error": ("RefusesTheSecond", ("P21", "P23")),
    "other elements for each subscriber": ("DifferentForEach", ("P22", "P23")),
    "on_error on a request inside a signal": ("FailsOnRequestsInOnSubscribe", ("P25",)),
    "request calls on_next directly": ("SignalsInsideSignals", ("P26",)),
    "on_error from cancel": ("FailsOnCancel", ("P30",)),
    "keeps the subscriber in a field": ("KeepsACancelledSubscriber", ("P35",)),
    "demand that overflows becomes on_error": ("FailsOnOverflow", ("P38", "P37")),
    "on_error at a demand of exactly 2^63-1": ("FailsAtTheTop", ("P36", "P37")),
    "cancel does nothing": ("IgnoresCancel", ("P29", "P34", "P35")),
    # The self-test of the JVM kit has no fault for these of its checks:
    "a stream of the wrong length": ("OneElementShort", ("P3", "P4")),
    "a second subscriber makes the publisher signal without demand": (
        "PushesWithoutDemand",
        ("P20",),
    ),
    "only one subscriber gets the end": ("CompletesForTheFirstOnly", ("P24",)),
    "an error that explains nothing": ("ExplainsNothing", ("P33",)),
    "request(0) is ignored": ("IgnoresZero", ("P31",)),
    "a negative request raises": ("RaisesBelowZero", ("P32",)),
}
"""The fault, the saboteur here, and the checks of the JVM kit whose counterparts must catch it."""

PASSES: dict[str, str] = {
    "synchronous, completing inside request": "HonestSynchronousPublisher",
    "synchronous, several subscribers": "HonestSynchronousPublisher",
    "endless until it is cancelled": "HonestSynchronousPublisher",
    "on_subscribe and on_complete at once": "Empty",
    "on_subscribe and on_error at once": "Failed",
    "on_subscribe and nothing, of a stream that has nothing": "Never",
    "any text for a refused demand": "Terse",
    "completes only at one more request": "Lazy",
    "one element": "Single",
    "as fast as the slowest subscriber": "Lockstep",
}
"""The implementations that pass the JVM kit's self-test, and the honest implementation here
that corresponds.
"""


def _counterparts(number: str) -> set[str]:
    (found,) = (checks for title, checks in COUNTERPARTS.items() if title.split()[0] == number)
    return set(found)


def test_each_check_of_a_publisher_there_has_one_here() -> None:
    """P3 to P38 have counterparts, and each counterpart is a check that can fail."""
    ours = {check.name for check in checks_of(PublisherVerification) if check.kind is Kind.CHECK}
    assert [title.split()[0] for title in COUNTERPARTS] == [f"P{number}" for number in range(3, 39)]
    assert {name for checks in COUNTERPARTS.values() for name in checks} <= ours


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_there_is_caught_by_the_counterparts_of_its_checks(fault: str) -> None:
    """The saboteur declares that these checks fail; test_saboteurs proves it."""
    name, numbers = FAULTS[fault]
    (saboteur,) = (each for each in all_saboteurs() if each.name == name)
    for number in numbers:
        assert _counterparts(number) & set(saboteur.caught), number


def test_each_implementation_that_passes_there_passes_here() -> None:
    """They are among the honest implementations, which pass every check."""
    assert set(PASSES.values()) <= {verification.__name__ for verification in (*HONEST, *VARIANTS)}
