"""Waiting in virtual time: for all tasks to be blocked, and for the clock."""

import pytest
import trio

from penstock.testing import ExpectationFailed, Transcript, run_virtual, settle
from penstock.testing._expectations import Waiters


def test_settle_waits_until_every_other_task_is_blocked() -> None:
    """Fifty checkpoints of another task are done when `settle` returns, and its sleep is not."""

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


@pytest.mark.parametrize(
    ("within", "expected"), [(0.0, (False, 0.0)), (2.0, (False, 2.0)), (5.0, (True, 3.0))]
)
def test_a_wait_ends_at_the_change_or_at_its_limit(
    within: float, expected: tuple[bool, float]
) -> None:
    """With within=0 only the state with all tasks blocked counts.
    Otherwise the change wakes the waiter at its own time.
    """

    async def scenario() -> tuple[bool, float]:
        waiters, happened = Waiters(), trio.Event()

        async def later() -> None:
            await trio.sleep(3)
            happened.set()
            waiters.wake()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(later)
            start = trio.current_time()
            outcome = (
                await waiters.wait_until(happened.is_set, within=within),
                round(trio.current_time() - start, 6),
            )
            nursery.cancel_scope.cancel()
        return outcome

    assert run_virtual(scenario) == expected


def test_a_failed_expectation_shows_the_transcript() -> None:
    """The text has the expectation and everything that was seen."""
    transcript = Transcript()
    transcript.add("s1", "<- on_complete()")
    error = ExpectationFailed("expected on_next", transcript)
    assert error.seen == "expected on_next"
    assert "<- on_complete()" in str(error)


def test_wake_works_outside_a_run() -> None:
    """Probes also work in plain tests without a run loop."""
    Waiters().wake()
