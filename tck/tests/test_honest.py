"""The honest implementations pass every check, and every check leaves no subscription open."""

from functools import cache

import pytest
from penstock_tck import CheckResult, Outcome, Verification, run_checks

from tck.tests._honest_subscriber_variants import SUBSCRIBERS
from tck.tests._honest_variants import VARIANTS
from tck.tests._honest_verifications import HONEST

ALL_HONEST = (*HONEST, *VARIANTS, *SUBSCRIBERS)

tck_verifies_nothing = "the verifications are run by run_checks, one by one"


@cache
def _results(verification: type[Verification]) -> list[CheckResult]:
    """Run every check once for all tests of this file. Results hold only text."""
    return run_checks(verification)


@pytest.mark.parametrize("verification", ALL_HONEST, ids=lambda each: each.__name__)
def test_an_honest_implementation_passes_everything(verification: type[Verification]) -> None:
    """A check does not fail if no rule is broken."""
    assert [result.message for result in _results(verification) if result.failed] == []


@pytest.mark.parametrize("verification", ALL_HONEST, ids=lambda each: each.__name__)
def test_each_subscription_of_the_kit_is_cancelled_or_ended(
    verification: type[Verification],
) -> None:
    """The kit leaves no subscription open: this is a check of the checks."""
    left = {result.check: result.left_open for result in _results(verification) if result.left_open}
    assert left == {}


@pytest.mark.parametrize("verification", ALL_HONEST, ids=lambda each: each.__name__)
def test_checks_do_not_wait_in_real_time(verification: type[Verification]) -> None:
    """A run of one check takes milliseconds.
    One that waited in real time would take a minute for a minute of silence.

    The bound does not judge speed: on a busy machine a check took 3 s.
    """
    slow = {
        result.check: result.seconds for result in _results(verification) if result.seconds > 45.0
    }
    assert slow == {}


@pytest.mark.parametrize("verification", ALL_HONEST, ids=lambda each: each.__name__)
def test_at_least_one_check_applies(verification: type[Verification]) -> None:
    """Each honest implementation has checks that apply and pass."""
    assert any(result.outcome is Outcome.PASSED for result in _results(verification))


@pytest.mark.parametrize(
    ("name", "most"),
    [("Empty", 37), ("Single", 15)],
)
def test_a_short_stream_excuses_from_few_checks(name: str, most: int) -> None:
    """Most checks also apply to a publisher of zero or one elements: they use only as many elements
    as show the fault.
    """
    (verification,) = (each for each in VARIANTS if each.__name__ == name)
    excused = [
        result for result in _results(verification) if result.outcome is Outcome.NOT_APPLICABLE
    ]
    of_its_length = [
        result.check
        for result in excused
        if "max_elements" in result.seen or "min_elements" in result.seen
    ]
    assert len(of_its_length) <= most, of_its_length
