"""Clients of an ASGI web server that open many requests and WebSockets and read nothing, beside an
honest one.
"""

import gc
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing
from _web_server import WebServer, ask, elements, subscribe
from penstock_http import AsgiApp
from penstock_tck.wire import rsio
from test_asgi_websocket import WebSocket

from penstock import Limits, Service

Clock = trio.testing.MockClock

KIB = 1024
ELEMENT = 100 * KIB
CLIENTS = 100
STALL = 30.0


class Blobs:
    """A service whose elements are large. It counts them."""

    def __init__(self) -> None:
        self.made = self.running = 0
        self.service = Service()

        @self.service.publisher("blobs")
        async def blobs() -> AsyncIterator[bytes]:
            self.running += 1
            try:
                while True:
                    self.made += 1
                    yield bytes(ELEMENT)
            finally:
                self.running -= 1


class Stalled(WebServer):
    """The client of a request takes the head and nothing of the body."""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.body":
            await trio.sleep_forever()
        await super().send(message)


class StalledWebSocket(WebSocket):
    """The client takes nothing after the handshake."""

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.send":
            await trio.sleep_forever()
        await super().send(message)


async def attack(app: AsgiApp, kind: str, nursery: trio.Nursery) -> None:
    """Open one request, or one WebSocket with a stream, whose client reads nothing."""
    if kind == "websocket":
        socket = StalledWebSocket()
        nursery.start_soon(socket.run, app)
        socket.give(
            "receive", bytes=rsio.hello(1) + rsio.subscribe("blobs", 0, rsio.UNBOUNDED), text=None
        )
        return
    path = await subscribe(app, "blobs", 1 << 62)
    client = {
        "events": lambda: Stalled(f"{path}/events", method="GET"),
        "streamed": lambda: Stalled(path, ("x-rsio-delivery", "stream")),
        "poll": lambda: Stalled(path),
    }[kind]()
    nursery.start_soon(client.run, app)


@pytest.mark.parametrize(
    ("kind", "held", "made"),
    [
        ("events", 1536 * KIB, 11),
        ("streamed", 320 * KIB, 2),
        ("poll", 256 * KIB, 2),
        ("websocket", 320 * KIB, 3),
    ],
)
async def test_clients_that_read_nothing(
    kind: str, held: int, made: int, autojump_clock: Clock
) -> None:
    """A client makes the process hold `held` bytes at most, and the publisher make `made` elements
    at most. An honest client is served beside them. After `Limits.write_stall` their tasks end.
    """
    if kind == "websocket":
        pytest.importorskip("penstock_websocket")
    blobs = Blobs()
    limits = Limits(write_stall=STALL, memory_budget=1 << 30, max_connections_per_address=CLIENTS)
    app = AsgiApp(blobs.service, limits=limits)
    async with app.serving() as server, trio.open_nursery() as nursery:
        honest = await subscribe(app, "blobs", 3)
        await attack(app, kind, nursery)
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        before, blobs.made = server.statistics().buffered_bytes, 0
        tracemalloc.start()
        for _ in range(CLIENTS - 1):
            await attack(app, kind, nursery)
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        each = tracemalloc.get_traced_memory()[0] / (CLIENTS - 1)
        tracemalloc.stop()
        counted = (server.statistics().buffered_bytes - before) / (CLIENTS - 1)
        assert each < held
        # The memory budget sees the elements. The rest is the part that is being written, as its
        # web server has it, and the objects of the request.
        assert counted > each / 4
        assert blobs.made <= made * (CLIENTS - 1)
        assert [len(each) for each in elements(await ask(app, honest))] == [ELEMENT]
        await trio.sleep(2 * STALL)
        assert not nursery.child_tasks
