"""The honest implementations pass every check, and every check cleans up after itself."""

import pytest
from penstock_tck import Outcome, Verification, run_checks

from tck.tests._honest_verifications import HONEST

tck_verifies_nothing = "the verifications are run by run_checks, one by one"


@pytest.mark.parametrize("verification", HONEST, ids=lambda each: each.__name__)
def test_an_honest_implementation_passes_everything(verification: type[Verification]) -> None:
    """No check fails where no rule is broken."""
    assert [result.message for result in run_checks(verification) if result.failed] == []


@pytest.mark.parametrize("verification", HONEST, ids=lambda each: each.__name__)
def test_each_subscription_of_the_kit_was_cancelled_or_drained(verification: type[Verification]) -> None:
    """The kit itself leaves nothing open: a check of the checks."""
    left = {result.check: result.left_open for result in run_checks(verification) if result.left_open}
    assert left == {}


@pytest.mark.parametrize("verification", HONEST, ids=lambda each: each.__name__)
def test_checks_are_quick(verification: type[Verification]) -> None:
    """A run of one check takes milliseconds: none waits in real time."""
    slow = {result.check: result.seconds for result in run_checks(verification) if result.seconds > 0.5}
    assert slow == {}


def test_something_is_run() -> None:
    """Each honest implementation meets checks that apply."""
    for verification in HONEST:
        assert any(result.outcome is Outcome.PASSED for result in run_checks(verification))
