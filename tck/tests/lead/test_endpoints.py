"""The readers of endpoints take from a server what the program asks for, on trio and on asyncio."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import pytest
import trio
import trio_websocket
import websockets.asyncio.server
from penstock_tck.lead import Lead, Produced, events_of, lead_of, messages_of

from penstock.api import UsageError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
Run = Callable[[Callable[[], Awaitable[Any]]], Any]
LOOPS: dict[str, Run] = {
    "trio": trio.run,
    "asyncio": lambda function: asyncio.run(function()),  # type: ignore[arg-type]  # a coroutine
}


@contextmanager
def answering(*data: bytes) -> Iterator[str]:
    """Answer one connection with these bytes, in a thread; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                for part in data:
                    connection.sendall(part)
                while connection.recv(4096):  # a reader that leaves closes
                    pass

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def some(run: Run, reader: Any, count: int) -> list[Any]:
    """Return some elements of a reader, and leave."""

    async def read() -> list[Any]:
        async with aclosing(reader()) as elements:
            return [await anext(elements) for _ in range(count)]

    found: list[Any] = run(read)
    return found


@pytest.mark.parametrize("run", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("is_chunked", [False, True], ids=["plain", "in chunks"])
def test_the_data_of_events_is_read(run: Run, is_chunked: bool) -> None:
    """Comments and other fields are left out; several lines of data are one text."""
    body = b": hello\r\n\r\nid: 7\ndata: one\n\ndata:two\ndata: three\n\n"
    if is_chunked:
        parts = [b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:20], body[20:])]
        data = (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *parts)
    else:
        data = (HEAD + b"\r\n", body)
    with answering(*data) as address:
        found = some(run, partial(events_of, f"http://{address}/events?of=all"), 2)
    assert found == ["one", "two\nthree"]


@pytest.mark.parametrize("run", LOOPS.values(), ids=LOOPS)
def test_messages_of_a_websocket_are_read(run: Run) -> None:
    """Texts, bytes, long ones and those in parts; a ping in between is answered."""
    upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
    frames = (
        b"\x81\x02hi\x02\x02ab\x89\x01p\x80\x01c",
        b"\x82\x7e\x01\x00" + bytes(256),
        b"\x82\x7f" + (70_000).to_bytes(8, "big") + bytes(70_000),
    )
    with answering(upgrade, *frames) as address:
        found = some(run, partial(messages_of, f"ws://{address}"), 4)
    assert found == ["hi", b"abc", bytes(256), bytes(70_000)]


@pytest.mark.parametrize("run", LOOPS.values(), ids=LOOPS)
def test_a_refusal_is_an_error(run: Run) -> None:
    """It says what the server answers."""
    with (
        answering(b"HTTP/1.1 404 Not Found\r\n\r\n") as address,
        pytest.raises(ConnectionError, match=r"answers 'HTTP/1\.1 404 Not Found'"),
    ):
        some(run, partial(events_of, f"http://{address}/"), 1)


@pytest.mark.parametrize(
    ("reader", "url"), [(events_of, "https://localhost/"), (messages_of, "http://localhost/")]
)
def test_another_url_is_refused(reader: Any, url: str) -> None:
    """The error shows one that would do."""
    with pytest.raises(UsageError, match="give a URL like"):
        some(trio.run, partial(reader, url), 1)


# --- measured


@asynccontextmanager
async def a_server_of_events(produced: Produced) -> AsyncIterator[AsyncIterator[str]]:
    """A server on trio, which waits until its events are written."""

    async def answer(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(HEAD + b"\r\n")
        async for element in produced:
            await stream.send_all(b"data: " + element.hex().encode() + b"\n\n")

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, answer, [listener])
        port = listener.socket.getsockname()[1]
        async with aclosing(events_of(f"http://127.0.0.1:{port}/")) as events:
            yield events
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def a_websocket_on_trio(produced: Produced) -> AsyncIterator[AsyncIterator[Any]]:
    """trio-websocket as the server."""

    async def handle(request: Any) -> None:
        connection = await request.accept()
        async for element in produced:
            await connection.send_message(element)

    async with trio.open_nursery() as nursery:
        serve = partial(trio_websocket.serve_websocket, handle, "127.0.0.1", 0, None)
        server = await nursery.start(serve)
        async with aclosing(messages_of(f"ws://127.0.0.1:{server.port}/")) as messages:
            yield messages
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def a_websocket_on_asyncio(produced: Produced) -> AsyncIterator[AsyncIterator[Any]]:
    """The library websockets as the server."""

    async def handle(connection: websockets.asyncio.server.ServerConnection) -> None:
        async for element in produced:
            await connection.send(element)

    async with websockets.asyncio.server.serve(handle, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with aclosing(messages_of(f"ws://127.0.0.1:{port}/")) as messages:
            yield messages


@pytest.mark.parametrize(
    ("run", "make"),
    [
        (LOOPS["trio"], a_server_of_events),
        (LOOPS["trio"], a_websocket_on_trio),
        (LOOPS["asyncio"], a_websocket_on_asyncio),
    ],
    ids=["events", "trio-websocket", "websockets"],
)
def test_an_endpoint_is_bounded_by_the_bytes_of_its_sockets(run: Run, make: Any) -> None:
    """Its server waits, and the reader holds nothing."""
    lead: Lead = run(lambda: lead_of(make, most=20_000, quiet=0.1))
    assert lead.bound == "bytes", lead
