"""A TCP proxy that cuts each of its connections after a number of bytes, another one each time."""

from itertools import cycle

import trio

CUTS = (10_000, 3, 2_500, 40, 5_000)
"""Bytes from the server until a connection is cut: within the handshake, and within elements."""

BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class CuttingProxy:
    """Accepts connections at `url`, and forwards them to a server at a `tcp://` address."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition("//")[2].rpartition(":")
        self._server = host, int(port)
        self._cuts = cycle(CUTS)
        self.url = ""
        self.connections = 0

    async def run(
        self, task_status: "trio.TaskStatus[CuttingProxy]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until cancelled."""
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.url = f"tcp://127.0.0.1:{listener.socket.getsockname()[1]}"
        task_status.started(self)
        await trio.serve_listeners(self._forward_both, [listener])

    async def _forward_both(self, client: trio.SocketStream) -> None:
        self.connections += 1
        try:
            server = await trio.open_tcp_stream(*self._server)
        except OSError:  # the server is full or late: the client tries again
            await client.aclose()
            return
        async with client, server, trio.open_nursery() as nursery:
            nursery.start_soon(self._forward, client, server, 1 << 62, nursery.cancel_scope)
            nursery.start_soon(
                self._forward, server, client, next(self._cuts), nursery.cancel_scope
            )

    @staticmethod
    async def _forward(
        source: trio.SocketStream, target: trio.SocketStream, most: int, scope: trio.CancelScope
    ) -> None:
        try:
            while most and (data := await source.receive_some(min(most, 1 << 16))):
                await target.send_all(data)
                most -= len(data)
        except BROKEN:
            pass  # a side has closed
        scope.cancel()
