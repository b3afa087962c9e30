"""Scene: open, use and leave 1,000 streams;
then count the tasks, generators and streams that are left.
"""

import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from time import perf_counter

import trio

import penstock
from demo_parts.screen import FRAME_SECONDS, Finding, Gauge, Screen
from penstock import ops

TITLE = "Leaving a block"
STORY = """\
A thousand streams, each with a generator that holds a connection open and a task that pulls it.
Then the block is left, and tasks, generators and streams are counted again."""
STREAMS = 1_000


class _Census:
    """Counts the tasks, generators and streams that are alive."""

    def __init__(self) -> None:
        self.tasks_before = trio.lowlevel.current_statistics().tasks_living
        self.open_generators = 0
        self.streams: weakref.WeakSet[penstock.Stream[int]] = weakref.WeakSet()
        self.doing = "opening"
        self.watchers = 0
        self.most: dict[str, int] = {}

    async def connection(self) -> AsyncIterator[int]:
        """Numbers, with a connection that is open while they are read."""
        self.open_generators += 1
        try:
            for number in range(1_000_000):
                yield number
        finally:
            await trio.lowlevel.cancel_shielded_checkpoint()  # the cleanup of a connection awaits
            self.open_generators -= 1

    @property
    def tasks(self) -> int:
        """How many tasks are alive beyond those at the start and the one that draws."""
        return trio.lowlevel.current_statistics().tasks_living - self.tasks_before - self.watchers

    def counts(self) -> str:
        """Return the counts as text."""
        return f"{self.tasks} tasks, {self.open_generators} generators, {len(self.streams)} streams"

    def look(self) -> Iterator[Gauge]:
        """Yield the gauges for the state now."""
        yield Gauge("now", self.doing)
        for label, count in (
            ("tasks", self.tasks),
            ("open generators", self.open_generators),
            ("streams", len(self.streams)),
        ):
            self.most[label] = max(self.most.get(label, 0), count)
            yield Gauge(label, f"{count:,} (at most {self.most[label]:,})", count / STREAMS)


async def play(screen: Screen) -> list[Finding]:
    """Open all streams, take ten elements of each, and leave:
    once at the end of the block, once by an exception.
    """
    census = _Census()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(screen.watch, census.look)
        census.watchers = 1
        during, took = await _open_and_leave(census)
        gc.collect()
        await trio.sleep(0.5)  # so that the zeros can be read
        nursery.cancel_scope.cancel()
    census.watchers = 0
    after = census.counts()
    raised = "nothing"
    try:
        await _open_and_leave(census, fail=True)
    except LookupError as error:
        raised = repr(error)
    gc.collect()
    left = census.counts()
    return [
        Finding(
            "nothing is left after the block",
            f"inside: {during}; {took * 1000:,.0f} ms later: {after}",
            shown=_is_nothing(after),
        ),
        Finding(
            "an exception leaves the block unwrapped, and nothing is left",
            f"{raised}; {left}",
            shown=_is_nothing(left),
        ),
    ]


async def _open_and_leave(census: _Census, *, fail: bool = False) -> tuple[str, float]:
    """Return the counts inside the block, and how long it took to leave it."""
    async with AsyncExitStack() as stack:
        for _ in range(STREAMS):
            source = penstock.pipe(census.connection, ops.map(lambda number: number + 1))
            await _take_ten(
                await stack.enter_async_context(penstock.subscribe(source, demand=16)), census
            )
        during, census.doing = census.counts(), "left"
        await trio.sleep(FRAME_SECONDS * 2)  # so that the screen draws all of them once
        began = perf_counter()
        if fail:
            raise LookupError("from the body")
    return during, perf_counter() - began


async def _take_ten(stream: "penstock.Stream[int]", census: _Census) -> None:
    """Read ten elements; keep only a weak reference to the stream."""
    census.streams.add(stream)
    for _ in range(10):
        await anext(stream)


def _is_nothing(counts: str) -> bool:
    return counts == "0 tasks, 0 generators, 0 streams"
