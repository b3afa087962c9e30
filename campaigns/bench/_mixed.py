"""Elements whose lengths differ, beside elements of their mean length;
and JSON objects, whose lengths always differ.

Rules of this file:

* All contenders of a group get the same 1,000 elements again and again. Their lengths are drawn
  between two bounds, with a fixed seed.
* The contenders with elements of one length get the mean of the two bounds.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any, Final

from campaigns.bench._bulk import (
    demand_for,
    nanoseconds_each,
    over_trio,
    read_batches,
    read_elements,
    read_split,
    zeromq,
)
from campaigns.bench._measure import Bar, Group, Opening, Timer
from campaigns.bench._peer_process import json_objects

EQUAL: Final = "elements of one length"


def mixed_contenders(shortest: int, longest: int, count: int) -> dict[str, Opening]:
    """Return the contenders that read elements of `shortest` to `longest` bytes, and penstock
    with elements of their mean length.
    """
    mean, upper = (shortest + longest) // 2, str(longest)
    return {
        "raw split": partial(over_trio, "mixed_split", read_split, shortest, count, upper),
        "penstock, batches()": partial(
            over_trio, "mixed_penstock", _read_mixed(read_batches, mean), shortest, count, upper
        ),
        "penstock, by element": partial(
            over_trio, "mixed_penstock", _read_mixed(read_elements, mean), shortest, count, upper
        ),
        "pyzmq": partial(zeromq, shortest, count, upper),
        f"penstock, batches(), {EQUAL}": partial(over_trio, "penstock", read_batches, mean, count),
        f"penstock, by element, {EQUAL}": partial(
            over_trio, "penstock", read_elements, mean, count
        ),
    }


def _read_mixed(
    read: Callable[[int, int, int], Awaitable[float]], mean: int
) -> Callable[[int, int, int], Awaitable[float]]:
    async def read_as_mean(port: int, _shortest: int, count: int) -> float:
        return await read(port, mean, count)  # the demand depends on the length

    return read_as_mean


@contextmanager
def coded_alone(count: int) -> Iterator[Timer]:
    """Open the floor of JSON: the serializer dumps and loads each object, in one process
    and without a network.
    """
    from penstock.elements import JsonSerializer

    serializer, objects = JsonSerializer(), json_objects()

    def timer() -> float:
        began = perf_counter()
        for _ in range(count // len(objects)):
            for data in [serializer.dumps(each) for each in objects]:
                serializer.loads(data)
        return nanoseconds_each(began, count)

    timer()
    yield timer


async def read_objects(
    port: int,
    size: int,
    count: int,
    *,
    batches: bool = False,
    serializer: str = "json",
    kind: Any = None,
) -> float:
    """Connect, and read objects by element or with `batches()`."""
    from penstock.runtime import connect

    async with connect(f"tcp://127.0.0.1:{port}") as remote:
        await remote.wait_accepted()
        began, got = perf_counter(), 0
        async with remote.subscribe(
            "objects", demand=demand_for(size), serializer=serializer, type=kind
        ) as stream:
            if batches:
                async for batch in stream.batches():
                    got += len(batch)
            else:
                async for _ in stream:
                    got += 1
            assert got == count
            return nanoseconds_each(began, count)


def json_contenders(count: int) -> dict[str, Opening]:
    """Return the contenders that move JSON objects of five fields."""
    return {
        "dumps and loads alone": partial(coded_alone, count),
        "penstock, batches()": partial(
            over_trio, "objects", partial(read_objects, batches=True), 100, count
        ),
        "penstock, by element": partial(over_trio, "objects", read_objects, 100, count),
    }


def _group(key: str, lengths: str, shortest: int, longest: int, count: int) -> Group:
    def contenders(short: bool) -> dict[str, Opening]:
        return mixed_contenders(shortest, longest, count // 3 if short else count)

    by_element = "penstock, by element"
    return Group(
        key,
        f"Elements of {lengths} over loopback",
        "element",
        "raw split",
        contenders,
        (
            Bar(f"{lengths} by element, beside pyzmq", by_element, "pyzmq", at_least=1),
            Bar(
                f"{lengths} by element, beside one length",
                by_element,
                f"{by_element}, {EQUAL}",
                at_least=0.6,
            ),
            Bar(
                f"{lengths} by batches(), beside a bare split loop",
                "penstock, batches()",
                "raw split",
                at_least=0.5,
            ),
        ),
        {"pyzmq": "zmq"},
    )


def _json(short: bool) -> dict[str, Opening]:
    return json_contenders(20_000 if short else 100_000)


GROUPS: Final[tuple[Group, ...]] = (
    _group("mixed", "32 to 96 bytes", 32, 96, 600_000),
    _group("lines", "50 to 150 bytes", 50, 150, 450_000),
    _group("documents", "1 to 8 KiB", 1 << 10, 8 << 10, 60_000),
    Group(
        "objects",
        "JSON objects of five fields over loopback",
        "element",
        "dumps and loads alone",
        _json,
        # Two processes share the work that the baseline does in one.
        (
            Bar(
                "JSON by batches(), beside dumps and loads",
                "penstock, batches()",
                "dumps and loads alone",
                at_least=0.7,
            ),
        ),
    ),
)
