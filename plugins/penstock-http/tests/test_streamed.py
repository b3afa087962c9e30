"""Streamed batches over sockets of the system, which tells what a client has taken."""

import sys
from collections.abc import AsyncIterator

import pytest
import trio
from penstock_http._batches import LengthPrefixedReader

from penstock import Server, Service, serve

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells what a client has acknowledged"
)

SIZE = 10_000


def _service() -> Service:
    served = Service()

    @served.publisher("elements")
    async def elements() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield bytes(SIZE)

    return served


async def _batch(server: Server) -> trio.SocketStream:
    """Ask for a batch of 100 elements."""
    url = server.addresses[0]
    stream = await trio.open_tcp_stream(url.host or "", url.port or 0)
    await stream.send_all(b"PUT /p/elements?request=100 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    created = await stream.receive_some()
    path = created.partition(b"Location: ..")[2].partition(b"\r\n")[0]
    # A body without chunks ends with its connection.
    await stream.send_all(
        b"PUT %b HTTP/1.0\r\nHost: localhost\r\nX-Rsio-Delivery: stream\r\n\r\n" % path
    )
    return stream


async def _elements(stream: trio.SocketStream) -> int:
    async with stream:
        data = b"".join([part async for part in stream])
    reader = LengthPrefixedReader(SIZE)
    return len(reader.receive(data.partition(b"\r\n\r\n")[2]))


async def test_the_first_batch_has_as_many_elements_as_were_requested() -> None:
    """The client reads. The elements may be more than 64 KiB."""
    async with serve(_service(), "http://127.0.0.1:0") as server:
        assert await _elements(await _batch(server)) == 100
