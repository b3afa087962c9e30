"""The policy of reconnecting: full jitter, a bound that doubles, and a last attempt."""

import pytest

from penstock.api import UsageError
from penstock.spi import Reconnect


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


def test_without_a_number_it_never_gives_up() -> None:
    """The default: it rides out a restart of the server, however long that takes."""
    assert Reconnect(chance=lambda: 1.0).wait(10_000) == 30.0
    assert Reconnect(attempts=None) == Reconnect()


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"attempts": True},
        {"first": 0},
        {"first": 2.0, "most": 1.0},
        {"healthy": -1.0},
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(wrong: dict[str, float]) -> None:
    """The error shows the policy."""
    with pytest.raises(UsageError, match="give at least 1 attempt"):
        Reconnect(**wrong)  # type: ignore[arg-type]  # the table has mixed types
