"""A connection over a plain socket: as any other over a stream, and for small messages with less work.

Rules of this file:

* What was read to the end is waited for, not asked again: a read that filled less than its chunk has emptied the socket, and another one
  would only be told so.
* What is sent without waiting goes past the stream, straight to the socket, and never while the stream sends.
"""

import os
from typing import Final

import trio

from penstock.plugins import ByteConnection, Bytes, Facts, Peer, TransportOptions

_DIRECT: Final = os.name == "posix"
"""Elsewhere a socket is no file."""


class SocketConnection(ByteConnection):
    """A connection over a socket of the system's."""

    stream: trio.SocketStream

    def __init__(self, stream: trio.SocketStream, *, peer: Peer, options: TransportOptions, facts: Facts) -> None:
        super().__init__(stream, peer=peer, options=options, facts=facts)
        self._is_empty = _DIRECT  # nothing has arrived that was not read, as far as is known

    def send_now(self, data: Bytes, /) -> int:
        sock = self.stream.socket
        if not _DIRECT or sock.did_shutdown_SHUT_WR:
            return 0
        try:
            return os.write(sock.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._broken(error) from error

    async def receive(self) -> bytes | bytearray | None:
        data: bytes | bytearray | None = None
        if self._is_empty:
            sock = self.stream.socket
            descriptor = sock.fileno()
            if descriptor < 0:
                await trio.lowlevel.checkpoint()
                raise trio.ClosedResourceError("this socket was closed")
            await trio.lowlevel.wait_readable(descriptor)
            try:
                data = os.read(sock.fileno(), self._chunk)  # asked again: it may have been closed just now, and another one have its number
            except BlockingIOError:
                pass  # it was empty after all
            except OSError as error:
                raise self._broken(error) from error
        if data is None:
            data = await self.stream.receive_some(self._chunk)
        self._is_empty = _DIRECT and len(data) < self._chunk
        return data or None

    def _broken(self, error: OSError) -> Exception:
        if self.stream.socket.fileno() < 0:
            return trio.ClosedResourceError("this socket was closed")
        return trio.BrokenResourceError(f"socket connection broken: {error}")
