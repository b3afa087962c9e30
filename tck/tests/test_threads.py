"""Publishers and subscribers with threads are verified without a false alarm,
and their faults are found.
"""

import pytest
from penstock_tck import Outcome, Verification, run_checks

from tck.tests._honest_threads import (
    CallsFromThread,
    OwnThread,
    Threaded,
    ThreadSubscription,
    Timed,
    WaitsInQueue,
)
from tck.tests._saboteur import MODEL

tck_verifies_nothing = "its verifications are run by run_checks"

SOME = (
    "requests_add_up",
    "elements_come_as_requested_and_no_others",
    "signals_do_not_overlap",
    "nothing_comes_after_a_cancel_inside_on_next",
    "cancel_drops_the_subscriber",
)
"""Checks for objects that take real time."""


@pytest.mark.parametrize(
    ("verification", "only"),
    [
        (Threaded, None),
        (Timed, (*SOME, MODEL)),
        (OwnThread, (*SOME, MODEL)),
        (CallsFromThread, None),
        (WaitsInQueue, SOME[:2]),
    ],
)
def test_an_honest_object_with_threads_passes(
    verification: type[Verification], only: tuple[str, ...] | None
) -> None:
    """No check takes a thread that still works for one that has nothing to say."""
    results = run_checks(verification, only)
    assert [result.message for result in results if result.failed] == []
    assert sum(result.outcome is Outcome.PASSED for result in results) >= 2


class GivesAnElementTwice(ThreadSubscription):
    """The second element comes twice."""

    def step(self) -> None:
        super().step()
        if self.position == 2:
            self.signal("on_next", 1)


def test_a_fault_behind_a_thread_is_found() -> None:
    """The check names the rule."""
    broken = type("GivesAnElementTwice", (Threaded,), {"subscription_class": GivesAnElementTwice})
    (result,) = run_checks(broken, ["elements_come_as_requested_and_no_others"])
    assert result.blamed == ("1.1",)


def test_signals_of_undeclared_threads_are_blamed() -> None:
    """Rule 2.11 is broken if the class does not declare other_threads."""
    undeclared = type("Undeclared", (OwnThread,), {"other_threads": False})
    (result,) = run_checks(undeclared, ["requests_add_up"])
    assert "2.11" in result.blamed
