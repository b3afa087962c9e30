"""The contenders over loopback, each with its other half in a process of its own."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import trio

HERE = Path(__file__).parent


@contextmanager
def peer(kind: str, size: int, count: int) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """Run the other half; give its port, and the process for more lines of its own."""
    command = [sys.executable, str(HERE / "_peer_process.py"), kind, str(size), str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), process
        finally:
            process.kill()


def timed(run: Callable[[], int]) -> float:
    """Seconds for each element."""
    began = perf_counter()
    count = run()
    return (perf_counter() - began) / count


def raw(size: int, count: int, rounds: int) -> list[float]:
    async def read(port: int) -> int:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        got = 0
        async with stream:
            while got < size * count:
                got += len(await stream.receive_some(64 << 10))
        return count

    with peer("raw", size, count) as (port, _):
        return [timed(lambda: trio.run(read, port)) for _ in range(rounds)]


def split(size: int, count: int, rounds: int) -> list[float]:
    async def read(port: int) -> int:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        got, rest = 0, b""
        async with stream:
            while got < count:
                data = rest + await stream.receive_some(64 << 10)
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
        return got

    with peer("split", size, count) as (port, _):
        return [timed(lambda: trio.run(read, port)) for _ in range(rounds)]


def penstock_elements(size: int, count: int, rounds: int) -> list[float]:
    from penstock.runtime import connect

    async def read(port: int) -> int:
        got = 0
        async with connect(f"tcp://127.0.0.1:{port}") as remote, remote.subscribe("elements", demand=1024) as stream:
            async for _ in stream:
                got += 1
        return got

    with peer("penstock", size, count) as (port, _):
        return [timed(lambda: trio.run(read, port)) for _ in range(rounds)]


def penstock_batches(size: int, count: int, rounds: int) -> list[float]:
    from penstock.runtime import connect

    async def read(port: int) -> int:
        got = 0
        async with connect(f"tcp://127.0.0.1:{port}") as remote, remote.subscribe("elements", demand=1024) as stream:
            async for batch in stream.batches():
                got += len(batch)
        return got

    with peer("penstock", size, count) as (port, _):
        return [timed(lambda: trio.run(read, port)) for _ in range(rounds)]


def zeromq(size: int, count: int, rounds: int) -> list[float]:
    import zmq

    with peer("zeromq", size, count) as (port, process):
        assert process.stdout is not None
        control_port = int(process.stdout.readline())
        context = zmq.Context()
        socket, control = context.socket(zmq.PULL), context.socket(zmq.REQ)
        socket.connect(f"tcp://127.0.0.1:{port}")
        control.connect(f"tcp://127.0.0.1:{control_port}")

        def read() -> int:
            control.send(b"")
            control.recv()
            for _ in range(count):
                socket.recv()
            return count

        try:
            return [timed(read) for _ in range(rounds)]
        finally:
            context.destroy(linger=0)


def rsocket(size: int, count: int, rounds: int) -> list[float]:
    from rsocket.awaitable.awaitable_rsocket import AwaitableRSocket
    from rsocket.helpers import single_transport_provider
    from rsocket.payload import Payload
    from rsocket.rsocket_client import RSocketClient
    from rsocket.transports.tcp import TransportTCP

    async def read(port: int) -> int:
        connection = await asyncio.open_connection("127.0.0.1", port)
        provider = single_transport_provider(TransportTCP(*connection, read_buffer_size=64 << 10))
        async with RSocketClient(provider) as client:
            return len(await AwaitableRSocket(client).request_stream(Payload(b"x"), limit_rate=1024))

    with peer("rsocket", size, count) as (port, _):
        return [timed(lambda: asyncio.run(read(port))) for _ in range(rounds)]


def grpc(size: int, count: int, rounds: int) -> list[float]:
    import grpc as grpcio

    with peer("grpc", size, count) as (port, _), grpcio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_stream("/bench/elements")

        def read() -> int:
            return sum(1 for _ in call(b""))

        return [timed(read) for _ in range(rounds)]


def grpc_aio(size: int, count: int, rounds: int) -> list[float]:
    import grpc as grpcio

    async def read(port: int) -> int:
        got = 0
        async with grpcio.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            async for _ in channel.unary_stream("/bench/elements")(b""):
                got += 1
        return got

    with peer("grpc_aio", size, count) as (port, _):
        return [timed(lambda: asyncio.run(read(port))) for _ in range(rounds)]


ALL: dict[str, tuple[Callable[[int, int, int], list[float]], float]] = {
    "raw bytes": (raw, 1),
    "raw, split": (split, 1),
    "penstock, batches()": (penstock_batches, 1),
    "penstock, by element": (penstock_elements, 1),
    "pyzmq": (zeromq, 1),
    "rsocket-py": (rsocket, 0.05),
    "grpcio": (grpc, 0.05),
    "grpcio.aio": (grpc_aio, 0.05),
}


def main() -> Any:
    from statistics import median

    for size, count in ((64, 400_000), (4096, 60_000), (262_144, 1_500)):
        print(f"--- {size} bytes")
        for name, (run, share) in ALL.items():
            each = median(run(size, max(10, int(count * share)), 3))
            print(f"{name:<24} {each * 1e9:>12,.0f} ns  {1 / each:>14,.0f}/s  {size / each / 1e6:>10,.0f} MB/s")


if __name__ == "__main__":
    main()
