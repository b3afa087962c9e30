"""The timer of a stage: one moment that can be moved, one task that waits for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf

import pytest
import trio
import trio.testing

from penstock.api import PublisherStopped, UsageError
from penstock.core import Scope
from penstock.operators._timer import Timer


class Bell:
    """Whom a timer rings: the times at which it did, and what it failed with."""

    def __init__(self, scope: Scope) -> None:
        self.start = trio.current_time()
        self.rung: list[float] = []
        self.errors: list[BaseException] = []
        self.timer = Timer(scope, "the test", ring=self.ring, fail=self.errors.append)

    def ring(self) -> None:
        self.rung.append(trio.current_time() - self.start)


@asynccontextmanager
async def a_scope() -> AsyncIterator[Scope]:
    async with trio.open_nursery() as nursery:
        yield Scope(nursery)


async def test_it_rings_once_at_the_moment_that_was_set(autojump_clock: trio.testing.MockClock) -> None:
    """Set for 3 seconds it rings after 3, and then not again."""
    async with a_scope() as scope:
        bell = Bell(scope)
        assert bell.timer.set(3) == bell.start + 3
        await trio.sleep(10)
        assert bell.rung == [3]
        bell.timer.stop()


async def test_no_task_runs_before_it_is_set_and_one_alone_however_often_it_is(autojump_clock: trio.testing.MockClock) -> None:
    """A timer that is never set costs no task; set, moved, rung and set again it costs one."""
    async with a_scope() as scope:
        bell = Bell(scope)
        assert scope.running == 0
        for seconds in (5, 1, 4, 2):
            bell.timer.set(seconds)
        await trio.sleep(3)
        bell.timer.set(2)
        assert scope.running == 1
        await trio.sleep(3)
        assert bell.rung == [2, 5]
        bell.timer.stop()


async def test_the_moment_can_be_moved_further_away_while_it_waits(autojump_clock: trio.testing.MockClock) -> None:
    """Moved again and again it rings only when it was left alone for as long as was set last."""
    async with a_scope() as scope:
        bell = Bell(scope)
        for _ in range(5):
            bell.timer.set(2)
            await trio.sleep(1)
        await trio.sleep(10)
        assert bell.rung == [6]
        bell.timer.stop()


async def test_the_moment_can_be_moved_nearer_while_it_waits(autojump_clock: trio.testing.MockClock) -> None:
    """A task that sleeps for a long time already is woken in time for a moment that came nearer."""
    async with a_scope() as scope:
        bell = Bell(scope)
        bell.timer.set(100)
        await trio.sleep(1)
        bell.timer.set(2)
        await trio.sleep(10)
        assert bell.rung == [3]
        bell.timer.stop()


async def test_unset_it_does_not_ring_until_it_is_set_again(autojump_clock: trio.testing.MockClock) -> None:
    """What was taken back before its moment never rings, and the next moment does."""
    async with a_scope() as scope:
        bell = Bell(scope)
        bell.timer.set(2)
        await trio.sleep(1)
        bell.timer.unset()
        await trio.sleep(10)
        assert bell.rung == []
        bell.timer.set(2)
        await trio.sleep(10)
        assert bell.rung == [13]
        bell.timer.stop()


async def test_what_is_set_while_the_task_is_on_its_way_from_sleep_counts(mock_clock: trio.testing.MockClock) -> None:
    """The moment has come and the task is to run next, when somebody moves it: it does not ring."""
    async with a_scope() as scope:
        bell = Bell(scope)
        bell.timer.set(2)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(2)
        bell.timer.set(5)
        await trio.testing.wait_all_tasks_blocked()
        assert bell.rung == []
        mock_clock.jump(5)
        await trio.testing.wait_all_tasks_blocked()
        assert bell.rung == [7]
        bell.timer.stop()


async def test_it_can_be_set_from_inside_its_own_ring(autojump_clock: trio.testing.MockClock) -> None:
    """A ring that sets it anew makes it ring again, by the same task."""
    async with a_scope() as scope:
        bell = Bell(scope)

        def ring() -> None:
            bell.ring()
            if len(bell.rung) < 3:
                bell.timer.set(2)

        bell.timer._ring = ring
        bell.timer.set(2)
        await trio.sleep(20)
        assert bell.rung == [2, 4, 6]
        assert scope.running == 1
        bell.timer.stop()


@pytest.mark.parametrize("when", ["before it was set", "while it waits", "at the moment itself", "after it rang"])
async def test_stopped_it_leaves_no_task_and_says_nothing(when: str, mock_clock: trio.testing.MockClock) -> None:
    """Whenever it is stopped: no task, no ring, no failure, and the stage is forgotten."""
    async with a_scope() as scope:
        bell = Bell(scope)
        if when != "before it was set":
            bell.timer.set(2)
            await trio.testing.wait_all_tasks_blocked()
        if when == "at the moment itself":
            mock_clock.jump(2)
        if when == "after it rang":
            mock_clock.jump(2)
            await trio.testing.wait_all_tasks_blocked()
        bell.timer.stop()
        await trio.testing.wait_all_tasks_blocked()
        assert scope.running == 0
        assert bell.rung == ([2] if when == "after it rang" else [])
        assert bell.errors == []
        assert bell.timer._ring is bell.timer._fail is None


async def test_stopped_from_inside_its_ring_it_ends(autojump_clock: trio.testing.MockClock) -> None:
    """A ring that ends the stream ends the task too."""
    async with a_scope() as scope:
        bell = Bell(scope)
        bell.timer._ring = bell.timer.stop
        bell.timer.set(2)
        await trio.sleep(5)
        assert scope.running == 0
        assert bell.errors == []


async def test_cancelled_from_outside_it_fails_the_stage(autojump_clock: trio.testing.MockClock) -> None:
    """A stage whose timer task was cancelled with the nursery is told so: it must not wait for a moment that never comes."""
    async with trio.open_nursery() as nursery:
        bell = Bell(Scope(nursery))
        bell.timer.set(2)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert bell.rung == []
    (error,) = bell.errors
    assert isinstance(error, PublisherStopped)
    assert "the test was stopped" in str(error)


async def test_in_a_nursery_that_has_closed_it_fails_the_stage() -> None:
    """Where no task can be begun any more, the stage is told at once, and nothing is raised."""
    async with trio.open_nursery() as nursery:
        scope = Scope(nursery)
    bell = Bell(scope)
    bell.timer.set(2)
    (error,) = bell.errors
    assert isinstance(error, UsageError)
    assert "has closed" in str(error)


async def test_a_moment_that_is_moved_away_leaves_the_sleep_alone(autojump_clock: trio.testing.MockClock) -> None:
    """Moving away is a note and nothing else, so that it may be done for each element: the task's own deadline stays."""
    async with a_scope() as scope:
        bell = Bell(scope)
        bell.timer.set(2)
        await trio.sleep(1)
        sleep = bell.timer._sleep
        assert sleep is not None
        bell.timer.set(5)
        bell.timer.unset()
        assert bell.timer._sleep is sleep
        assert sleep.deadline == bell.start + 2
        await trio.sleep(5)
        assert bell.timer._sleep is not None
        assert bell.timer._sleep.deadline == inf
        bell.timer.stop()
