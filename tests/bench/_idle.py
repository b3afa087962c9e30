"""Streams that rest: what one costs in memory, what a hundred thousand do, and that those which rest make the others no dearer."""

import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any

import trio

from tests.bench._bulk import by_element
from tests.bench._measure import Opening, Timer
from tests.bench._other_process import other_process
from tests.bench._raised import allocated, raised, resident

SIZE = 64
TASKS = 100
"""Tasks that open idle streams, because one that waits for its turn after each takes a minute for very many. They end before we measure."""


async def _subscribe_idle(remote: Any, count: int) -> list[Any]:
    """Open `count` streams without demand; return their blocks, entered. Whoever forgets them leaves them to the connection's end."""
    blocks: list[Any] = [None] * count

    async def enter(first: int) -> None:
        for number in range(first, count, TASKS):
            blocks[number] = block = remote.subscribe("elements", demand=0)
            await block.__aenter__()

    async with trio.open_nursery() as nursery:
        for first in range(min(TASKS, count)):
            nursery.start_soon(enter, first)
    return blocks


async def _answered(remote: Any) -> None:
    """Return when the other process has done all that was asked of it before."""
    async with remote.subscribe("one") as stream:
        async for _ in stream:
            pass


async def _memory_there(remote: Any) -> dict[str, int]:
    """Ask the other process."""
    async with remote.subscribe("memory", serializer="json") as stream:
        async for memory in stream:
            return dict(memory)
    raise AssertionError("the other process did not answer")


def bytes_a_side(count: int) -> tuple[float, float]:
    """What an idle subscription has allocated: here, where it was opened (its block included), and in the process that serves it."""

    async def main(port: int) -> tuple[float, float]:
        from penstock.runtime import connect

        async with connect(f"tcp://127.0.0.1:{port}", limits=raised()) as remote:
            held = await _subscribe_idle(remote, 100)  # what is made once is not counted
            there = (await _memory_there(remote))["allocated"]
            here = allocated()
            held += await _subscribe_idle(remote, count)
            there = (await _memory_there(remote))["allocated"] - there
            here = allocated() - here - 8 * count  # the list of blocks is the measurement's own
            return here / count, there / count

    with other_process("penstock_traced", SIZE, 1) as other:
        tracemalloc.start()
        try:
            return trio.run(main, other.port)
        finally:
            tracemalloc.stop()


def megabytes_of_both(connections: int, streams: int) -> float:
    """What both processes hold, all in all, with so many idle streams on each of so many connections; in the unit of 10^6 bytes."""

    async def main(port: int) -> float:
        from penstock.plugins import build_registry
        from penstock.runtime import connect

        registry, limits = build_registry(), raised()
        held = []
        async with AsyncExitStack() as stack:
            for _ in range(connections):
                remote = await stack.enter_async_context(connect(f"tcp://127.0.0.1:{port}", limits=limits, registry=registry))
                await remote.wait_accepted()
                held.append(await _subscribe_idle(remote, streams))
                await _answered(remote)
            there = await _memory_there(remote)
            return (resident() + there["resident"]) / 1e6

    raised()
    with other_process("penstock_raised", SIZE, 1) as other:
        return trio.run(main, other.port)


@contextmanager
def beside_idle(idle: int, count: int) -> Iterator[Timer]:
    """A contender that reads one stream on a connection on which `idle` others rest. It stays connected: trio runs in a thread."""
    ready: SimpleQueue[tuple[trio.lowlevel.TrioToken, Any, trio.Event] | None] = SimpleQueue()

    async def main(port: int) -> None:
        from penstock.runtime import connect

        leave = trio.Event()
        async with connect(f"tcp://127.0.0.1:{port}", limits=raised()) as remote:
            await remote.wait_accepted()
            held = await _subscribe_idle(remote, idle)
            await _answered(remote)
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
            raise RuntimeError("the connection ended before its streams were open; what it said is above")
        token, remote, leave = there
        timer = partial(trio.from_thread.run, by_element, remote, SIZE, count, trio_token=token)
        try:
            timer()
            yield timer
        finally:
            trio.from_thread.run_sync(leave.set, trio_token=token)
            thread.join()


def everybody(counts: tuple[int, ...], elements: int) -> dict[str, Opening]:
    """The same stream, beside ever more that rest."""
    return {f"beside {count:,} idle": partial(beside_idle, count, elements) for count in counts}
