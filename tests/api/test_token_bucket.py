"""A token bucket: no interval lets more through than a burst and its rate."""

import random

import pytest

from penstock.api import TokenBucket


def test_the_burst_may_be_spent_at_once_and_no_more() -> None:
    """The burst is three, and the fourth token is refused."""
    bucket = TokenBucket(3, 1)
    assert [bucket.spend(1, 0.0) for _ in range(4)] == [True, True, True, False]


def test_tokens_come_back_at_their_rate() -> None:
    """At two a second a token takes half a second."""
    bucket = TokenBucket(1, 2)
    assert bucket.spend(1, 0.0)
    assert not bucket.spend(1, 0.25)
    assert bucket.spend(1, 0.5)
    assert not bucket.spend(1, 0.5)


def test_it_never_holds_more_than_the_burst() -> None:
    """However long nothing was spent."""
    bucket = TokenBucket(2, 1)
    assert bucket.spend(2, 0.0)
    assert not bucket.spend(3, 1000.0)
    assert bucket.spend(2, 1000.0)
    assert not bucket.spend(1, 1000.0)


@pytest.mark.parametrize("cost", [1, 2, 10])
def test_a_higher_cost_empties_it_sooner(cost: int) -> None:
    """A worse oddity costs several tokens."""
    bucket = TokenBucket(20, 1)
    assert sum(bucket.spend(cost, 0.0) for _ in range(100)) == 20 // cost


def test_a_quiet_time_is_worth_one_burst_and_not_two() -> None:
    """The gain of a full bucket is lost:
    one burst is spent at once, and after that one token a second.
    """
    bucket = TokenBucket(10, 1)
    assert bucket.spend(1, 0.0)
    assert sum(bucket.spend(1, 1000.0) for _ in range(100)) == 10
    assert sum(bucket.spend(1, 1001.0) for _ in range(100)) == 1


@pytest.mark.parametrize("seed", range(20))
def test_no_interval_lets_through_more_than_burst_and_rate(seed: int) -> None:
    """Quiet and busy times at random, measured over every interval between two tokens."""
    chance = random.Random(seed)
    bucket, now, spent = TokenBucket(5, 2), 0.0, []
    for _ in range(200):
        now += chance.choice([0.0, 0.0, 0.1, 0.4, 3.0])
        if bucket.spend(1, now):
            spent.append(now)
    for first, began in enumerate(spent):
        for last in range(first, len(spent)):
            assert last - first + 1 <= 5 + 2 * (spent[last] - began) + 1e-6


def test_what_is_earned_is_spent_and_never_more_than_the_burst() -> None:
    """A peer that may send two, and earns them back by what it answers."""
    bucket = TokenBucket(2, 0)
    assert bucket.spend(2, 0.0)
    bucket.earn(1)
    assert bucket.spend(1, 0.0)
    bucket.earn(5)
    assert [bucket.spend(1, 1.0) for _ in range(3)] == [True, True, False]
