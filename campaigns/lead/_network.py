"""Libraries that connect a producer and a reader without a broker. Each `serve_…` is a producer, and
each `read_…` a reader, as the library's own documentation writes them.

A row with the best setting has the same functions, and `options["best"]`.
"""

import asyncio
import base64
import queue
import threading
from collections.abc import AsyncGenerator, Iterator
from typing import Any, Final

from campaigns.lead._side import TAKEN, Side

# --- grpcio

WINDOW: Final = (
    # The reader takes ahead as little as HTTP/2 lets it, and does not measure the connection to
    # take more.
    ("grpc.http2.lookahead_bytes", 1),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.write_buffer_size", 1),
)
METHOD: Final = "/lead/elements"


def _grpc_options(side: Side) -> list[tuple[str, int]]:
    return list(WINDOW) if side.options.get("best") else []


def _grpc_handler(elements: Any) -> Any:
    import grpc

    handler = grpc.unary_stream_rpc_method_handler(elements)
    return grpc.method_handlers_generic_handler("lead", {"elements": handler})


async def serve_grpc_aio(side: Side) -> None:
    import grpc

    async def elements(_request: bytes, _context: Any) -> AsyncGenerator[bytes, None]:
        async for element in side.elements():
            yield element

    server = grpc.aio.server(options=_grpc_options(side))
    server.add_generic_rpc_handlers((_grpc_handler(elements),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await side.serve_forever(f"127.0.0.1:{port}")


async def read_grpc_aio(side: Side) -> None:
    import grpc

    await side.begin()
    async with grpc.aio.insecure_channel(side.address, options=_grpc_options(side)) as channel:
        call = channel.unary_stream(METHOD)(b"")
        for _ in range(TAKEN):
            side.take(await call.read())
        await side.stop()
        call.cancel()
    await side.left()


def serve_grpc_threads(side: Side) -> None:
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    def elements(_request: bytes, _context: Any) -> Iterator[bytes]:
        yield from side.all_elements()

    server = grpc.server(ThreadPoolExecutor(4), options=_grpc_options(side))
    server.add_generic_rpc_handlers((_grpc_handler(elements),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    side.say("ready", f"127.0.0.1:{port}")
    server.wait_for_termination()


def read_grpc_threads(side: Side) -> None:
    import grpc

    side.say("ready")
    side.wait()
    with grpc.insecure_channel(side.address, options=_grpc_options(side)) as channel:
        call = channel.unary_stream(METHOD)(b"")
        for _ in range(TAKEN):
            side.take(next(call))
        side.say("stopped")
        side.wait()
        call.cancel()
    side.say("left")


# --- websockets


async def serve_websockets(side: Side) -> None:
    from websockets.asyncio.server import serve

    async def handle(connection: Any) -> None:
        async for element in side.elements():
            await connection.send(element)

    # The page "Memory and buffers" names these.
    settings: dict[str, Any] = {"write_limit": 0, "max_queue": 1} if side.options["best"] else {}
    async with serve(handle, "127.0.0.1", 0, **settings) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        await side.serve_forever(f"ws://127.0.0.1:{port}")


async def read_websockets(side: Side) -> None:
    from websockets.asyncio.client import connect

    await side.begin()
    settings: dict[str, Any] = {"write_limit": 0, "max_queue": 1} if side.options["best"] else {}
    async with connect(side.address, **settings) as connection:
        for _ in range(TAKEN):
            side.take(await connection.recv())
        await side.stop()
    await side.left()


# --- server-sent events


def _text(element: bytes, size: int) -> str:
    """Return a text of `size` characters: an event has no bytes."""
    return base64.b64encode(element[: size * 3 // 4]).decode()


async def _serve_site(side: Side, app: Any) -> None:
    import uvicorn

    config = uvicorn.Config(app, port=0, log_level="error", access_log=False)
    server, socket = uvicorn.Server(config), config.bind_socket()
    task = asyncio.create_task(server.serve([socket]))
    while not server.started:  # noqa: ASYNC110 (uvicorn has a flag, and no event)
        await asyncio.sleep(0.01)
    await side.serve_forever(f"http://127.0.0.1:{socket.getsockname()[1]}")
    await task


async def serve_sse_starlette(side: Side) -> None:
    from sse_starlette import EventSourceResponse
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def events() -> AsyncGenerator[dict[str, str], None]:
        async for element in side.elements():
            yield {"data": _text(element, side.size)}

    settings: dict[str, Any] = {"send_timeout": 1} if side.options["best"] else {}

    async def stream(_request: Any) -> Any:
        return EventSourceResponse(events(), **settings)

    await _serve_site(side, Starlette(routes=[Route("/", stream)]))


async def serve_starlette(side: Side) -> None:
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    async def events() -> AsyncGenerator[str, None]:
        async for element in side.elements():
            yield f"data: {_text(element, side.size)}\n\n"

    async def stream(_request: Any) -> Any:
        return StreamingResponse(events(), media_type="text/event-stream")

    await _serve_site(side, Starlette(routes=[Route("/", stream)]))


async def read_events(side: Side) -> None:
    import httpx

    await side.begin()
    async with (
        httpx.AsyncClient(timeout=None) as client,
        client.stream("GET", side.address) as answer,
    ):
        lines = answer.aiter_lines()
        for _ in range(TAKEN):
            while not (line := await anext(lines)).startswith("data:"):
                pass
            side.take(line)
        await side.stop()
    await side.left()


# --- python-socketio


async def serve_socketio(side: Side) -> None:
    import socketio

    server = socketio.AsyncServer(async_mode="asgi")

    async def feed(reader: str) -> None:
        async for element in side.elements():
            if side.options["best"]:  # waits until the reader has acknowledged
                await server.call("element", element, to=reader, timeout=3600)
            else:
                await server.emit("element", element, to=reader)

    @server.event
    async def connect(reader: str, _environ: Any, _auth: Any) -> None:
        server.start_background_task(feed, reader)

    await _serve_site(side, socketio.ASGIApp(server))


async def read_socketio(side: Side) -> None:
    import socketio

    await side.begin()
    client = socketio.AsyncClient()
    has_taken, may_go_on = asyncio.Event(), asyncio.Event()
    got = 0

    @client.on("element")
    async def take(data: bytes) -> None:
        nonlocal got
        if got == TAKEN:
            has_taken.set()
            await may_go_on.wait()
        got += 1
        side.take(data)

    await client.connect(side.address)
    await has_taken.wait()
    await side.stop()
    await client.disconnect()
    await side.left()


# --- pyzmq


def serve_zmq(side: Side) -> None:
    import zmq

    sock = zmq.Context().socket(zmq.PUSH)
    if side.options["best"]:
        sock.setsockopt(zmq.SNDHWM, 1)
        sock.setsockopt(zmq.SNDBUF, 1)
    port = sock.bind_to_random_port("tcp://127.0.0.1")
    side.say("ready", f"tcp://127.0.0.1:{port}")
    for element in side.all_elements():
        sock.send(element)


def read_zmq(side: Side) -> None:
    import zmq

    side.say("ready")
    side.wait()
    context = zmq.Context()
    sock = context.socket(zmq.PULL)
    if side.options["best"]:
        sock.setsockopt(zmq.RCVHWM, 1)
        sock.setsockopt(zmq.RCVBUF, 1)
    sock.connect(side.address)
    for _ in range(TAKEN):
        side.take(sock.recv())
    side.say("stopped")
    side.wait()
    sock.close()
    context.term()
    side.say("left")


def serve_zmq_credit(side: Side) -> None:
    """The guide's chapter on credit-based flow control: the reader asks for each element."""
    import zmq

    sock = zmq.Context().socket(zmq.ROUTER)
    port = sock.bind_to_random_port("tcp://127.0.0.1")
    side.say("ready", f"tcp://127.0.0.1:{port}")
    elements = side.all_elements()
    while True:
        reader, _ = sock.recv_multipart()
        sock.send_multipart([reader, next(elements)])


def read_zmq_credit(side: Side) -> None:
    import zmq

    side.say("ready")
    side.wait()
    context = zmq.Context()
    sock = context.socket(zmq.DEALER)
    sock.connect(side.address)
    for _ in range(side.options["credit"]):
        sock.send(b"next")
    for _ in range(TAKEN):
        side.take(sock.recv())
        sock.send(b"next")
    side.say("stopped")
    side.wait()
    sock.close()
    context.term()
    side.say("left")


# --- rsocket-py


async def serve_rsocket_py(side: Side) -> None:
    from rsocket.payload import Payload
    from rsocket.request_handler import BaseRequestHandler
    from rsocket.rsocket_server import RSocketServer
    from rsocket.streams.stream_from_async_generator import StreamFromAsyncGenerator
    from rsocket.transports.tcp import TransportTCP

    async def elements() -> AsyncGenerator[tuple[Payload, bool], None]:
        async for element in side.elements():
            yield Payload(element), False

    class Handler(BaseRequestHandler):
        async def request_stream(self, payload: Payload) -> Any:
            return StreamFromAsyncGenerator(elements)

    def session(*connection: Any) -> None:
        RSocketServer(TransportTCP(*connection), handler_factory=Handler)

    server = await asyncio.start_server(session, "127.0.0.1", 0)
    await side.serve_forever(server.sockets[0].getsockname()[1])


async def read_rsocket_py(side: Side) -> None:
    from reactivestreams.subscriber import DefaultSubscriber
    from rsocket.helpers import single_transport_provider
    from rsocket.payload import Payload
    from rsocket.rsocket_client import RSocketClient
    from rsocket.transports.tcp import TransportTCP

    await side.begin()
    arrived: asyncio.Queue[Any] = asyncio.Queue()
    subscriber = DefaultSubscriber(on_next=lambda value, _is_complete: arrived.put_nowait(value))
    connection = await asyncio.open_connection("127.0.0.1", int(side.address))
    async with RSocketClient(single_transport_provider(TransportTCP(*connection))) as client:
        publisher: Any = client.request_stream(Payload(b""))
        best = bool(side.options["best"])
        (publisher.initial_request_n(1) if best else publisher).subscribe(subscriber)
        for number in range(TAKEN):
            side.take((await arrived.get()).data)
            if best and number + 1 < TAKEN:
                subscriber.subscription.request(1)
        await side.stop()
        subscriber.subscription.cancel()
    await side.left()


# --- in one program


async def both_queue(side: Side) -> None:
    """Two tasks with a queue between them."""
    await side.begin()
    elements: asyncio.Queue[bytes] = asyncio.Queue(1 if side.options["best"] else 0)

    async def fill() -> None:
        async for element in side.elements():
            await elements.put(element)

    async def take() -> None:
        for _ in range(TAKEN):
            side.take(await elements.get())
        await side.stop()

    producer = asyncio.create_task(fill())
    reader = asyncio.create_task(take())
    await reader
    await side.left()
    await producer


def both_reactivex(side: Side) -> None:
    """An observable that is made in one thread and read in another."""
    import reactivex
    from reactivex import operators
    from reactivex.scheduler import NewThreadScheduler

    side.say("ready")
    side.wait()
    may_go_on: queue.SimpleQueue[None] = queue.SimpleQueue()
    has_taken = threading.Event()
    got = 0

    def take(element: bytes) -> None:
        nonlocal got
        if got == TAKEN:
            has_taken.set()
            may_go_on.get()
        got += 1
        side.take(element)

    source = reactivex.from_iterable(side.all_elements(), scheduler=NewThreadScheduler())
    subscription = source.pipe(operators.observe_on(NewThreadScheduler())).subscribe(take)
    has_taken.wait()
    side.say("stopped")
    side.wait()
    subscription.dispose()
    side.say("left")
