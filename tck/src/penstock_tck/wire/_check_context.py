"""Where a check works: it opens connections to the target, and has each of them closed when it is over."""

from contextlib import AsyncExitStack

import trio

from penstock.api import ConnectionLost
from penstock.plugins import Connection, Registry, TransportOptions, Url
from penstock_tck.wire import _rsio_messages as io
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._rsio_peer import RsioPeer
from penstock_tck.wire._target import Target
from penstock_tck.wire._verdict import NotSupported, fail


class CheckContext:
    """The connections of one check. `nursery` is theirs."""

    def __init__(self, url: Url, target: Target, registry: Registry, options: TransportOptions, nursery: trio.Nursery) -> None:
        self.target = target
        self.url = url
        self._registry = registry
        self._options = options
        self._nursery = nursery
        self._closing = AsyncExitStack()

    async def connect(self) -> Connection:
        """Open a connection on which nothing has been said."""
        transport = self._registry.transport(self.url.transport)
        try:
            with trio.fail_after(self.target.patience):
                connection = await transport.connect(self.url, options=self._options, nursery=self._nursery)
                self._closing.push_async_callback(connection.abort)
                await connection.handshake(self._nursery)
        except ConnectionLost as lost:
            fail(f"no connection could be made: {lost}")
        except trio.TooSlowError:
            fail(f"no connection was made within {self.target.patience} s")
        return connection

    async def connect_reactivesocket(self, *, setup: bool = True) -> RsPeer:
        """Open a connection as a ReactiveSocket client that has, or has not, sent its SETUP."""
        peer = RsPeer(await self.connect(), self.target)
        if setup:
            await peer.send_setup()
        return peer

    async def connect_rsio(self, *, hello: bool = True) -> RsioPeer:
        """Open a connection as an RS.io client that has, or has not, said hello."""
        peer = RsioPeer(await self.connect(), self.target)
        if hello:
            await peer.send(io.hello())
        return peer

    def require_byte_stream(self, connection: Connection) -> None:
        """Say that this is about a stream of bytes, where the target's transport delimits messages."""
        if connection.framed:
            raise NotSupported("the transport delimits messages, so a frame carries no length")

    async def close(self) -> None:
        """Close what was opened."""
        await self._closing.aclose()
