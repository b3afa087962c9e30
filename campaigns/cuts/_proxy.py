"""A TCP proxy between a client and a server. It forwards a given number of bytes in one
direction, then closes both sides.
"""

import socket
import struct
from contextlib import suppress

import trio

from campaigns.cuts._cuttable_transport import Cut, CutMode, Direction
from tests._real_time import HANGS_AFTER

_LINGER_ZERO = struct.pack("ii", 1, 0)
"""SO_LINGER switched on with zero seconds: `close` then sends RST instead of FIN."""


class Proxy:
    """Accepts connections at `port`, one at a time,
    and applies to each the current value of `cut`.
    """

    def __init__(self, server_port: int) -> None:
        self.cut: Cut | None = None
        self.delivered = dict.fromkeys(Direction, 0)
        """Bytes that were forwarded for the last connection."""
        self.port = 0
        self._server_port = server_port

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Listen, until cancelled."""
        listening = trio.socket.socket()
        with listening:
            await listening.bind(("127.0.0.1", 0))
            listening.listen()
            self.port = listening.getsockname()[1]
            task_status.started()
            while True:
                client, _ = await listening.accept()
                await self._serve(client)
                del client

    async def _serve(self, client: trio.socket.SocketType) -> None:
        self.delivered = dict.fromkeys(Direction, 0)
        server = trio.socket.socket()
        with client, server:
            await server.connect(("127.0.0.1", self._server_port))
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with trio.open_nursery() as nursery:
                scope = nursery.cancel_scope
                nursery.start_soon(self._forward, Direction.TO_SERVER, client, server, scope)
                nursery.start_soon(self._forward, Direction.TO_CLIENT, server, client, scope)
            if self.cut is not None and self.cut.mode is CutMode.RST and scope.cancelled_caught:
                for side in (client, server):
                    side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
            else:
                await self._close_without_reset(client, server)

    async def _forward(
        self,
        direction: Direction,
        source: trio.socket.SocketType,
        target: trio.socket.SocketType,
        scope: trio.CancelScope,
    ) -> None:
        limit = self.cut.after if self.cut is not None and self.cut.direction is direction else None
        try:
            while limit is None or self.delivered[direction] < limit:
                data = await source.recv(
                    1 << 16 if limit is None else limit - self.delivered[direction]
                )
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                await _send(target, data)
                self.delivered[direction] += len(data)
        except OSError:  # a side has closed already
            pass
        scope.cancel()

    async def _close_without_reset(self, *sides: trio.socket.SocketType) -> None:
        """Read both sides to their end.
        Closing a socket with unread bytes makes the operating system send RST.
        """
        with trio.move_on_after(HANGS_AFTER):
            for side in sides:
                with suppress(OSError):
                    side.shutdown(socket.SHUT_WR)
            for side in sides:
                with suppress(OSError):
                    while await side.recv(1 << 16):
                        pass


async def _send(target: trio.socket.SocketType, data: bytes) -> None:
    while data:
        data = data[await target.send(data) :]
