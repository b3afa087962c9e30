"""The thread with a loop of asyncio, and the calls from trio into it."""

import asyncio
import errno

import pytest
import trio
from penstock_kafka import KafkaGroup, KafkaLog
from penstock_kafka._asyncio_thread import AsyncioThread
from trio.testing import wait_all_tasks_blocked

from penstock.api import LogError, UsageError


async def test_a_call_that_runs_when_the_thread_ends_is_told(nursery: trio.Nursery) -> None:
    """The task that waits for it gets an error that says what to do, and no cancellation."""
    thread, told = AsyncioThread(), list[UsageError]()
    thread.start()

    async def sleep() -> None:
        with pytest.raises(UsageError, match="was closed while a task used it") as failed:
            await thread.call(asyncio.sleep, 1_000)
        told.append(failed.value)

    nursery.start_soon(sleep)
    await wait_all_tasks_blocked()
    assert await thread.call(asyncio.sleep, 0, "answer") == "answer"
    await thread.aclose()
    await wait_all_tasks_blocked()
    assert told


async def test_a_program_without_files_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log and a member of a group: it was an error of asyncio, and one of an attribute."""

    def fail() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio, "new_event_loop", fail)
    for opened in (
        KafkaLog("127.0.0.1:1", "orders"),
        KafkaGroup("127.0.0.1:1", "orders", group="g"),
    ):
        with pytest.raises(LogError, match="Raise the limit on open files of this program"):
            async with opened:
                raise AssertionError


async def test_a_call_that_is_cancelled_in_trio_ends_in_the_loop() -> None:
    """And the thread goes on."""
    thread = AsyncioThread()
    thread.start()
    ended = trio.Event()

    async def wait() -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            thread.tell(ended.set)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(thread.call, wait)
        await wait_all_tasks_blocked()
        assert await thread.call(asyncio.sleep, 0, "answer") == "answer"
        nursery.cancel_scope.cancel()
    await ended.wait()
    await thread.aclose()
