"""A connection over a socket of the operating system, with fewer system calls
and scheduler passes than trio's stream needs.

Rules of this file:

* A read that returns less than `TransportOptions.receive_chunk` has emptied the socket. The next
  `receive` waits for readability at once; without this rule each message would cost one more `recv`
  that only fails with EAGAIN.
* `receive` reads the descriptor itself. With one request in flight, reading through the stream
  costs 1.24 to 1.35 times as much.
* A reader that was woken is late: to sleep and to be woken takes longer than most answers do. So
  `receive` polls before it sleeps, with a checkpoint between two polls, if its last wait was short:
  2 to 3 times as many requests are answered while few are in flight. `TransportOptions.busy_poll`
  makes it poll always, or never.
* A busy peer has sent the next message by the time that a reader has answered the last one. If the
  first poll of a wait has found it, the next read is tried without a scheduler pass
  (`receive_now`), `MAX_EARLY_READS` times in a row: 16 requests in flight take 8 % less time.
* `send_now` writes to the descriptor itself, and is never called while `send` is at work.
"""

import os
from time import monotonic
from typing import ClassVar, Final

import trio

from penstock.spi._options import TransportOptions
from penstock.spi._peer_identity import ConnectionFacts, PeerIdentity
from penstock.spi._transport import ByteConnection, Bytes

SHORT_WAIT: Final = 0.000_150
"""Seconds. By default a reader polls for as long, if its last wait took no longer.
So it rarely polls in vain.
"""

SMALL_READ: Final = 2048
"""Bytes. After a longer read the peer sends in bulk:
then a reader that sleeps finds more at a time, which costs less.
"""

MAX_POLLING: Final = 4
"""Connections that poll by default at the same time. With more, each scheduler pass would be
longer than a reader needs to wake.
"""

MAX_EARLY_READS: Final = 4
"""Reads in a row without a scheduler pass. Each is of at most `SMALL_READ` bytes, so that other
tasks wait for some 30 messages each.
"""

_IS_DIRECT: Final = os.name == "posix"
"""os.read and os.write work on sockets.
On Windows a socket is not a file, so the stream's own methods are used.
"""


class SocketConnection(ByteConnection):
    """A byte connection over a `trio.SocketStream` (TCP, Unix).
    Faster than `ByteConnection` for small messages.
    """

    stream: trio.SocketStream

    polling: ClassVar[int] = 0
    """Connections of this process that poll by default."""

    def __init__(
        self,
        stream: trio.SocketStream,
        *,
        peer: PeerIdentity,
        options: TransportOptions,
        facts: ConnectionFacts,
    ) -> None:
        super().__init__(stream, peer=peer, options=options, facts=facts)
        self._is_empty = _IS_DIRECT  # the last read has emptied the socket
        # No polling before the first read:
        # a client that never sends anything must not cost a processor.
        self._was_read = self._was_small = False
        self._last_wait = 0.0
        self._is_early = False  # the last read found its bytes at the first look
        self._early_reads = 0  # since the last scheduler pass
        self._busy_poll = options.busy_poll

    def send_now(self, data: Bytes, /) -> int:
        sock = self.stream.socket
        if not _IS_DIRECT or sock.did_shutdown_SHUT_WR:
            return 0  # `send` is called next, and raises the right error
        try:
            return os.write(sock.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._broken(error) from error

    async def receive(self) -> bytes | bytearray | None:
        data: bytes | bytearray | None = None
        if self._is_empty:
            began = monotonic()
            seconds = self._polling_seconds()
            if seconds:
                data = await self._poll_until(began + seconds, counts=self._busy_poll is None)
            if data is None:
                descriptor = self.stream.socket.fileno()
                if descriptor < 0:
                    await trio.lowlevel.checkpoint()
                    raise _closed()
                await trio.lowlevel.wait_readable(descriptor)
                data = self._read_now()
            self._last_wait = monotonic() - began
        self._early_reads = 0
        # The socket may hold more, or it was reported readable and is empty:
        # trio's stream handles both.
        if data is None:
            data = await self.stream.receive_some(self._chunk)
        self._was_read = True
        self._note_size(len(data))
        return data or None

    def receive_now(self) -> bytes | None:
        # The end of the stream is b"" for each read of it, so `receive` finds it again.
        if not self._is_early or self._early_reads >= MAX_EARLY_READS:
            return None
        data = self._read_now()
        self._is_early = bool(data)
        if not data:
            return None
        self._early_reads += 1
        self._note_size(len(data))
        return data

    def _note_size(self, size: int) -> None:
        self._was_small = size <= SMALL_READ
        self._is_early = self._is_early and self._was_small
        self._is_empty = _IS_DIRECT and size < self._chunk

    def _polling_seconds(self) -> float:
        """Return for how long the next wait begins with polls, by `busy_poll`; 0 for none."""
        if not self._was_read:
            return 0
        if self._busy_poll is not None:
            return self._busy_poll
        if (
            self._last_wait > SHORT_WAIT
            or not self._was_small
            or SocketConnection.polling >= MAX_POLLING
        ):
            return 0
        return SHORT_WAIT

    async def _poll_until(self, deadline: float, *, counts: bool) -> bytes | None:
        """Poll; return None if nothing has arrived by then."""
        data: bytes | None = None
        self._is_early = True
        SocketConnection.polling += counts
        try:
            while data is None and monotonic() < deadline:
                await trio.lowlevel.checkpoint()
                data = self._read_now()
                self._is_early = self._is_early and data is not None
        finally:
            SocketConnection.polling -= counts
        return data

    def _read_now(self) -> bytes | None:
        """Return the bytes that have arrived, b"" at the end of the stream, None if nothing has
        arrived.
        """
        try:
            # Look the descriptor up for each read: if the socket was closed, its old number may
            # belong to another file by now.
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
