"""The contenders inside one process:
a stream of penstock beside plain Python and beside trio's memory channel.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Final

import trio

from campaigns.bench._measure import Bar, Contender, Group, Opening, Timer
from penstock import ops, pipe, subscribe

BATCH: Final = 100


async def numbers(count: int) -> AsyncIterator[int]:
    """Yield `count` numbers: the source of all contenders."""
    for number in range(count):
        yield number


async def bare(count: int) -> int:
    """Read the generator itself with `async for`."""
    async for _ in numbers(count):
        pass
    return count


async def channel(count: int) -> int:
    """Send each element from one task to another through a memory channel of trio with no
    buffer.
    """
    send, receive = trio.open_memory_channel[int](0)

    async def producer() -> None:
        async with send:
            async for number in numbers(count):
                await send.send(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(producer)
        async for _ in receive:
            pass
    return count


async def by_element(count: int) -> int:
    """Read a stream with `async for` and demand 1,024."""
    async with subscribe(lambda: numbers(count), demand=1024) as stream:
        async for _ in stream:
            pass
    return count


async def by_batch(count: int) -> int:
    """Read a stream with `batches()` and demand 1,024, and loop over each batch."""
    async with subscribe(lambda: numbers(count), demand=1024) as stream:
        async for batch in stream.batches():
            for _ in batch:
                pass
    return count


async def one_by_one(count: int) -> int:
    """Read a stream with `async for` and demand 1, so that each element waits for a request."""
    async with subscribe(lambda: numbers(count), demand=1) as stream:
        async for _ in stream:
            pass
    return count


def _tripled(number: int) -> int:
    return number * 3


def _is_even(number: int) -> bool:
    return number % 2 == 0


async def chain(count: int) -> int:
    """Apply map, filter and batch as operators."""
    piped = pipe(lambda: numbers(count), ops.map(_tripled), ops.filter(_is_even), ops.batch(BATCH))
    async with subscribe(piped, demand=1024) as stream:
        async for batch in stream:
            for _ in batch:
                pass
    return count


async def chain_by_hand(count: int) -> int:
    """Apply map, filter and batch in a loop without operators, with the same two functions."""
    batch: list[int] = []
    async for number in numbers(count):
        tripled = _tripled(number)
        if _is_even(tripled):
            batch.append(tripled)
            if len(batch) == BATCH:
                for _ in batch:
                    pass
                batch = []
    return count


def contenders(scale: int) -> dict[str, tuple[Contender, int]]:
    """Return each contender and its elements per round.
    Contenders that switch tasks for each element get fewer.
    """
    return {
        "bare async for": (bare, 40 * scale),
        "memory channel": (channel, scale),
        "stream, batches()": (by_batch, 40 * scale),
        "stream, by element": (by_element, 40 * scale),
        "stream, demand 1": (one_by_one, scale),
        "chain by hand": (chain_by_hand, 20 * scale),
        "chain of operators": (chain, 20 * scale),
    }


BARS: Final = (
    Bar("batches at demand 1,024", "stream, batches()", "bare async for", at_most=4),
    Bar("element by element at demand 1,024", "stream, by element", "bare async for", at_most=8),
    Bar(
        "element by element, beside a memory channel",
        "stream, by element",
        "memory channel",
        at_least=12,
    ),
    Bar("demand 1, beside a memory channel", "stream, demand 1", "memory channel", at_most=2),
    Bar(
        "map-filter-batch, beside the same by hand",
        "chain of operators",
        "chain by hand",
        at_most=4,
    ),
)


@contextmanager
def _in_this_process(contender: Contender, count: int) -> Iterator[Timer]:
    """Open a contender in this process. Each round is one `trio.run`."""

    async def timed() -> float:
        began = perf_counter()
        moved = await contender(count)
        return (perf_counter() - began) / moved * 1e9

    trio.run(contender, max(1, count // 10))
    yield partial(trio.run, timed)


def _openings(short: bool) -> dict[str, Opening]:
    return {
        name: partial(_in_this_process, contender, count)
        for name, (contender, count) in contenders(1_000 if short else 10_000).items()
    }


GROUP: Final = Group(
    "inprocess", "Inside one process", "element", "bare async for", _openings, BARS
)
