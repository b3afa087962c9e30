"""The place at which the requests of an ASGI application are served.

Rules of this file:

* The server has one connection here, which is attended for as long as it serves. Its host opens the
  streams of all requests, so places, limits, authentication and the shutdown are those of `serve`.
* No plugin offers this transport: each application has one for itself.
"""

from collections.abc import Callable
from typing import ClassVar, Final

import trio

from penstock.api import UsageError
from penstock.spi import (
    Bytes,
    Connection,
    ConnectionFacts,
    ConnectionHost,
    Listener,
    PeerIdentity,
    RequestTransport,
    TransportOptions,
    Url,
)
from penstock_http._answering import Answering
from penstock_http._settings import settings_of
from penstock_http._site import Site

URL: Final = "asgi://app"
"""What an application serves at. Logs and observers name it."""

WHY_NO_CONNECTION: Final = (
    "an ASGI application is reached through its web server; read its streams with subscribe() or "
    "remote()"
)


class AsgiTransport(RequestTransport):
    """``asgi://app``, for the server of one application."""

    schemes: ClassVar[tuple[str, ...]] = ("asgi",)

    def __init__(self, on_served: Callable[[], None]) -> None:
        """`on_served` is called when requests are answered from now on."""
        self.site: Site | None = None
        self.served: tuple[Answering, Answering] | None = None
        """While requests are answered:
        for clients of other addresses, and of those at a loopback address.
        """
        self.host: ConnectionHost | None = None
        """Serves connections of the web server; None before and after."""
        self.options: TransportOptions = TransportOptions()
        """Those of the server, once it listens."""
        self._on_served = on_served

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        await trio.lowlevel.checkpoint()
        raise UsageError(f"{str(url)!r} cannot be connected to: {WHY_NO_CONNECTION}")

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        await trio.lowlevel.checkpoint()
        self.site = Site(settings_of(options), secure=False)
        self.options = options
        return _OneConnection(url)

    async def serve_connection(self, connection: Connection, host: ConnectionHost, /) -> None:
        """Answer requests with `host`.
        Returns at a shutdown, after the last request that waits.
        """
        site = self.site
        assert site is not None  # noqa: S101  # for mypy: it has listened
        host.recognise()
        served = self.served = (
            Answering(host, site, is_loopback=False),
            Answering(host, site, is_loopback=True),
        )
        self.host = host
        self._on_served()
        try:
            await host.wait_draining()
            for answering in served:
                answering.on_draining()
                await answering.wait_idle()
        finally:
            self.served = self.host = None


class _OneConnection(Listener):
    """Accepts one connection, which stands for all clients."""

    def __init__(self, url: Url) -> None:
        self.addresses = (url,)
        self._is_accepted = False

    async def accept(self) -> Connection:
        await trio.lowlevel.checkpoint()
        if self._is_accepted:
            await trio.sleep_forever()
        self._is_accepted = True
        return _AllClients(str(self.addresses[0].address))

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class _AllClients(Connection):
    """The one connection of an application. No byte crosses it."""

    framed = False

    def __init__(self, address: str) -> None:
        self.peer = PeerIdentity(address=address)
        self.facts = ConnectionFacts()
        self._closed = trio.Event()

    async def send(self, data: Bytes, /) -> None:
        await trio.lowlevel.checkpoint()
        raise trio.ClosedResourceError(WHY_NO_CONNECTION)

    async def receive(self) -> bytes | None:
        await self._closed.wait()
        return None

    async def aclose(self) -> None:
        await self.abort()

    async def abort(self) -> None:
        self._closed.set()
        await trio.lowlevel.checkpoint()
