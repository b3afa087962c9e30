"""The clients of a server on asyncio, as peers of asyncio.

Rules of this file:

* A client has one peer for as long as it is connected, so that programs can compare peers.
"""

import asyncio
from weakref import WeakKeyDictionary

import trio

from penstock.aio import Peer
from penstock.client import ConnectionKeeper, EndpointSettings, client_settings, with_publishers
from penstock.guest._connect import GuestConnection, GuestEndpoint
from penstock.guest._guest_run import GuestRun
from penstock.runtime import Peer as TrioPeer
from penstock.runtime import connection_of
from penstock.spi import Url


class ClientPeers:
    """The peers of the clients of one server."""

    def __init__(self, run: GuestRun) -> None:
        self._run = run
        self._settings: EndpointSettings | None = None  # the same for all clients
        self._peers: WeakKeyDictionary[TrioPeer, Peer] = WeakKeyDictionary()

    def peer_of(self, client: TrioPeer, address: Url) -> Peer:
        """Return the peer of a client that has reached the server at `address`."""
        peer = self._peers.get(client)
        if peer is None:
            peer = self._peers[client] = Peer(self._keeper_of(client, address))
        return peer

    def _keeper_of(self, client: TrioPeer, address: Url) -> "ClientKeeper":
        task, registry = connection_of(client)
        if self._settings is None:
            limits = task.session.channel.limits
            self._settings = with_publishers(
                client_settings(address, registry=registry, limits=limits), None
            )
        endpoint = GuestEndpoint(task)
        if task.opened_at is not None:
            since = trio.current_time() - task.opened_at
            endpoint.opened_at = asyncio.get_running_loop().time() - since
        keeper = ClientKeeper(self._settings)
        keeper.use(GuestConnection(endpoint, self._run))
        return keeper


class ClientKeeper(ConnectionKeeper[GuestConnection]):
    """Has the connection of a client, which makes the next one itself."""

    async def current(self) -> GuestConnection:
        """Return the connection."""
        return self.connection

    async def with_room(self) -> GuestConnection:
        """Return the connection when it has room."""
        await self.connection.wait_room()
        return self.connection
