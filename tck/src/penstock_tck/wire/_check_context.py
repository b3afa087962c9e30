"""The context of one check: it opens connections to the target, and closes all of them
when the check has ended.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final, TypeAlias

import trio

from penstock.api import ConnectionLost
from penstock.spi import Connection, Registry, TransportOptions, Url
from penstock_tck.wire import rsio as io
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._rsio_forms import Form
from penstock_tck.wire._rsio_peer import RsioPeer
from penstock_tck.wire._target import Target
from penstock_tck.wire._verdict import NotSupported, fail

ALPN: Final = "rsio/0"

Connect: TypeAlias = Callable[[Url, TransportOptions, trio.Nursery], Awaitable[Connection]]
"""Opens a connection, with its handshake. Its tasks run in the nursery. Raises ConnectionLost."""


class CheckContext:
    """The target, and the connections that one check has opened. Their tasks run in `nursery`."""

    def __init__(
        self,
        url: Url,
        target: Target,
        registry: Registry,
        options: TransportOptions,
        nursery: trio.Nursery,
        form: Form | None = None,
        connect: Connect | None = None,
    ) -> None:
        """`form` is the encoding of RS.io messages; None for the compact one. `connect` opens
        connections; None: the transport does.
        """
        self.target = target
        self.form = form
        self.url = url
        self._registry = registry
        self._options = options
        self._nursery = nursery
        self._connect = connect
        self._closing = AsyncExitStack()

    async def connect(self, *protocols: str) -> Connection:
        """Open a connection and send nothing on it.
        Fails the check if the connection is not made within `Target.patience`.

        `protocols` are offered to a transport that negotiates names of protocols.
        """
        options = self._options.speaking(protocols) if protocols else self._options
        try:
            with trio.fail_after(self.target.patience):
                connection = await (self._connect or self._connect_by_transport)(
                    self.url, options, self._nursery
                )
                self._closing.push_async_callback(connection.abort)
        except ConnectionLost as lost:
            fail(f"no connection could be made: {lost}")
        except trio.TooSlowError:
            fail(f"no connection was made within {self.target.patience} s")
        return connection

    async def _connect_by_transport(
        self, url: Url, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        connection = await self._registry.transport(url.transport).connect(
            url, options=options, nursery=nursery
        )
        try:
            await connection.handshake(nursery)
        except BaseException:
            with trio.CancelScope(shield=True):
                await connection.abort()
            raise
        return connection

    async def connect_reactivesocket(self, *, setup: bool = True) -> RsPeer:
        """Open a connection as a ReactiveSocket client,
        and send a SETUP on it unless `setup` is False.
        """
        peer = RsPeer(await self.connect(), self.target)
        if setup:
            await peer.send_setup()
        return peer

    async def connect_rsio(self, *, hello: bool = True) -> RsioPeer:
        """Open a connection as an RS.io client, and send a clientHello on it unless `hello` is
        False.

        Its messages are in the encoding of the run. A transport that negotiates names chooses it
        before the first byte; otherwise the hellos agree on it.
        """
        form = self.form
        connection = await self.connect(*([] if form is None else [f"{ALPN}+{form.name}", ALPN]))
        chosen = self.url.encoding or (connection.facts.protocol or "").partition("+")[2]
        peer = RsioPeer(
            connection, self.target, form=form, is_outside=form is not None and chosen == form.name
        )
        if hello:
            await peer.send(io.hello())
        return peer

    async def connect_compact(self) -> RsioPeer:
        """Open a connection as an RS.io client whose first messages are compact,
        and send nothing on it.
        """
        if self.url.encoding is not None:
            raise NotSupported("the URL has chosen an encoding, so none is agreed on in the hellos")
        return RsioPeer(await self.connect(), self.target)

    def require_compact(self) -> None:
        """End the check as not supported in another encoding:
        the check is about numbers of the compact one.
        """
        if self.form is not None:
            raise NotSupported(
                f"the encoding is {self.form.name}, and the sentence is about the compact one"
            )

    def require_byte_stream(self, connection: Connection) -> None:
        """End the check as not supported if the transport delimits messages: the check is about
        frame lengths, which are then not sent.
        """
        if connection.framed:
            raise NotSupported("the transport delimits messages, so a frame carries no length")

    async def close(self) -> None:
        """Close all connections that the check opened."""
        await self._closing.aclose()
