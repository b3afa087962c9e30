"""One side of a measurement, in a process of its own: ``_side.py server KIND``, which prints its
port, or ``_side.py client KIND WHAT PORT COUNT``.

A client makes its connection, and measures a round for each line of its standard input: it prints
nanoseconds for an element or an answer. KIND is ``rsocket`` and ``reactivesocket``, which are
penstock's, or ``rsocket-py``. WHAT is ``64``, ``mixed``, ``requests`` or ``channel``.

The elements are the same as those of `Side.java`.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import trio

import penstock
from penstock.streams import Source

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
from _raised import raised_limits  # (a program of its own: the folder is no package for it)

SIZE: Final = 64
DEMAND: Final = 1024
IN_FLIGHT: Final = 256
LIMITS: Final = raised_limits()
MIXED: Final = [bytes(16 + index * 617 % 985) for index in range(985)]
"""Lengths from 16 to 1,000, each once, out of order."""


def elements_of(what: str, count: int) -> Iterator[bytes]:
    """Return an iterator over the elements of a stream."""
    return islice(cycle(MIXED if what == "mixed" else [bytes(SIZE)]), count)


async def count_elements(stream: Any) -> int:
    """Read a stream to its end, and return how many elements it had."""
    got = 0
    async for _ in stream:
        got += 1
    return got


# --- penstock


def service_of() -> penstock.Service:
    """Return what a server of penstock offers, with names and without them."""
    service = penstock.Service()

    @service.publisher("elements/{what}/{count}")
    async def elements(what: str, count: int) -> AsyncIterator[bytes]:
        for element in elements_of(what, count):
            yield element

    @service.publisher("both/{count}")
    async def both(sent: Source[bytes], count: int) -> AsyncIterator[bytes]:
        async def take() -> None:
            async with penstock.subscribe(sent, demand=DEMAND) as stream:
                await count_elements(stream)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            for element in elements_of("64", count):
                yield element

    @service.request_response
    async def echo(data: bytes) -> bytes:
        return data

    return service


async def serve(kind: str) -> None:
    """Serve with penstock."""
    url = f"{kind}+tcp://127.0.0.1:0"
    async with penstock.serve(service_of(), url, limits=LIMITS) as server:
        print(server.addresses[0].port, flush=True)
        await trio.sleep_forever()


async def ask(kind: str, what: str, port: int, count: int) -> None:
    """Measure a client of penstock, round by round."""
    async with penstock.connect(f"{kind}+tcp://127.0.0.1:{port}", limits=LIMITS) as peer:
        while await trio.to_thread.run_sync(sys.stdin.readline):
            began = perf_counter()
            got = await ROUNDS[what](peer, what, count)
            print((perf_counter() - began) / got * 1e9, flush=True)


async def read_stream(peer: penstock.Peer, what: str, count: int) -> int:
    """Read a stream."""
    async with peer.subscribe(f"elements/{what}/{count}", demand=DEMAND) as stream:
        return await count_elements(stream)


async def read_channel(peer: penstock.Peer, _what: str, count: int) -> int:
    """Send so many elements, and read as many. Both count."""
    sent = elements_of("64", count)
    async with peer.request_channel(sent, name=f"both/{count}", demand=DEMAND) as stream:
        return count + await count_elements(stream)


async def send_requests(peer: penstock.Peer, _what: str, count: int) -> int:
    """Send requests, `IN_FLIGHT` at a time."""
    data = bytes(SIZE)

    async def worker() -> None:
        for _ in range(count // IN_FLIGHT):
            assert await peer.request_response(data) == data

    async with trio.open_nursery() as nursery:
        for _ in range(IN_FLIGHT):
            nursery.start_soon(worker)
    return count // IN_FLIGHT * IN_FLIGHT


ROUNDS: Final[dict[str, Callable[[penstock.Peer, str, int], Awaitable[int]]]] = {
    "64": read_stream,
    "mixed": read_stream,
    "requests": send_requests,
    "channel": read_channel,
}


# --- rsocket-py


async def serve_rsocket_py() -> None:
    """Answer requests with rsocket-py."""
    from rsocket.helpers import create_future
    from rsocket.payload import Payload
    from rsocket.request_handler import BaseRequestHandler
    from rsocket.rsocket_server import RSocketServer
    from rsocket.transports.tcp import TransportTCP

    class Handler(BaseRequestHandler):
        async def request_response(self, payload: Payload) -> Any:
            return create_future(Payload(payload.data))

    def session(*connection: Any) -> None:
        RSocketServer(TransportTCP(*connection), handler_factory=Handler)

    server = await asyncio.start_server(session, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def ask_rsocket_py(port: int, count: int) -> None:
    """Measure requests of rsocket-py."""
    from rsocket.helpers import single_transport_provider
    from rsocket.payload import Payload
    from rsocket.rsocket_client import RSocketClient
    from rsocket.transports.tcp import TransportTCP

    data, each = bytes(SIZE), max(count // IN_FLIGHT, 1)
    connection = await asyncio.open_connection("127.0.0.1", port)
    async with RSocketClient(single_transport_provider(TransportTCP(*connection))) as client:

        async def worker() -> None:
            for _ in range(each):
                assert (await client.request_response(Payload(data))).data == data

        while await asyncio.to_thread(sys.stdin.readline):
            began = perf_counter()
            await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
            print((perf_counter() - began) / each / IN_FLIGHT * 1e9, flush=True)


def main(role: str, kind: str, *rest: str) -> None:
    """Be one side."""
    if role == "server":
        if kind == "rsocket-py":
            asyncio.run(serve_rsocket_py())
        else:
            trio.run(serve, kind)
        return
    what, port, count = rest[0], int(rest[1]), int(rest[2])
    if kind == "rsocket-py":
        asyncio.run(ask_rsocket_py(port, count))
    else:
        trio.run(partial(ask, kind, what, port, count))
    os._exit(0)  # the server is killed by the program that started both


if __name__ == "__main__":
    main(*sys.argv[1:])
