"""Running an async function in virtual time and in a repeatable order: hours pass in a millisecond, a seed gives the same run twice."""

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
    """Run `async_fn(*args)` under trio with a clock that jumps whenever every task sleeps; return what it returns.

    The order of tasks follows from `seed` (None: chance decides). Raises whatever the function raises.
    """
    clock = trio.testing.MockClock(autojump_threshold=0)
    with seeded(seed):
        return trio.run(async_fn, *args, clock=clock, instruments=instruments)
