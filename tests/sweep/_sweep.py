"""One combination of parts, cancelled before its k-th task step, for every k: nothing may be left of it."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from random import Random
from typing import NamedTuple

import trio

import penstock
from penstock.testing import LeakCensus, cancel_at_step, run_virtual
from tests.sweep._parts import EXPECTED, OPERATORS, SINKS, SOURCES, Yard


class Combination(NamedTuple):
    """A source, an operator (or none), a sink."""

    source: str
    operator: str | None
    sink: str

    def __str__(self) -> str:
        return " | ".join(part for part in self if part is not None)


class Leak(AssertionError):
    """Something was left."""


async def _scenario(combination: Combination, census: LeakCensus) -> None:
    yard = Yard(census)
    with trio.move_on_after(60):  # a stream that never ends is left, too
        async with trio.open_nursery() as nursery:
            stream_of = SOURCES[combination.source](yard, nursery)
            if combination.operator is not None:
                stream_of = penstock.pipe(stream_of, OPERATORS[combination.operator](yard))
            try:
                await SINKS[combination.sink](stream_of, yard)
            except* EXPECTED:
                pass
            nursery.cancel_scope.cancel()  # whoever still publishes to a topic or sends into a channel


async def _attempt(combination: Combination, k: int | None) -> tuple[int, list[str]]:
    census = LeakCensus()
    living = trio.lowlevel.current_statistics().tasks_living
    outcome = await cancel_at_step(k, _scenario, combination, census)
    leaks = census.leaks()
    more = trio.lowlevel.current_statistics().tasks_living - living
    if more > 0 and not leaks:
        leaks = [f"{more} tasks more than before, hidden from the census: system tasks"]
    return outcome.steps, leaks


def attempt(combination: Combination, k: int | None, seed: int) -> int:
    """Run a combination, cancelled before its k-th step (None: not at all); return its steps, or raise Leak."""
    steps, leaks = run_virtual(_attempt, combination, k, seed=seed)
    if leaks:
        raise Leak(f"{combination}, cancelled before step {k} under seed {seed}, left:\n  " + "\n  ".join(leaks))
    return steps


def sweep(combination: Combination, seeds: Iterable[int], *, most: int | None = None) -> int:
    """Cancel a combination before every step (or `most` of them, spread) under each seed; return how many runs that took."""
    runs = 0
    for seed in seeds:
        steps = attempt(combination, None, seed)
        max_open_connections: Iterable[int] = range(1, steps + 1)
        if most is not None and steps > most:
            max_open_connections = sorted(Random(f"{combination}{seed}").sample(range(1, steps + 1), most))
        for k in max_open_connections:
            attempt(combination, k, seed)
            runs += 1
    return runs


def every_pair() -> Iterator[Combination]:
    """Combinations in which every source meets every sink, and every operator both a waiting source and every sink."""
    for sink in SINKS:
        yield from (Combination(source, None, sink) for source in SOURCES)
        yield from (Combination("async generator function", operator, sink) for operator in OPERATORS)


def everything() -> Iterator[Combination]:
    """Every source with every operator and every sink."""
    for source in SOURCES:
        for operator in (None, *OPERATORS):
            yield from (Combination(source, operator, sink) for sink in SINKS)


@contextmanager
def cheap_collections() -> Iterator[None]:
    """Keep what exists already out of the garbage collector's sight: the sweep collects thousands of times."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def sweep_part(where: range, seeds: int) -> tuple[int, list[str]]:
    """Sweep these of all combinations, in a process that may be one of several; return how many runs that took, and what leaked."""
    runs, leaks = 0, []
    with cheap_collections():
        for combination in islice(everything(), where.start, where.stop):
            try:
                runs += sweep(combination, range(seeds))
            except Leak as leak:
                leaks.append(str(leak))
    return runs, leaks
