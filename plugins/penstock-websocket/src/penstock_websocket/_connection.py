"""A connection over WebSocket, on a connection over TCP or TLS.

Rules of this file:

* RS.io is a stream of bytes in messages of any length. ReactiveSocket has one frame in a message.
  The handshake decides which of them is spoken; if a client names no protocol, the first byte of
  its first message does.
* A Close frame is sent before TCP ends, and nothing follows it.
* A task of this connection raises nothing into the nursery that it was started in.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import MappingProxyType

import attrs
import trio

from penstock.api import ConnectionLost, LimitExceeded
from penstock.spi import (
    ByteConnection,
    Bytes,
    Connection,
    ConnectionFacts,
    PeerIdentity,
    TransportOptions,
)
from penstock_websocket import _frames as frames
from penstock_websocket._pings import Pinger
from penstock_websocket._receiving import Receiver
from penstock_websocket._sending import ConnectionSender
from penstock_websocket._subprotocols import WORD_SIZE, Agreed, is_framed, is_framed_by

Upgrade = Callable[[ByteConnection], Awaitable[Agreed]]


@attrs.frozen(kw_only=True)
class OpeningRole:
    """How one side opens its WebSockets."""

    is_client: bool
    upgrade: Upgrade
    options: TransportOptions
    ping: float
    """Seconds between two pings of a server."""
    usual: str = ""
    """The subprotocol of a client if the server names none."""


class WebSocketConnection(Connection):
    """One WebSocket. `framed` is True if one message is one frame of the protocol
    that is spoken.
    """

    def __init__(self, below: ByteConnection, role: OpeningRole) -> None:
        options = role.options
        self.framed = False
        self.peer: PeerIdentity = below.peer
        self.facts: ConnectionFacts = below.facts
        self._below = below
        self._role = role
        # Until both hellos are said, a server closes because it refuses the client.
        code = frames.NORMAL if role.is_client else frames.POLICY
        self._sender = ConnectionSender(
            below, is_client=role.is_client, first_message=options.preauth_bytes, close_code=code
        )
        self._receiver = Receiver(below, self._sender, options, is_client=role.is_client)
        self._pinger = Pinger(
            role.ping,
            ping=self._sender.ping,
            heard_at=lambda: self._receiver.heard_at,
            give_up=self._give_up,
        )
        self._nursery: trio.Nursery | None = None

    async def handshake(self, nursery: trio.Nursery) -> None:
        address, seconds = self.peer.address, self._role.options.handshake_timeout
        is_done = False
        try:
            with trio.fail_after(seconds):
                await self._below.handshake(nursery)
                self._begin(await self._role.upgrade(self._below), nursery)
                if self.facts.protocol is None and not self._role.is_client:
                    self.framed = is_framed_by(await self._receiver.wait_first(WORD_SIZE))
            is_done = True
        except trio.TooSlowError:
            raise ConnectionLost(
                f"{address} did not finish its WebSocket handshake within {seconds:g} s"
            ) from None
        except (trio.BrokenResourceError, LimitExceeded) as error:
            raise ConnectionLost(
                f"the WebSocket handshake with {address} failed: {error}"
            ) from None
        finally:
            if not is_done:
                await self.abort()

    def _begin(self, agreed: Agreed, nursery: trio.Nursery) -> None:
        below, name = self._below, agreed.subprotocol
        self.peer = below.peer
        details = MappingProxyType({**below.facts.details, "websocket": name or "no subprotocol"})
        # TLS below knows the name http/1.1; the subprotocol is what this connection carries.
        self.facts = attrs.evolve(below.facts, half_close=False, protocol=name, details=details)
        self.framed = is_framed(name or self._role.usual)
        self._nursery = nursery
        self._sender.start(nursery)
        self._receiver.start(agreed.rest)

    def on_open(self) -> None:
        self._sender.on_open()
        self._receiver.on_open()
        if not self._role.is_client and self._nursery is not None:
            self._sender.close_code = frames.GOING_AWAY
            self._pinger.start(self._nursery)

    def on_goodbye(self, reason: str) -> None:
        self._sender.close_code = close_code(reason, is_client=self._role.is_client)

    async def send(self, data: Bytes, /) -> None:
        await self._sender.send(data, whole=self.framed)

    def send_now(self, data: Bytes, /) -> int:
        return 0 if self.framed else self._sender.send_now(data)

    async def receive(self) -> bytes | bytearray | None:
        return await (
            self._receiver.receive_message() if self.framed else self._receiver.receive_bytes()
        )

    async def send_eof(self) -> None:
        """Send the Close frame: nothing follows it."""
        await self._sender.close()

    async def aclose(self) -> None:
        self._pinger.stop()
        try:
            # The peer answers with its Close frame.
            # Closed over unread bytes, TCP would take this side's away.
            with (
                suppress(trio.BrokenResourceError, trio.ClosedResourceError),
                trio.move_on_after(self._role.options.close_timeout),
            ):
                await self._sender.close()
                await self._receiver.read_out()
        finally:
            self._stop()
            await self._below.aclose()

    async def abort(self) -> None:
        self._pinger.stop()
        await self._sender.abort()
        self._stop()
        await self._below.abort()

    def farewell(self) -> str | None:
        return self._receiver.words or self._below.farewell()

    def held(self) -> int:
        return self._receiver.held()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {self.peer}>"

    def _stop(self) -> None:
        self._pinger.stop()
        self._sender.stop()
        self._receiver.stop()

    async def _give_up(self) -> None:
        self._receiver.words = f"the peer did not answer a ping within {self._role.ping:g} s"
        await self._below.abort()


def close_code(reason: str, *, is_client: bool) -> int:
    """Return the code of the Close frame after a goodbye with this reason."""
    if not reason:
        return frames.NORMAL
    if reason in ("shutdown", "draining"):
        return frames.NORMAL if is_client else frames.GOING_AWAY
    if reason == "version" or reason.startswith(("version ", "protocol:")):
        return frames.PROTOCOL_ERROR
    return frames.INTERNAL if reason == "internal" else frames.POLICY
