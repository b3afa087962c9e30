"""JSON objects of five fields from process to process: as dataclasses, which msgspec writes and
reads, and as dictionaries, which pass through Python's own json.

Rules of this file:

* The floor is `dumps` and `loads` of the same serializer in one process, without penstock around
  them. Two processes on two cores share this work, so the floor is half of its time.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any

import trio

from campaigns.bench._bulk import demand_for, nanoseconds_each, time_elements
from campaigns.bench._measure import Opening, Timer
from campaigns.bench._serving_process import serving_process


@dataclasses.dataclass
class Record:
    """An object of five fields."""

    symbol: str
    price: float
    size: int
    venue: str
    is_open: bool


RECORD = Record("EURUSD", 1.08765, 1_000_000, "XETRA", is_open=True)


def serializer_with_msgspec() -> Any:
    """Return the serializer for the type."""
    from penstock.elements import JsonSerializer

    return JsonSerializer().for_type(Record)


def serializer_of_the_standard_library() -> Any:
    """Return the serializer without a type."""
    from penstock.elements import JsonSerializer

    return JsonSerializer()


@contextmanager
def alone(count: int) -> Iterator[Timer]:
    """Open the floor: each round dumps and loads every element."""
    serializer = serializer_with_msgspec()

    def timer() -> float:
        dumps, loads = serializer.dumps, serializer.loads
        began = perf_counter()
        for _ in range(count):
            loads(dumps(RECORD))
        return nanoseconds_each(began, count) / 2

    timer()
    yield timer


async def _read(
    port: int, count: int, serializer: Any, time_stream: Callable[[Any, int], Awaitable[float]]
) -> float:
    from penstock.runtime import connect

    async with connect(f"tcp://127.0.0.1:{port}") as remote:
        await remote.wait_accepted()
        return await time_stream(
            remote.subscribe("records", demand=demand_for(64), serializer=serializer), count
        )


async def time_batches(opening: Any, count: int) -> float:
    """Enter a subscription and read it with `batches()`; return nanoseconds per element."""
    began, got = perf_counter(), 0
    async with opening as stream:
        async for batch in stream.batches():
            got += len(batch)
        assert got == count
        return nanoseconds_each(began, count)


@contextmanager
def over_network(
    kind: str,
    make_serializer: Callable[[], Any],
    time_stream: Callable[[Any, int], Awaitable[float]],
    count: int,
) -> Iterator[Timer]:
    """Open a contender. Each round makes a connection and reads every element."""
    serializer = make_serializer()
    with serving_process(kind, 0, count) as server:
        timer = partial(trio.run, _read, server.port, count, serializer, time_stream)
        timer()
        yield timer


def json_contenders(count: int) -> dict[str, Opening]:
    """Return the contenders; those of Python's own json read a quarter of the elements."""
    return {
        "dumps and loads alone, two cores": partial(alone, count),
        "penstock, msgspec, batches()": partial(
            over_network, "penstock_json", serializer_with_msgspec, time_batches, count
        ),
        "penstock, msgspec": partial(
            over_network, "penstock_json", serializer_with_msgspec, time_elements, count
        ),
        "penstock, Python's json": partial(
            over_network,
            "penstock_standard_json",
            serializer_of_the_standard_library,
            time_elements,
            count // 4,
        ),
    }
