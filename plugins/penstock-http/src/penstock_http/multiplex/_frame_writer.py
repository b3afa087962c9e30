"""The sending half of one HTTP/2 connection:
the streams that have something to send take turns, and one task writes.

Rules of this file:

* A DATA frame is made only while fewer than `HIGH` bytes wait for the system: a peer that does not
  read costs `HIGH` bytes and one frame. The bytes of a send that waits stay with their sender.
* Any task may try a send without a wait while the writer is idle.
  The writer sends the bytes that the system does not take.
* Answers to frames of the peer (to a ping, for example) wait here too. More than `MOST` bytes in
  all mean that the peer sends frames and reads no answers: the connection is given up.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from penstock.spi import Bytes, Connection
from penstock_http.multiplex._protocol import Http2Protocol
from penstock_http.multiplex._stream import Http2Stream, PendingSend

HIGH: Final = 64 << 10
MOST: Final = 256 << 10

PASSES: Final = 8
"""Passes of the scheduler until a write that the system has taken returns, at most: a write through
TLS needs three of them.
"""

CHUNK: Final = 128 << 10
"""Bytes that are written in one step."""


class FrameWriter:
    """Everything that waits to be sent on one connection."""

    def __init__(
        self,
        below: Connection,
        core: Http2Protocol,
        *,
        on_failure: Callable[[], None],
        give_up: Callable[[str], None],
    ) -> None:
        """`on_failure` is called once if nothing can be sent any more.
        `give_up` ends the connection with a text.
        """
        self._below = below
        self._core = core
        self._on_failure = on_failure
        self._give_up = give_up
        self._unsent = bytearray()
        self._in_flight = 0  # bytes that the writer has taken out of `_unsent`
        self._is_writing = False
        self._queued = 0  # bytes since the beginning
        # streams with something to send, each at most once.
        self._turns: deque[Http2Stream] = deque()
        self._marks: deque[tuple[int, PendingSend]] = deque()  # sends whose last byte has its frame
        self._work = trio.Event()
        self._progress = trio.Event()
        self._failure = ""

    @property
    def left(self) -> int:
        """Bytes in frames that the system has not taken."""
        return len(self._unsent) + self._in_flight

    def has_unsent(self, stream: Http2Stream) -> bool:
        """Return whether frames of `stream` wait for the system."""
        return stream.mark > self._queued - self.left

    # --- for streams

    async def send(
        self,
        stream: Http2Stream,
        data: Bytes,
        *,
        on_end: Callable[[], None] | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> None:
        """Send all of `data`, as the peer gives credit. Raises BrokenResourceError. Checkpoints.

        `on_end` and `on_sent` are those of `PendingSend`.
        """
        stream.check_sendable()
        if not len(data):
            await trio.lowlevel.checkpoint()
            return
        pending = stream.pending = PendingSend(memoryview(data), on_end=on_end, on_sent=on_sent)
        self._turns.append(stream)
        self.pump()
        try:
            if pending.over.is_set():
                await trio.lowlevel.checkpoint()
            await pending.over.wait()
        finally:
            # A send that was cancelled: the rest has no reader, because only a reset may follow.
            stream.pending = None
        # Behind a send that has succeeded the connection may have ended already.
        if not pending.is_sent:
            stream.check_sendable()
            self.check()

    def post(self, stream: Http2Stream, data: bytes, on_framed: Callable[[], None]) -> None:
        """Send `data` as the peer gives credit, without a task that waits;
        then call `on_framed`.
        """
        stream.pending = PendingSend(memoryview(data), on_framed)
        self._turns.append(stream)
        self.pump()

    def send_now(self, stream: Http2Stream, data: Bytes) -> int:
        """Send at most one frame if nothing waits; return the number of bytes.
        Raises BrokenResourceError.
        """
        stream.check_sendable()
        self.check()
        if self.left or self._turns or stream.pending is not None:
            return 0
        room = self._core.room(stream.id)
        if room <= 0 or not data:
            return 0
        self._frame(stream, memoryview(data)[:room])
        return min(room, len(data))

    def on_credit(self, stream: Http2Stream) -> None:
        """Let `stream` take its turn again: the peer has given credit."""
        if stream.is_blocked:
            stream.is_blocked = False
            if stream.pending is not None:
                self._turns.append(stream)

    # --- for the connection

    def pump(self) -> None:
        """Put what waits into frames, as far as credit and `HIGH` allow,
        and send what goes without a wait.
        """
        while self._turns and self.left < HIGH and not self._failure:
            stream = self._turns.popleft()
            pending = stream.pending
            if pending is None or not stream.state.can_send:
                continue
            room = self._core.room(stream.id)
            if room <= 0:
                stream.is_blocked = True
                continue
            on_end = pending.on_end if len(pending.left) <= room else None
            self._frame(stream, pending.left[:room], ends=on_end is not None)
            pending.left = pending.left[room:]
            if on_end is not None:
                on_end()
            if pending.left:
                self._turns.append(stream)
            elif pending.on_framed is not None:
                pending.on_framed()
            elif stream.mark <= self._queued - self.left:
                pending.note_sent()
            else:
                self._marks.append((stream.mark, pending))
        # Behind the frames: a head goes into one packet with the beginning of its body.
        self.flush()

    def flush(self) -> None:
        """Send what the core has made, as far as it goes without a wait;
        the writer sends the rest.
        """
        data = self._core.take()
        if not data or self._failure:
            return
        self._queued += len(data)
        sent = 0
        if not self._is_writing and not self._unsent:
            try:
                sent = self._below.send_now(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                self.fail(f"the connection broke: {error}")
                return
        if sent < len(data):
            self._unsent += memoryview(data)[sent:]
            self._work.set()
            if self.left > MOST:
                self._give_up("the peer sends frames and reads no answers")
                return
        self._note_progress()

    def fail(self, text: str) -> None:
        """Send nothing any more."""
        if self._failure:
            return
        self._failure = text
        self._unsent.clear()
        self._turns.clear()
        while self._marks:
            self._marks.popleft()[1].over.set()
        self._work.set()
        self._progress.set()
        # The connection does not end here: the peer may have closed it after a goodbye, which the
        # reader still has to read.
        self._on_failure()

    def check(self) -> None:
        """Raise BrokenResourceError if nothing can be sent any more."""
        if self._failure:
            raise trio.BrokenResourceError(self._failure)

    async def wait_sent(self) -> None:
        """Wait until the system has taken all that is in frames. Raises BrokenResourceError.
        Checkpoints.
        """
        await trio.lowlevel.checkpoint()
        goal = self._queued
        while self._queued - self.left < goal:
            self.check()
            await self._progress.wait()
        self.check()

    async def settle(self) -> None:
        """Let the writer note that the system has taken its bytes. Checkpoints.

        The peer may have read them, and ended the connection, before the writer's task runs again.
        """
        await trio.lowlevel.checkpoint()
        for _ in range(PASSES):
            if not self._in_flight:
                return
            await trio.lowlevel.checkpoint()

    async def run(self) -> None:
        """Write what the system does not take at once.
        Returns when nothing can be sent any more. It raises nothing.
        """
        try:
            while not self._failure:
                await self._work.wait()
                self._work = trio.Event()
                await self._write_all()
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self._in_flight = 0
            self.fail(f"the connection broke: {error}")

    # --- inside

    async def _write_all(self) -> None:
        self._is_writing = True
        try:
            while self._unsent:
                chunk = bytes(self._unsent[:CHUNK])
                del self._unsent[:CHUNK]
                self._in_flight = len(chunk)
                await self._below.send(chunk)
                self._in_flight = 0
                self._note_progress()
                self.pump()
        finally:
            self._is_writing = False

    def _frame(self, stream: Http2Stream, data: memoryview, *, ends: bool = False) -> None:
        self._core.send_data(stream.id, data, ends=ends)
        self.flush()
        stream.mark = self._queued

    def _note_progress(self) -> None:
        sent = self._queued - self.left
        while self._marks and self._marks[0][0] <= sent:
            self._marks.popleft()[1].note_sent()
        self._progress.set()
        self._progress = trio.Event()
