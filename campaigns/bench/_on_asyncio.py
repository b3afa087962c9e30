"""A server whose functions run on asyncio, beside the same server on trio.

Rules of this file:

* The client is the one on trio, in a process of its own, for all contenders.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, Final

from campaigns.bench._bulk import demand_for, nanoseconds_each, over_trio
from campaigns.bench._installed import time_requests
from campaigns.bench._measure import Bar, Group, Opening
from campaigns.bench._raised import raised_limits

LOOPS: Final = ("trio", "asyncio", "uvloop")
SIZES: Final = (64, 4096)
IN_FLIGHT: Final = (1, 16, 256)

Read = Callable[[int, int, int], Awaitable[float]]


async def _elements(port: int, size: int, count: int, *, name: str, demand: int) -> float:
    from penstock.runtime import connect

    async with connect(f"tcp://127.0.0.1:{port}", limits=raised_limits()) as peer:
        await peer.wait_accepted()
        began, got = perf_counter(), 0
        async with peer.subscribe(name, demand=demand) as stream:
            async for _ in stream:
                got += 1
        assert got == count
        return nanoseconds_each(began, count)


async def _requests(port: int, _size: int, count: int, *, in_flight: int) -> float:
    from penstock.runtime import connect

    async with connect(f"tcp://127.0.0.1:{port}", limits=raised_limits()) as peer:
        return await time_requests(peer, count, in_flight=in_flight)


def _rows(rows: dict[str, tuple[int, int, Read]], short: bool) -> dict[str, Opening]:
    # Loops last: those that are compared run one after the other.
    return {
        f"{what}, {loop}": partial(
            over_trio, "penstock_on", read, size, count // 5 if short else count, loop
        )
        for what, (size, count, read) in rows.items()
        for loop in LOOPS
    }


_BULK: Final[dict[str, tuple[int, int, Read]]] = {
    "64 B, demand 256": (64, 600_000, partial(_elements, name="elements", demand=256)),
    "64 B": (64, 600_000, partial(_elements, name="elements", demand=demand_for(64))),
    "1 to 128 B": (64, 600_000, partial(_elements, name="mixed", demand=demand_for(64))),
    "4 KiB": (4096, 90_000, partial(_elements, name="elements", demand=demand_for(4096))),
}
_REQUESTS: Final[dict[str, tuple[int, int, Read]]] = {
    f"{number} in flight": (
        64,
        2_000 if number == 1 else 20_000,
        partial(_requests, in_flight=number),
    )
    for number in IN_FLIGHT
}


def _bars(rows: dict[str, Any], at_least: float) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            f"{what}, on asyncio beside trio",
            f"{what}, asyncio",
            f"{what}, trio",
            at_least=at_least,
        )
        for what in rows
    )


def _needs(rows: dict[str, Any]) -> dict[str, str]:
    return {f"{what}, uvloop": "uvloop" for what in rows}


GROUPS: Final = (
    Group(
        "asyncio-elements",
        "Elements over loopback from a server whose generators run on trio or on asyncio",
        "element",
        "64 B, trio",
        partial(_rows, _BULK),
        _bars(_BULK, 0.7),
        _needs(_BULK),
    ),
    Group(
        "asyncio-requests",
        "Requests of 64 bytes over loopback, answered by functions of trio or of asyncio",
        "request",
        "1 in flight, trio",
        partial(_rows, _REQUESTS),
        # With 256 in flight the functions are half of the work.
        _bars({"1 in flight": 0, "16 in flight": 0}, 0.6),
        _needs(_REQUESTS),
    ),
)
