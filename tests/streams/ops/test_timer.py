"""`Timer`: one deadline that can be moved, and one task that sleeps until it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf

import pytest
import trio
import trio.testing

from penstock.api import PublisherStopped, UsageError
from penstock.core import Scope
from penstock.streams.ops._timer import Timer


class TimedOwner:
    """Owns a timer. Records the times of its callbacks, relative to the start,
    and the errors that it reported.
    """

    def __init__(self, scope: Scope) -> None:
        self.start = trio.current_time()
        self.calls: list[float] = []
        self.errors: list[BaseException] = []
        self.timer = Timer(scope, "the test", on_deadline=self.on_deadline, fail=self.errors.append)

    def on_deadline(self) -> None:
        self.calls.append(trio.current_time() - self.start)


@asynccontextmanager
async def a_scope() -> AsyncIterator[Scope]:
    async with trio.open_nursery() as nursery:
        yield Scope(nursery)


async def test_the_callback_runs_once_at_the_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A timer set to 3 seconds calls back after 3 seconds, and never again."""
    async with a_scope() as scope:
        owner = TimedOwner(scope)
        assert owner.timer.set(3) == owner.start + 3
        await trio.sleep(10)
        assert owner.calls == [3]
        owner.timer.stop()


async def test_a_timer_starts_one_task_at_its_first_set(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A timer that was never set has no task.
    Moving it, and setting it again after a callback, start no second task.
    """
    async with a_scope() as scope:
        owner = TimedOwner(scope)
        assert scope.running == 0
        for seconds in (5, 1, 4, 2):
            owner.timer.set(seconds)
        await trio.sleep(3)
        owner.timer.set(2)
        assert scope.running == 1
        await trio.sleep(3)
        assert owner.calls == [2, 5]
        owner.timer.stop()


async def test_the_deadline_can_be_moved_later_while_the_task_sleeps(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Each `set` replaces the deadline, so the callback runs 2 seconds after the last of five."""
    async with a_scope() as scope:
        owner = TimedOwner(scope)
        for _ in range(5):
            owner.timer.set(2)
            await trio.sleep(1)
        await trio.sleep(10)
        assert owner.calls == [6]
        owner.timer.stop()


async def test_the_deadline_can_be_moved_earlier_while_the_task_sleeps(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A task that sleeps until 100 s wakes at 3 s when the deadline moves there."""
    async with a_scope() as scope:
        owner = TimedOwner(scope)
        owner.timer.set(100)
        await trio.sleep(1)
        owner.timer.set(2)
        await trio.sleep(10)
        assert owner.calls == [3]
        owner.timer.stop()


async def test_clear_prevents_the_callback_until_the_next_set(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A cleared deadline never calls back; a deadline set afterwards does."""
    async with a_scope() as scope:
        owner = TimedOwner(scope)
        owner.timer.set(2)
        await trio.sleep(1)
        owner.timer.clear()
        await trio.sleep(10)
        assert owner.calls == []
        owner.timer.set(2)
        await trio.sleep(10)
        assert owner.calls == [13]
        owner.timer.stop()


async def test_a_set_between_wake_up_and_callback_counts(
    mock_clock: trio.testing.MockClock,
) -> None:
    """If the deadline moves after the sleep has ended and before the task runs,
    the old deadline does not call back.
    """
    async with a_scope() as scope:
        owner = TimedOwner(scope)
        owner.timer.set(2)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(2)
        owner.timer.set(5)
        await trio.testing.wait_all_tasks_blocked()
        assert owner.calls == []
        mock_clock.jump(5)
        await trio.testing.wait_all_tasks_blocked()
        assert owner.calls == [7]
        owner.timer.stop()


async def test_the_callback_may_set_the_timer_again(autojump_clock: trio.testing.MockClock) -> None:
    """A callback that calls `set` is called again, by the same task."""
    async with a_scope() as scope:
        owner = TimedOwner(scope)

        def on_deadline() -> None:
            owner.on_deadline()
            if len(owner.calls) < 3:
                owner.timer.set(2)

        owner.timer._on_deadline = on_deadline
        owner.timer.set(2)
        await trio.sleep(20)
        assert owner.calls == [2, 4, 6]
        assert scope.running == 1
        owner.timer.stop()


@pytest.mark.parametrize(
    "when", ["before set", "while the task sleeps", "at the deadline", "after the callback"]
)
async def test_stop_ends_the_task_without_a_callback(
    when: str, mock_clock: trio.testing.MockClock
) -> None:
    """`stop` ends the task, prevents callback and error, and drops the references to the owner."""
    async with a_scope() as scope:
        owner = TimedOwner(scope)
        if when != "before set":
            owner.timer.set(2)
            await trio.testing.wait_all_tasks_blocked()
        if when == "at the deadline":
            mock_clock.jump(2)
        if when == "after the callback":
            mock_clock.jump(2)
            await trio.testing.wait_all_tasks_blocked()
        owner.timer.stop()
        await trio.testing.wait_all_tasks_blocked()
        assert scope.running == 0
        assert owner.calls == ([2] if when == "after the callback" else [])
        assert owner.errors == []
        assert owner.timer._on_deadline is owner.timer._fail is None


async def test_stop_inside_the_callback_ends_the_task(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A callback that stops the timer ends its task."""
    async with a_scope() as scope:
        owner = TimedOwner(scope)
        owner.timer._on_deadline = owner.timer.stop
        owner.timer.set(2)
        await trio.sleep(5)
        assert scope.running == 0
        assert owner.errors == []


async def test_a_cancelled_nursery_fails_the_owner(autojump_clock: trio.testing.MockClock) -> None:
    """If the timer task is cancelled with its nursery, the owner gets PublisherStopped
    and does not hang.
    """
    async with trio.open_nursery() as nursery:
        owner = TimedOwner(Scope(nursery))
        owner.timer.set(2)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert owner.calls == []
    (error,) = owner.errors
    assert isinstance(error, PublisherStopped)
    assert "the test was stopped" in str(error)


async def test_a_closed_nursery_fails_the_owner() -> None:
    """If no task can be started, `set` reports UsageError to the owner and raises nothing."""
    async with trio.open_nursery() as nursery:
        scope = Scope(nursery)
    owner = TimedOwner(scope)
    owner.timer.set(2)
    (error,) = owner.errors
    assert isinstance(error, UsageError)
    assert "has closed" in str(error)


async def test_moving_the_deadline_later_leaves_the_sleep_scope_alone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Moving later only stores a number, because stages do it for each element.
    The sleep scope keeps its own deadline.
    """
    async with a_scope() as scope:
        owner = TimedOwner(scope)
        owner.timer.set(2)
        await trio.sleep(1)
        sleep = owner.timer._sleep_scope
        assert sleep is not None
        owner.timer.set(5)
        owner.timer.clear()
        assert owner.timer._sleep_scope is sleep
        assert sleep.deadline == owner.start + 2
        await trio.sleep(5)
        assert owner.timer._sleep_scope is not None
        assert owner.timer._sleep_scope.deadline == inf
        owner.timer.stop()
