"""Tests of waiting in virtual time: quiescence and what the MockClock shows are two things."""

import pytest
import trio

from penstock.testing import ExpectationFailed, Transcript, run_virtual, settle
from penstock.testing._expectations import Awaited


def test_settle_waits_until_every_other_task_is_blocked() -> None:
    """What needs many steps and no time is over when settle returns."""

    async def scenario() -> int:
        steps = 0

        async def work() -> None:
            nonlocal steps
            for _ in range(50):
                await trio.lowlevel.checkpoint()
                steps += 1
            await trio.sleep(10)
            steps += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            await settle()
            nursery.cancel_scope.cancel()
        return steps

    assert run_virtual(scenario) == 50


@pytest.mark.parametrize(("within", "expected"), [(0.0, (False, 0.0)), (2.0, (False, 2.0)), (5.0, (True, 3.0))])
def test_a_wait_lasts_as_long_as_it_is_allowed_and_no_longer(within: float, expected: tuple[bool, float]) -> None:
    """With nothing allowed only quiescence counts; otherwise the change wakes the waiter at its own time."""

    async def scenario() -> tuple[bool, float]:
        awaited, happened = Awaited(), trio.Event()

        async def later() -> None:
            await trio.sleep(3)
            happened.set()
            awaited.changed()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(later)
            began = trio.current_time()
            outcome = await awaited.until(happened.is_set, within=within), round(trio.current_time() - began, 6)
            nursery.cancel_scope.cancel()
        return outcome

    assert run_virtual(scenario) == expected


def test_a_failed_expectation_shows_the_transcript() -> None:
    """What was expected, and everything that was seen instead."""
    transcript = Transcript()
    transcript.add("s1", "<- on_complete()")
    error = ExpectationFailed("expected on_next", transcript)
    assert error.seen == "expected on_next"
    assert "<- on_complete()" in str(error)


def test_a_change_outside_a_run_wakes_nobody() -> None:
    """Probes work in plain tests too, where there is no run loop."""
    Awaited().changed()
