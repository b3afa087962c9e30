"""One run of a scenario, disturbed in one way: by a cut, or by the cancellation of one side before a task step. Then: what is left?

Rules of this file:

* The two sides are two tasks; nobody else is cancelled, and nobody else's connection is cut. Each must get over what befell the other.
* While the server still serves, nothing of a client that has gone may be left with it. After both have ended, nothing at all.
* The clock is virtual, so "in time" is exact: a run takes as long as its scenario, and then what the deadlines of `Limits` allow.
"""

import gc
import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import trio
import trio.testing

from penstock.runtime import serve
from penstock.testing import LeakCensus, live_tasks, run_virtual
from tests.cuts._scenarios import SCENARIOS, Scenario, everything
from tests.cuts._spies import Spy, overheard
from tests.cuts._stage import DOCUMENTED, LEFT, REGISTRY, Stage
from tests.cuts._wire import WIRE, Cut, How, Way, Wire

GRACE: Final = {How.FIN: 4.0, How.RST: 4.0, How.SILENCE: 70.0}
"""Seconds that a run may take beyond its scenario: a goodbye that nobody answers, lingering; or until keepalive has found out."""
OURS: Final = ("penstock.session", "penstock.runtime", "penstock.core", "penstock.builtin", "penstock.wire", "tests.cuts")
HERS: Final = frozenset({"Stage", "Wire", "Reading", "Spy", "Cut", "Cancel", "Ear", "Report", "Sides", "_Run"})
"""Of those, what belongs to the one who watches."""


class Side(Enum):
    """Who is cancelled."""

    CLIENT = "the client"
    SERVER = "the server"
    ONE = "one subscription"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """A cancellation of one side, before a task step of either."""

    side: Side
    step: int

    def __str__(self) -> str:
        return f"{self.side.value} cancelled before step {self.step}"


Disturbance = Cut | Cancel | None


class Remains(AssertionError):
    """Something was left, or was not as it must be."""


@dataclass
class Report:
    """What a run was like."""

    faults: list[str] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0
    carried: dict[Way, int] = field(default_factory=dict)
    ends: list[str | None] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


class Sides(trio.abc.Instrument):
    """The scopes of both sides; counts the steps of all tasks, and cancels one side before the k-th."""

    def __init__(self, disturbance: Disturbance, one: trio.CancelScope) -> None:
        self.scopes = {Side.CLIENT: trio.CancelScope(), Side.SERVER: trio.CancelScope(), Side.ONE: one}
        self.steps = 0
        self._cancel = disturbance if isinstance(disturbance, Cancel) else None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1
        if self._cancel is not None and self.steps == self._cancel.step:
            self.scopes[self._cancel.side].cancel()


class Ear(logging.Handler):
    """Hears what is logged."""

    def __init__(self, heard: list[str]) -> None:
        super().__init__()
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard.append(f"logged: {record.getMessage()}")


@contextmanager
def _listening(heard: list[str]) -> Iterator[None]:
    ear, log = Ear(heard), logging.getLogger("penstock")
    log.addHandler(ear)
    try:
        yield
    finally:
        log.removeHandler(ear)


class _Run:
    """One run."""

    def __init__(self, scenario: Scenario, disturbance: Disturbance) -> None:
        self.report = Report()
        self._scenario = scenario
        self._disturbance = disturbance
        self._stage = Stage(scenario.limits, scenario.protocol)
        self._sides = Sides(disturbance, self._stage.one)
        self._spies: list[Spy] = []
        self._tasks = 0
        self._of_the_server: Counter[str] = Counter()

    async def go(self) -> Report:
        census = LeakCensus()
        cut = self._disturbance if isinstance(self._disturbance, Cut) else None
        wire = Wire(cut, capacity=self._scenario.capacity)
        WIRE.set(wire)
        began = trio.current_time()
        with overheard(self._spies), _listening(self.report.faults):
            with trio.move_on_after(1000) as all_of_it:  # what never ends is left, too
                await self._both_sides()
        report = self.report
        report.seconds = trio.current_time() - began
        report.steps, report.carried = self._sides.steps, wire.carried
        if all_of_it.cancelled_caught:
            report.faults.append("the run did not end")
        report.faults += census.leaks()
        self._judge()
        return report

    async def _both_sides(self) -> None:
        trio.lowlevel.add_instrument(self._sides)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._server)
                nursery.start_soon(self._client)
        finally:
            trio.lowlevel.remove_instrument(self._sides)

    async def _server(self) -> None:
        stage, scenario = self._stage, self._scenario
        with self._guarded(Side.SERVER):
            try:
                async with serve(everything(stage), stage.url, limits=stage.limits, registry=REGISTRY, on_violation=stage.hear) as server:
                    await trio.testing.wait_all_tasks_blocked()  # until its own tasks are all there
                    self._tasks, self._of_the_server = len(live_tasks()), _objects()
                    stage.serving.set()
                    await scenario.server(stage, server)
                    if stage.client_over.is_set():
                        await self._settle(server)
            finally:
                stage.serving.set()

    async def _client(self) -> None:
        stage = self._stage
        await stage.serving.wait()
        with self._guarded(Side.CLIENT):
            await self._scenario.client(stage)
        stage.client_over.set()

    @contextmanager
    def _guarded(self, side: Side) -> Iterator[None]:
        """Keep what a side raises, as words."""
        try:
            with self._sides.scopes[side]:
                yield
        except DOCUMENTED as error:
            if self._disturbance is None:
                self.report.faults.append(f"{side.value} raised {error!r} though nobody disturbed it")
        except Exception as error:
            self.report.faults.append(f"{side.value} raised {error!r}")

    async def _settle(self, server: Any) -> None:
        """The client has gone: within its deadlines the server must have forgotten it."""
        with trio.move_on_after(GRACE[self._disturbance.how if isinstance(self._disturbance, Cut) else How.FIN]):
            while server._admission.open:  # noqa: ASYNC110  # nobody announces it, and the clock is virtual
                await trio.sleep(0.25)
        if server._admission.open:
            self.report.faults.append("the server still holds a connection whose client has gone")
            return
        await trio.testing.wait_all_tasks_blocked()
        more = len(live_tasks()) - (self._tasks - 1)  # without the client's own
        if more > 0:
            self.report.faults.append(f"{more} tasks were left with the server")
        self.report.faults += [f"generator {name} was not closed while the server went on" for name in self._stage.open_generators()]
        gc.collect()
        left = _objects() - self._of_the_server
        self.report.faults += [f"{count} {name} left with the server" for name, count in left.items()]

    # --- afterwards

    def _judge(self) -> None:
        stage, report = self._stage, self.report
        report.ends = [reading.end for reading in stage.readings]
        if not self._is_silent:
            report.faults += stage.faults
        report.told = stage.told
        report.faults += [f"generator {name} was not closed" for name in stage.open_generators()]
        for reading in stage.readings:
            report.faults += reading.faults()
        for spy in self._spies:
            report.faults += spy.faults()
        gc.collect()
        report.faults += [f"{count} {name} left" for name, count in _objects().items()]
        self._judge_ends()

    def _judge_ends(self) -> None:
        report, scenario = self.report, self._scenario
        report.faults += [f"on_violation was told: {told}" for told in report.told if told.split(":")[0] not in scenario.told]
        report.faults += [f"a fault of ours: {end}" for end in report.ends if end is not None and "internal" in end]
        ends = [None if end is None else end.split(":")[0] for end in report.ends]
        if self._disturbance is None:
            if tuple(ends) != scenario.ends:
                report.faults.append(f"the readings ended with {report.ends}; {scenario.ends} was due")
            return
        for end, kind in zip(report.ends, ends, strict=True):
            if kind not in self._allowed:
                report.faults.append(f"a reading ended with {end!r}: neither as it should nor with the connection")
        spared = [reading.end for reading in self._stage.readings if not (self._is_alone and reading.label == scenario.one)]
        if None in spared and (isinstance(self._disturbance, Cut) or self._is_alone):
            report.faults.append(f"a reading that nobody cancelled had no end: {report.ends}")
        if isinstance(self._disturbance, Cancel) and not scenario.protocol:  # ReactiveSocket has no word for an end without a reason
            report.faults += [f"nobody said goodbye: {end}" for end in report.ends if end is not None and "without a goodbye" in end]

    @property
    def _is_alone(self) -> bool:
        return isinstance(self._disturbance, Cancel) and self._disturbance.side is Side.ONE

    @property
    def _allowed(self) -> set[str | None]:
        """How a reading may end when somebody disturbs."""
        expected: set[str | None] = {*self._scenario.ends, None}
        if self._is_alone:
            return expected  # the connection lives
        return expected | ({"ConnectionLost", LEFT} if isinstance(self._disturbance, Cancel) else {"ConnectionLost"})

    @property
    def _is_silent(self) -> bool:
        """A connection on which nothing comes any more, and neither side knows."""
        return isinstance(self._disturbance, Cut) and self._disturbance.how is How.SILENCE


def _objects() -> Counter[str]:
    """Return how many objects of ours there are, by the name of their type. Those that were frozen by `cheap_collections` are no matter."""
    return Counter(
        type(each).__name__ for each in gc.get_objects() if type(each).__module__.startswith(OURS) and type(each).__name__ not in HERS
    )


async def _go(name: str, disturbance: Disturbance) -> Report:
    return await _Run(SCENARIOS[name], disturbance).go()


def attempt(name: str, disturbance: Disturbance, *, seed: int = 0, most_seconds: float | None = None) -> Report:
    """Run a scenario with a disturbance; return its report, or raise Remains."""
    random.seed(seed)  # the jitter of keepalive
    report = run_virtual(_go, name, disturbance, seed=seed)
    if most_seconds is not None and report.seconds > most_seconds:
        report.faults.append(f"it took {report.seconds:.1f} s; {most_seconds:.1f} s is the most")
    if report.faults:
        raise Remains(f"{name}, {disturbance or 'undisturbed'}, seed {seed}:\n  " + "\n  ".join(report.faults))
    return report
