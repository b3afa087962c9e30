"""ReactiveSocket of penstock beside rsocket-py, which implements RSocket, its successor: the same requests, in two processes.

Rules of this file:

* `in_flight` is the number of worker tasks. A worker sends a request, waits for the answer, and repeats this `count // in_flight` times.
* One request in flight is compared with a bare trio echo as well: no library on trio can be faster.
* Both libraries send the same number of requests of 64 bytes. rsocket-py streams fewer elements: each costs about 50 times as much.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, Final

import trio

from tests.bench._bulk import demand_for, nanoseconds_each, over_asyncio, over_trio, read_rsocket, time_elements
from tests.bench._measure import Bar, Group, Opening
from tests.bench._raised import BUSY_POLL_SECONDS, raised_limits
from tests.bench._round_trips import echo

SIZE: Final = 64
IN_FLIGHT: Final = (1, 16, 256)


async def read_stream(port: int, size: int, count: int) -> float:
    """Request a stream, and read it with `async for`."""
    from penstock.runtime import connect

    async with connect(f"reactivesocket+tcp://127.0.0.1:{port}") as remote:
        return await time_elements(remote.request_stream(b"x", demand=demand_for(size)), count)


async def request(port: int, size: int, count: int, in_flight: int, busy_poll: float = 0.0) -> float:
    """Request single values with penstock from `in_flight` tasks."""
    from penstock.plugins import TransportOptions
    from penstock.runtime import connect

    data, got = bytes(size), 0

    async def worker() -> None:
        nonlocal got
        for _ in range(count // in_flight):
            answer = await remote.request_response(data)
            got += answer == data

    async with connect(
        f"reactivesocket+tcp://127.0.0.1:{port}", limits=raised_limits(), options=TransportOptions(busy_poll=busy_poll)
    ) as remote:
        assert await remote.request_response(data) == data
        began = perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(in_flight):
                nursery.start_soon(worker)
        assert got == count // in_flight * in_flight
        return nanoseconds_each(began, got)


async def request_by_rsocket(port: int, size: int, count: int, in_flight: int) -> float:
    """Request single values with rsocket-py from `in_flight` tasks."""
    from rsocket.awaitable.awaitable_rsocket import AwaitableRSocket
    from rsocket.helpers import single_transport_provider
    from rsocket.payload import Payload
    from rsocket.rsocket_client import RSocketClient
    from rsocket.transports.tcp import TransportTCP

    data, got = bytes(size), 0
    provider = single_transport_provider(TransportTCP(*await asyncio.open_connection("127.0.0.1", port)))

    async def worker(requester: Any) -> None:
        nonlocal got
        for _ in range(count // in_flight):
            answer = await requester.request_response(Payload(data))
            got += answer.data == data

    async with RSocketClient(provider) as client:
        requester = AwaitableRSocket(client)
        assert (await requester.request_response(Payload(data))).data == data
        began = perf_counter()
        await asyncio.gather(*(worker(requester) for _ in range(in_flight)))
        assert got == count // in_flight * in_flight
        return nanoseconds_each(began, got)


def _with_in_flight(in_flight: int, read: Callable[..., Awaitable[float]]) -> Callable[[int, int, int], Awaitable[float]]:
    return partial(read, in_flight=in_flight)


def stream_contenders(short: bool) -> dict[str, Opening]:
    """Return the contenders that stream elements of 64 bytes."""
    count, slow_count = (100_000, 3_000) if short else (400_000, 15_000)
    return {
        "penstock": partial(over_trio, "penstock", read_stream, SIZE, count),
        "rsocket-py": partial(over_asyncio, "rsocket", read_rsocket, SIZE, slow_count),
    }


def request_contenders(short: bool) -> dict[str, Opening]:
    """Return the contenders that answer requests, for each number of requests in flight."""
    count = 512 if short else 4_096
    contenders: dict[str, Opening] = {
        "raw echo, 1 in flight": partial(over_trio, "echo", echo, SIZE, count),
        "penstock awake, 1 in flight": partial(
            over_trio, "penstock_busy", partial(request, in_flight=1, busy_poll=BUSY_POLL_SECONDS), SIZE, count
        ),
    }
    for number in IN_FLIGHT:
        contenders[f"penstock, {number} in flight"] = partial(over_trio, "penstock_raised", _with_in_flight(number, request), SIZE, count)
        contenders[f"rsocket-py, {number} in flight"] = partial(
            over_asyncio, "rsocket", _with_in_flight(number, request_by_rsocket), SIZE, count
        )
    return contenders


GROUPS: Final = (
    Group(
        "requested",
        "ReactiveSocket: 64 bytes by request_stream",
        "element",
        "rsocket-py",
        stream_contenders,
        (Bar("64 B by request_stream, beside rsocket-py", "penstock", "rsocket-py", at_least=20),),
        {"rsocket-py": "rsocket"},
    ),
    Group(
        "responses",
        "ReactiveSocket: 64 bytes by request_response",
        "round trip",
        "rsocket-py, 1 in flight",
        request_contenders,
        (
            Bar("1 in flight, beside a bare echo", "penstock, 1 in flight", "raw echo, 1 in flight", at_most=1.35),
            Bar("1 in flight, both sides awake", "penstock awake, 1 in flight", "rsocket-py, 1 in flight", at_least=3),
            Bar("16 in flight, beside rsocket-py", "penstock, 16 in flight", "rsocket-py, 16 in flight", at_least=5),
            Bar("256 in flight, beside rsocket-py", "penstock, 256 in flight", "rsocket-py, 256 in flight", at_least=5),
        ),
        {f"rsocket-py, {number} in flight": "rsocket" for number in IN_FLIGHT},
    ),
)
