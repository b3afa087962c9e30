"""Idle streams: the memory of one and of 100,000,
and the speed of an active stream beside idle streams on its connection.
"""

import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any

import trio

from campaigns.bench._bulk import time_subscription
from campaigns.bench._measure import Opening, Timer
from campaigns.bench._raised import allocated_bytes, raised_limits, resident_bytes
from campaigns.bench._serving_process import serving_process

SIZE = 64
TASKS = 100
"""Number of tasks that open idle streams. One task checkpoints after each stream and takes a minute
for 100,000. The tasks end before memory is measured.
"""


async def _subscribe_idle(remote: Any, count: int) -> list[Any]:
    """Open `count` streams without demand; return their entered blocks.
    The streams stay open until the connection ends.
    """
    blocks: list[Any] = [None] * count

    async def enter(first: int) -> None:
        for number in range(first, count, TASKS):
            blocks[number] = block = remote.subscribe("elements", demand=0)
            await block.__aenter__()

    async with trio.open_nursery() as nursery:
        for first in range(min(TASKS, count)):
            nursery.start_soon(enter, first)
    return blocks


async def _wait_until_served(remote: Any) -> None:
    """Return when the server process has processed all earlier messages: it processes the
    messages of a connection in order.
    """
    async with remote.subscribe("one") as stream:
        async for _ in stream:
            pass


async def _memory_of_server(remote: Any) -> dict[str, int]:
    """Read the allocated and the resident bytes of the server process."""
    async with remote.subscribe("memory", serializer="json") as stream:
        async for memory in stream:
            return dict(memory)
    raise AssertionError("the server process ended the stream `memory` without an element")


def bytes_per_subscription(count: int) -> tuple[float, float]:
    """Return the bytes that one idle subscription allocates:
    in the client (its block included), and in the server.
    """

    async def main(port: int) -> tuple[float, float]:
        from penstock.runtime import connect

        async with connect(f"tcp://127.0.0.1:{port}", limits=raised_limits()) as remote:
            # allocations that a connection makes once are not counted.
            held = await _subscribe_idle(remote, 100)
            server_before = (await _memory_of_server(remote))["allocated"]
            client_before = allocated_bytes()
            held += await _subscribe_idle(remote, count)
            server_bytes = (await _memory_of_server(remote))["allocated"] - server_before
            # 8 bytes are the block's place in the list `held`.
            client_bytes = allocated_bytes() - client_before - 8 * count
            return client_bytes / count, server_bytes / count

    with serving_process("penstock_traced", SIZE, 1) as server:
        tracemalloc.start()
        try:
            return trio.run(main, server.port)
        finally:
            tracemalloc.stop()


def resident_megabytes(connections: int, streams: int) -> float:
    """Return the resident memory of both processes, in 10^6 bytes, with `streams` idle streams
    on each of `connections` connections.
    """

    async def main(port: int) -> float:
        from penstock.runtime import connect
        from penstock.spi import build_registry

        registry, limits = build_registry(), raised_limits()
        held = []
        async with AsyncExitStack() as stack:
            for _ in range(connections):
                remote = await stack.enter_async_context(
                    connect(f"tcp://127.0.0.1:{port}", limits=limits, registry=registry)
                )
                await remote.wait_accepted()
                held.append(await _subscribe_idle(remote, streams))
                await _wait_until_served(remote)
            in_server = await _memory_of_server(remote)
            return (resident_bytes() + in_server["resident"]) / 1e6

    raised_limits()  # raises the limit on open files before the first connection
    with serving_process("penstock_raised", SIZE, 1) as server:
        return trio.run(main, server.port)


@contextmanager
def beside_idle(idle: int, count: int) -> Iterator[Timer]:
    """Open a contender that reads one stream on a connection with `idle` idle streams.

    Trio runs in a thread, so that the connection and its idle streams stay open between the rounds.
    """
    ready: SimpleQueue[tuple[trio.lowlevel.TrioToken, Any, trio.Event] | None] = SimpleQueue()

    async def main(port: int) -> None:
        from penstock.runtime import connect

        may_close = trio.Event()
        async with connect(f"tcp://127.0.0.1:{port}", limits=raised_limits()) as remote:
            await remote.wait_accepted()
            held = await _subscribe_idle(remote, idle)
            await _wait_until_served(remote)
            ready.put((trio.lowlevel.current_trio_token(), remote, may_close))
            await may_close.wait()
            held.clear()

    def run(port: int) -> None:
        try:
            trio.run(main, port)
        finally:
            ready.put(None)

    with serving_process("penstock_raised", SIZE, count) as server:
        thread = threading.Thread(target=run, args=(server.port,))
        thread.start()
        opened = ready.get()
        if opened is None:
            raise RuntimeError(
                "the connection ended before its idle streams were open; its traceback is printed "
                "above"
            )
        token, remote, may_close = opened
        timer = partial(
            trio.from_thread.run, time_subscription, remote, SIZE, count, trio_token=token
        )
        try:
            timer()
            yield timer
        finally:
            trio.from_thread.run_sync(may_close.set, trio_token=token)
            thread.join()


def idle_contenders(counts: tuple[int, ...], elements: int) -> dict[str, Opening]:
    """Return the same contender for each number of idle streams."""
    return {f"beside {count:,} idle": partial(beside_idle, count, elements) for count in counts}
