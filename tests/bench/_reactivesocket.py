"""ReactiveSocket beside rsocket-py, which speaks its successor: both serve and ask in the same way, in two processes.

Rules of this file:

* Requests in flight are workers, each of which asks again when it has been answered; the number of requests is shared among them.
* The length of 64 bytes and the number of requests are the same for both; elements are dear to rsocket-py, so it streams fewer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, Final

import trio

from tests.bench._bulk import by_element_of, demand_for, each, over_asyncio, over_trio, read_rsocket
from tests.bench._measure import Bar, Group, Opening
from tests.bench._raised import BUSY, raised

SIZE: Final = 64
IN_FLIGHT: Final = (1, 16, 256)


async def read_stream(port: int, size: int, count: int) -> float:
    """Ask for a stream, and read it by the element."""
    from penstock.runtime import connect

    async with connect(f"reactivesocket+tcp://127.0.0.1:{port}") as remote:
        return await by_element_of(remote.request_stream(b"x", demand=demand_for(size)), count)


async def ask(port: int, size: int, count: int, in_flight: int, busy_poll: float = 0.0) -> float:
    """Ask for one value, again and again, by so many tasks."""
    from penstock.plugins import TransportOptions
    from penstock.runtime import connect

    data, got = bytes(size), 0

    async def worker() -> None:
        nonlocal got
        for _ in range(count // in_flight):
            answer = await remote.request_response(data)
            got += answer == data

    async with connect(f"reactivesocket+tcp://127.0.0.1:{port}", limits=raised(), options=TransportOptions(busy_poll=busy_poll)) as remote:
        assert await remote.request_response(data) == data
        began = perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(in_flight):
                nursery.start_soon(worker)
        assert got == count // in_flight * in_flight
        return each(began, got)


async def ask_rsocket(port: int, size: int, count: int, in_flight: int) -> float:
    """The same by rsocket-py."""
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
    """Who streams elements of 64 bytes that were requested."""
    count, dear = (100_000, 3_000) if short else (400_000, 15_000)
    return {
        "penstock": partial(over_trio, "penstock", read_stream, SIZE, count),
        "rsocket-py": partial(over_asyncio, "rsocket", read_rsocket, SIZE, dear),
    }


def requests(short: bool) -> dict[str, Opening]:
    """Who answers requests, by how many of them are in flight."""
    count = 512 if short else 4_096
    contenders: dict[str, Opening] = {
        "penstock awake, 1 in flight": partial(over_trio, "penstock_busy", partial(ask, in_flight=1, busy_poll=BUSY), SIZE, count)
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
