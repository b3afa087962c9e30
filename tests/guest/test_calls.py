"""The calls that cross between the loops: results, failures, cancellations, context variables."""

import asyncio
import threading
from contextvars import ContextVar

import pytest
import sniffio
import trio

from penstock import aio
from penstock.api import CleanupTimeout, PublisherFailed, UsageError
from penstock.guest import _guest_run
from tests.aio._run import run
from tests.guest._served import reached, shorten_cleanup

VARIABLE: ContextVar[str] = ContextVar("variable")


def test_results_failures_and_context_cross() -> None:
    """From asyncio to trio and back, each call in a task of its loop."""

    async def in_a_task_of_asyncio(waits: bool, fails: bool) -> str:
        task = asyncio.current_task()
        assert sniffio.current_async_library() == "asyncio"
        assert task is not None
        if waits:
            await asyncio.sleep(0)
        assert not trio.lowlevel.in_trio_task()
        assert asyncio.current_task() is task
        if fails:
            raise ValueError("in asyncio")
        return VARIABLE.get()

    async def in_a_task_of_trio(waits: bool, fails: bool) -> str:
        assert trio.lowlevel.in_trio_task()
        assert sniffio.current_async_library() == "trio"
        try:
            with trio.fail_after(100):
                return await aio.in_asyncio(in_a_task_of_asyncio, waits, fails)
        finally:
            assert sniffio.current_async_library() == "trio"

    async def main() -> None:
        VARIABLE.set("given")
        for waits in (False, True):
            assert await aio.in_trio(in_a_task_of_trio, waits, False) == "given"
            with pytest.raises(ValueError, match="in asyncio"):
                await aio.in_trio(in_a_task_of_trio, waits, True)

    run(main())


@pytest.mark.parametrize("waits_first", [False, True])
def test_a_cancellation_crosses_to_the_other_loop_and_back(waits_first: bool) -> None:
    """A task of asyncio waits for one of trio, which waits for one of asyncio: the cancel of the
    first reaches the last, and each has ended before the one that waits for it.
    """
    ended: list[str] = []

    async def last() -> None:
        try:
            if waits_first:
                await asyncio.sleep(0)
            ended.append("begun")
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("asyncio")

    async def middle() -> None:
        try:
            await aio.in_asyncio(last)
        finally:
            ended.append("trio")

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as timeout:
                task = asyncio.current_task()
                assert task is not None

                async def expire() -> None:
                    await reached(lambda: ended)
                    timeout.reschedule(0)

                async with asyncio.TaskGroup() as group:
                    group.create_task(expire())
                    await aio.in_trio(middle)

    run(main())
    assert ended == ["begun", "asyncio", "trio"]


def test_a_cancel_before_the_first_step_of_a_task() -> None:
    """Its first step was made in trio, so the function itself is cancelled."""
    ended: list[str] = []

    async def function() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    async def main() -> None:
        async def call() -> None:
            await aio.in_asyncio(function)

        with pytest.raises(PublisherFailed, match="no one had cancelled it"):
            await aio.in_trio(call)

    run(main())
    assert ended == ["ended"]


def test_a_function_that_cancels_itself_and_returns() -> None:
    """Its value counts: it has ended before the cancellation could reach it."""

    async def function() -> int:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return 5

    async def main() -> None:
        assert await aio.in_trio(aio.in_asyncio, function) == 5

    run(main())


def test_a_failure_of_a_call_that_was_cancelled_is_not_logged() -> None:
    """The caller has left; asyncio would log an exception that was never retrieved."""

    async def fails() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("in the cleanup")

    async def main() -> None:
        task = asyncio.create_task(aio.in_trio(fails))
        await reached(trio.lowlevel.in_trio_run)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


def test_a_task_that_does_not_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller gets CleanupTimeout after the time for cleanup."""
    shorten_cleanup(monkeypatch, 0.01)
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async def call() -> None:
        with trio.move_on_after(0):
            await aio.in_asyncio(stubborn)

    async def main() -> None:
        with pytest.raises(CleanupTimeout, match="stubborn was cancelled"):
            await aio.in_trio(call)
        release.set()
        await reached(lambda: len(asyncio.all_tasks()) == 1)

    run(main())


def test_a_call_of_the_other_loop_is_explained() -> None:
    """An async function of trio, awaited by a function of asyncio."""

    async def mistaken() -> None:
        await trio.sleep(1)

    async def main() -> None:
        with pytest.raises(RuntimeError) as caught:
            await aio.in_trio(aio.in_asyncio, mistaken)
        assert "penstock.aio.in_trio" in "".join(caught.value.__notes__)

    run(main())


def test_the_guest_run_ends_with_its_last_user() -> None:
    """One after the other, and inside of each other; no thread is started, nothing is left."""
    threads = threading.active_count()

    async def deep(depth: int) -> int:
        assert threading.active_count() == threads
        if depth:
            return await aio.in_asyncio(aio.in_trio, deep, depth - 1)
        await trio.sleep(0.001)
        return threading.active_count()

    async def main() -> None:
        for _ in range(3):
            assert await aio.in_trio(deep, 3) == threads
            assert not trio.lowlevel.in_trio_run()
            assert not _guest_run._RUNS
        assert await asyncio.gather(*(aio.in_trio(deep, 1) for _ in range(5))) == [threads] * 5

    run(main())


def test_another_run_of_trio_in_the_thread_is_refused() -> None:
    """A loop of asyncio inside of trio.run(): the error says so."""

    async def main() -> None:
        with pytest.raises(UsageError, match="has a run of trio already"):
            await aio.in_trio(trio.sleep, 0)

    async def in_trio() -> None:
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(main())
        finally:
            loop.close()

    trio.run(in_trio)


def test_an_interrupt_of_trio_ends_the_loop() -> None:
    """It belongs to the program: a task that waits for trio gets an error. The loop raises it."""

    async def interrupts() -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        await aio.in_trio(interrupts)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert not _guest_run._RUNS
