"""Idle streams: the memory of one, the memory of a hundred thousand, and the cost of an active stream beside them."""

import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any

import trio

from tests.bench._bulk import by_element
from tests.bench._limits_and_memory import allocated_bytes, raised_limits, resident_bytes
from tests.bench._measure import Opening, Timer
from tests.bench._other_process import other_process

SIZE = 64
TASKS = 100
"""Tasks that open the idle streams. One task alone would take a minute for 100,000. They end before the measurement."""


async def _subscribe_idle(remote: Any, count: int) -> list[Any]:
    """Open `count` streams without demand and return their context managers, entered. The end of the connection closes them."""
    blocks: list[Any] = [None] * count

    async def enter(first: int) -> None:
        for number in range(first, count, TASKS):
            blocks[number] = block = remote.subscribe("elements", demand=0)
            await block.__aenter__()

    async with trio.open_nursery() as nursery:
        for first in range(min(TASKS, count)):
            nursery.start_soon(enter, first)
    return blocks


async def _wait_answered(remote: Any) -> None:
    """Return when the other process has answered every earlier request."""
    async with remote.subscribe("one") as stream:
        async for _ in stream:
            pass


async def _memory_there(remote: Any) -> dict[str, int]:
    """Ask the other process for its memory, in bytes."""
    async with remote.subscribe("memory", serializer="json") as stream:
        async for memory in stream:
            return dict(memory)
    raise AssertionError("the other process did not answer")


def bytes_a_side(count: int) -> tuple[float, float]:
    """Return the bytes that an idle subscription allocates: in this process, its context manager included, and in the serving process."""

    async def main(port: int) -> tuple[float, float]:
        from penstock.runtime import connect

        async with connect(f"tcp://127.0.0.1:{port}", limits=raised_limits()) as remote:
            held = await _subscribe_idle(remote, 100)  # objects that are made once are not counted
            there = (await _memory_there(remote))["allocated"]
            here = allocated_bytes()
            held += await _subscribe_idle(remote, count)
            there = (await _memory_there(remote))["allocated"] - there
            here = allocated_bytes() - here - 8 * count  # the list `held` is part of the measurement
            return here / count, there / count

    with other_process("penstock_traced", SIZE, 1) as other:
        tracemalloc.start()
        try:
            return trio.run(main, other.port)
        finally:
            tracemalloc.stop()


def megabytes_of_both(connections: int, streams: int) -> float:
    """Return the memory of both processes, in 10^6 bytes, with `streams` idle streams on each of `connections` connections."""

    async def main(port: int) -> float:
        from penstock.plugins import build_registry
        from penstock.runtime import connect

        registry, limits = build_registry(), raised_limits()
        held = []
        async with AsyncExitStack() as stack:
            for _ in range(connections):
                remote = await stack.enter_async_context(connect(f"tcp://127.0.0.1:{port}", limits=limits, registry=registry))
                await remote.wait_accepted()
                held.append(await _subscribe_idle(remote, streams))
                await _wait_answered(remote)
            there = await _memory_there(remote)
            return (resident_bytes() + there["resident"]) / 1e6

    raised_limits()
    with other_process("penstock_raised", SIZE, 1) as other:
        return trio.run(main, other.port)


@contextmanager
def beside_idle(idle: int, count: int) -> Iterator[Timer]:
    """A contender that reads one stream beside `idle` idle ones. The connection lasts for all rounds, so trio runs in a thread."""
    ready: SimpleQueue[tuple[trio.lowlevel.TrioToken, Any, trio.Event] | None] = SimpleQueue()

    async def main(port: int) -> None:
        from penstock.runtime import connect

        leave = trio.Event()
        async with connect(f"tcp://127.0.0.1:{port}", limits=raised_limits()) as remote:
            await remote.wait_accepted()
            held = await _subscribe_idle(remote, idle)
            await _wait_answered(remote)
            ready.put((trio.lowlevel.current_trio_token(), remote, leave))
            await leave.wait()
            held.clear()

    def run(port: int) -> None:
        try:
            trio.run(main, port)
        finally:
            ready.put(None)

    with other_process("penstock_raised", SIZE, count) as other:
        thread = threading.Thread(target=run, args=(other.port,))
        thread.start()
        there = ready.get()
        if there is None:
            raise RuntimeError("the connection ended before its streams were open; its error is above")
        token, remote, leave = there
        timer = partial(trio.from_thread.run, by_element, remote, SIZE, count, trio_token=token)
        try:
            timer()
            yield timer
        finally:
            trio.from_thread.run_sync(leave.set, trio_token=token)
            thread.join()


def contenders(counts: tuple[int, ...], elements: int) -> dict[str, Opening]:
    """The same stream beside each number of idle streams."""
    return {f"beside {count:,} idle": partial(beside_idle, count, elements) for count in counts}
