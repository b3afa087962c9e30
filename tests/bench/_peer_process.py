"""The other process of a network benchmark: serves elements in the way that its first argument names, and prints its port.

``python _peer_process.py KIND SIZE COUNT``: each connection gets COUNT elements of SIZE bytes, as often as it asks.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import trio

ALL = 2**31 - 1


def ready(port: int) -> None:
    """Tell the parent where to connect."""
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


async def serve_trio(talk: Callable[[trio.SocketStream], Any]) -> None:
    """A bare trio server."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    ready(listeners[0].socket.getsockname()[1])
    async with listeners[0] as listener:
        while True:
            async with await listener.accept() as stream:
                await talk(stream)


def raw(size: int, count: int) -> None:
    """Bytes, as many as the elements have, in pieces of 64 KiB: what the machine can do at all."""

    async def talk(stream: trio.SocketStream) -> None:
        piece = bytes(64 << 10)
        left = size * count
        while left > 0:
            await stream.send_all(piece[: min(left, len(piece))])
            left -= len(piece)

    trio.run(serve_trio, talk)


def split(size: int, count: int) -> None:
    """Elements behind a length of four bytes, joined to pieces of 64 KiB: the least that any protocol must do."""

    async def talk(stream: trio.SocketStream) -> None:
        element = size.to_bytes(4, "big") + bytes(size)
        a_piece = max(1, (64 << 10) // len(element))
        left = count
        while left > 0:
            await stream.send_all(b"".join([element for _ in range(min(left, a_piece))]))
            left -= a_piece

    trio.run(serve_trio, talk)


def echo(size: int, count: int) -> None:
    """Sends back what it gets."""

    async def talk(stream: trio.SocketStream) -> None:
        async for data in stream:
            await stream.send_all(data)

    trio.run(serve_trio, talk)


def penstock(size: int, count: int) -> None:
    """Our own service."""
    from penstock.runtime import Service, serve

    service = Service()

    @service.publisher("elements")
    async def elements() -> AsyncIterator[bytes]:
        element = bytes(size)
        for _ in range(count):
            yield element

    @service.publisher("packed", element_size=8)
    async def packed() -> AsyncIterator[bytes]:
        piece = bytes(8 * 4096)
        for _ in range(count // 4096):
            yield piece

    @service.publisher("one")
    async def one() -> AsyncIterator[bytes]:
        yield bytes(size)

    async def main() -> None:
        async with serve(service, "tcp://127.0.0.1:0") as server:
            ready(int(server.addresses[0].rsplit(":", 1)[1]))
            await trio.sleep_forever()

    trio.run(main)


def zeromq(size: int, count: int) -> None:
    """pyzmq, push: what many would take for the fastest."""
    import zmq

    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    ready(socket.bind_to_random_port("tcp://127.0.0.1"))
    control = context.socket(zmq.REP)
    ready(control.bind_to_random_port("tcp://127.0.0.1"))
    element = bytes(size)
    while True:
        control.recv()
        control.send(b"")
        for _ in range(count):
            socket.send(element)


def rsocket(size: int, count: int) -> None:
    """rsocket-py, request_stream from a generator."""
    from rsocket.payload import Payload
    from rsocket.request_handler import BaseRequestHandler
    from rsocket.rsocket_server import RSocketServer
    from rsocket.streams.stream_from_generator import StreamFromGenerator
    from rsocket.transports.tcp import TransportTCP

    class Handler(BaseRequestHandler):
        async def request_stream(self, payload: Payload) -> Any:
            return StreamFromGenerator(self._elements)

        async def request_response(self, payload: Payload) -> Any:
            future = asyncio.get_running_loop().create_future()
            future.set_result(Payload(payload.data))
            return future

        def _elements(self) -> Iterator[tuple[Payload, bool]]:
            element = bytes(size)
            for number in range(count):
                yield Payload(element), number == count - 1

    async def main() -> None:
        def session(*connection: Any) -> None:
            RSocketServer(TransportTCP(*connection, read_buffer_size=64 << 10), handler_factory=Handler)

        server = await asyncio.start_server(session, "127.0.0.1", 0)
        ready(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def grpc(size: int, count: int) -> None:
    """grpcio, a unary-stream method with bytes for messages, on threads."""
    from concurrent.futures import ThreadPoolExecutor

    import grpc as grpcio

    def elements(request: bytes, context: Any) -> Iterator[bytes]:
        element = bytes(size)
        for _ in range(count):
            yield element

    handler = grpcio.method_handlers_generic_handler(
        "bench", {"elements": grpcio.unary_stream_rpc_method_handler(elements), "echo": grpcio.unary_unary_rpc_method_handler(_same)}
    )
    server = grpcio.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    ready(port)
    server.wait_for_termination()


def _same(request: bytes, context: Any) -> bytes:
    return request


def grpc_aio(size: int, count: int) -> None:
    """The same on grpcio's asyncio."""
    import grpc as grpcio

    async def elements(request: bytes, context: Any) -> AsyncIterator[bytes]:
        element = bytes(size)
        for _ in range(count):
            yield element

    async def echo_one(request: bytes, context: Any) -> bytes:
        return request

    async def main() -> None:
        server = grpcio.aio.server()
        handler = grpcio.method_handlers_generic_handler(
            "bench", {"elements": grpcio.unary_stream_rpc_method_handler(elements), "echo": grpcio.unary_unary_rpc_method_handler(echo_one)}
        )
        server.add_generic_rpc_handlers((handler,))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        ready(port)
        await server.wait_for_termination()

    asyncio.run(main())


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
