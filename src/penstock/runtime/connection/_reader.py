"""The reader of a link: receives, feeds the session, and gives other tasks a turn. `InlineTaskRunner` calls it in a loop."""

from collections.abc import Callable
from time import monotonic
from typing import Final

import trio

from penstock.plugins import Connection
from penstock.runtime.connection._parts import ConnectionParts
from penstock.runtime.connection._read_ahead import ReadAheadBuffer
from penstock.runtime.connection._timer import SessionTimer
from penstock.runtime.connection._writer import Writer
from penstock.session import ConnectionState

MESSAGES_PER_TURN: Final = 64
"""Messages that are decoded between two looks at the clock, and answers that may wait before the writer gets a turn."""

LINGER_BYTES: Final = 64 << 10
"""Bytes that are still read, and dropped, from a peer that goes on sending after the end.

A connection that is closed over unread bytes is reset, and a reset takes our goodbye with it.
"""


class Reader:
    """Receives from one transport connection and feeds the session. `receive_and_dispatch` is one turn."""

    __slots__ = (
        "_connection",
        "_has_more",
        "_linger_left",
        "_parts",
        "_read_ahead",
        "_runner",
        "_session",
        "_timer",
        "_turn_ends",
        "_writer",
        "input_ended",
        "nursery",
        "on_end",
    )

    nursery: trio.Nursery
    """Runs the task that reads ahead; the nursery of the link."""

    def __init__(
        self,
        connection: Connection,
        parts: ConnectionParts,
        timer: SessionTimer,
        writer: Writer,
        on_end: Callable[[Exception | None], None],
    ) -> None:
        """`on_end` is called when the input has ended, with what the transport raised or None."""
        self._connection = connection
        self._parts = parts
        self._session = parts.session
        self._runner = parts.runner
        self._timer = timer
        self._writer = writer
        self.on_end: Callable[[Exception | None], None] = on_end
        self._has_more = False  # some received bytes were not decoded yet
        self._linger_left = LINGER_BYTES
        self._read_ahead: ReadAheadBuffer | None = None  # from the first pause until what was read ahead has been used up
        self._turn_ends = 0.0
        self.input_ended: trio.Event = trio.Event()
        """Nothing more comes from the peer on this link."""

    async def receive_and_dispatch(self) -> bool:
        """Wait for input and act on it, for one turn. Return False when the input has ended, and no other link follows."""
        data = b""
        # Messages that were received are decoded before anything else is read: so what waits is one chunk.
        if self._has_more:
            await self._pause_between_turns()
        else:
            received = None
            if self._linger_left > 0:
                received = await (self._receive() if self._read_ahead is None else self._receive_ahead(self._read_ahead))
            if received is None:
                self._end(None)
                # Most connections have no next link: then the reader loop ends here.
                return self._parts.next_link is not None and await self._parts.next_link()
            # After the end the session drops everything; the bytes are read only so that the goodbye is not lost in a reset.
            if self._parts.over.is_set():
                self._linger_left -= len(received)
            # Transports may return a bytearray that they use again; for bytes this copies nothing.
            data = bytes(received)
            self._turn_ends = monotonic() + self._parts.limits.turn
        # Set while decoding: calls that the session starts are queued, and run after all messages of this turn were decoded.
        now, self._runner.is_running_inline = trio.current_time(), True
        try:
            has_more = self._session.receive(data, now, most=MESSAGES_PER_TURN)
            # While the client is examined there is always more to do: its messages behind the introduction.
            self._has_more = has_more or self._session.channel.state is ConnectionState.EXAMINING
        finally:
            self._runner.is_running_inline = False
        # Something has arrived: the tasks that made their first requests will be woken, and can be batched again.
        self._parts.requests.batcher.unbatched = 0
        # In the middle of a chunk the next turn follows at once, and looks at the clock itself.
        if not self._has_more and now >= self._timer.covered_until:
            self._timer.reschedule_soon(now)
        budget = self._parts.budget
        if budget is not None:
            budget.moved += len(data)
            if budget.moved >= budget.slack:
                budget.measure()
        return True

    def after_batch(self) -> None:
        """Send the answers to the decoded messages."""
        # The end of the chunk: all answers to it go out in one send.
        if not self._has_more:
            self._writer.flush()
        elif not self._session.outbox.is_empty:
            self._writer.wake()  # more answers follow in the next turn; the writer sends these meanwhile

    def held(self) -> int:
        """Return the number of bytes read ahead."""
        return 0 if self._read_ahead is None else self._read_ahead.held

    # --- inside

    async def _pause_between_turns(self) -> None:
        if self._session.channel.state is ConnectionState.EXAMINING:
            # The setup function checks the client. The deadline for that is the one of the handshake.
            # `preauth_bytes` is what a client may send before it is accepted, in the transport or here.
            self._read_ahead = ReadAheadBuffer(self._receive, self._parts.limits.preauth_bytes)
            self.nursery.start_soon(self._run_read_ahead, self._read_ahead, name="penstock read-ahead")
            await self._parts.is_open.wait()
        elif monotonic() > self._turn_ends or self._session.outbox.answers >= MESSAGES_PER_TURN:
            # With many answers the writer gets a turn, so that answers pile up only if the peer does not read them.
            await trio.lowlevel.checkpoint()
            self._turn_ends = monotonic() + self._parts.limits.turn

    async def _run_read_ahead(self, buffer: ReadAheadBuffer) -> None:
        if await buffer.read():
            self._end(None)  # the setup function is cancelled then: the client is gone

    async def _receive_ahead(self, buffer: ReadAheadBuffer) -> bytes | bytearray | None:
        data = await buffer.take()
        # From now on the transport is read directly again, which saves a task per chunk.
        if buffer.is_over:
            self._read_ahead = None
        return data

    async def _receive(self) -> bytes | bytearray | None:
        budget = self._parts.budget
        # Before the receive: unread bytes stay in the buffers of the peer, and cost no memory here.
        if budget is not None and budget.is_tight:
            await budget.wait_for_room(self._parts.holder)
        try:
            return await self._connection.receive()
        except Exception as error:  # boundary: a transport may be a plugin
            self.on_end(error)
            return None

    def _end(self, error: Exception | None) -> None:
        # Both: a goodbye waits for the first, the end of the link for the second.
        self.input_ended.set()
        self.on_end(error)
