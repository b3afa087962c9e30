"""Scene: a thousand streams are opened, used, and left; then everything is counted."""

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
A thousand streams, each with a generator that holds something open and a task that pulls it.
Then the block is left, and everything is counted again."""
STREAMS = 1_000


class _Census:
    """What lives behind the streams."""

    def __init__(self) -> None:
        self.tasks_before = trio.lowlevel.current_statistics().tasks_living
        self.open_generators = 0
        self.streams: weakref.WeakSet[penstock.Stream[int]] = weakref.WeakSet()
        self.doing = "opening"
        self.watchers = 0
        self.most: dict[str, int] = {}

    async def connection(self) -> AsyncIterator[int]:
        """Something to hold open while it is read."""
        self.open_generators += 1
        try:
            for number in range(1_000_000):
                yield number
        finally:
            await trio.lowlevel.cancel_shielded_checkpoint()  # a goodbye
            self.open_generators -= 1

    @property
    def tasks(self) -> int:
        """Tasks that were not there before, the one that draws left out."""
        return trio.lowlevel.current_statistics().tasks_living - self.tasks_before - self.watchers

    def counts(self) -> str:
        """Everything that is left, in words."""
        return f"{self.tasks} tasks, {self.open_generators} generators, {len(self.streams)} streams"

    def look(self) -> Iterator[Gauge]:
        """The gauges of this moment."""
        yield Gauge("now", self.doing)
        for label, count in (("tasks", self.tasks), ("open generators", self.open_generators), ("streams", len(self.streams))):
            self.most[label] = max(self.most.get(label, 0), count)
            yield Gauge(label, f"{count:,} (at most {self.most[label]:,})", count / STREAMS)


async def play(screen: Screen) -> list[Finding]:
    """Open all, take ten elements of each, leave by the end of the block and once more by an exception."""
    census = _Census()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(screen.watch, census.look)
        census.watchers = 1
        during, took = await _open_and_leave(census)
        gc.collect()
        await trio.sleep(0.5)  # so that a person sees the zeros
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
            "after the block nothing is left of it",
            f"inside: {during}; {took * 1000:,.0f} ms later: {after}",
            shown=_is_nothing(after),
        ),
        Finding("an exception comes out bare, and nothing is left, either", f"{raised}; {left}", shown=_is_nothing(left)),
    ]


async def _open_and_leave(census: _Census, *, fail: bool = False) -> tuple[str, float]:
    """Return what was there inside the block, and how long it took to leave it."""
    async with AsyncExitStack() as stack:
        for _ in range(STREAMS):
            source = penstock.pipe(census.connection, ops.map(lambda number: number + 1))
            await _take_ten(await stack.enter_async_context(penstock.subscribe(source, demand=16)), census)
        during, census.doing = census.counts(), "left"
        await trio.sleep(FRAME_SECONDS * 2)  # so that a person sees them all
        began = perf_counter()
        if fail:
            raise LookupError("from the body")
    return during, perf_counter() - began


async def _take_ten(stream: "penstock.Stream[int]", census: _Census) -> None:
    """Note a stream, without holding it, and read ten elements."""
    census.streams.add(stream)
    for _ in range(10):
        await anext(stream)


def _is_nothing(counts: str) -> bool:
    return counts == "0 tasks, 0 generators, 0 streams"
