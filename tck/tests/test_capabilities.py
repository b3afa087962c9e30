"""What a verification declares is what excuses it from checks, in words that the report shows."""

import pytest
from penstock_tck import Outcome, run_checks

from tck.tests._honest_verifications import HonestProcessorStage, HonestRecoveringStage

tck_verifies_nothing = "the verifications are run by run_checks, one check at a time"


def _seen(check: str, base: type = HonestProcessorStage, **declares: object) -> str:
    (result,) = run_checks(type("Declared", (base,), declares), [check])
    assert result.outcome is Outcome.NOT_APPLICABLE
    return result.seen


def test_a_processor_that_recovers_is_no_source_that_fails() -> None:
    """Something else comes instead of the failure."""
    assert _seen("a_source_that_raises_ends_the_stream_with_on_error", recovers=True) == "it declares recovers = True"


@pytest.mark.parametrize("check", ["a_failed_publisher_signals_on_error", "errors_pass_at_once_without_demand"])
def test_a_processor_that_recovers_need_not_pass_errors_on(check: str) -> None:
    """Rule 4.2 permits it, so the checks of errors on their way down do not apply."""
    assert _seen(check, HonestRecoveringStage) == "it declares recovers = True"


@pytest.mark.parametrize(
    ("check", "lack"),
    [
        ("a_recovery_does_not_use_the_failed_subscription", "it does not declare recovers"),
        ("errors_overtake_waiting_elements", "it does not declare reads_ahead"),
        ("an_error_reaches_every_subscriber", "it declares max_subscribers = 1"),
        ("on_next_returns_before_its_handler_runs", "it does not declare dispatches"),
        ("a_handler_that_raises_cancels_the_subscription", "it does not override create_raising_subscriber()"),
    ],
)
def test_what_is_not_declared_is_not_asked_for(check: str, lack: str) -> None:
    """A check of something that the implementation does not claim does not apply, and says what is missing."""
    assert _seen(check) == lack
