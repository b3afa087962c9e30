"""The tasks of a client on asyncio that reconnects."""

import asyncio
import socket

from penstock_tck.wire import rsio

from penstock import aio
from penstock.spi import Reconnect
from tests._shells import AioShell
from tests.contracts._trio_server import raw_server
from tests.contracts.peer.test_draining import DRAINS, SUBSCRIBE, read_until


def test_a_cancellation_ends_the_goodbye_to_a_server_that_drains() -> None:
    """That server does not answer. No task is left, and its socket is closed."""
    silent: list[socket.socket] = []

    def script(sock: socket.socket) -> None:
        sock.sendall(rsio.server_hello(6))
        read_until(sock, SUBSCRIBE)
        notice = b"" if silent else DRAINS
        sock.sendall(notice + rsio.on_subscribe(0) + rsio.on_next(0, b"ok"))
        # The sockets that `raw_server` closes are other ones.
        silent.append(sock.dup())

    async def main(url: str) -> None:
        async with (
            aio.connect(url, reconnect=Reconnect(first=0.001, most=0.001)) as peer,
            peer.subscribe("who") as stream,
        ):
            assert await anext(stream) == b"ok"
            assert await peer.request("who") == b"ok"
            asyncio.get_running_loop().call_soon(cancel)
            leaving.append(asyncio.current_task())

    def cancel() -> None:
        leaving.pop().cancel()

    async def cancelled(url: str) -> None:
        task = asyncio.create_task(main(url))
        await asyncio.wait((task,))
        assert task.cancelled()

    leaving: list[asyncio.Task[None]] = []
    with raw_server(script) as url:
        AioShell().run(cancelled(url))
    for sock in silent:
        with sock:
            read_until(sock, b"never")
