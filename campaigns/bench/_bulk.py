"""Many elements over loopback: penstock, plain trio as the floor, and other libraries.

Rules of this file:

* One server process serves all rounds. If a contender connects in each round, its clock starts when
  the connection is established.
* All contenders get elements of the same size.
  They read them one by one, unless the contender's name says otherwise.
* A library with a high cost per element gets fewer elements (`slow_count`), so
  that a round stays short.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any, Final

import trio

from campaigns.bench._measure import Opening, Timer
from campaigns.bench._serving_process import serving_process

CHUNK: Final = 64 << 10
Read = Callable[[int, int, int], Awaitable[float]]
"""Takes port, size and count; reads all `count` elements, and returns nanoseconds per element."""


@contextmanager
def over_trio(kind: str, read: Read, size: int, count: int, *more: str) -> Iterator[Timer]:
    """Open a contender on trio. Each round is one `trio.run` with one connection. The server
    process gets `more` arguments.
    """
    with serving_process(kind, size, count, *more) as server:
        timer = partial(trio.run, read, server.port, size, count)
        timer()
        yield timer


@contextmanager
def over_asyncio(kind: str, read: Read, size: int, count: int) -> Iterator[Timer]:
    """Open a contender on asyncio. Each round is one `asyncio.run` with one connection."""
    with serving_process(kind, size, count) as server:

        def timer() -> float:
            async def main() -> float:
                return await read(server.port, size, count)

            return asyncio.run(main())

        timer()
        yield timer


def nanoseconds_each(began: float, count: int) -> float:
    """Return the time since `began`, divided by `count`, in nanoseconds."""
    return (perf_counter() - began) / count * 1e9


# --- the floors: trio without a library


async def read_raw(
    port: int, size: int, count: int, context: ssl.SSLContext | None = None
) -> float:
    """Read bytes and ignore their content."""
    plain = await trio.open_tcp_stream("127.0.0.1", port)
    got = 0
    async with (
        plain
        if context is None
        else trio.SSLStream(plain, context, server_hostname="127.0.0.1") as stream
    ):
        if isinstance(stream, trio.SSLStream):
            await stream.do_handshake()
        began = perf_counter()
        await stream.send_all(b"!")
        while got < size * count:
            got += len(await stream.receive_some(CHUNK))
        return nanoseconds_each(began, count)


async def read_split(port: int, size: int, count: int) -> float:
    """Read chunks, and split each into elements with a length of four bytes before each element."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    got, rest = 0, b""
    async with stream:
        began = perf_counter()
        await stream.send_all(b"!")
        while got < count:
            data = rest + await stream.receive_some(CHUNK)
            position, end = 0, len(data)
            elements = []
            while position + 4 <= end:
                length = int.from_bytes(data[position : position + 4], "big")
                if position + 4 + length > end:
                    break
                elements.append(data[position + 4 : position + 4 + length])
                position += 4 + length
            rest = data[position:]
            got += len(elements)
        return nanoseconds_each(began, count)


# --- penstock


async def read_elements(port: int, size: int, count: int) -> float:
    """Connect, and read one stream with `async for`."""
    from penstock.runtime import connect

    async with connect(f"tcp://127.0.0.1:{port}") as remote:
        await remote.wait_accepted()
        return await time_subscription(remote, size, count)


async def time_subscription(remote: Any, size: int, count: int) -> float:
    """Read one stream of `remote` with `async for`; return nanoseconds per element."""
    return await time_elements(remote.subscribe("elements", demand=demand_for(size)), count)


async def time_elements(opening: Any, count: int) -> float:
    """Enter a subscription and read it with `async for`; return nanoseconds per element."""
    began, got = perf_counter(), 0
    async with opening as stream:
        async for _ in stream:
            got += 1
        assert got == count
        return nanoseconds_each(began, count)


async def read_batches(port: int, size: int, count: int) -> float:
    """Connect, and read one stream with `batches()`."""
    from penstock.runtime import connect

    async with connect(f"tcp://127.0.0.1:{port}") as remote:
        await remote.wait_accepted()
        began, got = perf_counter(), 0
        async with remote.subscribe("elements", demand=demand_for(size)) as stream:
            async for batch in stream.batches():
                got += len(batch)
            assert got == count
            return nanoseconds_each(began, count)


async def read_buffers(port: int, size: int, count: int) -> float:
    """Connect, and read elements of fixed size as memory with `buffers()`,
    with a demand of 2 MiB.
    """
    from penstock.runtime import connect

    async with connect(f"tcp://127.0.0.1:{port}") as remote:
        await remote.wait_accepted()
        began, got = perf_counter(), 0
        async with remote.subscribe("packed", demand=(2 << 20) // size) as stream:
            async for buffer in stream.buffers():
                got += len(buffer)
            assert got == size * count
            return nanoseconds_each(began, count)


def demand_for(size: int) -> int:
    """Return 1,024 elements, or fewer if these would exceed 16 MiB."""
    return min(1024, (16 << 20) // size)


# --- TLS: plain trio and penstock use the same certificate


@contextmanager
def over_tls(
    kind: str, read: Callable[..., Awaitable[float]], size: int, count: int
) -> Iterator[Timer]:
    """Open a contender over TLS, with a certificate that is made for this run."""
    import trustme

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    certificates = authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem
    with (
        certificates.tempfile() as certificate,
        serving_process(kind, size, count, certificate) as server,
    ):
        timer = partial(trio.run, read, server.port, size, count, context)
        timer()
        yield timer


async def read_elements_tls(port: int, size: int, count: int, context: ssl.SSLContext) -> float:
    """Connect over TLS, and read one stream with `async for`."""
    from penstock.runtime import connect
    from penstock.spi import Tls, TransportOptions

    async with connect(
        f"tls://127.0.0.1:{port}", options=TransportOptions(tls=Tls(context=context))
    ) as remote:
        await remote.wait_accepted()
        return await time_subscription(remote, size, count)


# --- other libraries


@contextmanager
def zeromq(size: int, count: int, *more: str) -> Iterator[Timer]:
    """Open pyzmq with PULL and PUSH.
    A REQ socket starts each round, because PUSH sends without being asked.
    """
    import zmq

    with serving_process("zeromq", size, count, *more) as server:
        context = zmq.Context()
        socket, control = context.socket(zmq.PULL), context.socket(zmq.REQ)
        socket.connect(f"tcp://127.0.0.1:{server.port}")
        control.connect(f"tcp://127.0.0.1:{server.next_port()}")

        def timer() -> float:
            began = perf_counter()
            control.send(b"")
            control.recv()
            for _ in range(count):
                socket.recv()
            return nanoseconds_each(began, count)

        try:
            timer()
            yield timer
        finally:
            context.destroy(linger=0)


async def read_rsocket(port: int, size: int, count: int) -> float:
    """Read a stream of rsocket-py with the demand of `demand_for`.
    It returns all elements at once, at the end.
    """
    from rsocket.awaitable.awaitable_rsocket import AwaitableRSocket
    from rsocket.helpers import single_transport_provider
    from rsocket.payload import Payload
    from rsocket.rsocket_client import RSocketClient
    from rsocket.transports.tcp import TransportTCP

    connection = await asyncio.open_connection("127.0.0.1", port)
    provider = single_transport_provider(TransportTCP(*connection, read_buffer_size=CHUNK))
    async with RSocketClient(provider) as client:
        began = perf_counter()
        got = len(
            await AwaitableRSocket(client).request_stream(
                Payload(b"x"), limit_rate=demand_for(size)
            )
        )
        assert got == count
        return nanoseconds_each(began, count)


@contextmanager
def grpc(size: int, count: int) -> Iterator[Timer]:
    """Open grpcio with threads."""
    import grpc as grpcio

    with (
        serving_process("grpc", size, count) as server,
        grpcio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        call = channel.unary_stream("/bench/elements")

        def timer() -> float:
            began = perf_counter()
            got = sum(1 for _ in call(b""))
            assert got == count
            return nanoseconds_each(began, count)

        timer()
        yield timer


async def read_grpc_aio(port: int, size: int, count: int) -> float:
    """Read a stream of grpcio on asyncio."""
    import grpc as grpcio

    async with grpcio.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        await channel.channel_ready()
        began, got = perf_counter(), 0
        async for _ in channel.unary_stream("/bench/elements")(b""):
            got += 1
        assert got == count
        return nanoseconds_each(began, count)


def element_contenders(size: int, count: int, slow_count: int) -> dict[str, Opening]:
    """Return the contenders that read elements of `size` bytes: slow libraries read `slow_count`
    elements, the others `count`.
    """
    return {
        "raw bytes": partial(over_trio, "raw", read_raw, size, count),
        "raw split": partial(over_trio, "split", read_split, size, count),
        "penstock, batches()": partial(over_trio, "penstock", read_batches, size, count),
        "penstock, by element": partial(over_trio, "penstock", read_elements, size, count),
        "pyzmq": partial(zeromq, size, count),
        "rsocket-py": partial(over_asyncio, "rsocket", read_rsocket, size, slow_count),
        "grpcio": partial(grpc, size, slow_count),
        "grpcio.aio": partial(over_asyncio, "grpc_aio", read_grpc_aio, size, slow_count),
    }


def packed_contenders(count: int) -> dict[str, Opening]:
    """Return the contenders that read elements of eight bytes as memory."""
    # The server yields blocks of 4,096 elements.
    count -= count % 4096
    return {
        "raw bytes": partial(over_trio, "raw", read_raw, 8, count),
        "penstock, buffers()": partial(over_trio, "penstock", read_buffers, 8, count),
    }


def tls_contenders(size: int, count: int) -> dict[str, Opening]:
    """Return the contenders that read over TLS."""
    return {
        "raw TLS": partial(over_tls, "raw", read_raw, size, count),
        "penstock, TLS": partial(over_tls, "penstock", read_elements_tls, size, count),
    }
