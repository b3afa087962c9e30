"""The receiving half of a WebSocket: bytes or messages, answers to pings, and the end.

Rules of this file:

* Before the hello the socket is read in pieces of `CHUNK` bytes, and RS.io gets one frame at a
  time: the next one may have a larger bound.
* A peer that breaks a rule gets a Close frame, and time to read it:
  later bytes of it are read and dropped, up to a bound.
* After a Close frame of the peer `receive` returns None once this side's own Close frame is sent,
  behind the frame that was being sent.
"""

from contextlib import suppress
from math import inf
from typing import Final

import trio

from penstock.api import LimitExceeded
from penstock.spi import ByteConnection, TransportOptions
from penstock_websocket import _frames as frames
from penstock_websocket._sending import ConnectionSender
from penstock_websocket._upgrade import CHUNK, LINGER, read_out

FRAMES_PER_RECEIVE: Final = 256
"""Frames that are decoded without a checkpoint: some 2 ms.
A peer may send frames of one byte, and other tasks must run.
"""


class Receiver:
    """Receives on one connection."""

    def __init__(
        self,
        below: ByteConnection,
        sender: ConnectionSender,
        options: TransportOptions,
        *,
        is_client: bool,
    ) -> None:
        self._below = below
        self._sender = sender
        self._options = options
        self._reader = frames.WebSocketReader(
            client=is_client,
            max_message=options.max_message if is_client else options.preauth_bytes,
        )
        self._message = bytearray()  # of a framed protocol; the reader bounds it
        self._put_back: frames.Event | None = None  # decoded, and left for the next call
        # Both sides have said hello; for a client from the beginning: the server is not a stranger.
        self._opened = trio.Event()
        if is_client:
            self._opened.set()
        self._has_message = False  # a message was returned
        self._read_ended: trio.Event | None = None  # somebody waits for the task that reads
        self.close_received: frames.Close | None = None
        """The Close frame of the peer."""
        self.heard_at: float = -inf
        """When bytes have arrived."""
        self.words: str | None = None
        """How the connection ended, for people, if more is known than that it did."""

    def start(self, rest: bytes) -> None:
        """Take the bytes that have arrived behind the handshake."""
        self.heard_at = trio.current_time()
        self._reader.feed(rest, self.heard_at)

    def on_open(self) -> None:
        """Accept messages of `max_message` bytes: both sides have said hello."""
        self._reader.max_message = self._options.max_message
        self._opened.set()

    def stop(self) -> None:
        """Let a `receive` that waits go on: the connection below was closed, or will be."""
        self._opened.set()

    def held(self) -> int:
        """Return the number of bytes that wait here."""
        return len(self._message) + self._reader.waiting

    async def wait_first(self, least: int) -> bytes:
        """Wait for the first `least` bytes of a client, or for its first message if that is
        shorter. Leave them for `receive`.
        """
        first, ends = b"", False
        while len(first) < least and not (first and ends):
            event = await self._next_data()
            if event is None:
                raise trio.BrokenResourceError(
                    "the client closed the WebSocket before its first message"
                )
            first, ends = first + event.payload, event.ends_message
        self._put_back = frames.Data(first, ends)
        return first

    async def receive_bytes(self) -> bytes | None:
        """Return the bytes that have arrived, of all messages."""
        event = await self._next_data()
        if event is None:
            return None
        return (
            await self._with_further(event.payload)
            if self._opened.is_set() and self._reader.waiting
            else event.payload
        )

    async def receive_message(self) -> bytes | None:
        """Return the next whole message."""
        while True:
            if self._has_message and not self._opened.is_set():
                # The first message is being examined.
                # Later messages may be long, and are left in the socket until then.
                await self._opened.wait()
            event = await self._next_data()
            if event is None:
                return None
            self._message += event.payload
            if event.ends_message:
                message, self._message = bytes(self._message), bytearray()
                self._has_message = True
                return message

    async def read_out(self) -> None:
        """Read and drop bytes until the peer has ended too."""
        while self.close_received is None:
            # Twice the limit: the message that was too long, and a message after it.
            most = 2 * self._options.max_message if self._opened.is_set() else LINGER
            try:
                await read_out(self._below, most)
            # Of TLS at once: the reader of the connection still receives, and drops what comes.
            except trio.BusyResourceError:
                self._read_ended = trio.Event()
                await self._read_ended.wait()
            else:
                return

    # --- inside

    async def _with_further(self, first: bytes) -> bytes:
        """Return `first` and the bytes of the frames that have arrived after it."""
        pieces = [first]
        for _ in range(FRAMES_PER_RECEIVE):
            event = await self._event_at_hand()
            if not isinstance(event, frames.Data):
                # A Close: bytes that came before it are returned first, so
                # that this side can answer a goodbye in it.
                if isinstance(event, frames.Close):
                    self._put_back = event
                if event is None or self._put_back is not None:
                    break
            else:
                pieces.append(event.payload)
        return b"".join(pieces) if pieces[1:] else first

    async def _next_data(self) -> frames.Data | None:
        """Return the next piece of a message, or None at the end. Checkpoints."""
        if self._reader.waiting or self._put_back is not None:
            # Without it a peer that has sent many messages would starve other tasks.
            await trio.lowlevel.checkpoint()
        left = FRAMES_PER_RECEIVE
        while True:
            event = await self._event_at_hand()
            # A message without a byte has no meaning in any protocol here. The reader counts it.
            if isinstance(event, frames.Data) and (event.payload or self._message):
                return event
            if isinstance(event, frames.Close):
                await self._receive_close(event)
                return None
            left -= 1
            if event is None:
                await self._read()
            elif not left:
                await trio.lowlevel.checkpoint()
                left = FRAMES_PER_RECEIVE

    async def _event_at_hand(self) -> frames.Event | None:
        """Return the next event that needs no more bytes; pings are answered.
        Waits only if the peer has broken a rule.
        """
        if self.close_received is not None:
            return self.close_received
        event, self._put_back = self._put_back, None
        if event is not None:
            return event
        try:
            event = self._reader.next_event()
        except frames.RuleBroken as error:
            broken = error
        else:
            if isinstance(event, frames.Ping):
                self._sender.pong(event.payload)
            return event
        await self._refuse(broken)
        if broken.code == frames.TOO_BIG:
            raise LimitExceeded(
                f"the peer sent {broken}", limit="max_message", value=self._reader.max_message
            )
        raise trio.BrokenResourceError(f"the peer sent {broken}")

    async def _read(self) -> None:
        """Read from the socket. Raises BrokenResourceError at its end,
        if no Close frame came before it.
        """
        # `stream`, because `receive` would read more than a stranger may make this side hold.
        is_open = self._opened.is_set()
        try:
            data = await (
                self._below.receive() if is_open else self._below.stream.receive_some(CHUNK)
            )
        except trio.ClosedResourceError:
            if self.words is None:
                raise
            raise trio.BrokenResourceError(self.words) from None
        finally:
            if self._read_ended is not None:
                self._read_ended.set()
        if data:
            self.heard_at = trio.current_time()
            self._reader.feed(data, self.heard_at)
        elif self._sender.is_closed:
            self.close_received = frames.Close(frames.NO_CODE, "")
        else:
            raise trio.BrokenResourceError("the peer ended the connection without a Close frame")

    async def _receive_close(self, event: frames.Close) -> None:
        if self.close_received is None:
            self.close_received = event
            if self.words is None and event.code not in (frames.NORMAL, frames.NO_CODE):
                reason = f": {ascii(event.reason)[1:-1]}" if event.reason else ""
                self.words = f"it closed the WebSocket with the code {event.code}{reason}"
        # Not more than the time of a close: the peer may have stopped to read.
        with suppress(trio.BrokenResourceError), trio.move_on_after(self._options.close_timeout):
            await self._sender.close(frames.NORMAL if event.code == frames.NO_CODE else event.code)

    async def _refuse(self, error: frames.RuleBroken) -> None:
        """Send a Close frame, and let the peer read it."""
        self.words = f"it was closed with the code {error.code}, because the peer sent {error}"
        with (
            suppress(trio.BrokenResourceError, trio.ClosedResourceError),
            trio.move_on_after(self._options.close_timeout),
        ):
            await self._sender.close(error.code)
            await self._below.send_eof()
            await self.read_out()
