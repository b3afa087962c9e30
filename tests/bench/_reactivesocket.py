"""ReactiveSocket beside rsocket-py, which speaks its successor RSocket: the same requests to the same handlers, in two processes.

Rules of this file:

* N requests in flight are N worker tasks, each of which sends a request after each answer. They share the number of requests.
* The length of 64 bytes and the number of requests are the same for both. rsocket-py is slow with elements, so it streams fewer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, Final

import trio

from tests.bench._bulk import by_element_of, demand_for, each, over_asyncio, over_trio, read_rsocket
from tests.bench._limits_and_memory import BUSY_POLL_SECONDS, raised_limits
from tests.bench._measure import Bar, Group, Opening

SIZE: Final = 64
IN_FLIGHT: Final = (1, 16, 256)


async def read_stream(port: int, size: int, count: int) -> float:
    """Request a stream, and read it with `async for`."""
    from penstock.runtime import connect

    async with connect(f"reactivesocket+tcp://127.0.0.1:{port}") as remote:
        return await by_element_of(remote.request_stream(b"x", demand=demand_for(size)), count)


async def ask(port: int, size: int, count: int, in_flight: int, busy_poll: float = 0.0) -> float:
    """Request one value repeatedly, by `in_flight` tasks."""
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
        return each(began, got)


async def ask_rsocket(port: int, size: int, count: int, in_flight: int) -> float:
    """Request one value repeatedly with rsocket-py, by `in_flight` tasks."""
    from rsocket.awaitable.awaitable_rsocket import AwaitableRSocket
    from rsocket.helpers import single_transport_provider
    from rsocket.payload import Payload
    from rsocket.rsocket_client import RSocketClient
    from rsocket.transports.tcp import TransportTCP

    data, got = bytes(size), 0
    provider = single_transport_provider(TransportTCP(*await asyncio.open_connection("127.0.0.1", port)))

    async def worker(asker: Any) -> None:
        nonlocal got
        for _ in range(count // in_flight):
            answer = await asker.request_response(Payload(data))
            got += answer.data == data

    async with RSocketClient(provider) as client:
        asker = AwaitableRSocket(client)
        assert (await asker.request_response(Payload(data))).data == data
        began = perf_counter()
        await asyncio.gather(*(worker(asker) for _ in range(in_flight)))
        assert got == count // in_flight * in_flight
        return each(began, got)


def _at(in_flight: int, read: Callable[..., Awaitable[float]]) -> Callable[[int, int, int], Awaitable[float]]:
    return partial(read, in_flight=in_flight)


def streams(short: bool) -> dict[str, Opening]:
    """The contenders for a requested stream of 64-byte elements."""
    count, slow_count = (100_000, 3_000) if short else (400_000, 15_000)
    return {
        "penstock": partial(over_trio, "penstock", read_stream, SIZE, count),
        "rsocket-py": partial(over_asyncio, "rsocket", read_rsocket, SIZE, slow_count),
    }


def requests(short: bool) -> dict[str, Opening]:
    """The contenders for requests of one value, for each number of requests in flight."""
    count = 512 if short else 4_096
    contenders: dict[str, Opening] = {
        "penstock awake, 1 in flight": partial(
            over_trio, "penstock_busy", partial(ask, in_flight=1, busy_poll=BUSY_POLL_SECONDS), SIZE, count
        )
    }
    for number in IN_FLIGHT:
        contenders[f"penstock, {number} in flight"] = partial(over_trio, "penstock_raised", _at(number, ask), SIZE, count)
        contenders[f"rsocket-py, {number} in flight"] = partial(over_asyncio, "rsocket", _at(number, ask_rsocket), SIZE, count)
    return contenders


GROUPS: Final = (
    Group(
        "requested",
        "ReactiveSocket: 64 bytes by request_stream",
        "element",
        "rsocket-py",
        streams,
        (Bar("64 B by request_stream, beside rsocket-py", "penstock", "rsocket-py", at_least=20),),
        {"rsocket-py": "rsocket"},
    ),
    Group(
        "responses",
        "ReactiveSocket: 64 bytes by request_response",
        "round trip",
        "rsocket-py, 1 in flight",
        requests,
        (
            Bar("1 in flight, beside rsocket-py", "penstock, 1 in flight", "rsocket-py, 1 in flight", at_least=3, reached=1.4),
            Bar("1 in flight, both sides awake", "penstock awake, 1 in flight", "rsocket-py, 1 in flight", at_least=3),
            Bar("16 in flight, beside rsocket-py", "penstock, 16 in flight", "rsocket-py, 16 in flight", at_least=3),
            Bar("256 in flight, beside rsocket-py", "penstock, 256 in flight", "rsocket-py, 256 in flight", at_least=3),
        ),
        {f"rsocket-py, {number} in flight": "rsocket" for number in IN_FLIGHT},
    ),
)
