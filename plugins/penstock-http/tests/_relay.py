"""A relay between a client and a server over TCP, whose connections a test cuts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Relay:
    """Passes bytes on."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self.connections = 0
        self._server = port
        self._open = trio.CancelScope()

    def cut(self) -> None:
        """End the open connections without a goodbye. New ones are carried."""
        self._open.cancel()
        self._open = trio.CancelScope()

    async def carry(self, client: trio.SocketStream) -> None:
        self.connections += 1
        with trio.CancelScope() as scope:
            self._open = scope
            server = await trio.open_tcp_stream("127.0.0.1", self._server)
            async with client, server, trio.open_nursery() as nursery:
                nursery.start_soon(_pass_on, client, server, scope)
                nursery.start_soon(_pass_on, server, client, scope)


async def _pass_on(
    source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope
) -> None:
    try:
        async for data in source:
            await sink.send_all(data)
    except trio.BrokenResourceError:
        pass
    scope.cancel()


@asynccontextmanager
async def relaying(port: int) -> AsyncIterator[Relay]:
    """Run a relay to a port of this machine."""
    relay = Relay(port)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, relay.carry, 0)
        relay.port = listeners[0].socket.getsockname()[1]
        yield relay
        nursery.cancel_scope.cancel()
