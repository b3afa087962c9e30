"""Answers whose connection is reset after they were written, over sockets of the system: proxies do
so with a connection that they need no more, and so does a program that is killed.
"""

import socket
import struct
import sys
from collections.abc import AsyncIterator

import pytest
import trio
from _raw_http2 import Asking
from trio.testing import wait_all_tasks_blocked

from penstock import Server, Service, serve
from penstock.spi import Url

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells what a client has acknowledged"
)

LARGE = 200_000
RESETS = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which a close is a reset."""


def _service() -> Service:
    served = Service()

    @served.publisher("numbers")
    async def numbers() -> AsyncIterator[bytes]:
        for number in range(100):
            yield b"%d" % number

    @served.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        for number in range(100):
            yield b"%d" % number * LARGE

    return served


class Client:
    """Sends one request on each connection, and resets it."""

    def __init__(self, url: Url) -> None:
        self._address = url.host or "", url.port or 0

    async def ask(self, target: str, *, reads: bool = True) -> bytes:
        """Return the answer; nothing if it is not to be read."""
        with trio.socket.socket() as sock:
            if not reads:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await sock.connect(self._address)
            head = f"PUT {target} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: identity\r\n\r\n"
            await sock.send(head.encode())
            answer = await _read(sock) if reads else b""
            if not reads:
                await trio.lowlevel.wait_readable(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
        return answer


async def _read(sock: trio.socket.SocketType) -> bytes:
    """Return one whole answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += await sock.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line[16:] for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")]
    while len(body) < int(lengths[0]):
        body += await sock.recv(65536)
    return head + b"\r\n\r\n" + body


async def _subscribe(client: Client, name: str) -> str:
    created = await client.ask(f"/p/{name}?request=100")
    return "/" + created.partition(b"Location: ../")[2].partition(b"\r\n")[0].decode()


async def _wait_forgotten(server: Server) -> None:
    """Return when the server has found out about the reset."""
    while server._admission.open:
        await trio.lowlevel.checkpoint()


async def test_an_answer_that_was_read_is_not_sent_again() -> None:
    """Through such a proxy a client without positions once got the same element at each poll."""
    async with serve(_service(), "http://127.0.0.1:0") as server:
        client = Client(server.addresses[0])
        path = await _subscribe(client, "numbers")
        bodies = []
        for _ in range(5):
            bodies.append((await client.ask(path)).partition(b"\r\n\r\n")[2])
            await _wait_forgotten(server)
        assert bodies == [b"0", b"1", b"2", b"3", b"4"]


async def test_an_answer_that_was_not_acknowledged_is_sent_again() -> None:
    """The client's system has taken a part of it, and the rest was on its way."""
    async with serve(_service(), "http://127.0.0.1:0") as server:
        client = Client(server.addresses[0])
        path = await _subscribe(client, "large")
        await client.ask(path, reads=False)
        await _wait_forgotten(server)
        answer = await client.ask(path)
        assert answer.partition(b"\r\n\r\n")[2] == b"0" * LARGE


async def test_each_answer_of_a_connection_counts_for_itself() -> None:
    """Over HTTP/2 one answer was acknowledged, and the next one was not."""
    async with serve(_service(), "http://127.0.0.1:0") as server:
        numbers, large = await _reset_over_http2(server.addresses[0])
        await _wait_forgotten(server)
        client = Client(server.addresses[0])
        bodies = [(await client.ask(path)).partition(b"\r\n\r\n")[2] for path in (numbers, large)]
        assert bodies == [b"1", b"0" * LARGE]


async def _reset_over_http2(url: Url) -> tuple[str, str]:
    """Read an answer with an element of one stream and none of that of another; return the paths
    of both.
    """
    with trio.socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await sock.connect((url.host or "", url.port or 0))
        client = Asking(trio.SocketStream(sock), INITIAL_WINDOW_SIZE=1 << 20)
        await client.begin()
        client.h2.increment_flow_control_window(1 << 20)
        numbers, large = [await client.subscribe(name, 100) for name in ("numbers", "large")]
        single = ("accept-encoding", "identity")
        assert (await client.ask(f"PUT {numbers}", single)).body == b"0"
        await client.send_request(f"PUT {large}", single)
        await wait_all_tasks_blocked(0.01)  # the server has written what the system takes
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
    return numbers, large
