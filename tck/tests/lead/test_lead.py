"""The meter finds what bounds a stream, and blames no honest one. Real loops and sockets."""

import asyncio
import math
import socket
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import pytest
import trio
import websockets.asyncio.client
import websockets.asyncio.server
from penstock_tck.lead import Lead, MakeStream, Produced, lead_of

import penstock
from penstock import aio
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


UNBOUNDED: dict[str, tuple[Measure, MakeStream]] = {
    "trio: a list of all": (on_trio, all_at_once),
    "trio: a channel without a bound": (on_trio, channel(math.inf)),
    "trio: a channel of a million": (on_trio, channel(1_000_000)),
    "asyncio: a list of all": (on_asyncio, all_at_once),
    "asyncio: a queue without a bound": (on_asyncio, queue(0)),
    "asyncio: a queue of a million": (on_asyncio, queue(1_000_000)),
    "asyncio: a task for each element": (on_asyncio, with_tasks),
    "asyncio: a writer that is not drained": (on_asyncio, over_streams(drains=False)),
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
