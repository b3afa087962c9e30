"""Runs an async function in virtual time and in a repeatable order."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, TypeVarTuple

import trio
import trio.testing

from penstock.testing._seeded_scheduler import seeded
from penstock.testing._worker_threads import WorkerThreads

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def run_virtual(
    async_fn: Callable[[*Ts], Awaitable[T]],
    *args: *Ts,
    seed: int | None = 0,
    instruments: Sequence[trio.abc.Instrument] = (),
    threads: WorkerThreads | None = None,
) -> T:
    """Run `async_fn(*args)` under trio with a clock that jumps when every task sleeps.
    Return its result.

    The order of tasks depends on `seed` (None: a random order). With `threads`, neither the clock
    nor `settle` overtakes a thread that works for a task. Raises what the function raises.
    """
    clock = trio.testing.MockClock(autojump_threshold=0)
    with seeded(seed):
        if threads is None:
            return trio.run(async_fn, *args, clock=clock, instruments=instruments)
        return trio.run(
            _watched, threads, async_fn, args, clock=clock, instruments=(*instruments, threads)
        )


async def _watched(
    threads: WorkerThreads, async_fn: Callable[[*Ts], Awaitable[T]], args: tuple[*Ts]
) -> T:
    threads.begin()
    return await async_fn(*args)
