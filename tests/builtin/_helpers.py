"""Both sides of a connection, by way of a transport and its listener."""

import trio

from penstock.plugins import ByteConnection, Connection, Listener, Transport, TransportOptions, parse_url

OPTIONS = TransportOptions()


async def listen(transport: Transport, url: str, nursery: trio.Nursery, options: TransportOptions = OPTIONS) -> Listener:
    """Listen at a URL that is given as text."""
    return await transport.listen(parse_url(url), options=options, nursery=nursery)


async def connect(transport: Transport, url: object, nursery: trio.Nursery, options: TransportOptions = OPTIONS) -> Connection:
    """Connect to a URL that is given as text, or as a listener reports it."""
    return await transport.connect(parse_url(str(url)), options=options, nursery=nursery)


async def both_sides(
    transport: Transport, url: str, nursery: trio.Nursery, options: TransportOptions = OPTIONS
) -> tuple[Connection, Connection]:
    """A client's connection and a server's, their listener closed again."""
    listener = await listen(transport, url, nursery, options)
    client = await connect(transport, listener.addresses[0], nursery, options)
    server = await listener.accept()
    await listener.aclose()
    return client, server


async def shake_hands(client: Connection, server: Connection) -> None:
    """Both handshakes, at the same time."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.handshake, nursery)
        nursery.start_soon(server.handshake, nursery)


def stream_of(connection: Connection) -> trio.abc.Stream:
    """The stream below a byte connection."""
    assert isinstance(connection, ByteConnection)
    return connection.stream


async def exchange(client: Connection, server: Connection) -> None:
    """A word each way arrives."""
    await client.send(b"there")
    assert await server.receive() == b"there"
    await server.send(b"back")
    assert await client.receive() == b"back"


async def close(*connections: Connection) -> None:
    """Close them all."""
    for connection in connections:
        await connection.aclose()
