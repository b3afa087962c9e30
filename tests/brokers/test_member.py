"""What members of all brokers share: how partitions are divided."""

import pytest

from penstock.brokers import share_of


@pytest.mark.parametrize("members", range(1, 9))
@pytest.mark.parametrize("partitions", [0, 1, 4, 7])
def test_members_divide_all_partitions_evenly(members: int, partitions: int) -> None:
    """Each partition goes to one, and no member has two more than another."""
    names = [str(each) for each in range(partitions)]
    who = {f"member {each}" for each in range(members)}
    shares = [share_of(names, who, each) for each in who]
    assert sorted(each for share in shares for each in share) == names
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_one_that_is_no_member_has_no_share() -> None:
    """A member that was away for too long must join again first."""
    assert share_of(["0", "1"], ["a"], "b") == frozenset()
    assert share_of(["0", "1"], [], "b") == frozenset()
