"""Measuring: contenders run in turn, round after round in one process, and what counts is the median of the ratios within a round.

Absolute times on a shared machine say little; two contenders that ran within the same second share its noise, so their ratio says much.
"""

import gc
import sys
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter
from typing import NamedTuple, TypeAlias

import trio

Contender: TypeAlias = Callable[[int], Awaitable[int]]
"""Moves about so many elements, and returns how many it really moved."""


class Bar(NamedTuple):
    """A promise about speed: the ratio of two contenders' costs per element must stay under (or over) a number."""

    name: str
    cost_of: str
    relative_to: str
    at_most: float | None = None
    at_least: float | None = None

    def relaxed(self, factor: float) -> "Bar":
        """The same bar for a short run, in which `factor` as much is forgiven."""
        return self._replace(
            at_most=None if self.at_most is None else self.at_most * factor,
            at_least=None if self.at_least is None else self.at_least / factor,
        )

    def text(self) -> str:
        """The promise in words."""
        return f"at most {self.at_most:g} ×" if self.at_most is not None else f"at least {self.at_least:g} × cheaper"


class Verdict(NamedTuple):
    """A bar, what was seen, and whether it was kept."""

    bar: Bar
    seen: float
    kept: bool


class Cost(NamedTuple):
    """What an element cost one contender: the median over the rounds and the extremes, in nanoseconds."""

    median: float
    least: float
    most: float


class Measured(NamedTuple):
    """All that one run found out."""

    rounds: int
    costs: dict[str, list[float]]  # nanoseconds per element, one for each round

    def cost(self, name: str) -> Cost:
        """The cost of one contender over all rounds."""
        seen = self.costs[name]
        return Cost(median(seen), min(seen), max(seen))

    def ratio(self, name: str, to: str) -> float:
        """How many times as much one contender cost as another: the median over the rounds of the ratio within a round."""
        return median(one / other for one, other in zip(self.costs[name], self.costs[to], strict=True))

    def judge(self, bar: Bar) -> Verdict:
        """Compare a bar with what was seen."""
        if bar.at_most is not None:
            seen = self.ratio(bar.cost_of, bar.relative_to)
            return Verdict(bar, seen, seen <= bar.at_most)
        seen = self.ratio(bar.relative_to, bar.cost_of)
        return Verdict(bar, seen, seen >= (bar.at_least or 0))


def measure(contenders: dict[str, tuple[Contender, int]], *, rounds: int) -> Measured:
    """Run each contender once to warm up, then all of them in turn, `rounds` times."""
    for contender, count in contenders.values():
        trio.run(contender, max(1, count // 10))
    costs: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(1, rounds + 1):
        for name, (contender, count) in contenders.items():
            _progress(f"round {number} of {rounds}: {name}")
            costs[name].append(trio.run(_timed, contender, count))
    _progress("")
    return Measured(rounds, costs)


async def _timed(contender: Contender, count: int) -> float:
    gc.collect()
    began = perf_counter()
    moved = await contender(count)
    return (perf_counter() - began) / moved * 1e9


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
