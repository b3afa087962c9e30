"""Scene: the cost of an element, compared with a bare loop and with a memory channel."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from statistics import median
from time import process_time

import trio

import penstock
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "The price of an element"
STORY = (
    "The same generator, read in four ways, in turn. `nox -s bench` measures the same in more "
    "rounds."
)
ROUNDS = 7
MANY, FEW = 40_000, 2_000


async def _numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


async def _bare(count: int) -> None:
    async for _ in _numbers(count):
        pass


async def _by_batch(count: int) -> None:
    async with penstock.subscribe(penstock.generate(_numbers, count), demand=1024) as stream:
        async for batch in stream.batches():
            for _ in batch:
                pass


async def _by_element(count: int) -> None:
    async with penstock.subscribe(penstock.generate(_numbers, count), demand=1024) as stream:
        async for _ in stream:
            pass


async def _channel(count: int) -> None:
    send, receive = trio.open_memory_channel[int](0)

    async def produce() -> None:
        async with send:
            async for number in _numbers(count):
                await send.send(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce)
        async for _ in receive:
            pass


WAYS: dict[str, tuple[Callable[[int], Awaitable[None]], int]] = {
    "bare async for": (_bare, MANY),
    "batches()": (_by_batch, MANY),
    "async for": (_by_element, MANY),
    "memory channel": (_channel, FEW),
}


async def play(screen: Screen) -> list[Finding]:
    """Measure each way once a round, so that all of them share the noise of the machine;
    judge the medians.

    The time is that of the processor: other programs do not change it.
    """
    costs: dict[str, list[float]] = {way: [] for way in WAYS}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(screen.watch, lambda: _look(costs))
        for _ in range(ROUNDS):
            for way, (run, count) in WAYS.items():
                began = process_time()
                await run(count)
                costs[way].append((process_time() - began) / count * 1e9)
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    bare, batches, element, channel = (median(costs[way]) for way in WAYS)
    return [
        _beside_the_bare_loop("batches() costs at most 16 bare loops", batches, bare),
        _beside_the_bare_loop("`async for` over a stream does too", element, bare),
        Finding(
            "both cost far less than a memory channel",
            f"a channel takes {channel:,.0f} ns an element: {channel / element:.0f} times the cost",
            shown=channel > 4 * element,
        ),
    ]


def _beside_the_bare_loop(claim: str, cost: float, bare: float) -> Finding:
    seen = f"{cost:,.0f} ns an element, {cost / bare:.1f} times the {bare:,.0f} of a bare loop"
    return Finding(claim, seen, shown=cost < 16 * bare)


def _look(costs: dict[str, list[float]]) -> Iterator[Gauge]:
    known = {way: median(seen) for way, seen in costs.items() if seen}
    longest = max(known.values(), default=1.0)
    for way, cost in known.items():
        yield Gauge(way, f"{cost:,.0f} ns an element", cost / longest)
