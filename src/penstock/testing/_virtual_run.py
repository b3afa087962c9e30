"""Runs an async function in virtual time and in a repeatable order."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, TypeVarTuple

import trio
import trio.testing

from penstock.testing._seeded_scheduler import seeded

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def run_virtual(
    async_fn: Callable[[*Ts], Awaitable[T]],
    *args: *Ts,
    seed: int | None = 0,
    instruments: Sequence[trio.abc.Instrument] = (),
) -> T:
    """Run `async_fn(*args)` under trio with a clock that jumps when every task sleeps. Return its result.

    The order of tasks depends on `seed` (None: a random order). Raises what the function raises.
    """
    clock = trio.testing.MockClock(autojump_threshold=0)
    with seeded(seed):
        return trio.run(async_fn, *args, clock=clock, instruments=instruments)
