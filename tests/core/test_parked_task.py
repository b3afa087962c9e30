"""One task parks until another call wakes it."""

from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor

import pytest
import trio
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from penstock.core import WOKEN, ParkedTask


async def test_wake_lets_the_parked_task_go_on(nursery: trio.Nursery) -> None:
    """It can be parked again afterwards."""
    parked, woken = ParkedTask(), []

    async def run() -> None:
        for number in range(3):
            await parked.park()
            woken.append(number)

    nursery.start_soon(run)
    for number in range(3):
        await wait_all_tasks_blocked()
        assert parked.task is not None
        parked.wake()
        assert parked.task is None
        await wait_all_tasks_blocked()
        assert woken == list(range(number + 1))


async def test_wake_without_a_parked_task_does_nothing(nursery: trio.Nursery) -> None:
    """Nothing is remembered: a task that parks later waits."""
    parked = ParkedTask()
    parked.wake()
    nursery.start_soon(parked.park)
    await wait_all_tasks_blocked()
    assert parked.task is not None
    parked.wake()
    parked.wake()


async def test_parking_checkpoints(nursery: trio.Nursery) -> None:
    """Other tasks run, and a cancellation is raised."""
    parked = ParkedTask()

    async def wake() -> None:
        parked.wake()

    nursery.start_soon(wake)
    with assert_checkpoints():
        await parked.park()


async def test_a_cancelled_task_is_no_longer_parked() -> None:
    """A later wake must not reschedule a task that waits somewhere else."""
    parked = ParkedTask()
    with trio.CancelScope() as scope:
        scope.cancel()
        await parked.park()
    assert scope.cancelled_caught
    assert parked.task is None
    parked.wake()
    await trio.lowlevel.checkpoint()


async def test_a_wake_from_a_foreign_thread_raises_and_changes_nothing(
    nursery: trio.Nursery,
) -> None:
    """The task can still be woken from its own thread."""
    parked = ParkedTask()
    nursery.start_soon(parked.park)
    await wait_all_tasks_blocked()
    # Not a thread of trio's pool, which may know a run.
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError):
        pool.submit(parked.wake).result()
    assert parked.task is not None
    parked.wake()


async def test_woken_wakes_any_number_of_tasks_any_number_of_times() -> None:
    """Trio refuses to use an outcome twice."""
    parked: list[trio.lowlevel.Task] = []

    async def wait() -> None:
        for _ in range(3):
            parked.append(trio.lowlevel.current_task())
            assert (
                await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
                is None
            )

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(wait)
        for _ in range(3):
            await wait_all_tasks_blocked()
            tasks = parked[:]
            parked.clear()
            assert len(tasks) == 4
            for task in tasks:
                trio.lowlevel.reschedule(task, WOKEN)


async def test_woken_is_an_outcome_of_none() -> None:
    """Each method of an outcome treats it as the value None."""

    def generator() -> Generator[int, None, None]:
        assert (yield 1) is None
        yield 2

    async def asynchronous() -> AsyncGenerator[int, None]:
        assert (yield 1) is None
        yield 2

    running, later = generator(), asynchronous()
    assert [next(running), WOKEN.send(running)] == [1, 2]
    assert [await anext(later), await WOKEN.asend(later)] == [1, 2]
    assert WOKEN.unwrap() is None
    await later.aclose()
