"""Both sides of a connection, opened with a transport and its listener."""

import trio

from penstock.spi import (
    ByteConnection,
    Connection,
    Listener,
    Transport,
    TransportOptions,
    parse_url,
)

OPTIONS = TransportOptions()


async def listen(
    transport: Transport, url: str, nursery: trio.Nursery, options: TransportOptions = OPTIONS
) -> Listener:
    """Listen at the URL."""
    return await transport.listen(parse_url(url), options=options, nursery=nursery)


async def connect(
    transport: Transport, url: object, nursery: trio.Nursery, options: TransportOptions = OPTIONS
) -> Connection:
    """Connect to the URL; a text, or an address of a listener."""
    return await transport.connect(parse_url(str(url)), options=options, nursery=nursery)


async def both_sides(
    transport: Transport, url: str, nursery: trio.Nursery, options: TransportOptions = OPTIONS
) -> tuple[Connection, Connection]:
    """Return a client's and a server's connection, after closing their listener."""
    listener = await listen(transport, url, nursery, options)
    client = await connect(transport, listener.addresses[0], nursery, options)
    server = await listener.accept()
    await listener.aclose()
    return client, server


async def shake_hands(client: Connection, server: Connection) -> None:
    """Run both handshakes at the same time."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.handshake, nursery)
        nursery.start_soon(server.handshake, nursery)


def stream_of(connection: Connection) -> trio.abc.Stream:
    """Return the trio stream of a byte connection."""
    assert isinstance(connection, ByteConnection)
    return connection.stream


async def exchange(client: Connection, server: Connection) -> None:
    """Send some bytes in each direction, and check that they arrive."""
    await client.send(b"request")
    assert await server.receive() == b"request"
    await server.send(b"answer")
    assert await client.receive() == b"answer"


async def close(*connections: Connection) -> None:
    for connection in connections:
        await connection.aclose()
