"""Measuring: in each round every contender runs once; a bar is judged by the median, over the
rounds, of the ratio within a round.

Absolute times on a shared machine vary with its load. The contenders of one round run within
seconds of each other, under the same load, so their ratio varies little.
"""

import gc
import shutil
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from importlib.util import find_spec
from statistics import median
from typing import NamedTuple, TypeAlias

Contender: TypeAlias = Callable[[int], Awaitable[int]]
"""Takes the number of elements to move, and returns the number that it moved."""

Timer: TypeAlias = Callable[[], float]
"""Runs one round, and returns nanoseconds per element."""

Opening: TypeAlias = Callable[[], AbstractContextManager[Timer]]
"""Opens a contender for all rounds: starts its server process if it has one, and warms it up."""


class Bar(NamedTuple):
    """A promise about speed: a bound on the ratio of two contenders' costs per element."""

    name: str
    cost_of: str
    relative_to: str
    at_most: float | None = None
    at_least: float | None = None
    or_under: float | None = None
    """Nanoseconds per element: a cost of at most this keeps the bar at any ratio."""

    reached: float | None = None
    """The measured ratio, if `at_least` is not reached yet. A full run judges by `at_least`, a
    short run by `reached`, to notice a loss.
    """

    def relaxed(self, factor: float) -> "Bar":
        """Return the bar of a short run:
        `factor` times the cost, or the advantage divided by `factor`.
        """
        at_least = self.at_least if self.reached is None or factor == 1 else self.reached
        return self._replace(
            at_most=None if self.at_most is None else self.at_most * factor,
            at_least=None if at_least is None else at_least / factor,
            or_under=None if self.or_under is None else self.or_under * factor,
        )

    def text(self) -> str:
        """Return the bound as tables and pages print it."""
        ratio = (
            f"at most {self.at_most:g} ×"
            if self.at_most is not None
            else f"at least {self.at_least:g} × as fast"
        )
        return ratio if self.or_under is None else f"{ratio}, or {1e3 / self.or_under:g} M/s"


class Verdict(NamedTuple):
    """A bar, the measured ratio, and whether the bar was kept."""

    bar: Bar
    seen: float
    kept: bool


class Cost(NamedTuple):
    """Nanoseconds per element of one contender:
    the median over the rounds, the least and the most.
    """

    median: float
    least: float
    most: float


class Measured(NamedTuple):
    """The costs of the contenders of a group, from one run."""

    rounds: int
    costs: dict[str, list[float]]  # nanoseconds per element, one for each round

    def cost(self, name: str) -> Cost:
        """Return the cost of one contender over all rounds."""
        seen = self.costs[name]
        return Cost(median(seen), min(seen), max(seen))

    def ratio(self, name: str, to: str) -> float:
        """Return the cost of one contender relative to another:
        the median, over the rounds, of the ratio within a round.
        """
        return median(
            one / other for one, other in zip(self.costs[name], self.costs[to], strict=True)
        )

    def judge(self, bar: Bar) -> Verdict:
        """Compare a bar with the measured costs.
        If a contender of the bar did not run, the bar is missed.
        """
        if not {bar.cost_of, bar.relative_to} <= self.costs.keys():
            return Verdict(bar, float("nan"), kept=False)
        if bar.at_most is not None:
            seen = self.ratio(bar.cost_of, bar.relative_to)
            kept = seen <= bar.at_most
        else:
            seen = self.ratio(bar.relative_to, bar.cost_of)
            kept = seen >= (bar.at_least or 0)
        return Verdict(
            bar,
            seen,
            kept or (bar.or_under is not None and self.cost(bar.cost_of).median <= bar.or_under),
        )


class Group(NamedTuple):
    """Contenders that do the same work, and the bars about them."""

    key: str
    title: str
    unit: str
    baseline: str
    contenders: Callable[[bool], dict[str, Opening]]
    """Takes whether the run is short, and returns the contenders by name."""
    bars: tuple[Bar, ...]
    needs: dict[str, str] = {}  # noqa: RUF012  # the default is never changed
    """The package that a contender imports, and the program that it starts. `measure` omits a
    contender if one of them is missing.
    """


def measure(group: Group, *, short: bool, rounds: int) -> Measured:
    """Open all contenders of a group, and run each once per round."""
    contenders = {
        name: opening
        for name, opening in group.contenders(short).items()
        if _is_possible(group.needs.get(name, "sys"))
    }
    costs: dict[str, list[float]] = {name: [] for name in contenders}
    with ExitStack() as stack:
        timers: dict[str, Timer] = {}
        for name, opening in contenders.items():
            progress(f"{group.title}: {name} warms up")
            timers[name] = stack.enter_context(opening())
        for number in range(1, rounds + 1):
            for name, timer in timers.items():
                progress(f"{group.title}: round {number} of {rounds}: {name}")
                gc.collect()  # else a contender pays for the garbage of the one before it
                costs[name].append(timer())
    progress("")
    return Measured(rounds, costs)


def _is_possible(needs: str) -> bool:
    return all(
        find_spec(each) is not None or shutil.which(each) is not None for each in needs.split()
    )


def progress(text: str) -> None:
    """Write `text` over the current line of standard error if that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
