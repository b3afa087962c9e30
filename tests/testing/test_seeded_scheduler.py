"""Tests of the repeatable scheduler: a seed gives one order, and nothing of it stays behind."""

import random

import pytest
import trio

from penstock.testing import SEEDING_WORKS, _seeded_scheduler, run_virtual, seeded


async def order() -> tuple[int, ...]:
    """In which order eight tasks get their turn."""
    seen: list[int] = []

    async def task(number: int) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(task, number)
    return tuple(seen)


def test_a_seed_gives_the_same_order_every_time() -> None:
    """Two runs under one seed are one run; many seeds are many runs."""
    assert SEEDING_WORKS
    assert run_virtual(order, seed=7) == run_virtual(order, seed=7)
    assert len({run_virtual(order, seed=seed) for seed in range(20)}) > 5


def test_chance_is_put_back_afterwards() -> None:
    """A seeded run does not make later runs less random."""
    inside = vars(_seeded_scheduler._run)
    before = inside["_r"].getstate(), inside["_ALLOW_DETERMINISTIC_SCHEDULING"]
    with seeded(1):
        assert inside["_ALLOW_DETERMINISTIC_SCHEDULING"] is True
        inside["_r"].random()
    assert (inside["_r"].getstate(), inside["_ALLOW_DETERMINISTIC_SCHEDULING"]) == before


@pytest.mark.parametrize("works", [True, False])
def test_without_a_seed_or_with_a_trio_that_hides_its_inside_nothing_is_touched(works: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs all the same."""
    monkeypatch.setattr(_seeded_scheduler, "SEEDING_WORKS", works)
    chance: random.Random = vars(_seeded_scheduler._run)["_r"]
    before = chance.getstate()
    with seeded(None if works else 3):
        assert chance.getstate() == before
