"""A claim: one stream at a time for each iterator, and one at all for a generator."""

import gc
from collections.abc import Iterator

import pytest

from penstock.api import AlreadySubscribed
from penstock.core import _iterator_lease as module
from penstock.core._iterator_lease import take_lease


def generator() -> Iterator[int]:
    yield 1


class Slotted:
    """An iterator that cannot be referred to weakly, and that is equal to each other one."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # the registry must not need it

    def __eq__(self, other: object) -> bool:
        return True

    def __iter__(self) -> "Slotted":
        return self

    def __next__(self) -> int:
        return 1


ITERATORS = {"generator": generator, "list iterator": lambda: iter([1]), "slotted": Slotted}


@pytest.mark.parametrize("is_closed_at_end", [True, False])
@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_a_claimed_iterator_is_refused(make, *, is_closed_at_end: bool) -> None:
    """Each time, until the claim is gone."""
    iterator = make()
    claim = take_lease(iterator, "it", is_closed_at_end=is_closed_at_end)
    for _ in range(2):
        with pytest.raises(
            AlreadySubscribed, match=r"^it (has a subscriber, or had one|was subscribed to before)"
        ):
            take_lease(iterator, "it", is_closed_at_end=is_closed_at_end)
    del claim


@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_another_iterator_is_not_refused(make) -> None:
    """The two may even compare equal."""
    claims = [take_lease(each, "it", is_closed_at_end=False) for each in (make(), make(), make())]
    assert len(claims) == 3


@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_an_iterator_that_stays_open_can_be_claimed_again_when_the_claim_is_gone(make) -> None:
    """The next stream reads on."""
    iterator = make()
    for _ in range(2):
        claim = take_lease(iterator, "it", is_closed_at_end=False)
        del claim
        gc.collect()


def test_a_generator_stays_claimed_when_the_claim_is_gone() -> None:
    """Its stream has closed it, so a second stream would be empty."""
    iterator = generator()
    claim = take_lease(iterator, "it", is_closed_at_end=True)
    del claim
    gc.collect()
    with pytest.raises(AlreadySubscribed):
        take_lease(iterator, "it", is_closed_at_end=True)


@pytest.mark.parametrize("is_closed_at_end", [True, False])
@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_no_entry_stays_behind(make, *, is_closed_at_end: bool) -> None:
    """When the iterator and its claim are gone, so that the registry is bounded by what exists."""
    gc.collect()
    before = len(module._leases)
    claim = take_lease(make(), "it", is_closed_at_end=is_closed_at_end)
    del claim
    gc.collect()
    assert len(module._leases) == before


def test_a_claim_keeps_its_iterator() -> None:
    """Otherwise another iterator could get its id, and would be refused."""
    claims = [take_lease(iter([number]), "it", is_closed_at_end=False) for number in range(100)]
    assert len({id(claim) for claim in claims}) == 100
