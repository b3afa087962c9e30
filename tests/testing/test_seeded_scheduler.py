"""`seeded`: a seed gives one order of tasks, and trio's state is restored afterwards."""

import random

import pytest
import trio

from penstock.testing import _seeded_scheduler, reseed, run_virtual, seeded
from penstock.testing._seeded_scheduler import SEEDING_WORKS


async def order() -> tuple[int, ...]:
    """Return the order in which eight tasks run."""
    seen: list[int] = []

    async def task(number: int) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(task, number)
    return tuple(seen)


def test_a_seed_gives_the_same_order_every_time() -> None:
    """Two runs with one seed have the same order; twenty seeds give more than five orders."""
    assert SEEDING_WORKS
    assert run_virtual(order, seed=7) == run_virtual(order, seed=7)
    assert len({run_virtual(order, seed=seed) for seed in range(20)}) > 5


def test_trio_state_is_restored_after_the_block() -> None:
    """A seeded run does not make later runs less random."""
    internals = vars(_seeded_scheduler._run)
    before = internals["_r"].getstate(), internals["_ALLOW_DETERMINISTIC_SCHEDULING"]
    with seeded(1):
        assert internals["_ALLOW_DETERMINISTIC_SCHEDULING"] is True
        internals["_r"].random()
    assert (internals["_r"].getstate(), internals["_ALLOW_DETERMINISTIC_SCHEDULING"]) == before


@pytest.mark.parametrize("works", [True, False])
def test_without_a_seed_or_without_trios_private_names_nothing_changes(
    works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests run in both cases; only their order is not repeatable."""
    monkeypatch.setattr(_seeded_scheduler, "SEEDING_WORKS", works)
    generator: random.Random = vars(_seeded_scheduler._run)["_r"]
    before = generator.getstate()
    with seeded(None if works else 3):
        assert generator.getstate() == before


def test_a_part_of_a_run_is_repeated_in_the_same_order() -> None:
    """After `reseed`, tasks take their turns as they did after the same `reseed` before;
    without it they do not.
    """

    async def parts() -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        same, other = [], []
        for _ in range(5):
            reseed(7)
            same.append(await order())
            other.append(await order())
            await order()
        return same, other

    same, other = run_virtual(parts)
    assert len(set(same)) == 1
    assert set(other) != set(same)
