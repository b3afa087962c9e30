"""The sending half of a WebSocket:
messages, pings and pongs, and the Close frame behind which nothing follows.
"""

from contextlib import suppress
from typing import Final

import trio

from penstock.spi import ByteConnection, Bytes
from penstock_websocket._frames import WebSocketWriter
from penstock_websocket._outgoing import Outgoing

MAX_MESSAGE_SENT: Final = 256 << 10
"""Bytes of one message of RS.io. More is sent as several messages."""

ABORT_SECONDS: Final = 0.05
"""Seconds for the Close frame of an aborted connection.
A socket takes it without a wait, unless its buffer is full.
"""


class ConnectionSender:
    """Sends on one connection, from `start` on."""

    def __init__(
        self, below: ByteConnection, *, is_client: bool, first_message: int, close_code: int
    ) -> None:
        """`first_message` is the length of the largest message of a client before the hello."""
        self._below = below
        self._writer = WebSocketWriter(client=is_client)
        self._outgoing: Outgoing | None = None
        # bytes that are queued and that `send_now` has not counted: the caller sends them again.
        self._ahead = 0
        self._largest = first_message if is_client else MAX_MESSAGE_SENT
        self.close_code: int = close_code
        """The code of the Close frame, if nothing else decides it."""
        self.is_closed: bool = False
        """The Close frame was queued, or nothing can be sent any more."""

    def start(self, nursery: trio.Nursery) -> None:
        """Send frames from now on: the handshake is done."""
        self._outgoing = Outgoing(self._below, nursery)

    def on_open(self) -> None:
        """Send messages of any length: both sides have said hello."""
        self._largest = MAX_MESSAGE_SENT

    async def send(self, data: Bytes, *, whole: bool) -> None:
        """Send `data`, as one message if it is `whole`. Checkpoints."""
        outgoing = self._usable()
        # Bytes that `send_now` has queued and not counted come first; they only have to leave.
        skipped = min(self._ahead, len(data))
        self._ahead -= skipped
        await outgoing.wait_left(self._ahead)
        rest = memoryview(data)[skipped:]
        if not rest and skipped:
            return
        size = max(len(rest), 1) if whole else self._largest
        for start in range(0, max(len(rest), 1), size):
            self._usable().put(self._writer.message(rest[start : start + size]))
            await outgoing.wait_left(0)

    def send_now(self, data: Bytes) -> int:
        """Queue `data` as one message if nothing waits;
        return how much of it the system has taken.
        """
        outgoing = self._outgoing
        if outgoing is None or self.is_closed or outgoing.left or len(data) > self._largest:
            return 0  # `send` is called next, and raises the right error
        outgoing.put(self._writer.message(data))
        # The caller counts what the system has taken, so that its deadline
        # and the memory budget see the rest.
        self._ahead = min(outgoing.left, len(data))
        return len(data) - self._ahead

    def ping(self) -> None:
        """Send a ping. Raises as `send` does."""
        self._usable().put(self._writer.ping())

    def pong(self, payload: bytes) -> None:
        """Answer a ping, unless the Close frame is sent."""
        if self._outgoing is not None and not self.is_closed:
            self._outgoing.put(self._writer.pong(payload))

    async def close(self, code: int | None = None) -> None:
        """Send the Close frame, once, behind what is queued; `close_code` if no code is given.
        Waits until all is sent. Checkpoints.
        """
        if self._outgoing is None:
            await trio.lowlevel.checkpoint()
            return
        if not self.is_closed:
            self.is_closed = True
            self._outgoing.put(self._writer.close(self.close_code if code is None else code))
        await self._outgoing.wait_left(0)

    async def abort(self) -> None:
        """Send the Close frame if it can be sent without a wait for the peer,
        and nothing after it.
        """
        # In the middle of another frame it cannot.
        if self._outgoing is not None and not self.is_closed and not self._outgoing.left:
            with (
                suppress(trio.BrokenResourceError, trio.ClosedResourceError),
                trio.move_on_after(ABORT_SECONDS, shield=True),
            ):
                await self.close()
        self.stop()

    def stop(self) -> None:
        """Send nothing any more."""
        self.is_closed = True
        if self._outgoing is not None:
            self._outgoing.stop()

    def _usable(self) -> Outgoing:
        if self._outgoing is None:
            raise trio.ClosedResourceError("this WebSocket is not open")
        if self.is_closed:
            self._outgoing.check()
            raise trio.BrokenResourceError("the Close frame was sent; nothing may follow it")
        return self._outgoing
