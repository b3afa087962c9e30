"""The price of installed plugins: requests, streams of one element and bulk, over both protocols.

A server is deployed with plugins. So each row runs three times:

* bare: all plugins that are not penstock's own are disabled, on both sides.
* installed: all of them are there, and nobody asks `penstock-metrics` for anything.
* collecting: the server is collected, and a page of its metrics is made each second.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter
from typing import Any, Final

import trio

from campaigns.bench._bulk import nanoseconds_each, over_trio, time_subscription
from campaigns.bench._measure import Bar, Group, Opening
from campaigns.bench._raised import bare_registry, raised_limits

SIZE: Final = 64
PROTOCOLS: Final = {"RS.io": "tcp", "ReactiveSocket": "reactivesocket+tcp"}
MODES: Final = ("bare", "installed", "collecting")
AT_MOST: Final = {"installed": 1.03, "collecting": 1.10}
IN_FLIGHT: Final = (1, 16, 256)

Act = Callable[[Any, int], Awaitable[float]]
"""Does something `count` times over a connection, and returns nanoseconds for each."""


@asynccontextmanager
async def _connected(port: int, scheme: str, mode: str) -> AsyncIterator[Any]:
    from penstock.runtime import connect

    registry = bare_registry() if mode == "bare" else None
    url = f"{scheme}://127.0.0.1:{port}"
    async with connect(url, limits=raised_limits(), registry=registry) as peer:
        if scheme == PROTOCOLS["RS.io"]:  # a ReactiveSocket server does not tell that it accepts
            await peer.wait_accepted()
        yield peer


async def time_requests(peer: Any, count: int, *, in_flight: int) -> float:
    """Make `count` requests, `in_flight` at a time, and return nanoseconds for each."""
    data = bytes(SIZE)

    async def worker() -> None:
        for _ in range(count // in_flight):
            assert await peer.request_response(data) == data

    await peer.request_response(data)
    began = perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(in_flight):
            nursery.start_soon(worker)
    return nanoseconds_each(began, count // in_flight * in_flight)


async def _streams_of_one(peer: Any, count: int) -> float:
    began = perf_counter()
    for _ in range(count):
        async with peer.subscribe("one") as stream:
            async for _ in stream:
                pass
    return nanoseconds_each(began, count)


async def _elements(peer: Any, count: int) -> float:
    return await time_subscription(peer, SIZE, count)


def _rows(acts: dict[str, Act], count: int) -> dict[str, Opening]:
    def opening(act: Act, scheme: str, mode: str) -> Opening:
        async def read(port: int, _size: int, how_many: int) -> float:
            async with _connected(port, scheme, mode) as peer:
                return await act(peer, how_many)

        return partial(over_trio, "penstock_deployed", read, SIZE, count, mode)

    # Modes last: the three that are compared run one after the other.
    return {
        f"{protocol}{what}, {mode}": opening(act, scheme, mode)
        for protocol, scheme in PROTOCOLS.items()
        for what, act in acts.items()
        for mode in MODES
    }


def _bars(what: str, acts: tuple[str, ...]) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            f"{what}, {protocol}{act}, {mode}",
            f"{protocol}{act}, {mode}",
            f"{protocol}{act}, bare",
            most,
        )
        for protocol in PROTOCOLS
        for act in acts
        for mode, most in AT_MOST.items()
    )


_REQUESTS: Final[dict[str, Act]] = {
    f", {number} in flight": partial(time_requests, in_flight=number) for number in IN_FLIGHT
}
_NEEDS: Final = "penstock_metrics"


def _needs(acts: tuple[str, ...]) -> dict[str, str]:
    return {
        f"{protocol}{act}, {mode}": _NEEDS
        for protocol in PROTOCOLS
        for act in acts
        for mode in AT_MOST
    }


def _group(key: str, title: str, unit: str, acts: dict[str, Act], counts: tuple[int, int]) -> Group:
    names = tuple(acts)
    return Group(
        key,
        title,
        unit,
        f"RS.io{names[0]}, bare",
        lambda short: _rows(acts, counts[0] if short else counts[1]),
        _bars(unit, names),
        _needs(names),
    )


GROUPS: Final = (
    _group(
        "deployed-requests",
        "Requests of 64 bytes with all plugins installed",
        "request",
        _REQUESTS,
        (1_024, 8_192),
    ),
    _group(
        "deployed-streams",
        "Streams of one element with all plugins installed",
        "stream",
        {"": _streams_of_one},
        (300, 2_000),
    ),
    _group(
        "deployed-bulk",
        "Elements of 64 bytes with all plugins installed",
        "element",
        {"": _elements},
        (100_000, 400_000),
    ),
)
