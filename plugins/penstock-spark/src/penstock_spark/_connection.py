"""The connection of one of Spark's processes:
made at the first use, kept for the next one, and made again after a loss.
"""

from contextlib import AbstractContextManager, suppress

from penstock.api import Rejected
from penstock.blocking import Peer
from penstock_spark._client import ProcessSettings


class ServerConnection:
    """A connection to one server at a time."""

    def __init__(self, client: ProcessSettings) -> None:
        self._client = client
        self._block: AbstractContextManager[Peer] | None = None
        self._peer: Peer | None = None
        self._address = ""
        self.made: int = 0
        """The number of connections that were made.
        The server may be another process after each.
        """

    def is_open_to(self, address: str) -> bool:
        """Return whether there is a connection to `address`."""
        if self._peer is None or self._address != address:
            return False
        self._peer.run(0)  # a goodbye may have arrived since the last use
        return self._peer.is_connected

    def peer(self, address: str) -> Peer:
        """Return the server at `address`. Connects unless a connection to it is open. Raises
        ConnectionLost if no server answers.
        """
        if self._peer is not None and self.is_open_to(address):
            return self._peer
        self.close()
        block = self._client.connect(address)
        peer = block.__enter__()
        self._block, self._peer, self._address = block, peer, address
        self.made += 1
        return peer

    def close(self) -> None:
        """Leave the connection, if there is one."""
        block, self._block, self._peer = self._block, None, None
        if block is not None:
            with suppress(Rejected):  # the reason of a connection that is over already
                block.__exit__(None, None, None)
