"""The transport ``unix:///path``: bytes over a Unix socket, for one user on one machine."""

from typing import ClassVar, Final

import trio

from penstock.spi import (
    Connection,
    ConnectionFacts,
    Listener,
    SocketConnection,
    Transport,
    TransportOptions,
    Url,
    listen_unix,
    open_unix,
)

_FACTS: Final = ConnectionFacts(half_close=True, local=True)


class UnixTransport(Transport):
    """Unix sockets. Only the user who runs the server may connect (mode 0600). Each side learns the
    process and the user of the other.

    A socket file that a dead server left behind is replaced. A socket of a running server is not,
    and neither is any other file.
    """

    schemes: ClassVar[tuple[str, ...]] = ("unix",)

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        stream, peer = await open_unix(url)
        return SocketConnection(stream, peer=peer, options=options, facts=_FACTS)

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        return await listen_unix(
            url,
            options,
            lambda stream, peer: SocketConnection(stream, peer=peer, options=options, facts=_FACTS),
        )
