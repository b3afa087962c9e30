"""WebSockets at the port of HTTP: penstock-websocket serves them, where it is installed.

A request of HTTP/1.1 asks for the upgrade, and may be any request of its connection. Its bytes are
read again, by that plugin.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import trio

from penstock.spi import ByteConnection, Bytes, Connection, PeerIdentity, TransportOptions

try:
    from penstock_websocket import served_websocket
except ModuleNotFoundError:  # it is an extra
    served_websocket = None  # type: ignore[assignment]  # asked for before it is called

NOT_INSTALLED: Final = "WebSocket is not served here: install penstock-websocket on the server"


def is_installed() -> bool:
    """Return whether WebSockets can be served."""
    return served_websocket is not None


def websocket_on(
    below: ByteConnection,
    request: bytes,
    options: TransportOptions,
    *,
    peer: PeerIdentity,
    secure: bool,
    is_loopback: bool,
) -> Connection:
    """Return the server's side of a WebSocket on `below`, whose client has sent `request`.
    Its handshake answers that.
    """
    options = replace(options, extra=_with_origins(options.extra))
    return served_websocket(
        Replayed(below, request, options, peer=peer),
        options,
        secure=secure,
        is_loopback=is_loopback,
    )


def _with_origins(extra: Mapping[str, object]) -> dict[str, object]:
    """Return options in which pages and hosts that may send requests may open WebSockets too,
    unless separate options name those for WebSockets.
    """
    inherited = {
        f"ws.{name}": extra[f"http.{name}"]
        for name in ("origins", "hosts")
        if f"http.{name}" in extra
    }
    return {**inherited, **extra}


class Replayed(ByteConnection):
    """A connection whose handshake is over, with bytes that were read from it already."""

    def __init__(
        self, below: ByteConnection, first: bytes, options: TransportOptions, *, peer: PeerIdentity
    ) -> None:
        super().__init__(
            _ReplayedStream(below.stream, first), peer=peer, options=options, facts=below.facts
        )
        self._below = below

    async def send(self, data: Bytes, /) -> None:
        await self._below.send(data)

    def send_now(self, data: Bytes, /) -> int:
        return self._below.send_now(data)

    async def receive(self) -> bytes | bytearray | None:
        return await (super().receive() if self.held() else self._below.receive())

    async def send_eof(self) -> None:
        await self._below.send_eof()

    def farewell(self) -> str | None:
        return self._below.farewell()

    def held(self) -> int:
        stream = self.stream
        return stream.left if isinstance(stream, _ReplayedStream) else 0


class _ReplayedStream(trio.abc.Stream):
    """A stream that is read behind bytes which were read from it already."""

    def __init__(self, below: trio.abc.Stream, first: bytes) -> None:
        self._below = below
        self._first = first

    @property
    def left(self) -> int:
        """Bytes that were not read again."""
        return len(self._first)

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if not self._first:
            return await self._below.receive_some(max_bytes)
        await trio.lowlevel.checkpoint()
        size = len(self._first) if max_bytes is None else max_bytes
        data, self._first = self._first[:size], self._first[size:]
        return data

    async def send_all(self, data: Bytes) -> None:
        await self._below.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._below.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._below.aclose()
