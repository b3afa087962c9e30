"""The meter finds what bounds a stream, and blames no honest one. Real loops and sockets."""

import asyncio
import math
import queue as queues
import socket
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
import trio
import websockets.asyncio.client
import websockets.asyncio.server
from penstock_tck.lead import Lead, MakeStream, Produced, bound_of, events_of, lead_of, run_lead_of
from reactivestreams.subscriber import DefaultSubscriber
from rsocket.helpers import single_transport_provider
from rsocket.payload import Payload
from rsocket.request_handler import BaseRequestHandler
from rsocket.rsocket_client import RSocketClient
from rsocket.rsocket_server import RSocketServer
from rsocket.streams.stream_from_async_generator import StreamFromAsyncGenerator
from rsocket.transports.tcp import TransportTCP

import penstock
from penstock import aio, ops
from penstock.api import UsageError

TAKEN = 10
PAUSE = threading.Event()  # never set
Measure = Callable[[MakeStream], Lead]


def on_trio(make: MakeStream) -> Lead:
    """Measure on trio."""
    return trio.run(lambda: lead_of(make, taken=TAKEN, most=4_000, quiet=0.1))


def on_asyncio(make: MakeStream) -> Lead:
    """Measure on asyncio."""
    return asyncio.run(lead_of(make, taken=TAKEN, most=4_000, quiet=0.1))


# --- streams for both loops


async def itself(produced: Produced) -> AsyncGenerator[bytes, None]:
    try:
        async for element in produced:
            yield element
    finally:
        await produced.aclose()


async def mapped(produced: Produced) -> AsyncGenerator[bytes, None]:
    async with aclosing(itself(produced)) as elements:
        async for element in elements:
            yield element[::-1]


async def in_pairs(produced: Produced) -> AsyncGenerator[bytes, None]:
    pair: list[bytes] = []
    async for element in produced:
        pair.append(element)
        while len(pair) == 2:
            yield pair.pop(0)
            yield pair.pop(0)


async def all_at_once(produced: Produced) -> AsyncGenerator[bytes, None]:
    for element in [each async for each in produced]:
        yield element


async def in_hundreds(produced: Produced) -> AsyncGenerator[bytes, None]:
    hundred: list[bytes] = []
    async for element in produced:
        hundred.append(element)
        if len(hundred) == 100:
            while hundred:
                yield hundred.pop(0)


# --- trio


def channel(size: float) -> MakeStream:
    @asynccontextmanager
    async def opened(produced: Produced) -> AsyncIterator[AsyncIterator[bytes]]:
        send, receive = trio.open_memory_channel[bytes](size)

        async def feed() -> None:
            with suppress(trio.BrokenResourceError):  # the reader has left
                async for element in produced:
                    await send.send(element)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(feed)
            yield receive
            nursery.cancel_scope.cancel()
        await produced.aclose()

    return opened


def subscribed(demand: int) -> MakeStream:
    return lambda produced: penstock.subscribe(itself(produced), demand=demand)


def over_penstock(demand: int) -> MakeStream:
    @asynccontextmanager
    async def opened(produced: Produced) -> AsyncIterator[Any]:
        service = penstock.Service()
        service.publisher("elements")(lambda: itself(produced))
        async with (
            penstock.serve(service, "tcp://127.0.0.1:0") as server,
            penstock.subscribe(f"{server.addresses[0]}/elements", demand=demand) as stream,
        ):
            yield stream

    return opened


@asynccontextmanager
async def over_a_socket_of_trio(produced: Produced) -> AsyncIterator[AsyncIterator[bytes]]:
    one, two = trio.socket.socketpair()
    sender, receiver = trio.SocketStream(one), trio.SocketStream(two)

    async def feed() -> None:
        async for element in produced:
            await sender.send_all(len(element).to_bytes(4, "big") + element)

    async def read() -> AsyncGenerator[bytes, None]:
        data = b""
        while True:
            while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
                data += await receiver.receive_some(4096)
            size = 4 + int.from_bytes(data[:4], "big")
            yield data[4:size]
            data = data[size:]

    async with trio.open_nursery() as nursery, sender, receiver:
        nursery.start_soon(feed)
        yield read()
        nursery.cancel_scope.cancel()
    await produced.aclose()


# --- asyncio


def queue(size: int) -> MakeStream:
    @asynccontextmanager
    async def opened(produced: Produced) -> AsyncIterator[AsyncIterator[bytes]]:
        elements: asyncio.Queue[bytes] = asyncio.Queue(size)

        async def feed() -> None:
            async for element in produced:
                await elements.put(element)

        async def read() -> AsyncGenerator[bytes, None]:
            while True:
                yield await elements.get()

        task = asyncio.create_task(feed())
        yield read()
        task.cancel()
        await produced.aclose()

    return opened


def over_streams(*, drains: bool) -> MakeStream:
    @asynccontextmanager
    async def opened(produced: Produced) -> AsyncIterator[AsyncIterator[bytes]]:
        one, two = socket.socketpair()
        reader, closing = await asyncio.open_connection(sock=one)
        _, writer = await asyncio.open_connection(sock=two)

        async def feed() -> None:
            async for element in produced:
                writer.write(len(element).to_bytes(4, "big") + element)
                if drains:
                    await writer.drain()

        async def read() -> AsyncGenerator[bytes, None]:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                yield await reader.readexactly(size)

        task = asyncio.create_task(feed())
        yield read()
        task.cancel()
        writer.transport.abort()
        closing.transport.abort()
        await produced.aclose()

    return opened


@asynccontextmanager
async def over_websockets(produced: Produced) -> AsyncIterator[AsyncIterator[Any]]:
    async def handle(connection: websockets.asyncio.server.ServerConnection) -> None:
        async for element in produced:
            await connection.send(element)

    async with (
        websockets.asyncio.server.serve(handle, "127.0.0.1", 0, compression=None) as server,
        websockets.asyncio.client.connect(
            f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}", compression=None
        ) as client,
    ):
        yield aiter(client)
        client.transport.abort()
    await produced.aclose()


@asynccontextmanager
async def over_penstock_on_asyncio(produced: Produced) -> AsyncIterator[AsyncIterator[Any]]:
    service = aio.Service()
    service.publisher("elements")(lambda: itself(produced))
    async with (
        aio.serve(service, "tcp://127.0.0.1:0") as server,
        aio.connect(str(server.addresses[0])) as peer,
        peer.subscribe("elements", demand=4) as stream,
    ):
        yield aiter(stream)


async def with_tasks(produced: Produced) -> AsyncGenerator[bytes, None]:
    """Each element has a task that makes it, and all of them are started at once."""

    async def one() -> bytes:
        return await anext(produced, b"")

    for task in [asyncio.create_task(one()) for _ in range(4_000)]:
        yield await task


# --- streams without a bound, some of them of libraries


def with_deque(pause: Callable[[float], Any]) -> MakeStream:
    """A task appends to a deque, and the reader looks whether there is something."""

    async def feed(produced: Produced, elements: deque[bytes]) -> None:
        async for element in produced:
            elements.append(element)

    async def read(elements: deque[bytes]) -> AsyncGenerator[bytes, None]:
        while True:
            while not elements:
                await pause(0)
            yield elements.popleft()

    @asynccontextmanager
    async def opened(produced: Produced) -> AsyncIterator[AsyncIterator[bytes]]:
        elements: deque[bytes] = deque()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(feed, produced, elements)
            yield read(elements)
            tasks.cancel_scope.cancel()

    return opened


@asynccontextmanager
async def over_a_queue_of_threads(produced: Produced) -> AsyncIterator[AsyncIterator[bytes]]:
    """As a callback of another thread would put them."""
    elements: queues.SimpleQueue[bytes] = queues.SimpleQueue()

    async def feed() -> None:
        async for element in produced:
            elements.put(element)

    async def read() -> AsyncGenerator[bytes, None]:
        while True:
            yield await trio.to_thread.run_sync(elements.get)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed)
        yield read()
        nursery.cancel_scope.cancel()


def over_buffer_of_penstock(produced: Produced) -> Any:
    """The operator that buffers ahead, with a bound that is none."""
    return penstock.subscribe(penstock.pipe(itself(produced), ops.buffer(1_000_000)), demand=1)


@asynccontextmanager
async def over_anyio(produced: Produced) -> AsyncIterator[AsyncIterator[bytes]]:
    """A memory object stream of anyio with `math.inf`."""
    send, receive = anyio.create_memory_object_stream[bytes](math.inf)

    async def feed() -> None:
        async with send:
            async for element in produced:
                await send.send(element)

    async with anyio.create_task_group() as tasks, receive:
        tasks.start_soon(feed)
        yield receive
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def in_two_stages(produced: Produced) -> AsyncIterator[AsyncIterator[bytes]]:
    """The second channel is small; the first one takes everything."""
    first_in, first_out = trio.open_memory_channel[bytes](math.inf)
    second_in, second_out = trio.open_memory_channel[bytes](1)

    async def feed() -> None:
        async for element in produced:
            await first_in.send(element)

    async def pass_on() -> None:
        with suppress(trio.BrokenResourceError):  # the reader has left
            async for element in first_out:
                await second_in.send(element)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed)
        nursery.start_soon(pass_on)
        yield second_out
        nursery.cancel_scope.cancel()


async def as_completed(produced: Produced) -> AsyncGenerator[bytes, None]:
    """`asyncio.as_completed` starts all that it is given."""

    async def one() -> bytes:
        return await anext(produced, b"")

    for done in asyncio.as_completed([one() for _ in range(4_000)]):
        yield await done


@asynccontextmanager
async def over_rsocket_py(produced: Produced) -> AsyncIterator[AsyncIterator[bytes]]:
    """rsocket-py with its default request, which is 2^31 - 1."""

    async def payloads() -> AsyncGenerator[tuple[Payload, bool], None]:
        async for element in produced:
            yield Payload(element), False

    class Handler(BaseRequestHandler):
        async def request_stream(self, payload: Payload) -> Any:
            return StreamFromAsyncGenerator(payloads)

    def session(*connection: Any) -> None:
        RSocketServer(TransportTCP(*connection), handler_factory=Handler)

    arrived: asyncio.Queue[bytes] = asyncio.Queue()

    async def read() -> AsyncGenerator[bytes, None]:
        while True:
            yield await arrived.get()

    def take(payload: Any, _is_complete: bool) -> None:
        if payload.data:
            arrived.put_nowait(payload.data)

    server = await asyncio.start_server(session, "127.0.0.1", 0)
    connection = await asyncio.open_connection(*server.sockets[0].getsockname())
    async with RSocketClient(single_transport_provider(TransportTCP(*connection))) as client:
        client.request_stream(Payload(b"")).subscribe(DefaultSubscriber(on_next=take))
        yield read()
    server.close()


def over_websockets_unbounded(*, broadcasts: bool) -> MakeStream:
    """`broadcast` of websockets waits for no client; a client with ``max_queue=None`` takes all."""

    @asynccontextmanager
    async def opened(produced: Produced) -> AsyncIterator[AsyncIterator[Any]]:
        async def handle(connection: websockets.asyncio.server.ServerConnection) -> None:
            async for element in produced:
                if broadcasts:
                    websockets.asyncio.server.broadcast({connection}, element)
                else:
                    await connection.send(element)

        queue = {} if broadcasts else {"max_queue": None}
        async with (
            websockets.asyncio.server.serve(handle, "127.0.0.1", 0, compression=None) as server,
            websockets.asyncio.client.connect(
                f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}",
                compression=None,
                **queue,
            ) as client,
        ):
            yield aiter(client)
            client.transport.abort()

    return opened


@asynccontextmanager
async def over_events_without_drain(produced: Produced) -> AsyncIterator[AsyncIterator[str]]:
    """A server of events that writes, and does not wait until it is written."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        with suppress(ConnectionError):
            async for element in produced:
                writer.write(b"data: " + element.hex().encode() + b"\n\n")
            await writer.drain()
        writer.transport.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with aclosing(
        events_of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    ) as events:
        yield events
    server.close()


HONEST: dict[str, tuple[Measure, MakeStream, int]] = {
    "trio: the generator itself": (on_trio, itself, 0),
    "trio: a generator over it": (on_trio, mapped, 0),
    "trio: pairs": (on_trio, in_pairs, 1),
    "trio: a hundred at a time": (on_trio, in_hundreds, 99),
    "trio: a channel of 0": (on_trio, channel(0), 1),
    "trio: a channel of 1": (on_trio, channel(1), 2),
    "trio: a channel of 8": (on_trio, channel(8), 9),
    "trio: a channel of 100": (on_trio, channel(100), 101),
    "trio: penstock with a demand of 1": (on_trio, subscribed(1), 1),
    "trio: penstock with a demand of 16": (on_trio, subscribed(16), 16),
    "trio: penstock with its default": (on_trio, subscribed(256), 256),
    "trio: penstock over TCP, a demand of 1": (on_trio, over_penstock(1), 1),
    "trio: penstock over TCP, a demand of 64": (on_trio, over_penstock(64), 64),
    "asyncio: the generator itself": (on_asyncio, itself, 0),
    "asyncio: a generator over it": (on_asyncio, mapped, 0),
    "asyncio: pairs": (on_asyncio, in_pairs, 1),
    "asyncio: a queue of 1": (on_asyncio, queue(1), 2),
    "asyncio: a queue of 10": (on_asyncio, queue(10), 11),
    "asyncio: a queue of 100": (on_asyncio, queue(100), 101),
    "asyncio: penstock over TCP, a demand of 4": (on_asyncio, over_penstock_on_asyncio, 4),
}


@pytest.mark.parametrize("case", HONEST.values(), ids=HONEST)
def test_a_bound_in_elements_is_found(case: tuple[Measure, MakeStream, int]) -> None:
    """And its number."""
    measure, make, at_most = case
    lead = measure(make)
    assert lead.bound == "elements", lead
    assert lead.ahead <= at_most, lead
    assert not lead.goes_on, lead
    assert not lead.left_running, lead


def test_there_are_twenty_of_each() -> None:
    """The page says so."""
    assert (len(HONEST), len(UNBOUNDED)) == (20, 20)


UNBOUNDED: dict[str, tuple[Measure, MakeStream]] = {
    "trio: a list of all": (on_trio, all_at_once),
    "trio: a channel without a bound": (on_trio, channel(math.inf)),
    "trio: a channel of a million": (on_trio, channel(1_000_000)),
    "trio: a deque": (on_trio, with_deque(trio.sleep)),
    "trio: a queue of threads": (on_trio, over_a_queue_of_threads),
    "trio: two stages": (on_trio, in_two_stages),
    "trio: buffer() of penstock": (on_trio, over_buffer_of_penstock),
    "trio: anyio": (on_trio, over_anyio),
    "asyncio: a list of all": (on_asyncio, all_at_once),
    "asyncio: a queue without a bound": (on_asyncio, queue(0)),
    "asyncio: a queue of a million": (on_asyncio, queue(1_000_000)),
    "asyncio: a task for each element": (on_asyncio, with_tasks),
    "asyncio: a writer that is not drained": (on_asyncio, over_streams(drains=False)),
    "asyncio: a deque": (on_asyncio, with_deque(asyncio.sleep)),
    "asyncio: as_completed": (on_asyncio, as_completed),
    "asyncio: anyio": (on_asyncio, over_anyio),
    "asyncio: rsocket-py": (on_asyncio, over_rsocket_py),
    "asyncio: broadcast() of websockets": (on_asyncio, over_websockets_unbounded(broadcasts=True)),
    "asyncio: websockets, a queue without a bound": (
        on_asyncio,
        over_websockets_unbounded(broadcasts=False),
    ),
    "asyncio: events that are not drained": (on_asyncio, over_events_without_drain),
}


@pytest.mark.parametrize("case", UNBOUNDED.values(), ids=UNBOUNDED)
def test_a_stream_without_a_bound_is_found(case: tuple[Measure, MakeStream]) -> None:
    """It takes all that there is."""
    measure, make = case
    lead = measure(make)
    assert lead.bound == "nothing", lead
    assert lead.ahead > 3_000, lead


IN_BYTES: dict[str, tuple[Measure, MakeStream]] = {
    "trio: a socket": (on_trio, over_a_socket_of_trio),
    "asyncio: a writer that is drained": (on_asyncio, over_streams(drains=True)),
    "asyncio: websockets": (on_asyncio, over_websockets),
}


@pytest.mark.parametrize("case", IN_BYTES.values(), ids=IN_BYTES)
def test_a_bound_in_bytes_is_found(case: tuple[Measure, MakeStream]) -> None:
    """The buffers of a socket hold many small elements, and few large ones."""
    measure, make = case
    lead = measure(make)
    assert lead.bound == "bytes", lead
    assert lead.ahead > 100, lead
    assert lead.bytes_ahead < 16 << 20, lead


def test_a_producer_that_goes_on_without_a_reader_is_found() -> None:
    """Its task was not cancelled, and its elements are taken away."""
    tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def opened(produced: Produced) -> AsyncIterator[AsyncIterator[bytes]]:
        elements: asyncio.Queue[bytes] = asyncio.Queue(1)

        async def feed() -> None:
            async for element in produced:
                await elements.put(element)

        async def drop() -> None:
            while True:  # one at a time, for as long as the loop runs
                await elements.get()
                await asyncio.get_running_loop().run_in_executor(None, PAUSE.wait, 0.02)

        async def read() -> AsyncGenerator[bytes, None]:
            while True:
                yield await elements.get()

        tasks.append(asyncio.create_task(feed()))
        yield read()
        tasks.append(asyncio.create_task(drop()))

    lead = on_asyncio(opened)
    assert lead.goes_on
    assert not lead.is_closed
    assert "went on after the reader had left" in str(lead)


def test_tasks_that_the_stream_leaves_running_are_named() -> None:
    """On asyncio by the function of the task, on trio by its name; not those of the program."""

    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    kept: list[asyncio.Task[None]] = []

    async def leaving(produced: Produced) -> AsyncGenerator[bytes, None]:
        kept.append(asyncio.create_task(wait_for_ever()))
        async for element in produced:
            yield element

    async def measured() -> Lead:
        own = asyncio.create_task(wait_for_ever())
        lead = await lead_of(leaving, taken=TAKEN, most=4_000, quiet=0.1)
        own.cancel()
        return lead

    lead = asyncio.run(measured())
    assert [name.rpartition(".")[2] for name in lead.left_running] == ["wait_for_ever"]
    assert "these tasks run on:" in str(lead)

    async def leaving_in_trio(produced: Produced) -> AsyncGenerator[bytes, None]:
        trio.lowlevel.spawn_system_task(trio.sleep_forever)
        async for element in produced:
            yield element

    assert [name for name in on_trio(leaving_in_trio).left_running if "sleep_forever" in name]


def test_the_fixture_measures_on_either_loop(measure_lead: Callable[..., Lead]) -> None:
    """In a test that runs no loop."""
    assert measure_lead(itself, most=4_000, quiet=0.1).ahead == 0
    assert measure_lead(queue(10), on="asyncio", most=4_000, quiet=0.1).ahead == 11
    with pytest.raises(UsageError, match="give 'trio' or 'asyncio'"):
        run_lead_of(itself, on="curio")  # type: ignore[arg-type]  # it is refused


@pytest.mark.parametrize(
    ("small", "large", "bound"),
    [(10, 10, "elements"), (3, 1, "elements"), (200, 10, "bytes"), (90, 90, "nothing")],
)
def test_two_leads_tell_the_bound(small: int, large: int, bound: str) -> None:
    """As many large elements as there were: nothing held the producer up."""
    assert bound_of(small, large, most=90) == bound


def test_a_producer_that_is_left_open_is_found() -> None:
    """Nothing closes it; the text says so."""
    lead = on_trio(in_pairs)
    assert not lead.is_closed
    assert "was not closed when the reader had left" in str(lead)
    assert on_trio(itself).is_closed


async def _short(produced: Produced) -> AsyncGenerator[bytes, None]:
    yield await anext(produced)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (_short, "ended after 1 elements"),
        (lambda _: 7, "7 is no stream"),
        (lambda _: [b"x"], "is no stream"),
    ],
)
def test_what_is_no_stream_is_said(make: Any, text: str) -> None:
    """The measurement does not hang."""
    with pytest.raises(UsageError, match=text):
        on_trio(make)


@pytest.mark.parametrize("taken", [0, -1, 4_000, 1.5])
def test_a_reader_that_takes_nothing_is_refused(taken: Any) -> None:
    """And one that takes all."""
    with pytest.raises(UsageError, match="give a number from 1 to"):
        trio.run(lambda: lead_of(itself, taken=taken, most=4_000))


def test_the_stream_may_be_awaited() -> None:
    """As that of a coroutine function that connects first."""

    async def connected(produced: Produced) -> AsyncIterator[bytes]:
        return itself(produced)

    assert on_trio(connected).ahead == 0
