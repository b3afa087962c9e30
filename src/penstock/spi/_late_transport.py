"""A transport that is imported with its first URL."""

from typing import ClassVar

import trio

from penstock.spi._late import made_late
from penstock.spi._options import TransportOptions
from penstock.spi._transport import Connection, Listener, Transport
from penstock.spi._url import Url


class LateTransport(Transport):
    """A `Transport` that is imported with the first URL. A subclass gives `schemes` and `target`,
    and the other class attributes of the transport.
    """

    target: ClassVar[str]
    """The class of the transport, which needs no arguments: ``package.module:Class``."""

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        """Import the transport, and let it connect."""
        return await self.made().connect(url, options=options, nursery=nursery)

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        """Import the transport, and let it listen."""
        return await self.made().listen(url, options=options, nursery=nursery)

    def made(self) -> Transport:
        """Return the transport. Imports it."""
        made: Transport = made_late(self.target)
        return made
