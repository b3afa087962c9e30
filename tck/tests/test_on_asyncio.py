"""Objects whose tasks live in asyncio are verified with the same checks, on virtual time."""

import sys

import pytest
from penstock_tck import Outcome, Verification, run_checks

from penstock.api import UsageError
from tck.tests._honest_on_asyncio import (
    GeneratorOfAsyncio,
    PipeWithAsyncio,
    QueueOfAsyncio,
    TaskPublisher,
    TasksOfAsyncio,
    TaskSubscription,
)

tck_verifies_nothing = "its verifications are run by run_checks"


@pytest.mark.parametrize(
    "verification", [GeneratorOfAsyncio, TasksOfAsyncio, QueueOfAsyncio, PipeWithAsyncio]
)
def test_an_honest_object_on_asyncio_passes(verification: type[Verification]) -> None:
    """No check fails, and the checks have something to judge."""
    results = run_checks(verification)
    assert [result.message for result in results if result.failed] == []
    assert sum(result.outcome is Outcome.PASSED for result in results) >= 10


class TakesTheDemandTwice(TaskSubscription):
    """Signals twice what was requested."""

    def request(self, n: int, /) -> None:
        super().request(2 * n)


class GoesOnAfterTheCancel(TaskSubscription):
    """Hears no cancel."""

    def cancel(self) -> None:
        pass


@pytest.mark.parametrize(
    ("subscription", "check", "rule"),
    [
        (TakesTheDemandTwice, "elements_come_as_requested_and_no_others", "1.1"),
        (GoesOnAfterTheCancel, "nothing_comes_after_a_cancel_inside_on_next", "1.8"),
    ],
)
def test_a_fault_on_asyncio_is_found(
    subscription: type[TaskSubscription], check: str, rule: str
) -> None:
    """The check names the rule, as for an object on trio."""
    publisher = type("Broken", (TaskPublisher,), {"subscription_class": subscription})
    broken = type("Broken", (TasksOfAsyncio,), {"publisher_class": publisher})
    (result,) = run_checks(broken, [check])
    assert result.failed
    assert rule in result.blamed, result.message


def test_without_the_library_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No check is run."""
    monkeypatch.setitem(sys.modules, "trio_asyncio", None)
    with pytest.raises(UsageError, match=r"pip install penstock-tck\[asyncio\]"):
        run_checks(TasksOfAsyncio, ["requests_add_up"])


def test_an_object_on_asyncio_that_is_not_declared_is_told_so() -> None:
    """Its calls fail because there is no loop; a fault of another kind names no declaration."""
    undeclared = type("Undeclared", (TasksOfAsyncio,), {"on_asyncio": False, "abstract": True})
    (result,) = run_checks(undeclared, ["requests_add_up"])
    assert result.failed
    assert "declare on_asyncio = True" in result.seen
    publisher = type("Broken", (TaskPublisher,), {"subscription_class": TakesTheDemandTwice})
    broken = type("Broken", (TasksOfAsyncio,), {"publisher_class": publisher})
    (result,) = run_checks(broken, ["requests_add_up"])
    assert result.failed
    assert "on_asyncio" not in result.seen
