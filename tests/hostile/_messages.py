"""A hostile connection where messages arrive whole: what an attacker says is cut into frames, each a message without its length."""

import trio

from penstock.plugins import Connection, TransportOptions, build_registry, parse_url

_REGISTRY = build_registry()
LENGTH = 4
HEADER = 16


class FramedStream(trio.abc.HalfCloseableStream):
    """Looks like a stream of ReactiveSocket frames with lengths; below, each is a message. What is no whole frame is a message as it is."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def send_all(self, data: bytes) -> None:
        while data:
            size = int.from_bytes(data[:LENGTH])
            message, data = (data[:size], data[size:]) if HEADER <= size <= len(data) else (data, b"")
            await self.connection.send(message[LENGTH:])

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        message = await self.connection.receive()
        return b"" if message is None else (len(message) + LENGTH).to_bytes(LENGTH) + message

    async def send_eof(self) -> None:
        await self.connection.send_eof()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await self.connection.abort()


async def open_framed(address: str) -> FramedStream:
    """Connect where messages arrive whole. Such a transport here needs no task."""
    url = parse_url(address)
    async with trio.open_nursery() as nursery:
        return FramedStream(await _REGISTRY.transport(url.transport).connect(url, options=TransportOptions(), nursery=nursery))
