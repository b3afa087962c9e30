"""The token bucket: so many at once, so many a second after that."""

import random

import pytest

from penstock.session._token_bucket import TokenBucket


def test_the_burst_may_be_spent_at_once_and_no_more() -> None:
    """Three, and the fourth is refused."""
    bucket = TokenBucket(3, 1)
    assert [bucket.spend(1, 0.0) for _ in range(4)] == [True, True, True, False]


def test_tokens_come_back_at_their_rate() -> None:
    """Two a second: half a second for one."""
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


@pytest.mark.parametrize("weight", [1, 2, 10])
def test_what_weighs_more_empties_it_sooner(weight: int) -> None:
    """A worse oddity costs several tokens."""
    bucket = TokenBucket(20, 1)
    assert sum(bucket.spend(weight, 0.0) for _ in range(100)) == 20 // weight


def test_a_quiet_spell_is_worth_one_burst_and_not_two() -> None:
    """What a full bucket would have gained meanwhile is lost: in no second more than the burst and a second's gain gets through."""
    bucket = TokenBucket(10, 1)
    assert bucket.spend(1, 0.0)
    assert sum(bucket.spend(1, 1000.0) for _ in range(100)) == 10
    assert sum(bucket.spend(1, 1001.0) for _ in range(100)) == 1


@pytest.mark.parametrize("seed", range(20))
def test_in_any_time_no_more_gets_through_than_burst_and_rate_allow(seed: int) -> None:
    """Spells of quiet and of haste, at random; measured over every stretch between two tokens."""
    chance = random.Random(seed)
    bucket, now, spent = TokenBucket(5, 2), 0.0, []
    for _ in range(200):
        now += chance.choice([0.0, 0.0, 0.1, 0.4, 3.0])
        if bucket.spend(1, now):
            spent.append(now)
    for first, began in enumerate(spent):
        for last in range(first, len(spent)):
            assert last - first + 1 <= 5 + 2 * (spent[last] - began) + 1e-6
