"""A proxy that cuts: between a client and a server over real sockets, it hands on so many bytes of one way, then closes both sides."""

import socket
import struct
from contextlib import suppress

import trio

from tests._real_time import HANGS_AFTER
from tests.cuts._wire import Cut, How, Way

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: on, and no time at all. Closing resets the connection."""


class Proxy:
    """Takes connections at `port`, one after the other, and cuts each as `cut` says by then."""

    def __init__(self, to: int) -> None:
        self.cut: Cut | None = None
        self.carried = dict.fromkeys(Way, 0)
        """Bytes that were handed on for the last connection."""
        self.port = 0
        self._to = to

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
        self.carried = dict.fromkeys(Way, 0)
        server = trio.socket.socket()
        with client, server:
            await server.connect(("127.0.0.1", self._to))
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with trio.open_nursery() as nursery:
                over = nursery.cancel_scope
                nursery.start_soon(self._hand_on, Way.TO_SERVER, client, server, over)
                nursery.start_soon(self._hand_on, Way.TO_CLIENT, server, client, over)
            if self.cut is not None and self.cut.how is How.RST and over.cancelled_caught:
                for each in (client, server):
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            else:
                await self._end(client, server)

    async def _hand_on(self, way: Way, source: trio.socket.SocketType, target: trio.socket.SocketType, over: trio.CancelScope) -> None:
        most = self.cut.after if self.cut is not None and self.cut.way is way else None
        try:
            while most is None or self.carried[way] < most:
                data = await source.recv(1 << 16 if most is None else most - self.carried[way])
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                await _send(target, data)
                self.carried[way] += len(data)
        except OSError:  # one of the sides has closed already
            pass
        over.cancel()

    async def _end(self, *sides: trio.socket.SocketType) -> None:
        """Close both sides in good order: what they still say is taken, for else the system would reset them."""
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
