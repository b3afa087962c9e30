"""An attacker's stream over a transport that carries whole messages: each frame becomes one
message, without its length field.
"""

import trio

from penstock.spi import ByteConnection, Connection, TransportOptions, build_registry, parse_url

_REGISTRY = build_registry()
LENGTH = 4
HEADER = 16


class FramedStream(trio.abc.HalfCloseableStream):
    """A byte stream of ReactiveSocket frames with lengths, over a framed connection.
    Any other bytes become one message.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def send_all(self, data: bytes) -> None:
        while data:
            size = int.from_bytes(data[:LENGTH])
            message, data = (
                (data[:size], data[size:]) if HEADER <= size <= len(data) else (data, b"")
            )
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
    """Connect over a framed transport.
    The memory transport needs no task, so the nursery may close at once.
    """
    url = parse_url(address)
    async with trio.open_nursery() as nursery:
        return FramedStream(
            await _REGISTRY.transport(url.transport).connect(
                url, options=TransportOptions(), nursery=nursery
            )
        )


async def open_memory(address: str) -> trio.abc.Stream:
    """Connect over the byte transport inside the process: for attacks on virtual time."""
    url = parse_url(address)
    async with trio.open_nursery() as nursery:
        connection = await _REGISTRY.transport(url.transport).connect(
            url, options=TransportOptions(), nursery=nursery
        )
    assert isinstance(connection, ByteConnection)
    return connection.stream
