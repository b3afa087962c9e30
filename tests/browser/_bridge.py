"""A WebSocket for a server of penstock:
each binary message is passed on as bytes, in both directions.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio_websocket

import penstock

SUBPROTOCOL = "rsio.v0"
CHUNK = 256 * 1024


@asynccontextmanager
async def serve_bridge(service: penstock.Service, limits: penstock.Limits) -> AsyncIterator[str]:
    """Serve over TCP with a WebSocket in front, and yield the URL."""
    async with (
        penstock.serve(service, "tcp://127.0.0.1:0", limits=limits) as server,
        trio.open_nursery() as nursery,
    ):
        (address,) = server.addresses

        async def handle(request: trio_websocket.WebSocketRequest) -> None:
            socket = await request.accept(subprotocol=SUBPROTOCOL)
            async with await trio.open_tcp_stream("127.0.0.1", address.port or 0) as stream:
                await _join(socket, stream)

        listening = await nursery.start(lambda task_status: _listen(handle, task_status))
        yield f"ws://127.0.0.1:{listening.port}/"
        nursery.cancel_scope.cancel()


async def _listen(handle, task_status) -> None:
    await trio_websocket.serve_websocket(handle, "127.0.0.1", 0, None, task_status=task_status)


async def _join(socket: trio_websocket.WebSocketConnection, stream: trio.SocketStream) -> None:
    async with trio.open_nursery() as nursery:

        async def from_socket() -> None:
            try:
                while True:
                    await stream.send_all(await socket.get_message())
            except (trio_websocket.ConnectionClosed, trio.BrokenResourceError):
                nursery.cancel_scope.cancel()

        async def from_stream() -> None:
            try:
                async for data in stream:
                    await socket.send_message(bytes(data))
                await socket.aclose()
            except (trio_websocket.ConnectionClosed, trio.BrokenResourceError):
                pass
            nursery.cancel_scope.cancel()

        nursery.start_soon(from_socket)
        nursery.start_soon(from_stream)
