"""The serving process of a network benchmark. The first argument names the function below that serves; the port is printed.

``python _peer_process.py KIND SIZE COUNT [CERTIFICATE]``: each connection gets COUNT elements of SIZE bytes for each request.
The process ends when its standard input does, and so when its parent process ends.
"""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import trio

PIECE = 64 << 10


def ready(*ports: int) -> None:
    """Print the ports for the parent process."""
    for port in ports:
        sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


def exit_with_the_parent() -> None:
    """Exit when standard input ends: the system closes it even if the parent was killed."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


# --- the floors: trio and nothing else


async def serve_trio(talk: Callable[[Any], Any], certificate: str | None = None) -> None:
    """Serve with trio alone."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    ready(listeners[0].socket.getsockname()[1])
    secure = _server_context(certificate) if certificate else None
    async with listeners[0] as listener:
        while True:
            plain = await listener.accept()
            async with plain if secure is None else trio.SSLStream(plain, secure, server_side=True) as stream:
                try:
                    await talk(stream)
                except trio.BrokenResourceError:
                    continue


def _server_context(certificate: str) -> Any:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def raw(size: int, count: int, certificate: str | None = None) -> None:
    """For each byte received, send the bytes of all elements in pieces of 64 KiB: the least that the machine must do."""

    async def talk(stream: Any) -> None:
        piece = bytes(PIECE)
        while await stream.receive_some(1):
            left = size * count
            while left > 0:
                await stream.send_all(piece[: min(left, len(piece))])
                left -= len(piece)

    trio.run(serve_trio, talk, certificate)


def split(size: int, count: int) -> None:
    """Send elements with a length of four bytes, joined to pieces of 64 KiB: the least that any protocol must do."""

    async def talk(stream: Any) -> None:
        element = size.to_bytes(4, "big") + bytes(size)
        a_piece = max(1, PIECE // len(element))
        while await stream.receive_some(1):
            left = count
            while left > 0:
                await stream.send_all(b"".join([element for _ in range(min(left, a_piece))]))
                left -= a_piece

    trio.run(serve_trio, talk)


def echo(size: int, count: int) -> None:
    """Send the received bytes back."""

    async def talk(stream: Any) -> None:
        async for data in stream:
            await stream.send_all(data)

    trio.run(serve_trio, talk)


# --- penstock


def penstock(size: int, count: int, certificate: str | None = None) -> None:
    """Serve with penstock, with the default limits."""
    _serve_penstock(size, count, None, certificate)


def penstock_raised(size: int, count: int) -> None:
    """Serve with penstock, with raised limits: for faster round trips and more idle streams than the default limits allow."""
    from _limits_and_memory import raised_limits

    _serve_penstock(size, count, raised_limits())


def penstock_busy(size: int, count: int) -> None:
    """Serve with raised limits and with `busy_poll`."""
    from _limits_and_memory import BUSY_POLL_SECONDS, raised_limits

    _serve_penstock(size, count, raised_limits(), busy_poll=BUSY_POLL_SECONDS)


def penstock_traced(size: int, count: int) -> None:
    """Serve with raised limits, and trace the allocated memory."""
    import tracemalloc

    tracemalloc.start()
    penstock_raised(size, count)


def _serve_penstock(size: int, count: int, limits: Any, certificate: str | None = None, *, busy_poll: float = 0.0) -> None:
    from _limits_and_memory import allocated_bytes, resident_bytes

    from penstock.plugins import Tls, TransportOptions
    from penstock.runtime import Service, serve

    service = Service()
    element = bytes(size)
    piece = bytes(8 * 4096)

    @service.publisher("elements")
    async def elements() -> AsyncIterator[bytes]:
        for _ in range(count):
            yield element

    @service.publisher("packed", element_size=8)
    async def packed() -> AsyncIterator[bytes]:
        for _ in range(count // 4096):
            yield piece

    @service.publisher("one")
    async def one() -> AsyncIterator[bytes]:
        yield element

    @service.request_stream
    async def requested(data: bytes) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield element

    @service.request_response
    async def answer(data: bytes) -> bytes:
        return data

    @service.publisher("memory", serializer="json")
    async def memory() -> AsyncIterator[dict[str, int]]:
        yield {"allocated": allocated_bytes(), "resident": resident_bytes()}

    async def main() -> None:
        options = TransportOptions(tls=Tls(certificate=certificate) if certificate else None, busy_poll=busy_poll)
        async with serve(service, f"{'tls' if certificate else 'tcp'}://127.0.0.1:0", limits=limits, options=options) as server:
            ready(int(server.addresses[0].rsplit(":", 1)[1]))
            await trio.sleep_forever()

    trio.run(main)


# --- other libraries


def zeromq(size: int, count: int) -> None:
    """pyzmq, a PUSH socket."""
    import zmq

    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    control = context.socket(zmq.REP)
    ready(socket.bind_to_random_port("tcp://127.0.0.1"), control.bind_to_random_port("tcp://127.0.0.1"))
    element = bytes(size)
    while True:
        control.recv()
        control.send(b"")
        for _ in range(count):
            socket.send(element)


def rsocket(size: int, count: int) -> None:
    """rsocket-py: request_stream from a generator, and a request_response that returns the request's data."""
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
            RSocketServer(TransportTCP(*connection, read_buffer_size=PIECE), handler_factory=Handler)

        server = await asyncio.start_server(session, "127.0.0.1", 0)
        ready(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def grpc(size: int, count: int) -> None:
    """Grpcio on threads, with bytes as messages."""
    from concurrent.futures import ThreadPoolExecutor

    import grpc as grpcio

    element = bytes(size)

    def elements(request: bytes, context: Any) -> Iterator[bytes]:
        for _ in range(count):
            yield element

    def echo_one(request: bytes, context: Any) -> bytes:
        return request

    server = grpcio.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((_grpc_methods(elements, echo_one),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    ready(port)
    server.wait_for_termination()


def grpc_aio(size: int, count: int) -> None:
    """Grpcio on asyncio, with bytes as messages."""
    import grpc as grpcio

    element = bytes(size)

    async def elements(request: bytes, context: Any) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield element

    async def echo_one(request: bytes, context: Any) -> bytes:
        return request

    async def main() -> None:
        server = grpcio.aio.server()
        server.add_generic_rpc_handlers((_grpc_methods(elements, echo_one),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        ready(port)
        await server.wait_for_termination()

    asyncio.run(main())


def _grpc_methods(elements: Any, echo_one: Any) -> Any:
    """Return the handlers. Without serializers a message is bytes, so no generated code is measured."""
    import grpc as grpcio

    return grpcio.method_handlers_generic_handler(
        "bench", {"elements": grpcio.unary_stream_rpc_method_handler(elements), "echo": grpcio.unary_unary_rpc_method_handler(echo_one)}
    )


if __name__ == "__main__":
    exit_with_the_parent()
    globals()[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
