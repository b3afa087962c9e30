"""The pacer: bursts grow while they are quick and shrink when they are slow, and a checkpoint
comes when a burst is used up.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from penstock.core import _pump
from penstock.core._pump import BURST_SECONDS, FIRST_BURST, LONGEST_BURST, BurstPacer, next_burst


@given(
    st.integers(min_value=1, max_value=LONGEST_BURST),
    st.floats(min_value=0, max_value=10, allow_nan=False),
)
def test_the_next_burst_fits_the_time_of_the_last_one(burst: int, seconds: float) -> None:
    """It is longer after a quick burst, shorter after a slow one, and always within its bounds."""
    following = next_burst(burst, seconds)
    assert 1 <= following <= LONGEST_BURST
    if seconds > BURST_SECONDS:
        assert following <= max(1, burst // 2)
    elif seconds < BURST_SECONDS / 4:
        assert following >= min(burst * 2, LONGEST_BURST)
    else:
        assert following == burst


@pytest.mark.parametrize(
    ("burst", "seconds", "expected"),
    [
        (32, 0, 64),
        (32, 0.00125, 32),
        (32, 0.005, 32),
        (32, 0.0051, 8),
        (1, 9, 1),
        (3, 9, 1),
        (1024, 0, 1024),
        (600, 0, 1024),
    ],
)
def test_the_bounds_between_long_and_short_bursts(
    burst: int, seconds: float, expected: int
) -> None:
    """5 ms is not yet too slow, and a quarter of that is not yet quick."""
    assert next_burst(burst, seconds) == expected


@contextmanager
def counted_steps() -> Iterator[list[trio.lowlevel.Task]]:
    """Record the scheduler steps that begin inside the block, and so the checkpoints in it."""
    steps: list[trio.lowlevel.Task] = []

    class Steps(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            steps.append(task)

    instrument = Steps()
    trio.lowlevel.add_instrument(instrument)
    yield steps
    trio.lowlevel.remove_instrument(instrument)


async def test_a_checkpoint_comes_when_the_burst_is_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before that no checkpoint comes, over any number of portions; after it the next burst is
    whole.
    """
    monkeypatch.setattr(_pump, "monotonic", lambda: 0.0)
    pacer = BurstPacer()
    pacer.start_turn()
    with counted_steps() as steps:
        for _ in range(FIRST_BURST):
            await pacer.checkpoint_if_due()
            pacer.spend(1)
        assert (len(steps), pacer.remaining) == (0, 0)
        await pacer.checkpoint_if_due()
        assert (len(steps), pacer.remaining) == (1, FIRST_BURST * 2)


async def test_a_checkpoint_comes_when_the_burst_has_taken_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slow element does not delay other tasks until the burst is used up."""
    now = 0.0
    monkeypatch.setattr(_pump, "monotonic", lambda: now)
    pacer = BurstPacer()
    pacer.start_turn()
    pacer.spend(1)
    now = BURST_SECONDS * 1.1
    with counted_steps() as steps:
        await pacer.checkpoint_if_due()
    assert (len(steps), pacer.remaining) == (1, FIRST_BURST // 4)


async def test_a_cancelled_task_is_cancelled_before_a_checkpoint_is_due() -> None:
    """A deadline must reach a pump also in the middle of a burst."""
    pacer = BurstPacer()
    pacer.start_turn()
    with trio.CancelScope() as scope:
        scope.cancel()
        await pacer.checkpoint_if_due()
    assert scope.cancelled_caught
