"""`WorkerThreads`: virtual time and `settle` wait for threads that work for a task,
and only for those.
"""

import queue
import threading

import trio

from penstock.testing import WorkerThreads, run_virtual, settle


def _work() -> str:
    threading.Event().wait(0.02)
    return "worked"


def test_settle_waits_for_a_thread() -> None:
    """The result of the thread is there when `settle` returns, and no virtual time has passed."""

    async def run() -> tuple[list[str], float]:
        seen: list[str] = []

        async def task() -> None:
            seen.append(await trio.to_thread.run_sync(_work))
            seen.append(await trio.to_thread.run_sync(_work))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
            began = trio.current_time()
            await settle()
            return seen, trio.current_time() - began

    threads = WorkerThreads()
    assert run_virtual(run, threads=threads) == (["worked"] * 2, 0.0)
    assert threads.seen


def test_virtual_time_does_not_overtake_a_thread() -> None:
    """A time limit of five virtual seconds does not end a thread that needs 0.02 real ones,
    although the other task sleeps for a minute.
    """

    async def run() -> list[bool]:
        too_late: list[bool] = []

        async def task() -> None:
            await trio.sleep(1)
            with trio.move_on_after(5) as scope:
                await trio.to_thread.run_sync(_work)
            too_late.append(scope.cancelled_caught)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
            await trio.sleep(60)
        return too_late

    assert run_virtual(run, threads=WorkerThreads()) == [False]


def test_a_thread_that_does_not_come_back_counts_as_idle() -> None:
    """It waits in a queue: after `seconds` of real time, `settle` returns and the clock jumps."""

    async def run() -> float:
        wanted: queue.SimpleQueue[int] = queue.SimpleQueue()  # bounded: one entry
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, wanted.get)
            await settle()
            began = trio.current_time()
            await trio.sleep(60)
            wanted.put(1)
        return trio.current_time() - began

    assert run_virtual(run, threads=WorkerThreads(seconds=0.01)) == 60.0


def test_a_thread_that_has_called_back_does_not_work() -> None:
    """While the task runs what the thread has called, and waits in it, all is settled
    and the clock jumps.
    """

    async def run() -> float:
        go_on = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, lambda: trio.from_thread.run(go_on.wait))
            await settle()
            began = trio.current_time()
            await trio.sleep(60)
            go_on.set()
        return trio.current_time() - began

    assert run_virtual(run, threads=WorkerThreads()) == 60.0


def test_settle_waits_until_own_threads_are_idle() -> None:
    """`until_idle` returns when threads that no task waits for have nothing more to do."""
    done = threading.Event()

    async def until_idle() -> None:
        await trio.to_thread.run_sync(done.wait)

    async def run() -> bool:
        threading.Thread(target=lambda: (_work(), done.set())).start()
        await settle()
        return done.is_set()

    assert run_virtual(run, threads=WorkerThreads(until_idle=until_idle))


def test_quiet_seconds_pass_in_real_time() -> None:
    """Without `until_idle`, nothing must happen for `quiet` real seconds:
    a call of a thread within them is seen.
    """

    async def run() -> list[str]:
        seen: list[str] = []
        token = trio.lowlevel.current_trio_token()
        threading.Thread(target=lambda: token.run_sync_soon(seen.append, "called")).start()
        await settle()
        return seen

    assert run_virtual(run, threads=WorkerThreads(quiet=1.0)) == ["called"]
