"""A connection over a plain socket: as any other over a stream, and for small messages with less work.

Rules of this file:

* What was read to the end is waited for, not asked again: a read that filled less than its chunk has emptied the socket, and another one
  would only be told so.
* Where it is to stay awake (`TransportOptions.busy_poll`), it asks again for a while after each read, a turn of the scheduler apart.
* What is sent without waiting goes past the stream, straight to the socket, and never while the stream sends.
"""

import os
from time import monotonic
from typing import Final

import trio

from penstock.plugins import ByteConnection, Bytes, ConnectionFacts, PeerIdentity, TransportOptions

_DIRECT: Final = os.name == "posix"
"""Elsewhere a socket is no file."""


class SocketConnection(ByteConnection):
    """A connection over a socket of the system's."""

    stream: trio.SocketStream

    def __init__(self, stream: trio.SocketStream, *, peer: PeerIdentity, options: TransportOptions, facts: ConnectionFacts) -> None:
        super().__init__(stream, peer=peer, options=options, facts=facts)
        self._is_empty = _DIRECT  # nothing has arrived that was not read, as far as is known
        self._was_read = False
        self._busy_poll = options.busy_poll

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
            data = await self._poll() if self._busy_poll and self._was_read else None
            if data is None:
                descriptor = self.stream.socket.fileno()
                if descriptor < 0:
                    await trio.lowlevel.checkpoint()
                    raise _closed()
                await trio.lowlevel.wait_readable(descriptor)
                data = self._read_now()
        if data is None:
            data = await self.stream.receive_some(self._chunk)
        self._was_read = True
        self._is_empty = _DIRECT and len(data) < self._chunk
        return data or None

    async def _poll(self) -> bytes | None:
        """Ask again and again, for as long as is wanted, and let others have their turns in between; None if nothing has come."""
        ends = monotonic() + self._busy_poll
        data: bytes | None = None
        while data is None and monotonic() < ends:
            await trio.lowlevel.checkpoint()
            data = self._read_now()
        return data

    def _read_now(self) -> bytes | None:
        """Return what is there, or None; empty at the end. Its number is looked up each time: closed just now, it may be another's."""
        try:
            return os.read(self.stream.socket.fileno(), self._chunk)
        except BlockingIOError:
            return None
        except OSError as error:
            raise self._broken(error) from error

    def _broken(self, error: OSError) -> Exception:
        if self.stream.socket.fileno() < 0:
            return _closed()
        return trio.BrokenResourceError(f"socket connection broken: {error}")


def _closed() -> trio.ClosedResourceError:
    return trio.ClosedResourceError("this socket was closed")
