"""The reader of a link: receives, feeds the session, and gives other tasks a turn.
`InlineTaskRunner` calls it in a loop.
"""

from collections.abc import Callable
from time import monotonic
from typing import Final

import trio

from penstock.runtime.connection._context import ConnectionContext
from penstock.runtime.connection._lazy_event import LazyEvent
from penstock.runtime.connection._read_ahead import ReadAheadBuffer
from penstock.runtime.connection._writer import Writer
from penstock.session import STREAM_BYTES, TASK_BYTES, ConnectionState, ignore
from penstock.spi import Connection

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_EXAMINING: Final = ConnectionState.EXAMINING

MESSAGES_PER_TURN: Final = 64
"""Messages that are decoded between two looks at the clock, and answers
that may wait before the writer gets a turn.

While other readers wait, a reader decodes this number of messages and then lets them go first.
"""

LINGER_BYTES: Final = 64 << 10
"""Bytes that are still read from a peer after a goodbye of this side, counted from the goodbye on.

A connection that is closed over unread bytes is reset, and a reset takes our goodbye with it. A
peer that goes on sending once made this side read 2 GiB within `Limits.goodbye_timeout`.
"""

ORDERLY_LINGER_BYTES: Final = 1 << 20
"""The same if the goodbye does not answer a fault. Elements that the peer was asked for may be
under way in the buffers of both systems.
"""


class Reader:
    """Receives from one transport connection and feeds the session.
    `receive_and_dispatch` is one turn.
    """

    __slots__ = (
        "_ahead_scope",
        "_arrived",
        "_connection",
        "_has_more",
        "_lingered",
        "_noted_streams",
        "_parts",
        "_read_ahead",
        "_runner",
        "_session",
        "_timer",
        "_turns",
        "_writer",
        "input_ended",
        "on_end",
        "unused",
    )

    def __init__(
        self,
        connection: Connection,
        parts: ConnectionContext,
        writer: Writer,
        on_end: Callable[[Exception | None], None],
    ) -> None:
        """`on_end` is called when the input has ended, with what the transport raised or None."""
        self._connection = connection
        self._parts = parts
        self._session = parts.session
        self._runner = parts.runner
        self._timer = parts.timer
        self._writer = writer
        self.on_end: Callable[[Exception | None], None] = on_end
        self._has_more = False  # some received bytes were not decoded yet
        self._noted_streams = 0  # streams of the peer that the memory budget knows of
        self._lingered = 0  # bytes that came after the goodbye of this side
        # From the first pause until what was read ahead has been used up.
        self._read_ahead: ReadAheadBuffer | None = None
        self._ahead_scope: trio.CancelScope | None = None  # around the task that reads ahead
        self._turns = parts.turns
        self._arrived = 0  # bytes that were received and wait for a turn
        self.unused: bytes = b""
        """A chunk that waited for its turn when the reader was stopped."""
        self.input_ended: LazyEvent = LazyEvent()
        """Nothing more comes from the peer on this link."""

    async def receive_and_dispatch(self) -> bool:
        """Wait for input and act on it, for one turn.
        Return False when the input has ended, and no other link follows.
        """
        data = b""
        # Messages that were received are decoded before anything else is read:
        # so what waits is one chunk.
        if self._has_more:
            await self._pause_between_turns()
        else:
            received = None
            if not self._lingered or self._may_linger():
                try:
                    received = await self._next_chunk()
                except Exception as error:  # boundary: a transport may be a plugin
                    await self._end_in_turn(error)
            if received is None:
                await self._end_in_turn(None)
                # Most connections have no next link: then the reader loop ends here.
                return self._parts.links is not None and await self._parts.links.wait_for_next()
            # After the goodbye the session drops all but the peer's; the bytes are read so that
            # ours is not lost in a reset.
            if self._session.channel.state.is_closing:
                self._lingered += len(received)
            # Transports may return a bytearray that they use again; for bytes this copies nothing.
            data = bytes(received)
            turns = self._turns
            # Two comparisons and no call: most chunks arrive within the budget of the pass.
            if (turns.waiting or monotonic() >= turns.ends) and not turns.begin(
                self._parts.limits.turn
            ):
                await self._wait_with(data)
        # Set while decoding: calls that the session starts are queued,
        # and run after all messages of this turn were decoded.
        now, self._runner.is_running_inline = trio.current_time(), True
        try:
            has_more = self._session.receive(
                data, now - self._timer.stood_still, most=MESSAGES_PER_TURN
            )
            # While the client is examined there is always more to do:
            # its messages behind the introduction.
            self._has_more = has_more or self._session.channel.state is _EXAMINING
        finally:
            self._runner.is_running_inline = False
        # Something has arrived: the tasks that made their first requests will be woken,
        # and can be batched again.
        self._parts.requests.batcher.unbatched = 0
        budget = self._parts.budget
        if budget is not None:
            budget.moved += len(data)
            streams = self._session.streams
            opened = len(streams.serving) + streams.stopping_publishers - self._noted_streams
            if opened > 0:
                self._noted_streams += opened
                budget.moved += opened * (STREAM_BYTES + TASK_BYTES)
            if budget.moved >= budget.slack:
                budget.measure()
        return True

    def after_batch(self) -> None:
        """Send the answers to the decoded messages."""
        # The end of the chunk: all answers to it go out in one send.
        if not self._has_more:
            self._writer.flush()
        elif not self._session.outbox.is_empty:
            # more answers follow in the next turn; the writer sends these meanwhile.
            self._writer.wake()

    def held(self) -> int:
        """Return the number of bytes that were read ahead, or that wait for a turn.

        A measurement sees all streams that are open now, so later ones are noted anew.
        """
        self._noted_streams = (
            len(self._session.streams.serving) + self._session.streams.stopping_publishers
        )
        # A session that is closing drops its chunk in its next turn. Counted, it would cost another
        # connection its place meanwhile.
        arrived = 0 if self._session.channel.state.is_closing else self._arrived
        return arrived if self._read_ahead is None else arrived + self._read_ahead.held

    def stop_reading_ahead(self) -> None:
        """End the task that reads ahead: the link is over."""
        if self._ahead_scope is not None:
            self._ahead_scope.cancel()

    def release(self) -> None:
        """Refer to the link no longer."""
        self.on_end = ignore

    # --- inside

    def _may_linger(self) -> bool:
        is_orderly = self._session.close_reason[1] is None and not self._parts.over.is_set()
        return self._lingered < (ORDERLY_LINGER_BYTES if is_orderly else LINGER_BYTES)

    async def _next_chunk(self) -> bytes | bytearray | None:
        if self._read_ahead is not None:
            return await self._receive_ahead(self._read_ahead)
        batcher = self._parts.requests.batcher
        # The answers that were just decoded have woken tasks. A single one needs nothing gathered:
        # its next request goes out at once.
        if batcher.woken > 1:
            await batcher.gather()
        return self._connection.receive_now() or await self._connection.receive()

    async def _pause_between_turns(self) -> None:
        if self._session.channel.state is _EXAMINING:
            # The setup function checks the client.
            # The deadline for that is the one of the handshake.
            # `preauth_bytes` is what a client may send before it is accepted, in the transport
            # or here.
            # Without reading, a client that left would be noticed only at the deadline, and its
            # setup function would run on.
            self._read_ahead = ReadAheadBuffer(self._receive, self._parts.limits.preauth_bytes)
            self._ahead_scope = trio.CancelScope()
            self._parts.nursery.start_soon(
                self._run_read_ahead,
                self._read_ahead,
                self._ahead_scope,
                name="penstock read-ahead",
            )
            await self._parts.is_open.wait()
        elif self._turns.is_over or self._session.outbox.answers >= MESSAGES_PER_TURN:
            # With many answers the writer gets a turn, so that answers pile up only
            # if the peer does not read them.
            await self._turns.wait(self._parts.limits.turn)

    async def _wait_with(self, data: bytes) -> None:
        # Counted: a thousand readers may wait, each with a chunk.
        # If this is cancelled, the connection has ended.
        self._arrived = len(data)
        if self._parts.budget is not None:
            self._parts.budget.note_bytes(len(data))
        self.unused = data
        try:
            await self._turns.wait(self._parts.limits.turn)
            self.unused = b""
        finally:
            self._arrived = 0

    async def _run_read_ahead(self, buffer: ReadAheadBuffer, scope: trio.CancelScope) -> None:
        with scope:
            if await buffer.read():
                self._end(None)  # the setup function is cancelled then: the client is gone

    async def _receive_ahead(self, buffer: ReadAheadBuffer) -> bytes | bytearray | None:
        data = await buffer.take()
        # From now on the transport is read directly again, which saves a task per chunk.
        if buffer.is_over:
            self._read_ahead = None
        return data

    async def _receive(self) -> bytes | bytearray | None:
        try:
            return await self._connection.receive()
        except Exception as error:  # boundary: a transport may be a plugin
            self.on_end(error)
            return None

    async def _end_in_turn(self, error: Exception | None) -> None:
        """End, unless the input has ended before.
        Many connections may end, or be reset, at the same time.
        """
        if not self.input_ended.is_set():
            await self._turns.begin_end(self._parts.limits.turn, len(self._session.streams.serving))
            self._end(error)

    def _end(self, error: Exception | None) -> None:
        # Both: a goodbye waits for the first, the end of the link for the second.
        self.input_ended.set()
        self.on_end(error)
