"""The control canary measures how late the machine wakes a process, and decides
which failed attacks count.
"""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import count, repeat
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.hostile._control_canary import (
    MAX_ATTEMPTS,
    MAX_STRETCH,
    TOLERATED_DELAY,
    TOLERATED_SLOWDOWN,
    WORK,
    ControlCanary,
    _run,
)

HELD_UP = 0.2


class FakeControl(ControlCanary):
    """Reports delays and slowdowns from lists, one a question."""

    def __init__(self, delays: list[float], slowdowns: Iterable[float] | None = None) -> None:
        self._delays, self._slowdowns = (
            iter(delays),
            iter(repeat(1.0) if slowdowns is None else slowdowns),
        )

    def slowdown(self) -> float:
        return next(self._slowdowns)

    def longest_delay(self, since: float) -> float:
        return next(self._delays)


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[ControlCanary]:
    canary = ControlCanary(tmp_path)
    yield canary
    canary.close()


def test_a_held_up_control_canary_reports_the_delay(canary: ControlCanary) -> None:
    """A process that the system does not run for 200 ms is late by about as long,
    while it waits and when it runs again.
    """
    began = monotonic()
    os.kill(canary._process.pid, signal.SIGSTOP)
    sleep(HELD_UP)
    during = canary.longest_delay(began)
    os.kill(canary._process.pid, signal.SIGCONT)
    assert during >= HELD_UP * 0.8
    while canary.longest_delay(monotonic()) >= HELD_UP * 0.5:  # until it has run again
        pass
    assert canary.longest_delay(began) >= HELD_UP * 0.8
    assert canary.stretch(began) >= HELD_UP * 0.8 / TOLERATED_DELAY


def test_the_control_canary_ends_when_its_parent_has_gone(tmp_path: Path) -> None:
    """Its loop returns as soon as its parent is another process,
    so a killed test run leaves no process behind.
    """
    _run(str(tmp_path / "delays"), parent=-1)
    assert (tmp_path / "delays").read_bytes() == b""


@pytest.mark.parametrize(
    ("delay", "stretch"),
    [(0.0, 1.0), (TOLERATED_DELAY, 1.0), (3 * TOLERATED_DELAY, 3.0), (60.0, MAX_STRETCH)],
)
def test_the_stretch_grows_with_the_delay(delay: float, stretch: float) -> None:
    """Deadlines are never shortened, and never stretched beyond the bound."""
    assert FakeControl([delay]).stretch(0) == pytest.approx(stretch)


async def test_a_failure_on_a_quiet_machine_counts_at_once() -> None:
    """If the control canary was on time, the attack is not run again."""
    attempts: list[float] = []

    async def attempt(stretch: float) -> None:
        attempts.append(stretch)
        raise AssertionError("too late")

    with pytest.raises(AssertionError, match="too late"):
        await FakeControl([0, TOLERATED_DELAY]).judge(attempt)
    assert attempts == [1.0]


async def test_a_failure_while_the_machine_was_held_up_is_tried_again_with_more_time() -> None:
    """The second attempt has the factor that was measured during the first one."""
    attempts: list[float] = []

    async def attempt(stretch: float) -> None:
        attempts.append(stretch)
        assert stretch > 3

    await FakeControl([0, 4 * TOLERATED_DELAY]).judge(attempt)
    assert attempts == [1.0, pytest.approx(4.0)]


async def test_a_failure_of_a_process_that_hardly_ran_is_tried_again_with_more_time() -> None:
    """A process that sleeps goes first:
    the control canary was on time, and this process waited for a processor.
    """
    attempts: list[float] = []

    async def attempt(stretch: float) -> None:
        attempts.append(stretch)
        assert stretch > 3

    await FakeControl([0, 0], [4.0]).judge(attempt)
    assert attempts == [1.0, 4.0]


def test_the_slowdown_is_measured_against_the_time_of_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here the processor's clock goes at a third of the speed of the wall."""
    now = count()
    monkeypatch.setattr("tests.hostile._control_canary.monotonic", lambda: next(now) * WORK / 10)
    monkeypatch.setattr("tests.hostile._control_canary.process_time", lambda: next(now) * WORK / 30)
    assert ControlCanary.slowdown(FakeControl([])) == pytest.approx(
        3.0 / TOLERATED_SLOWDOWN, rel=0.2
    )


@pytest.mark.parametrize(("share", "attempts"), [(1.0, 1), (0.8, 1), (0.5, 2)])
async def test_a_failed_attack_is_run_again_only_if_the_process_hardly_ran(
    share: float, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work always takes a little longer than the processor says.
    On a quiet machine that must not count.
    """
    spent, now = [0.0], count()
    monkeypatch.setattr(
        "tests.hostile._control_canary.monotonic", lambda: next(now) * 1e-4 + spent[0] / share
    )

    def work() -> float:
        spent[0] += WORK / 100
        return spent[0]

    monkeypatch.setattr("tests.hostile._control_canary.process_time", work)
    control, made = FakeControl([0, 0, 0]), list[float]()
    monkeypatch.setattr(control, "slowdown", partial(ControlCanary.slowdown, control))

    async def attempt(stretch: float) -> None:
        made.append(stretch)
        assert stretch > 1

    with nullcontext() if attempts > 1 else pytest.raises(AssertionError):
        await control.judge(attempt)
    assert len(made) == attempts


async def test_the_attempts_are_bounded() -> None:
    """On a machine that gets busier and busier, the last attempt counts."""
    attempts: list[float] = []

    async def attempt(stretch: float) -> None:
        attempts.append(stretch)
        raise AssertionError("too late")

    with pytest.raises(AssertionError, match="too late"):
        await FakeControl([TOLERATED_DELAY * number for number in range(1, 10)]).judge(attempt)
    assert len(attempts) == MAX_ATTEMPTS
