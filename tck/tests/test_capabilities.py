"""The declarations of a verification decide which checks do not apply; the report shows why."""

import pytest
from penstock_tck import Outcome, run_checks

from tck.tests._honest_verifications import HonestProcessorStage, HonestRecoveringStage

tck_verifies_nothing = "the verifications are run by run_checks, one check at a time"


def _seen(check: str, base: type = HonestProcessorStage, **declares: object) -> str:
    (result,) = run_checks(type("Declared", (base,), declares), [check])
    assert result.outcome is Outcome.NOT_APPLICABLE
    return result.seen


def test_checks_of_failing_sources_do_not_apply_to_a_recovering_processor() -> None:
    """It signals something else than the failure."""
    assert (
        _seen("a_source_that_raises_ends_the_stream_with_on_error", recovers=True)
        == "it declares recovers = True"
    )


@pytest.mark.parametrize(
    "check", ["a_failed_publisher_signals_on_error", "errors_pass_at_once_without_demand"]
)
def test_a_processor_that_recovers_need_not_pass_errors_on(check: str) -> None:
    """Rule 4.2 permits it, so the checks of errors that pass downstream do not apply."""
    assert _seen(check, HonestRecoveringStage) == "it declares recovers = True"


@pytest.mark.parametrize(
    ("check", "lack"),
    [
        ("a_recovery_does_not_use_the_failed_subscription", "it does not declare recovers"),
        ("errors_overtake_waiting_elements", "it does not declare reads_ahead"),
        ("an_error_reaches_every_subscriber", "it declares max_subscribers = 1"),
        ("on_next_returns_before_its_handler_runs", "it does not declare dispatches"),
        (
            "a_handler_that_raises_cancels_the_subscription",
            "it does not override create_raising_subscriber()",
        ),
    ],
)
def test_a_check_names_the_missing_declaration(check: str, lack: str) -> None:
    """A check that needs a capability that is not declared does not apply, and says
    which one is missing.
    """
    assert _seen(check) == lack
