"""One run of a scenario with one disturbance: a cut, or the cancellation of one side before a task
step. Then it checks that all is freed.

Rules of this file:

* The client and the server are two tasks. A disturbance affects one of them directly; the other
  must handle the loss of its peer.
* While the server still serves, it must free all objects and tasks of a closed client.
* After both have ended, no object of penstock may remain.
* The clock is virtual, so time limits are exact: a run may take as long as its undisturbed
  scenario, plus `EXTRA_SECONDS`.
"""

import gc
import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final

import attrs
import trio
import trio.testing

from campaigns.cuts._cuttable_transport import NETWORK, Cut, CutMode, Direction, Network
from campaigns.cuts._run_context import DOCUMENTED, REGISTRY, STOPPED, RunContext
from campaigns.cuts._scenarios import SCENARIOS, Scenario, full_service
from campaigns.cuts._signal_recorder import SignalRecorder, recording_signals
from penstock.runtime import serve
from penstock.testing import LeakCensus, live_tasks, run_virtual

EXTRA_SECONDS: Final = {CutMode.FIN: 4.0, CutMode.RST: 4.0, CutMode.SILENCE: 70.0}
"""Seconds that a run may take beyond its undisturbed scenario.

4 covers an unanswered goodbye and lingering. 70 covers the detection of silence by keepalive.
"""
CHECKED_MODULES: Final = (
    "penstock.session",
    "penstock.runtime",
    "penstock.core",
    "penstock.elements",
    "penstock.transports",
    "penstock.extensions",
    "penstock.wire",
    "campaigns.cuts",
)
HARNESS_TYPES: Final = frozenset(
    {
        "RunContext",
        "Network",
        "Reading",
        "SignalRecorder",
        "Cut",
        "Cancellation",
        "LogRecorder",
        "Report",
        "SideScopes",
        "_Run",
    }
    | {"DecodingTurns", "LimitedLog", "_Kind"}
    # A server keeps one for each pattern of a publisher, if a plugin of metrics is installed.
    | {"PublisherCounts"}
)
"""Types that outlive the connections of a run, and are not counted: those of `campaigns.cuts`, and
what all connections of a loop share.
"""

RESTARTED: Final = "was lost and is read again from its beginning"


class Side(Enum):
    """The side that a `Cancellation` cancels."""

    CLIENT = "the client"
    SERVER = "the server"
    SUBSCRIPTION = "one subscription"


@attrs.frozen(kw_only=True)
class Cancellation:
    """Cancels one side before the task step number `step` of the run.
    The steps of all tasks are counted.
    """

    side: Side
    step: int

    def __str__(self) -> str:
        return f"{self.side.value} cancelled before step {self.step}"


Disturbance = Cut | Cancellation | None


class RunFailed(AssertionError):
    """A run left an object behind, or ended in a way that is not allowed."""


@attrs.define
class Report:
    """The measurements and the faults of a run."""

    faults: list[str] = attrs.Factory(list)
    steps: int = 0
    seconds: float = 0.0
    delivered: dict[Direction, int] = attrs.Factory(dict)
    ends: list[str | None] = attrs.Factory(list)
    violations: list[str] = attrs.Factory(list)


class SideScopes(trio.abc.Instrument):
    """The cancel scopes of both sides.
    Counts the steps of all tasks, and cancels one side before the given step.
    """

    def __init__(self, disturbance: Disturbance, subscription: trio.CancelScope) -> None:
        self.scopes = {
            Side.CLIENT: trio.CancelScope(),
            Side.SERVER: trio.CancelScope(),
            Side.SUBSCRIPTION: subscription,
        }
        self.steps = 0
        self._cancellation = disturbance if isinstance(disturbance, Cancellation) else None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1
        if self._cancellation is not None and self.steps == self._cancellation.step:
            self.scopes[self._cancellation.side].cancel()


class LogRecorder(logging.Handler):
    """Appends each logged message to a list of faults."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__()
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        # A stream that reconnects says so once. Each other line of the log is a fault here.
        if RESTARTED not in record.getMessage():
            self._faults.append(f"logged: {record.getMessage()}")


@contextmanager
def _recording_logs(faults: list[str]) -> Iterator[None]:
    recorder, logger = LogRecorder(faults), logging.getLogger("penstock")
    logger.addHandler(recorder)
    try:
        yield
    finally:
        logger.removeHandler(recorder)


class _Run:
    """Runs a scenario once and fills a `Report`."""

    def __init__(self, scenario: Scenario, disturbance: Disturbance) -> None:
        self.report = Report()
        self._scenario = scenario
        self._disturbance = disturbance
        self._context = RunContext(scenario.limits, scenario.protocol)
        self._sides = SideScopes(disturbance, self._context.subscription_scope)
        self._recorders: list[SignalRecorder] = []
        self._tasks_at_start = 0
        self._objects_at_start: Counter[str] = Counter()

    async def execute(self) -> Report:
        census = LeakCensus()
        cut = self._disturbance if isinstance(self._disturbance, Cut) else None
        network = Network(cut, capacity=self._scenario.capacity)
        NETWORK.set(network)
        started = trio.current_time()
        with recording_signals(self._recorders), _recording_logs(self.report.faults):
            # A run that never ends is also a fault; the longest scenario takes 120 s.
            with trio.move_on_after(1000) as timeout:
                await self._run_both_sides()
        report = self.report
        report.seconds = trio.current_time() - started
        report.steps, report.delivered = self._sides.steps, network.delivered
        if timeout.cancelled_caught:
            report.faults.append("the run did not end")
        report.faults += census.leaks()
        self._check_all_freed()
        self._check_ends()
        return report

    async def _run_both_sides(self) -> None:
        trio.lowlevel.add_instrument(self._sides)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._run_server)
                nursery.start_soon(self._run_client)
        finally:
            trio.lowlevel.remove_instrument(self._sides)

    async def _run_server(self) -> None:
        context, scenario = self._context, self._scenario
        with self._recording_errors(Side.SERVER):
            try:
                async with serve(
                    full_service(context),
                    context.url,
                    limits=context.limits,
                    registry=REGISTRY,
                    on_violation=context.record_violation,
                ) as server:
                    # The server's own tasks must all be part of the count.
                    await trio.testing.wait_all_tasks_blocked()
                    self._tasks_at_start, self._objects_at_start = (
                        len(live_tasks()),
                        _count_objects(),
                    )
                    context.server_ready.set()
                    await scenario.server(context, server)
                    if context.client_done.is_set():
                        await self._check_server_freed_client(server)
            finally:
                context.server_ready.set()

    async def _run_client(self) -> None:
        context = self._context
        await context.server_ready.wait()
        with self._recording_errors(Side.CLIENT):
            await self._scenario.client(context)
        context.client_done.set()

    @contextmanager
    def _recording_errors(self, side: Side) -> Iterator[None]:
        """Run a side in its cancel scope. Record an exception as text;
        a documented one only if the run is undisturbed.
        """
        try:
            with self._sides.scopes[side]:
                yield
        except DOCUMENTED as error:
            if self._disturbance is None:
                self.report.faults.append(f"{side.value} raised {error!r} in an undisturbed run")
        except Exception as error:
            self.report.faults.append(f"{side.value} raised {error!r}")

    async def _check_server_freed_client(self, server: Any) -> None:
        """Wait at most `EXTRA_SECONDS` until the server has closed the connection. Then compare
        its tasks and objects with the start.
        """
        with trio.move_on_after(
            EXTRA_SECONDS[
                self._disturbance.mode if isinstance(self._disturbance, Cut) else CutMode.FIN
            ]
        ):
            while server._admission.open:  # noqa: ASYNC110  # no event reports the end of a connection, and the clock is virtual
                await trio.sleep(0.25)
        if server._admission.open:
            self.report.faults.append("the server still holds a connection whose client has gone")
            return
        await trio.testing.wait_all_tasks_blocked()
        # The task of the client has ended since the first count.
        added_tasks = len(live_tasks()) - (self._tasks_at_start - 1)
        if added_tasks > 0:
            self.report.faults.append(f"{added_tasks} tasks were left with the server")
        self.report.faults += [
            f"generator {name} was not closed while the server went on"
            for name in self._context.open_generators()
        ]
        gc.collect()
        added_objects = _count_objects() - self._objects_at_start
        self.report.faults += [
            f"{count} {name} left with the server" for name, count in added_objects.items()
        ]

    # --- checks after both sides have ended

    def _check_all_freed(self) -> None:
        context, report = self._context, self.report
        report.ends = [reading.end for reading in context.readings]
        if not self._is_silent:
            report.faults += context.faults
        report.violations = context.violations
        report.faults += [f"generator {name} was not closed" for name in context.open_generators()]
        for reading in context.readings:
            report.faults += reading.faults()
        for recorder in self._recorders:
            report.faults += recorder.faults()
        gc.collect()
        report.faults += [f"{count} {name} left" for name, count in _count_objects().items()]

    def _check_ends(self) -> None:
        report, scenario = self.report, self._scenario
        unexpected = [
            violation
            for violation in report.violations
            if violation.split(":")[0] not in scenario.violations
        ]
        report.faults += [f"on_violation received: {violation}" for violation in unexpected]
        report.faults += [
            f"an internal error of penstock: {end}"
            for end in report.ends
            if end is not None and "internal" in end
        ]
        kinds = [None if end is None else end.split(":")[0] for end in report.ends]
        if self._disturbance is None:
            if tuple(kinds) != scenario.ends:
                report.faults.append(
                    f"the readings ended with {report.ends}; expected {scenario.ends}"
                )
            return
        for end, kind in zip(report.ends, kinds, strict=True):
            if kind not in self._allowed_ends:
                report.faults.append(
                    f"a reading ended with {end!r}; allowed are {self._allowed_ends}"
                )
        uncancelled = [
            reading.end
            for reading in self._context.readings
            if not (self._cancels_subscription and reading.label == scenario.cancellable)
        ]
        if None in uncancelled and (
            isinstance(self._disturbance, Cut) or self._cancels_subscription
        ):
            report.faults.append(f"a reading that was not cancelled had no end: {report.ends}")
        # ReactiveSocket has no goodbye without an error.
        if isinstance(self._disturbance, Cancellation) and not scenario.protocol:
            report.faults += [
                f"no goodbye was received: {end}"
                for end in report.ends
                if end is not None and "without a goodbye" in end
            ]

    @property
    def _cancels_subscription(self) -> bool:
        return (
            isinstance(self._disturbance, Cancellation)
            and self._disturbance.side is Side.SUBSCRIPTION
        )

    @property
    def _allowed_ends(self) -> set[str | None]:
        """The ends that a reading of a disturbed run may have.
        None is a reading that was cancelled.
        """
        expected: set[str | None] = {*self._scenario.ends, None}
        if self._cancels_subscription:
            return expected  # the connection stays open
        return expected | (
            {"ConnectionLost", STOPPED}
            if isinstance(self._disturbance, Cancellation)
            else {"ConnectionLost"}
        )

    @property
    def _is_silent(self) -> bool:
        """Whether the cut has `CutMode.SILENCE`: frames are then lost without an error, so an
        idle connection may still count streams.
        """
        return isinstance(self._disturbance, Cut) and self._disturbance.mode is CutMode.SILENCE


def _count_objects() -> Counter[str]:
    """Return the number of objects of the checked modules by type name. `gc` does not list
    objects that `cheap_collections` has frozen.
    """
    return Counter(
        type(each).__name__
        for each in gc.get_objects()
        if type(each).__module__.startswith(CHECKED_MODULES)
        and type(each).__name__ not in HARNESS_TYPES
    )


async def _execute(name: str, disturbance: Disturbance) -> Report:
    return await _Run(SCENARIOS[name], disturbance).execute()


def run_scenario(
    name: str, disturbance: Disturbance, *, seed: int = 0, max_seconds: float | None = None
) -> Report:
    """Run a scenario with a disturbance. Return its report, or raise `RunFailed`."""
    random.seed(seed)  # keepalive draws its jitter from `random`
    report = run_virtual(_execute, name, disturbance, seed=seed)
    if max_seconds is not None and report.seconds > max_seconds:
        report.faults.append(
            f"it took {report.seconds:.1f} s; at most {max_seconds:.1f} s are allowed"
        )
    if report.faults:
        raise RunFailed(
            f"{name}, {disturbance or 'undisturbed'}, seed {seed}:\n  " + "\n  ".join(report.faults)
        )
    return report
