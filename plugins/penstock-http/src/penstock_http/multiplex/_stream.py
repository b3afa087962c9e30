"""One stream of HTTP/2: the bytes that have arrived and were not taken, the send that waits,
and its state.
"""

from collections.abc import Callable
from typing import Final

import trio

from penstock_http.multiplex._protocol import Headers
from penstock_http.multiplex._states import Http2StreamState, Input, move

ENDED: Final = "the stream has ended; nothing can be sent on it"


class PendingSend:
    """The bytes of one `send` that are not in frames yet."""

    __slots__ = ("is_sent", "left", "on_end", "on_framed", "on_sent", "over")

    def __init__(
        self,
        data: memoryview,
        on_framed: Callable[[], None] | None = None,
        *,
        on_end: Callable[[], None] | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> None:
        """If `on_framed` is given, it is called once all bytes are in frames,
        and no task waits for `over`.

        If `on_end` is given, the last frame ends this side's half of the stream, and it is called
        then. `on_sent` is called when the system has taken all bytes: a task that waits for that
        may be cancelled before it can note it.
        """
        self.on_sent: Callable[[], None] | None = on_sent
        self.left: memoryview = data
        self.on_end: Callable[[], None] | None = on_end
        self.on_framed: Callable[[], None] | None = on_framed
        self.is_sent: bool = False
        """The system has taken all bytes."""
        self.over: trio.Event = trio.Event()
        """The system has taken all bytes, or none can be sent any more."""

    def note_sent(self) -> None:
        """Note that the system has taken all bytes."""
        self.is_sent = True
        self.over.set()
        if self.on_sent is not None:
            self.on_sent()


class Http2Stream:
    """A stream as this side knows it. The multiplexer feeds it;
    a connection of penstock reads it and writes to it.
    """

    __slots__ = (
        "_arrived",
        "_buffer",
        "_whole",
        "answer",
        "answered",
        "id",
        "is_blocked",
        "mark",
        "on_gone",
        "pending",
        "state",
        "words",
    )

    def __init__(self, stream_id: int) -> None:
        self.id: int = stream_id
        self.state: Http2StreamState = Http2StreamState.OPEN
        self.words: str = ""
        """Why the stream is broken, for people."""
        self.pending: PendingSend | None = None
        self.is_blocked: bool = False
        """The peer has given no credit for the bytes in `pending`."""
        self.mark: int = 0
        """The position, in all bytes that this connection sends,
        behind the last frame of the stream.
        """
        self.answer: Headers | None = None
        """For a client: the headers of the answer."""
        self.answered: trio.Event = trio.Event()
        """The answer has come, or none will."""
        self.on_gone: Callable[[], None] | None = None
        """Called when the stream breaks before both halves have ended."""
        self._whole = b""  # the bytes of one frame, uncopied, while no other has arrived
        # Not a list of frames: each frame of one byte would cost 40.
        self._buffer = bytearray()
        self._arrived = trio.Event()

    # --- what happens to it

    def on_data(self, data: bytes) -> None:
        """Keep bytes until they are taken."""
        if not self._whole and not self._buffer:
            self._whole = data
        else:
            self._buffer += self._whole or b""
            self._buffer += data
            self._whole = b""
        self._arrived.set()

    def on_answer(self, headers: Headers) -> None:
        """Note the headers of the answer."""
        self.answer = headers
        self.answered.set()

    def on_end(self) -> None:
        """Note that the peer has ended its half."""
        self.state = move(self.state, Input.RECEIVE_END)
        self._arrived.set()

    def on_broken(self, words: str) -> None:
        """Note a reset of either side, or the loss of the connection. The first one counts.
        Bytes that have arrived can still be taken.
        """
        if self.state not in {Http2StreamState.CLOSED, Http2StreamState.BROKEN}:
            self.words = words
            if self.on_gone is not None:
                self.on_gone()
        self.state = move(self.state, Input.BREAK)
        if self.pending is not None:
            self.pending.over.set()
        self.answered.set()
        self._arrived.set()

    def on_sent_end(self) -> None:
        """Note that this side has ended its half."""
        self.state = move(self.state, Input.SEND_END)

    def on_closed(self) -> None:
        """Let a task that reads or sends go on: this side has closed the stream."""
        if self.pending is not None:
            self.pending.over.set()
        self._arrived.set()

    # --- for the connection on it

    @property
    def waiting(self) -> int:
        """Bytes that have arrived and were not taken."""
        return len(self._whole) or len(self._buffer)

    async def wait_readable(self) -> None:
        """Wait for bytes, or for the end. Checkpoints."""
        await trio.lowlevel.checkpoint()
        while not self.waiting and self.state.can_receive:
            self._arrived = trio.Event()
            await self._arrived.wait()

    def take(self, most: int) -> bytes:
        """Take at most `most` bytes; none are left when the peer has ended its half. Raises
        BrokenResourceError after a reset.
        """
        if self._whole and len(self._whole) <= most:
            data, self._whole = self._whole, b""
            return data
        if self._whole:
            self._buffer, self._whole = bytearray(self._whole), b""
        data = bytes(self._buffer[:most])
        del self._buffer[:most]
        if not data and self.state is Http2StreamState.BROKEN:
            raise trio.BrokenResourceError(self.words)
        return data

    def drop(self) -> int:
        """Forget the bytes that were not taken; return their number."""
        size, self._whole = self.waiting, b""
        self._buffer.clear()
        return size

    def check_sendable(self) -> None:
        """Raise BrokenResourceError if nothing can be sent any more."""
        if not self.state.can_send:
            raise trio.BrokenResourceError(self.words or ENDED)
