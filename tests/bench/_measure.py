"""Measuring: contenders run in turn, round after round in one run, and what counts is the median of the ratios within a round.

Absolute times on a shared machine say little; two contenders that ran within the same second share its noise, so their ratio says much.
"""

import gc
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from importlib.util import find_spec
from statistics import median
from typing import NamedTuple, TypeAlias

Contender: TypeAlias = Callable[[int], Awaitable[int]]
"""Moves about so many elements, and returns how many it really moved."""

Timer: TypeAlias = Callable[[], float]
"""Runs one round, and returns what an element cost in nanoseconds."""

Opening: TypeAlias = Callable[[], AbstractContextManager[Timer]]
"""Brings a contender to life for all rounds, its other process and its warm-up included."""


class Bar(NamedTuple):
    """A promise about speed: the ratio of two contenders' costs per element must stay under (or over) a number."""

    name: str
    cost_of: str
    relative_to: str
    at_most: float | None = None
    at_least: float | None = None
    or_under: float | None = None
    """Nanoseconds per element: a cost under it keeps the bar, whatever the ratio."""

    reached: float | None = None
    """What `at_least` came to, where it is missed: a long run names it as missed, a short one watches that it gets no worse."""

    def relaxed(self, factor: float) -> "Bar":
        """The same bar for a short run, in which `factor` as much is forgiven."""
        at_least = self.at_least if self.reached is None or factor == 1 else self.reached
        return self._replace(
            at_most=None if self.at_most is None else self.at_most * factor,
            at_least=None if at_least is None else at_least / factor,
            or_under=None if self.or_under is None else self.or_under * factor,
        )

    def text(self) -> str:
        """The promise in words."""
        ratio = f"at most {self.at_most:g} ×" if self.at_most is not None else f"at least {self.at_least:g} × as fast"
        return ratio if self.or_under is None else f"{ratio}, or {1e3 / self.or_under:g} M/s"


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
    """All that one run found out about contenders that do the same."""

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
        """Compare a bar with what was seen. A contender that is missing keeps no bar."""
        if not {bar.cost_of, bar.relative_to} <= self.costs.keys():
            return Verdict(bar, float("nan"), kept=False)
        if bar.at_most is not None:
            seen = self.ratio(bar.cost_of, bar.relative_to)
            kept = seen <= bar.at_most
        else:
            seen = self.ratio(bar.relative_to, bar.cost_of)
            kept = seen >= (bar.at_least or 0)
        return Verdict(bar, seen, kept or (bar.or_under is not None and self.cost(bar.cost_of).median <= bar.or_under))


class Group(NamedTuple):
    """Contenders that do the same, and the promises about them."""

    key: str
    title: str
    unit: str
    baseline: str
    contenders: Callable[[bool], dict[str, Opening]]
    """Given whether the run is short: who takes part."""
    bars: tuple[Bar, ...]
    needs: dict[str, str] = {}  # noqa: RUF012  # read, never changed
    """The package without which a contender cannot take part."""


def measure(group: Group, *, short: bool, rounds: int) -> Measured:
    """Bring all contenders of a group to life, and run them in turn, `rounds` times."""
    contenders = {name: opening for name, opening in group.contenders(short).items() if find_spec(group.needs.get(name, "sys")) is not None}
    costs: dict[str, list[float]] = {name: [] for name in contenders}
    with ExitStack() as stack:
        timers: dict[str, Timer] = {}
        for name, opening in contenders.items():
            progress(f"{group.title}: {name} warms up")
            timers[name] = stack.enter_context(opening())
        for number in range(1, rounds + 1):
            for name, timer in timers.items():
                progress(f"{group.title}: round {number} of {rounds}: {name}")
                gc.collect()
                costs[name].append(timer())
    progress("")
    return Measured(rounds, costs)


def progress(text: str) -> None:
    """Say what is going on, where a person looks."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
