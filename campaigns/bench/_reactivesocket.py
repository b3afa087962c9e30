"""ReactiveSocket of penstock beside rsocket-py, which implements RSocket, its successor: the same
requests, in two processes.

Rules of this file:

* `in_flight` is the number of worker tasks. A worker sends a request, waits for the answer, and
  repeats this `count // in_flight` times.
* One request in flight is compared with a bare trio echo as well,
  and more of them with numbered messages to that echo.
* Both libraries send the same number of requests of 64 bytes. rsocket-py streams fewer elements:
  each costs about 50 times as much.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from struct import Struct
from time import perf_counter
from typing import Any, Final

import trio
from outcome import Value

from campaigns.bench._bulk import (
    demand_for,
    nanoseconds_each,
    over_asyncio,
    over_trio,
    read_rsocket,
    time_elements,
)
from campaigns.bench._measure import Bar, Group, Opening
from campaigns.bench._raised import BUSY_POLL_SECONDS, raised_limits
from campaigns.bench._round_trips import echo

SIZE: Final = 64
IN_FLIGHT: Final = (1, 16, 256)

RAW_BATCH: Final = 8
"""Messages in one send of the contender without a protocol, as in penstock."""


async def read_stream(port: int, size: int, count: int) -> float:
    """Request a stream, and read it with `async for`."""
    from penstock.runtime import connect

    async with connect(f"reactivesocket+tcp://127.0.0.1:{port}") as remote:
        return await time_elements(remote.request_stream(b"x", demand=demand_for(size)), count)


async def request(
    port: int, size: int, count: int, in_flight: int, busy_poll: float | None = None
) -> float:
    """Request single values with penstock from `in_flight` tasks."""
    from penstock.runtime import connect
    from penstock.spi import TransportOptions

    data, got = bytes(size), 0

    async def worker() -> None:
        nonlocal got
        for _ in range(count // in_flight):
            answer = await remote.request_response(data)
            got += answer == data

    async with connect(
        f"reactivesocket+tcp://127.0.0.1:{port}",
        limits=raised_limits(),
        options=TransportOptions(busy_poll=busy_poll),
    ) as remote:
        assert await remote.request_response(data) == data
        began = perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(in_flight):
                nursery.start_soon(worker)
        assert got == count // in_flight * in_flight
        return nanoseconds_each(began, got)


async def raw_requests(port: int, size: int, count: int, in_flight: int) -> float:
    """Send numbered messages from `in_flight` tasks to a bare echo, and wake the task whose number
    comes back: trio and a dictionary alone.

    Eight messages go in one send, as penstock does it.
    It has neither a handler, nor demand, nor a limit, nor an end.
    """
    message, waiting = bytes(size), dict[int, trio.lowlevel.Task]()
    out, last_id, got = bytearray(), 0, 0
    header = Struct("!IQ")

    def abort(_: object) -> trio.lowlevel.Abort:
        return trio.lowlevel.Abort.FAILED

    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        stream.setsockopt(trio.socket.IPPROTO_TCP, trio.socket.TCP_NODELAY, 1)

        def flush() -> None:
            nonlocal out
            # The requests in flight are far fewer bytes than the buffers of the system take.
            assert os.write(stream.socket.fileno(), out) == len(out)
            out = bytearray()

        async def worker() -> None:
            nonlocal last_id, got, out
            for _ in range(count // in_flight):
                last_id += 1
                waiting[last_id] = trio.lowlevel.current_task()
                out += header.pack(size, last_id) + message
                if len(out) >= RAW_BATCH * (header.size + size):
                    flush()
                answer = await trio.lowlevel.wait_task_rescheduled(abort)
                got += answer == message

        async with trio.open_nursery() as nursery:
            began = perf_counter()
            for _ in range(in_flight):
                nursery.start_soon(worker)
            received = b""
            while got + len(waiting) < count or waiting:
                await trio.lowlevel.checkpoint()  # the workers that were woken
                if out:
                    flush()
                if not waiting:
                    continue
                received += await stream.receive_some(1 << 16)
                position, end = 0, len(received)
                while end - position >= header.size + size:
                    length, number = header.unpack_from(received, position)
                    position += header.size
                    trio.lowlevel.reschedule(
                        waiting.pop(number), Value(received[position : position + length])
                    )
                    position += length
                received = received[position:]
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
    provider = single_transport_provider(
        TransportTCP(*await asyncio.open_connection("127.0.0.1", port))
    )

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


def _with_in_flight(
    in_flight: int, read: Callable[..., Awaitable[float]]
) -> Callable[[int, int, int], Awaitable[float]]:
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
            over_trio,
            "penstock_busy",
            partial(request, in_flight=1, busy_poll=BUSY_POLL_SECONDS),
            SIZE,
            count,
        ),
    }
    contenders["penstock without polls, 1 in flight"] = partial(
        over_trio, "penstock_sleeping", partial(request, in_flight=1, busy_poll=0.0), SIZE, count
    )
    for number in IN_FLIGHT:
        if number > 1:  # with one, the bare echo is that
            contenders[f"raw requests, {number} in flight"] = partial(
                over_trio, "echo", _with_in_flight(number, raw_requests), SIZE, count
            )
        contenders[f"penstock, {number} in flight"] = partial(
            over_trio, "penstock_raised", _with_in_flight(number, request), SIZE, count
        )
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
            Bar(
                "1 in flight, beside a bare echo",
                "penstock, 1 in flight",
                "raw echo, 1 in flight",
                at_most=1.35,
            ),
            Bar(
                "1 in flight, both sides awake",
                "penstock awake, 1 in flight",
                "rsocket-py, 1 in flight",
                at_least=3,
            ),
            Bar(
                "16 in flight, beside rsocket-py",
                "penstock, 16 in flight",
                "rsocket-py, 16 in flight",
                at_least=5,
            ),
            Bar(
                "256 in flight, beside rsocket-py",
                "penstock, 256 in flight",
                "rsocket-py, 256 in flight",
                at_least=5,
            ),
        ),
        {f"rsocket-py, {number} in flight": "rsocket" for number in IN_FLIGHT},
    ),
)
