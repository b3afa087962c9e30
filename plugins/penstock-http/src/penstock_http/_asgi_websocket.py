"""A WebSocket of a web server as a connection of penstock: RS.io and ReactiveSocket.

Rules of this file:

* The subprotocols and their meaning are those of penstock-websocket.
* The web server does the frames, the pings and the close handshake. It has taken a message whole
  before a bound here can refuse it.
* Nothing is sent after a close.
"""

from collections.abc import Callable
from contextlib import suppress
from types import MappingProxyType
from typing import Final

import trio

from penstock.api import ConnectionLost
from penstock.spi import Bytes, Connection, ConnectionFacts, PeerIdentity, TransportOptions
from penstock_http._asgi_loops import Client, Message, Scope

with suppress(ModuleNotFoundError):  # it is an extra: `is_installed` is asked before these
    from penstock_websocket import WORD_SIZE, close_code, is_framed, is_framed_by, subprotocols_of

TOO_LARGE: Final = 1009
NO_TEXT: Final = 1003
POLICY: Final = 1008
GOING_AWAY: Final = 1001
TRY_LATER: Final = 1013


class AsgiWebSocket(Connection):
    """One WebSocket of a web server. Its handshake accepts it."""

    def __init__(
        self,
        client: Client,
        *,
        subprotocol: str | None,
        peer: PeerIdentity,
        options: TransportOptions,
    ) -> None:
        self.framed = subprotocol is not None and is_framed(subprotocol)
        self.peer = peer
        self.facts = ConnectionFacts(
            protocol=subprotocol,
            details=MappingProxyType({"websocket": subprotocol or "no subprotocol"}),
        )
        self.over: trio.Event = trio.Event()
        """Nothing is sent or read any more."""
        self._client = client
        self._subprotocol = subprotocol
        self._options = options
        self._most = options.preauth_bytes
        self._first = bytearray()
        self._code = POLICY  # before the hellos it closes because it refuses the client
        self._is_closed = False
        self._reading: trio.CancelScope | None = None

    async def handshake(self, nursery: trio.Nursery) -> None:
        await self._client.send({"type": "websocket.accept", "subprotocol": self._subprotocol})
        if self._subprotocol is None:
            while len(self._first) < WORD_SIZE:
                data = await self._next()
                if data is None:
                    raise ConnectionLost("the client closed its WebSocket before its hello")
                self._first += data
            self.framed = is_framed_by(bytes(self._first[:WORD_SIZE]))

    def on_open(self) -> None:
        self._most = self._options.max_message
        self._code = GOING_AWAY

    def on_goodbye(self, reason: str) -> None:
        self._code = close_code(reason, is_client=False)

    async def send(self, data: Bytes, /) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("this side has closed the WebSocket")
        await self._send({"type": "websocket.send", "bytes": bytes(data)})

    async def receive(self) -> bytes | bytearray | None:
        if self._first:
            await trio.lowlevel.checkpoint()
            first, self._first = self._first, bytearray()
            return first
        return await self._next()

    async def send_eof(self) -> None:
        await self._close(self._code)

    async def aclose(self) -> None:
        try:
            with trio.move_on_after(self._options.close_timeout):
                await self._close(self._code)
        except trio.BrokenResourceError:
            pass  # the client has gone
        finally:
            self.over.set()

    async def abort(self) -> None:
        self.over.set()
        await trio.lowlevel.checkpoint()

    async def finish(self) -> None:
        """Close, if the server has ended the connection without that."""
        await self._close(self._code)

    def held(self) -> int:
        return len(self._first)

    # --- inside

    async def _next(self) -> bytes | None:
        if self._is_closed:
            await trio.lowlevel.checkpoint()
            return None
        with trio.CancelScope() as self._reading:
            message = await self._client.receive()
        # Cancelled: this side has closed. Not every web server tells that to `receive`.
        if self._reading.cancelled_caught or message["type"] != "websocket.receive":
            self._is_closed = True
            return None
        data: bytes | None = message.get("bytes")
        if data is None:
            await self._close(NO_TEXT)
            raise trio.BrokenResourceError("the client sent text, and the protocols have bytes")
        if len(data) > self._most:
            await self._close(TOO_LARGE)
            raise trio.BrokenResourceError(
                f"the client sent a message of {len(data):,} bytes; {self._most:,} are allowed"
            )
        return data

    async def _close(self, code: int) -> None:
        if self._is_closed:
            await trio.lowlevel.checkpoint()
        else:
            self._is_closed = True
            await self._send({"type": "websocket.close", "code": code})
            if self._reading is not None:
                self._reading.cancel()

    async def _send(self, message: Message) -> None:
        try:
            await self._client.send(message)
        except ConnectionLost as error:
            raise trio.BrokenResourceError(str(error)) from error

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {self.peer}>"


def subprotocol_of(scope: Scope, options: TransportOptions) -> str | None:
    """Return the first subprotocol of the client that is known; None if it names none.
    Raises ConnectionLost if it names others only.
    """
    offered = scope.get("subprotocols") or ()
    known = subprotocols_of(options.protocols)
    chosen = next((name for name in offered if name in known), None)
    if offered and chosen is None:
        raise ConnectionLost(f"none of {', '.join(offered)} is known here")
    return chosen


async def serve_websocket(
    websocket: AsgiWebSocket, client: Client, adopt: Callable[[Connection], str | None]
) -> None:
    """Let the server serve `websocket`, and return when that is over."""
    refusal = adopt(websocket)
    if refusal is not None:
        await client.send({"type": "websocket.close", "code": TRY_LATER, "reason": refusal})
        return
    await websocket.over.wait()
    await websocket.finish()
