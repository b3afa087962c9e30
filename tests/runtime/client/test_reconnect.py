"""Reconnecting: an explicit policy, with full jitter and a last attempt."""

from typing import Any

import pytest

from penstock.api import UsageError
from penstock.runtime import Reconnect


def test_the_bound_of_the_wait_doubles_up_to_the_most() -> None:
    """With a random number of 1 the wait is the bound itself."""
    policy = Reconnect(attempts=6, first=1.0, most=5.0, chance=lambda: 1.0)
    assert [policy.wait(failed) for failed in range(6)] == [1.0, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_it_gives_up_after_its_attempts() -> None:
    """None means to give up."""
    assert Reconnect(attempts=2).wait(2) is None
    assert Reconnect(attempts=2).wait(1) is not None


def test_the_wait_is_random_from_zero_to_the_bound() -> None:
    """Full jitter: a thousand clients do not connect at the same time."""
    assert Reconnect(first=2.0, chance=lambda: 0.25).wait(0) == 0.5
    assert all(0 <= (Reconnect(first=2.0).wait(0) or 0) <= 2.0 for _ in range(100))


def test_very_many_attempts_overflow_nothing() -> None:
    """Two to the power of a million is not computed."""
    assert Reconnect(attempts=2_000_000, chance=lambda: 1.0).wait(1_000_000) == 30.0


@pytest.mark.parametrize("bad", [{"attempts": 0}, {"attempts": True}, {"attempts": 1.5}, {"first": 0}, {"first": 2.0, "most": 1.0}])
def test_a_policy_with_impossible_values_is_refused(bad: dict[str, Any]) -> None:
    """UsageError is raised when the policy is made."""
    with pytest.raises(UsageError, match="attempt"):
        Reconnect(**bad)
