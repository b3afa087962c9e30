"""Measure contenders in turn, round after round in one run. The result is the median of the ratios within a round.

Absolute times depend on the other programs of the machine. Two contenders that run within the same second share that noise, so their ratio
varies far less.
"""

import gc
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from importlib.util import find_spec
from statistics import median
from typing import NamedTuple, TypeAlias

Contender: TypeAlias = Callable[[int], Awaitable[int]]
"""Moves about as many elements as its argument says, and returns the exact number."""

Timer: TypeAlias = Callable[[], float]
"""Runs one round, and returns the nanoseconds per element."""

Opening: TypeAlias = Callable[[], AbstractContextManager[Timer]]
"""Starts a contender for all rounds, with its serving process and a warm-up."""


class Bar(NamedTuple):
    """A bound on the ratio of two contenders' costs per element."""

    name: str
    cost_of: str
    relative_to: str
    at_most: float | None = None
    at_least: float | None = None
    or_under: float | None = None
    """Nanoseconds per element: a lower cost keeps the bar at any ratio."""

    reached: float | None = None
    """The measured ratio of a bar that has never been reached. A long run names the bar as missed; a short run judges half of `reached`."""

    def relaxed(self, factor: float) -> "Bar":
        """Return the bar of a short run: `factor` times looser."""
        at_least = self.at_least if self.reached is None or factor == 1 else self.reached
        return self._replace(
            at_most=None if self.at_most is None else self.at_most * factor,
            at_least=None if at_least is None else at_least / factor,
            or_under=None if self.or_under is None else self.or_under * factor,
        )

    def text(self) -> str:
        """Return the bar as text."""
        ratio = f"at most {self.at_most:g} ×" if self.at_most is not None else f"at least {self.at_least:g} × as fast"
        return ratio if self.or_under is None else f"{ratio}, or {1e3 / self.or_under:g} M/s"


class Verdict(NamedTuple):
    """A bar, the measured ratio, and whether the bar was kept."""

    bar: Bar
    seen: float
    kept: bool


class Cost(NamedTuple):
    """The nanoseconds per element of one contender: median and extremes over the rounds."""

    median: float
    least: float
    most: float


class Measured(NamedTuple):
    """The measurements of one group of contenders."""

    rounds: int
    costs: dict[str, list[float]]  # nanoseconds per element, one for each round

    def cost(self, name: str) -> Cost:
        """Return the cost of one contender over all rounds."""
        seen = self.costs[name]
        return Cost(median(seen), min(seen), max(seen))

    def ratio(self, name: str, to: str) -> float:
        """Return the median over the rounds of the ratio of two contenders' costs."""
        return median(one / other for one, other in zip(self.costs[name], self.costs[to], strict=True))

    def judge(self, bar: Bar) -> Verdict:
        """Compare a bar with the measurement. A bar about a missing contender is missed."""
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
    """Contenders that do the same work, and the bars for them."""

    key: str
    title: str
    unit: str
    baseline: str
    contenders: Callable[[bool], dict[str, Opening]]
    """Given whether the run is short: the contenders by name."""
    bars: tuple[Bar, ...]
    needs: dict[str, str] = {}  # noqa: RUF012  # read, never changed
    """The package that a contender needs. A contender whose package is missing is left out."""


def measure(group: Group, *, short: bool, rounds: int) -> Measured:
    """Start all contenders of a group, and run them in turn, `rounds` times."""
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
    """Write a line of progress, if standard error is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
