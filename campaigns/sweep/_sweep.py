"""One combination of parts, cancelled before its k-th task step, for every k.
After each run nothing may be left.
"""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from random import Random
from typing import NamedTuple

import trio

import penstock
from campaigns.sweep._parts import EXPECTED, OPERATORS, SINKS, SOURCES, WatchedFactory
from penstock.testing import LeakCensus, cancel_at_step, run_virtual


class Combination(NamedTuple):
    """A source, an operator or none, and a sink."""

    source: str
    operator: str | None
    sink: str

    def __str__(self) -> str:
        return " | ".join(part for part in self if part is not None)


class Leak(AssertionError):
    """A run left tasks, generators or objects."""


async def _scenario(combination: Combination, census: LeakCensus) -> None:
    with trio.move_on_after(60):  # a stream that does not end must fail too; the clock is virtual
        async with trio.open_nursery() as nursery:
            factory = WatchedFactory(census, nursery)
            source = SOURCES[combination.source](factory, nursery)
            if combination.operator is not None:
                source = penstock.pipe(source, OPERATORS[combination.operator](factory))
            try:
                await SINKS[combination.sink](source, factory)
            except* EXPECTED:
                pass
            # ends the tasks that publish to a topic or send into a channel.
            nursery.cancel_scope.cancel()


async def _count_leaks(combination: Combination, k: int | None) -> tuple[int, list[str]]:
    census = LeakCensus()
    tasks_before = trio.lowlevel.current_statistics().tasks_living
    outcome = await cancel_at_step(k, _scenario, combination, census)
    leaks = census.leaks()
    more = trio.lowlevel.current_statistics().tasks_living - tasks_before
    if more > 0 and not leaks:
        leaks = [f"{more} new tasks that the census cannot see: system tasks"]
    return outcome.steps, leaks


def run_cancelled(combination: Combination, k: int | None, seed: int) -> int:
    """Run a combination, cancelled before its k-th step (None: not cancelled).
    Return its steps, or raise Leak.
    """
    steps, leaks = run_virtual(_count_leaks, combination, k, seed=seed)
    if leaks:
        raise Leak(
            f"{combination}, cancelled before step {k} under seed {seed}, left:\n  "
            + "\n  ".join(leaks)
        )
    return steps


def sweep(combination: Combination, seeds: Iterable[int], *, at_most: int | None = None) -> int:
    """Cancel a combination before every step (or `at_most` random ones) under each seed. Return
    the number of cancelled runs.
    """
    runs = 0
    for seed in seeds:
        steps = run_cancelled(combination, None, seed)
        cancel_steps: Iterable[int] = range(1, steps + 1)
        if at_most is not None and steps > at_most:
            cancel_steps = sorted(
                Random(f"{combination}{seed}").sample(range(1, steps + 1), at_most)
            )
        for k in cancel_steps:
            run_cancelled(combination, k, seed)
            runs += 1
    return runs


def all_combinations() -> Iterator[Combination]:
    """Return every source with every operator and every sink."""
    for source in SOURCES:
        for operator in (None, *OPERATORS):
            yield from (Combination(source, operator, sink) for sink in SINKS)


@contextmanager
def cheap_collections() -> Iterator[None]:
    """Exclude existing objects from garbage collection inside the block:
    the sweep collects thousands of times.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def sweep_part(part: range, seeds: int) -> tuple[int, list[str]]:
    """Sweep one part of all combinations. Return the number of cancelled runs and the leaks."""
    runs, leaks = 0, []
    with cheap_collections():
        for combination in islice(all_combinations(), part.start, part.stop, part.step):
            try:
                runs += sweep(combination, range(seeds))
            except Leak as leak:
                leaks.append(str(leak))
    return runs, leaks
