"""The writer of a link: its task is the only one that waits for the transport to take bytes.

Rules of this file:

* There is one writer per link, and no cancellation but the link's own end reaches it: a send that
  is cut short leaves half a message.
* The writer has a task only while there is something to wait for. It is started for the first bytes
  that the transport does not take at once, and ends when it had nothing to do for a while (`look`).
  Most connections never have one.
* What is queued while no reader is at work is sent by a task that all connections of a server share
  (`_shared_writer.py`), unless the writer has a task already. A client's writer starts its own.
* Any task may try one non-blocking send (`flush`) while the writer has nothing in flight; the
  writer sends the remainder. That saves one hand-over between tasks: 1.6 to 1.95 times as fast with
  one request in flight.
* A send that failed is never continued: how much of it arrived is not known.
"""

from collections.abc import Callable
from math import inf
from typing import Any, Final

import trio

from penstock.api import Limits
from penstock.runtime.connection._context import ConnectionContext
from penstock.session import ignore
from penstock.spi import Bytes, Connection

MAX_INLINE_SEND: Final = 256 << 10
"""Bytes that are tried without waiting: the high-water mark (`Limits.outbound_high`, 128 KiB), and
the same again of large elements.

More is sent by the writer, with a deadline:
then the transport will most likely not take all of it at once.
"""

FAST_SECONDS: Final = 1.0
"""A peer that takes a send within this time counts as fast."""


REST_SECONDS: Final = 1.0
"""Seconds between two looks at the task of a writer."""

MAX_IDLE_TICKS: Final = 2
"""The writer's task ends if it has had nothing to do between two looks."""


class DeadlineSender:
    """Sends on one transport connection, with a deadline.
    Raises what the transport raises, and trio.TooSlowError.

    The connection to a peer that takes nothing, or one byte now and then, is given up:

    * A cancelled send does not tell how much of it was sent. So a peer that may be slow gets pieces
      of `Limits.min_drain` bytes, and each piece has `Limits.write_stall` seconds. A peer that took
      the last bytes within `FAST_SECONDS` gets them whole, which is much faster.
    * A new peer may be slow. Small sends prove nothing:
      the buffers of the system take them even if the peer does not read.
    """

    __slots__ = ("_connection", "_is_fast", "_limits")

    def __init__(self, connection: Connection, limits: Limits) -> None:
        self._connection = connection
        self._limits = limits
        self._is_fast = False

    async def send(self, data: Bytes) -> None:
        """Send all of `data`, as long as the peer takes it fast enough. Checkpoints."""
        piece = self._limits.min_drain
        began = trio.current_time()
        # A framed transport carries whole messages: no pieces.
        if self._is_fast or self._connection.framed or len(data) <= piece:
            await self._send(data)
        else:
            # Slices of a memoryview copy nothing.
            whole = memoryview(data)
            for start in range(0, len(data), piece):
                await self._send(whole[start : start + piece])
        # The time of the whole send counts: a peer that is slow with one piece is slow.
        is_quick = trio.current_time() - began < FAST_SECONDS
        # A send of up to `piece` bytes can show that a peer has become slow, but not
        # that it is fast.
        self._is_fast = is_quick and (self._is_fast or len(data) > piece)

    async def _send(self, data: Bytes) -> None:
        with trio.CancelScope(deadline=trio.current_time() + self._limits.write_stall) as stall:
            await self._connection.send(data)
        # Part of the piece may have been sent: the connection cannot be used after this.
        if stall.cancelled_caught:
            raise trio.TooSlowError


class Writer:
    """Sends what the session has queued, on one transport connection."""

    __slots__ = (
        "_connection",
        "_flushed",
        "_idle_ticks",
        "_is_started",
        "_on_failure",
        "_outbox",
        "_parked",
        "_parts",
        "_runner",
        "_scope",
        "_sender",
        "_unsent",
        "can_send",
        "due",
        "has_lost_bytes",
        "in_flight",
    )

    def __init__(
        self,
        connection: Connection,
        parts: ConnectionContext,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """`on_failure` is called with what the transport raised."""
        self._connection = connection
        self._parts = parts
        self._runner = parts.runner
        self._outbox = parts.session.outbox
        self._on_failure = on_failure
        # Made for the first remainder: a deadline costs a cancel scope for each send.
        self._sender: DeadlineSender | None = None
        self._unsent: bytes | bytearray = b""  # taken from the outbox, and not begun by the task
        self._scope: trio.CancelScope | None = None  # around the task, while there is one
        self._parked: trio.lowlevel.Task | None = None  # the task, while it waits for work
        # ticks since the task was woken; with two it ends when there is nothing to do.
        self._idle_ticks = 0
        # Before that nothing is sent: the connection has no nursery for the task.
        self.due: float = inf
        self._is_started = False
        self._flushed: trio.Event | None = None
        self.in_flight: int = 0
        """Bytes that were taken from the outbox, and that the transport has not taken yet."""
        self.can_send: bool = True
        """False after a failure, and when the link has ended."""
        self.has_lost_bytes: bool = False
        """True if a send failed: some bytes from the outbox may not have arrived."""

    def start(self) -> None:
        """Send from now on, first of all what is queued already."""
        self._is_started = True
        self.flush()

    def wake(self) -> None:
        """Let the writer task send what is queued. Starts the task if it does not run."""
        # A task is woken once: a second reschedule of the same task is a fault in trio.
        if self._parked is not None:
            writer, self._parked, self._idle_ticks = self._parked, None, 0
            trio.lowlevel.reschedule(writer)
        elif self._scope is None and self._is_started and self.can_send:
            # Not needed while a task runs: it looks by itself whether there is more.
            self._scope, self._idle_ticks = trio.CancelScope(), 0
            self._parts.nursery.start_soon(self._run, self._scope, name="penstock writer")
            self._parts.timer.watch(self, REST_SECONDS)

    def on_queued(self) -> None:
        """Let what is queued be sent by the writer task, or by that of the server, unless the
        caller sends by itself: the reader after its batch, or the code that has set
        `is_requesting`.
        """
        if not self._runner.is_running_inline and not self._parts.requests.batcher.is_requesting:
            shared = self._parts.shared_writer
            # A task that runs already goes on, and is woken without another one.
            if self._scope is None and shared is not None and shared.is_running:
                shared.add(self)
            else:
                self.wake()

    def flush(self) -> None:
        """Send what is queued as far as the transport takes it without waiting;
        the writer task sends the rest.
        """
        # While the reader works through a batch, its answers are gathered:
        # it flushes once, afterwards.
        if self._runner.is_running_inline or not self.can_send or self.in_flight:
            return
        if self._outbox.is_empty:
            if self._outbox.needs_turn:
                self.wake()
            return
        if not self._is_started:
            return
        # It is woken also if all was sent: parts of large elements may be left, and streams that
        # wait for a turn.
        # Each message once woke the task. With these tries, and fewer looks at the socket, a round
        # trip takes 955 thousand instructions, and took 1,313 thousand.
        is_sent, outbox = self._send_now(self._take()), self._outbox
        if not is_sent or not outbox.is_empty or outbox.needs_turn:
            self.wake()

    def look(self, now: float, /) -> float | None:
        """End the task if it had nothing to do since the last look: a `Watcher` of its task."""
        self._idle_ticks += 1
        if self._parked is None or self._idle_ticks < MAX_IDLE_TICKS:
            return now + REST_SECONDS
        writer, self._parked = self._parked, None
        trio.lowlevel.reschedule(writer)
        return None

    def stop(self) -> None:
        """Send nothing more on this link. Queued messages stay in the session."""
        self.can_send = False
        if self._parked is not None:
            self.wake()
        elif self._scope is None:
            self._let_flushed_go()

    def cancel(self) -> None:
        """Stop, and give up a send that waits."""
        self.stop()
        if self._scope is not None:
            self._scope.cancel()

    def fail_with(self, fault: Exception) -> None:
        """End the connection with a fault of this side, as one in the writer task does."""
        self._parts.nursery.start_soon(_raise, fault, name="penstock writer")

    def release(self) -> None:
        """Refer to the link no longer."""
        self._on_failure = ignore

    async def wait_flushed(self) -> bool:
        """Wait until nothing is queued and nothing is in flight;
        return False if it cannot be sent.
        """
        is_at_work = self._scope is not None and self._parked is None
        if self.can_send and (is_at_work or not self._outbox.is_empty):
            self._flushed = trio.Event()
            self.wake()  # requests that wait for other tasks wait no longer
            await self._flushed.wait()
        return self.can_send

    # --- the task

    async def _run(self, scope: trio.CancelScope) -> None:
        try:
            with scope:
                await self._send_all()
        finally:
            self._scope = None
            self._parts.timer.unwatch(self)
            self._let_flushed_go()

    async def _send_all(self) -> None:
        """Send, until nothing can be sent any more, or until the task is retired."""
        outbox = self._outbox
        # Cancelled only with the link: a send that was cut short leaves half a message.
        while self.can_send:
            if not self._unsent and outbox.is_empty and outbox.needs_turn:
                outbox.take_turn()
                # Two passes: in the first the publisher's task starts,
                # in the second its element is here.
                await trio.lowlevel.checkpoint()
                await trio.lowlevel.checkpoint()
            elif not self._unsent and outbox.is_empty:
                # The one place where everything is sent: `wait_flushed` waits for it.
                self._let_flushed_go()
                # Dropped large elements make room without a send, and `_take` is not called then.
                self._runner.start_deferred()
                if self._parts.requests.room is not None:
                    self._parts.requests.on_room()
                # Looked at only here, where there is nothing to do:
                # work that came meanwhile is done first.
                if self._idle_ticks >= MAX_IDLE_TICKS:
                    return
                self._parked = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._abort_parking)
            elif self._unsent or not self._send_now(self._take()):
                await self._send_unsent()
            elif not outbox.is_empty:
                # A large element goes out in parts: other tasks run between two of them.
                await trio.lowlevel.checkpoint()

    # --- inside

    def _take(self) -> bytearray:
        """Take what is queued, perhaps nothing. It counts as in flight from now on."""
        # A publisher that is asked in there may signal at once, and its stream may then call
        # `flush`. The taken bytes have to go first.
        self.in_flight = 1
        data = self._outbox.take()
        if self._runner.deferred:
            self._runner.start_deferred()
        if self._parts.requests.room is not None:
            self._parts.requests.on_room()
        self.in_flight = len(data)
        if self._parts.session.channel.state.is_closing:
            # our goodbye is in `data`: from now on the answer to it has a deadline.
            self._parts.timer.reschedule()
        # Bytes that leave the outbox may be more than the session had announced:
        # parts of large elements, for example.
        budget = self._parts.budget
        if budget is not None:
            budget.moved += len(data)
            if budget.moved >= budget.slack:
                budget.measure()
        return data

    def _send_now(self, data: bytearray) -> bool:
        """Try a send without waiting; return True if all of `data` was sent."""
        sent = 0
        # A framed transport carries one message a send, and `data` may be several.
        if len(data) <= MAX_INLINE_SEND and not self._connection.framed:
            try:
                sent = self._connection.send_now(data)
            except Exception as error:  # boundary: a transport may be a plugin
                self._fail(error)
                return False
        if sent == len(data):
            self.in_flight = 0
            return True
        # The copy is of the remainder alone, and only a transport that is full leaves one.
        self._unsent = data[sent:] if sent else data
        self.in_flight = len(self._unsent)
        return False

    async def _send_unsent(self) -> None:
        # Taken out first: `flush` must see bytes in flight and not bytes to send,
        # while this task waits.
        data, self._unsent = self._unsent, b""
        if not self.can_send:
            return
        if self._sender is None:
            self._sender = DeadlineSender(self._connection, self._parts.limits)
        try:
            # Messages are queued back to back; a framed transport needs their boundaries again.
            for message in (
                self._parts.session.split(bytearray(data)) if self._connection.framed else (data,)
            ):
                await self._sender.send(message)
        except Exception as error:  # boundary: a transport may be a plugin
            self._fail(error)
        self.in_flight = 0

    def _fail(self, error: Exception) -> None:
        # The order matters: `_on_failure` may wake tasks that try to flush.
        self.can_send, self.has_lost_bytes = False, True
        self.in_flight = 0
        self._on_failure(error)
        if self._scope is None:
            self._let_flushed_go()

    def _let_flushed_go(self) -> None:
        """Let `wait_flushed` return."""
        if self._flushed is not None:
            self._flushed.set()

    def _abort_parking(self, _: Any) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED


async def _raise(fault: Exception) -> None:
    raise fault
