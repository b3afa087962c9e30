"""The server process of a network benchmark: its first argument names the function that serves;
it prints its port.

``python _peer_process.py KIND SIZE COUNT [CERTIFICATE]``:
the server sends COUNT elements of SIZE bytes for each request.
The process exits when its standard input ends, so it does not outlive the process that started it.
"""

import asyncio
import os
import random
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from itertools import cycle, islice
from typing import Any

import trio

PIECE = 64 << 10


def print_ports(*ports: int) -> None:
    """Print the ports to which the parent process connects."""
    for port in ports:
        sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


def exit_with_parent() -> None:
    """Exit when standard input ends. That also happens if the parent was killed."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def mixed_elements(shortest: int, longest: int) -> list[bytes]:
    """Return 1,000 elements with lengths between two bounds: the same ones for every contender."""
    draw = random.Random(7)
    return [bytes(draw.randint(shortest, longest)) for _ in range(1000)]


def json_objects() -> list[dict[str, Any]]:
    """Return 1,000 objects of five fields, as an API of a shop could send them."""
    return [
        {
            "id": n,
            "name": f"article {n}",
            "price": n * 1.25,
            "tags": ["new", "sale"],
            "stocked": n % 3 > 0,
        }
        for n in range(1000)
    ]


# --- the floors: trio without a library


async def serve_trio(handle: Callable[[Any], Any], certificate: str | None = None) -> None:
    """Serve one connection after another with trio alone."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print_ports(listeners[0].socket.getsockname()[1])
    secure = _server_context(certificate) if certificate else None
    async with listeners[0] as listener:
        while True:
            plain = await listener.accept()
            async with (
                plain
                if secure is None
                else trio.SSLStream(plain, secure, server_side=True) as stream
            ):
                try:
                    await handle(stream)
                except trio.BrokenResourceError:
                    continue


def _server_context(certificate: str) -> Any:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def raw(size: int, count: int, certificate: str | None = None) -> None:
    """Send SIZE x COUNT bytes in pieces of 64 KiB for each byte received:
    the most that the machine and trio can do.
    """

    async def handle(stream: Any) -> None:
        piece = bytes(PIECE)
        while await stream.receive_some(1):
            left = size * count
            while left > 0:
                await stream.send_all(piece[: min(left, len(piece))])
                left -= len(piece)

    trio.run(serve_trio, handle, certificate)


def split(size: int, count: int) -> None:
    """Send elements, each after a length of four bytes, joined to pieces of 64 KiB:
    the least work of a protocol.
    """

    async def handle(stream: Any) -> None:
        element = size.to_bytes(4, "big") + bytes(size)
        a_piece = max(1, PIECE // len(element))
        while await stream.receive_some(1):
            left = count
            while left > 0:
                await stream.send_all(b"".join([element for _ in range(min(left, a_piece))]))
                left -= a_piece

    trio.run(serve_trio, handle)


def mixed_split(shortest: int, count: int, longest: str) -> None:
    """Send elements of mixed lengths in the same way."""
    elements = [
        len(element).to_bytes(4, "big") + element
        for element in mixed_elements(shortest, int(longest))
    ]
    a_piece = max(1, PIECE * len(elements) // sum(map(len, elements)))

    async def handle(stream: Any) -> None:
        while await stream.receive_some(1):
            left, source = count, cycle(elements)
            while left > 0:
                await stream.send_all(b"".join(islice(source, min(left, a_piece))))
                left -= a_piece

    trio.run(serve_trio, handle)


def echo(size: int, count: int) -> None:
    """Send each received chunk back."""

    async def handle(stream: Any) -> None:
        async for data in stream:
            await stream.send_all(data)

    trio.run(serve_trio, handle)


# --- penstock


def penstock(size: int, count: int, certificate: str | None = None) -> None:
    """Serve with penstock and its default limits."""
    _serve_penstock(size, count, None, certificate)


def mixed_penstock(shortest: int, count: int, longest: str) -> None:
    """Serve elements of mixed lengths with penstock."""
    from penstock.runtime import Service

    service, mixed = Service(), mixed_elements(shortest, int(longest))

    @service.publisher("elements")
    async def elements() -> AsyncIterator[bytes]:
        for element in islice(cycle(mixed), count):
            yield element

    _serve(service)


def objects(size: int, count: int) -> None:
    """Serve JSON objects with penstock."""
    from penstock.runtime import Service

    service, made = Service(), json_objects()

    @service.publisher("objects", serializer="json")
    async def published() -> AsyncIterator[dict[str, Any]]:
        for each in islice(cycle(made), count):
            yield each

    _serve(service)


def penstock_raised(size: int, count: int) -> None:
    """Serve with raised limits: the default ones bound the rate of new streams per client and
    the number of idle streams.
    """
    from _raised import raised_limits

    _serve_penstock(size, count, raised_limits())


def penstock_observed(size: int, count: int) -> None:
    """Serve with raised limits, and an observer of streams."""
    from _raised import raised_limits

    from penstock.spi import StreamEnded, StreamOpened, build_registry, hookimpl

    # The same class as in `_observed.py`, whose module this process cannot import.
    class Observer:
        @hookimpl
        def penstock_stream_opened(self, event: StreamOpened) -> None:
            """Do nothing."""

        @hookimpl
        def penstock_stream_ended(self, event: StreamEnded) -> None:
            """Do nothing."""

    _serve_penstock(size, count, raised_limits(), registry=build_registry([Observer()]))


def penstock_deployed(size: int, count: int, mode: str) -> None:
    """Serve with raised limits: `bare`, with all plugins `installed`, or `collecting` metrics."""
    from _raised import bare_registry, raised_limits

    _serve_penstock(
        size,
        count,
        raised_limits(),
        registry=bare_registry() if mode == "bare" else None,
        beside=_collect if mode == "collecting" else None,
    )


def penstock_on(size: int, count: int, loop: str) -> None:
    """Serve with raised limits, with the functions of the service on `trio`, `asyncio` or
    `uvloop`.
    """
    from _raised import raised_limits

    _serve_penstock(size, count, raised_limits(), loop=loop)


async def _collect(server: Any) -> None:
    """Make a page of metrics each second, as Prometheus asks for one now and then."""
    import penstock_metrics
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    with penstock_metrics.collect(server, registry=registry):
        while True:
            await trio.to_thread.run_sync(generate_latest, registry)
            await trio.sleep(1)


def penstock_recorded(size: int, count: int, detail: str) -> None:
    """Serve with a recorder."""
    from tempfile import TemporaryDirectory

    from penstock.recording import Recorder
    from penstock.spi import build_registry

    with (
        TemporaryDirectory() as folder,
        Recorder(folder, detail="signals" if detail == "signals" else "runs") as recorder,
    ):
        _serve_penstock(size, count, None, registry=build_registry([recorder]))


def penstock_websocket(size: int, count: int) -> None:
    """Serve over WebSocket."""
    from penstock.runtime import Service

    service, element = Service(), bytes(size)

    @service.publisher("elements")
    async def elements() -> AsyncIterator[bytes]:
        for _ in range(count):
            yield element

    _serve(service, "ws")


def msgpack_objects(size: int, count: int) -> None:
    """Serve objects with the serializer `msgpack`."""
    _serve_objects(count, "msgpack")


def standard_objects(size: int, count: int) -> None:
    """Serve JSON objects without a type, which pass through Python's own json."""
    _serve_objects(count, "json")


def msgpack_structs(size: int, count: int) -> None:
    """Serve objects of a class of msgspec with the serializer `msgpack`."""
    from _articles import Article

    _serve_objects(count, "msgpack", Article)


def protobuf_objects(size: int, count: int) -> None:
    """Serve objects of a class of protobuf with the serializer `protobuf`."""
    from _articles import protobuf_article

    _serve_objects(count, "protobuf", protobuf_article())


def _serve_objects(count: int, serializer: str, kind: Any = None) -> None:
    from penstock.runtime import Service

    service, made = Service(), [each if kind is None else kind(**each) for each in json_objects()]

    @service.publisher("objects", serializer=serializer, type=kind)
    async def published() -> AsyncIterator[Any]:
        for each in islice(cycle(made), count):
            yield each

    _serve(service)


def penstock_busy(size: int, count: int) -> None:
    """Serve with raised limits and `busy_poll`."""
    from _raised import BUSY_POLL_SECONDS, raised_limits

    _serve_penstock(size, count, raised_limits(), busy_poll=BUSY_POLL_SECONDS)


def penstock_sleeping(size: int, count: int) -> None:
    """Serve with raised limits, and never poll."""
    from _raised import raised_limits

    _serve_penstock(size, count, raised_limits(), busy_poll=0)


def penstock_json(size: int, count: int) -> None:
    """Serve dataclasses as JSON."""
    _serve_records(count, is_typed=True)


def penstock_standard_json(size: int, count: int) -> None:
    """Serve dictionaries as JSON, which pass through Python's own json."""
    _serve_records(count, is_typed=False)


def _serve_records(count: int, *, is_typed: bool) -> None:
    import dataclasses

    from penstock.runtime import Service, serve

    # The fields of `_json_elements.Record`, whose module this process cannot import.
    @dataclasses.dataclass
    class Record:
        symbol: str
        price: float
        size: int
        venue: str
        is_open: bool

    service, record = Service(), Record("EURUSD", 1.08765, 1_000_000, "XETRA", is_open=True)
    element = record if is_typed else dataclasses.asdict(record)

    @service.publisher("records", serializer="json", type=Record if is_typed else None)
    async def records() -> AsyncIterator[Any]:
        for _ in range(count):
            yield element

    async def main() -> None:
        async with serve(service, "tcp://127.0.0.1:0") as server:
            print_ports(server.addresses[0].port)
            await trio.sleep_forever()

    trio.run(main)


def penstock_traced(size: int, count: int) -> None:
    """Serve with raised limits, and trace allocated memory."""
    import tracemalloc

    tracemalloc.start()
    penstock_raised(size, count)


def _serve_penstock(
    size: int,
    count: int,
    limits: Any,
    certificate: str | None = None,
    *,
    busy_poll: float | None = None,
    registry: Any = None,
    beside: Any = None,
    loop: str = "trio",
) -> None:
    from _raised import allocated_bytes, resident_bytes

    from penstock import aio
    from penstock.runtime import Service
    from penstock.spi import Tls, TransportOptions

    service = Service() if loop == "trio" else aio.Service()
    element = bytes(size)
    piece = bytes(8 * 4096)

    @service.publisher("elements")
    async def elements() -> AsyncIterator[bytes]:
        for _ in range(count):
            yield element

    mixed = mixed_elements(1, 2 * size)

    @service.publisher("mixed")
    async def of_mixed_lengths() -> AsyncIterator[bytes]:
        for each in islice(cycle(mixed), count):
            yield each

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

    options = TransportOptions(
        tls=Tls(certificate=certificate) if certificate else None, busy_poll=busy_poll
    )
    _serve(
        service,
        "tls" if certificate else "tcp",
        beside,
        loop,
        limits=limits,
        options=options,
        registry=registry,
    )


def _serve(
    service: Any,
    transport: str = "tcp",
    beside: Any = None,
    loop: str = "trio",
    **settings: Any,
) -> None:
    from penstock import aio
    from penstock.runtime import serve

    url = f"{transport}://127.0.0.1:0"

    async def on_asyncio() -> None:
        async with aio.serve(service, url, **settings) as server:
            print_ports(server.addresses[0].port)
            await asyncio.Event().wait()

    if loop == "asyncio":
        asyncio.run(on_asyncio())
    elif loop == "uvloop":
        import uvloop

        uvloop.run(on_asyncio())

    async def main() -> None:
        async with serve(service, url, **settings) as server:
            print_ports(server.addresses[0].port)
            if beside is not None:
                await beside(server)
            await trio.sleep_forever()

    trio.run(main)


# --- other libraries


def bare_websocket(size: int, count: int) -> None:
    """Serve with trio-websocket: one message for each element, after a message of the client."""
    import trio_websocket

    async def talk(request: Any) -> None:
        socket = await request.accept()
        element = bytes(size)
        try:
            await socket.get_message()
            for _ in range(count):
                await socket.send_message(element)
            await socket.get_message()
        except trio_websocket.ConnectionClosed:
            pass

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            start = partial(trio_websocket.serve_websocket, talk, "127.0.0.1", 0, None)
            server = await nursery.start(start)
            print_ports(server.port)

    trio.run(main)


def zeromq(size: int, count: int, longest: str | None = None) -> None:
    """Serve with pyzmq: a PUSH socket sends the elements after each request to a REP socket."""
    import zmq

    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    control = context.socket(zmq.REP)
    print_ports(
        socket.bind_to_random_port("tcp://127.0.0.1"),
        control.bind_to_random_port("tcp://127.0.0.1"),
    )
    elements = [bytes(size)] if longest is None else mixed_elements(size, int(longest))
    while True:
        control.recv()
        control.send(b"")
        for element in islice(cycle(elements), count):
            socket.send(element)


def rsocket(size: int, count: int) -> None:
    """Serve with rsocket-py: request_stream from a generator, and request_response
    that returns the request's data.
    """
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
            RSocketServer(
                TransportTCP(*connection, read_buffer_size=PIECE), handler_factory=Handler
            )

        server = await asyncio.start_server(session, "127.0.0.1", 0)
        print_ports(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def grpc(size: int, count: int) -> None:
    """Serve with grpcio on threads; the messages are bytes."""
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
    print_ports(port)
    server.wait_for_termination()


def grpc_aio(size: int, count: int) -> None:
    """Serve with grpcio on asyncio; the messages are bytes."""
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
        print_ports(port)
        await server.wait_for_termination()

    asyncio.run(main())


def _grpc_methods(elements: Any, echo_one: Any) -> Any:
    """Return the methods without serializers, so that a message is its bytes
    and no generated code is measured.
    """
    import grpc as grpcio

    return grpcio.method_handlers_generic_handler(
        "bench",
        {
            "elements": grpcio.unary_stream_rpc_method_handler(elements),
            "echo": grpcio.unary_unary_rpc_method_handler(echo_one),
        },
    )


if __name__ == "__main__":
    from _peer_logs import KINDS

    exit_with_parent()
    (globals() | KINDS)[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
