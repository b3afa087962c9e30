"""Relays between a page and a server, which cut connections: inside server-sent events, and after any
number of bytes.
"""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import trio


class CuttingRelay:
    """Passes bytes on. Each connection over which one of `markers` arrives from the server is cut
    after it, each marker once.
    """

    def __init__(self, server: str, markers: list[bytes]) -> None:
        self.url = ""
        self.requests: list[bytes] = []
        """The heads of the requests for events."""

        self._server = urlsplit(server)
        self._markers = markers

    async def serve(self, client: trio.SocketStream) -> None:
        """Serve one connection of the browser."""
        server = await trio.open_tcp_stream(self._server.hostname or "", self._server.port or 80)
        async with client, server, trio.open_nursery() as nursery:
            nursery.start_soon(self._pass_requests, client, server, nursery.cancel_scope)
            nursery.start_soon(self._pass_answers, server, client, nursery.cancel_scope)

    async def _pass_requests(
        self, client: trio.SocketStream, server: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        try:
            async for data in client:
                self.requests += [data] if b"/events" in data.partition(b"\r\n")[0] else []
                await server.send_all(data)
        except trio.BrokenResourceError:
            pass
        scope.cancel()

    async def _pass_answers(
        self, server: trio.SocketStream, client: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        passed = b""
        try:
            async for data in server:
                found = [marker for marker in self._markers if marker in passed + data]
                passed += data
                # Everything behind the marker is lost: the event after it, or a part of one.
                end = (
                    len(data)
                    if not found
                    else len(data) - len(passed) + passed.index(found[0]) + len(found[0])
                )
                await client.send_all(data[: max(0, end)])
                if found:
                    self._markers.remove(found[0])
                    break
        except trio.BrokenResourceError:
            pass
        scope.cancel()


@asynccontextmanager
async def serve_cutting_relay(server: str, markers: list[bytes]) -> AsyncIterator[CuttingRelay]:
    """Serve a relay to the origin `server`."""
    relay = CuttingRelay(server, markers)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, relay.serve, 0)
        relay.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        yield relay
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def serve_random_cuts(server: str, seed: int, cuts: int) -> AsyncIterator[str]:
    """Serve a relay to `server` at an address of its own, for anything over TCP.

    Each of the first `cuts` connections is reset after a random number of bytes from the server, in
    the middle of a message as a rule. Those after them stay.
    """
    draw, to = random.Random(seed), urlsplit(server)
    left = cuts

    async def serve(client: trio.SocketStream) -> None:
        nonlocal left
        most = draw.randrange(1, 3_000) if left else 1 << 62
        left = max(0, left - 1)
        upstream = await trio.open_tcp_stream(to.hostname or "", to.port or 80)
        async with client, upstream, trio.open_nursery() as nursery:
            nursery.start_soon(_pass_on, client, upstream, nursery.cancel_scope, 1 << 62)
            nursery.start_soon(_pass_on, upstream, client, nursery.cancel_scope, most)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        yield f"{to.scheme}://127.0.0.1:{port}{to.path}"
        nursery.cancel_scope.cancel()


async def _pass_on(
    source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope, most: int
) -> None:
    """Pass on `most` bytes, and cut both connections then."""
    try:
        async for data in source:
            await sink.send_all(data[:most])
            most -= len(data)
            if most <= 0:
                break
    except trio.BrokenResourceError:
        pass
    scope.cancel()
