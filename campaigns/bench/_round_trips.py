"""Round trips on an open connection:
a stream of one element beside a bare echo, and beside calls of other libraries.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any

import trio

from campaigns.bench._bulk import nanoseconds_each, over_asyncio, over_trio
from campaigns.bench._measure import Opening

SIZE = 64


async def echo(port: int, size: int, count: int) -> float:
    """Send bytes and receive them back, with trio alone."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        stream.setsockopt(trio.socket.IPPROTO_TCP, trio.socket.TCP_NODELAY, 1)
        message = bytes(size)
        began = perf_counter()
        for _ in range(count):
            await stream.send_all(message)
            got = 0
            while got < size:
                got += len(await stream.receive_some(4096))
        return nanoseconds_each(began, count)


async def stream_of_one(port: int, size: int, count: int) -> float:
    """Subscribe to a publisher of one element, and read to the end of the stream."""
    from penstock.runtime import connect

    async with connect(f"tcp://127.0.0.1:{port}") as remote:
        await remote.wait_accepted()
        got = 0
        began = perf_counter()
        for _ in range(count):
            async with remote.subscribe("one") as stream:
                async for _ in stream:
                    got += 1
        assert got == count
        return nanoseconds_each(began, count)


async def _time_calls(call: Callable[[], Awaitable[Any]], count: int) -> float:
    began = perf_counter()
    for _ in range(count):
        await call()
    return nanoseconds_each(began, count)


async def grpc_aio(port: int, size: int, count: int) -> float:
    """Make unary calls with grpcio on asyncio."""
    import grpc as grpcio

    async with grpcio.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        await channel.channel_ready()
        return await _time_calls(partial(channel.unary_unary("/bench/echo"), bytes(size)), count)


async def rsocket(port: int, size: int, count: int) -> float:
    """Make request_response calls with rsocket-py."""
    from rsocket.awaitable.awaitable_rsocket import AwaitableRSocket
    from rsocket.helpers import single_transport_provider
    from rsocket.payload import Payload
    from rsocket.rsocket_client import RSocketClient
    from rsocket.transports.tcp import TransportTCP

    provider = single_transport_provider(
        TransportTCP(*await asyncio.open_connection("127.0.0.1", port))
    )
    async with RSocketClient(provider) as client:
        return await _time_calls(
            partial(AwaitableRSocket(client).request_response, Payload(bytes(size))), count
        )


def round_trip_contenders(count: int) -> dict[str, Opening]:
    """Return the contenders that make round trips."""
    return {
        "raw echo": partial(over_trio, "echo", echo, SIZE, count),
        "penstock, stream of one": partial(
            over_trio, "penstock_raised", stream_of_one, SIZE, count
        ),
        "grpcio.aio": partial(over_asyncio, "grpc_aio", grpc_aio, SIZE, count),
        "rsocket-py": partial(over_asyncio, "rsocket", rsocket, SIZE, count),
    }
