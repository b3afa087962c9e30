"""A conversation is a connection at work: exactly one writer, a timer, and a crew, which reads and runs what the peer asks for.

Rules of this file:

* Nothing is written but by the writer, and nobody's cancellation reaches it: a send that was cut short would leave half a message.
  Only what goes without waiting is sent in its place, by who has said it, while nothing of the writer's is under way; what is left of
  that is the writer's again.
  So crew, writer and timer are shielded; cancelling the conversation says goodbye, waits for its answer within the deadline, and
  then ends them.
* Nor does a cancellation reach the publishers: a goodbye stops each in its own way. One that was cancelled beforehand would look to its
  subscriber like a publisher that failed, and to whoever runs it like a fault, where all that happens is that a server is shut down.
* Nothing that the peer sends, and nothing that the transport raises, raises out of here. The conversation ends, for a reason that `over`
  tells.
* A transport that has ended is asked how (`farewell`) before anybody is told: a child's exit status is worth more than "it is gone".
* After both goodbyes the transport is closed in good order; every other end is an abort. Before either, what the peer still sends is read
  for a while: a connection that is closed over unread bytes is reset, and a reset takes our goodbye with it.
* When `run` returns, nothing of the connection runs any more, and its transport is closed.
"""

from collections.abc import Callable
from time import monotonic
from typing import Any

import trio

from penstock.api import ConnectionLost, LimitExceeded, Limits, PenstockError, PublisherStopped
from penstock.core import CLEANUP_SECONDS, Report, tell
from penstock.plugins import Connection
from penstock.runtime.connection._end_report import describe_transport_end, is_disconnect
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._goodbye import close
from penstock.runtime.connection._inline_tasks import InlineTaskRunner
from penstock.runtime.connection._read_ahead import ReadAheadBuffer
from penstock.runtime.connection._requests import OutgoingRequests
from penstock.runtime.connection._send_deadline import DeadlineSender
from penstock.runtime.server._memory_budget import MemoryBudget
from penstock.runtime.service._published_streams import PublishedStreams, located
from penstock.session import ConnectionState, SendingStream, Session, SessionDelegate

MESSAGES_A_TURN = 64
"""Messages that are decoded between two looks at the clock."""

MOMENT = 0.05
"""Seconds between two looks at what is due, at most, while much arrives. Nothing that becomes due is measured so finely."""

MAX_INLINE_SEND = 128 << 10
"""Bytes that are sent at once, if the transport takes them without waiting: what gathers up to the high-water mark, and as much again of
large elements. What the transport leaves, as one does whose peer is slow, has a deadline: to have none costs less for each message."""

NO_BUDGET = 1 << 62
"""A connection that this side opened is alone: its own bounds are enough."""

LINGER_BYTES = 64 << 10
"""What is read, and thrown away, of a peer that goes on after the end."""


class ConnectionTask:
    """One connection, from the first byte to the last."""

    def __init__(
        self,
        connection: Connection,
        exports: PublishedStreams,
        *,
        make_session: Callable[[SessionDelegate], Session],
        limits: Limits,
        on_violation: Report,
        watch: ConnectionEvents,
        began: float,
    ) -> None:
        self.connection: Connection = connection
        self.session: Session = make_session(self)
        self.is_open: trio.Event = trio.Event()
        """Both sides have said hello, or never will."""
        self.reason: Exception | None = None
        """Why it is over, once it is."""
        self._limits = limits
        self.budget: MemoryBudget = MemoryBudget(NO_BUDGET)
        """The memory that this connection shares with others: its server's, set before it runs."""
        self._patience = DeadlineSender(connection, limits)
        self._in_flight = 0
        """Bytes that were taken to be sent, and that the transport has not."""
        self._rest = bytearray()
        """Those of them that the writer has not begun with."""
        self._exports = exports
        self._on_violation = on_violation
        self._watch = watch
        self._over = trio.Event()
        self._parting = trio.Event()
        """It is over; or this side has left, and nothing is said to that but the transport's end, for which ours must end first."""
        self._cut = trio.Event()
        """The transport has ended, or is as good as ended."""
        self._cause: Exception | None = None
        """What ended it, where it was no end in good order."""
        self._silent = trio.Event()
        """Nothing more comes from the peer."""
        self._said: trio.Event | None = None
        """Set when nothing waits to be sent, or nothing can be; made when somebody waits for that."""
        self._is_mute = False
        """Nothing can be sent any more."""
        self._hosting = trio.CancelScope(shield=True)
        self._communication = trio.CancelScope()
        self._crew = InlineTaskRunner(self._receive_and_dispatch, self._after_batch, turn=limits.turn)
        self._has_more = False  # some of what has arrived was not acted on yet
        self._unread = LINGER_BYTES  # that are still read after the end
        self._ahead: ReadAheadBuffer | None = None  # where more is read than was acted on
        self._turn_ends = 0.0
        self._writer: trio.lowlevel.Task | None = None
        self._is_talking = False
        """The writer is at work, or waits for some."""
        self.asking: OutgoingRequests = OutgoingRequests(self.session, watch, self._say, self._wake_writer)
        self._timer = trio.CancelScope()
        self._looked_at = float("-inf")  # when the session was last asked what is due
        watch.begin(lambda: self.session.is_closing)
        self.session.start(began)  # here, so that our hello comes before whatever is asked for next

    # --- for whoever opened it

    async def run(self) -> None:
        """Talk until the conversation is over; cancelled, say goodbye first. Returns, whatever the peer does."""
        self.budget.join(self)
        self.session.on_buffered = self.budget.moved
        try:
            async with trio.open_nursery() as nursery:
                self._reschedule_timer()
                nursery.start_soon(self._host)
                try:
                    await self._parting.wait()
                finally:
                    self._hosting.deadline = trio.current_time() + self._limits.drain
                    self.leave("shutdown")
                    await self._part()
        finally:
            self.budget.leave(self)
            self._watch.closed(*self.session.close_reason)

    async def _part(self) -> None:
        """Wait for the end of the goodbyes, let the last word out, and close: all within the deadlines, whatever the peer does."""
        limits, is_out = self._limits, False
        with trio.move_on_after(limits.goodbye_timeout + limits.linger, shield=True):
            if self.session.expects_answer:
                await self._over.wait()
            is_out = await self._linger()
        self._end(ConnectionLost("the peer did not answer the goodbye in time"))
        self._communication.cancel()
        in_good_order = is_out and (self.session.is_parted or not self.session.expects_answer)
        await close(self.connection, in_good_order=in_good_order, seconds=limits.goodbye_timeout, on_violation=self._on_violation)

    def leave(self, reason: str) -> None:
        """Say goodbye, once, and let everything end."""
        self.session.close(reason)
        self._reschedule_timer()

    # --- what the memory budget asks

    def held(self) -> int:
        """Return how many bytes all buffers of the connection hold."""
        return self.session.held() + self._in_flight + (0 if self._ahead is None else self._ahead.held)

    def cut(self, held: int, budget: int, /) -> None:
        """Say goodbye because this connection holds the most, and all of them too much."""
        what = f"it held {held:,} bytes, more than any other, while all together were about to exceed {budget:,} (Limits.memory_budget)"
        tell(self._on_violation, LimitExceeded(f"a connection was cut: {what}", limit="memory_budget", value=budget))
        self.session.close("limit:memory", ConnectionLost(f"this side cut the connection: {what}"))
        self._reschedule_timer()

    # --- what the session tells

    def wake(self) -> None:
        """There is something to send."""
        if not self._crew.is_acting and not self.asking.is_speaking:
            self._wake_writer()

    def _wake_writer(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            trio.lowlevel.reschedule(writer)

    def _say(self) -> None:
        """Send what waits without waiting, as far as that goes; the rest is for the writer."""
        if self._crew.is_acting or self._is_mute or self._in_flight or self.session.outbox.is_empty:
            return
        if not self._is_talking or not self._send_now(self._take()):
            self._wake_writer()

    def _flush_if_last(self) -> None:
        """A publisher has stopped. Where the peer reads no other one, nothing comes that could go out with what was said."""
        if not self.session.serving:
            self._say()

    def opened(self) -> None:
        """Both sides have said hello."""
        self._watch.opened(self.connection.peer, self.session.dialect.name)
        self.is_open.set()

    def serve(self, stream: SendingStream) -> None:
        """The peer subscribes."""
        self._exports.serve(stream, self.connection.peer)

    def attach(self, stream: SendingStream) -> None:
        """A stream that was accepted begins."""
        self._exports.attach(stream, self.connection.peer)

    def introduced(self, data: bytes) -> None:
        """The peer says who it is: whoever serves it decides."""
        self._exports.introduced(data, self.connection.peer)

    def fired(self, target: Any) -> None:
        """The peer says something that has no answer."""
        self._exports.fired(target, self.connection.peer)

    def publisher_failed(self, stream: SendingStream, error: BaseException) -> None:
        """A publisher failed while the peer read it; the peer is told less. One that was stopped because all this ends has not failed."""
        self._watch.failed(stream, error)
        is_ours = isinstance(error, PublisherStopped) and trio.current_effective_deadline() == float("-inf")
        if isinstance(error, Exception) and not is_ours:
            tell(self._on_violation, located(error, stream))

    def warned(self, warning: PenstockError) -> None:
        """The peer does what it may, and somebody should know."""
        tell(self._on_violation, warning)

    def over(self, error: Exception) -> None:
        """The session has ended."""
        self._end(error)

    def _end(self, error: Exception) -> None:
        if self.reason is None:
            self.reason = error
            self._exports.close()
        self.is_open.set()
        self._over.set()
        self._parting.set()
        self.asking.roomy()

    # --- the tasks

    async def _host(self) -> None:
        """The publishers, and the communication: beyond the reach of everybody's cancellation but `_part`'s."""
        try:
            with self._hosting:
                async with trio.open_nursery() as publishers:
                    self._exports.open(self._crew, self.session, self._watch, self._flush_if_last)
                    self._crew.begin(publishers)
                    await self._communicate()
                    self._crew.stop()
                    # Each was asked to stop when the session ended, and bounds its own cleanup; this is for those that do not.
                    self._hosting.deadline = min(self._hosting.deadline, trio.current_time() + 2 * CLEANUP_SECONDS)
        finally:
            self._is_mute = True  # an interrupt in a handler ends all of them: nobody is left whose goodbye could be waited for
            self._end(ConnectionLost("what ran this connection was interrupted"))

    async def _communicate(self) -> None:
        """Writer, timer, and who waits for the end."""
        with self._communication:
            async with trio.open_nursery() as self._communicating:
                for work in (self._write, self._keep_time, self._report_transport_end):
                    self._communicating.start_soon(work)

    async def _receive_and_dispatch(self) -> bool:
        """Wait for what arrives and act on it, for one turn; return False where nothing comes any more."""
        data = b""
        if self._has_more:
            await self._rest_a_turn()
        else:
            arrived = None
            if self._unread > 0:
                arrived = await (self._receive() if self._ahead is None else self._catch_up(self._ahead))
            if arrived is None:
                self._input_ended()
                return False
            if self._over.is_set():
                self._unread -= len(arrived)
            data = bytes(arrived)
            self._turn_ends = monotonic() + self._limits.turn
        now, self._crew.is_acting = trio.current_time(), True
        try:
            self._has_more = self.session.receive(data, now, most=MESSAGES_A_TURN) or self.session.is_paused
        finally:
            self._crew.is_acting = False
        self.asking.company.alone = 0
        if not self._has_more:
            self._reschedule_timer_soon(now)
        self.budget.moved(len(data))
        return True

    async def _rest_a_turn(self) -> None:
        """Between two turns of acting on what has arrived."""
        if self.session.is_paused:  # who is there is being examined; the time for that is the handshake's
            self._ahead = ReadAheadBuffer(self._receive, self._limits.preauth_bytes)
            self._communicating.start_soon(self._read_ahead, self._ahead)
            await self.is_open.wait()
        elif monotonic() > self._turn_ends or self.session.outbox.answers >= MESSAGES_A_TURN:
            # Where many answers wait the writer gets a turn, so that they pile up only where the peer does not read them.
            await trio.lowlevel.checkpoint()
            self._turn_ends = monotonic() + self._limits.turn

    async def _read_ahead(self, ahead: ReadAheadBuffer) -> None:
        if await ahead.read():
            self._input_ended()

    async def _catch_up(self, ahead: ReadAheadBuffer) -> bytes | bytearray | None:
        data = await ahead.take()
        if ahead.is_over:
            self._ahead = None
        return data

    def _input_ended(self) -> None:
        self._silent.set()
        self._cut.set()

    def _after_batch(self) -> None:
        """All that was heard was acted on, and what it began has said its first: answer."""
        if not self._has_more:
            self._say()
        elif not self.session.outbox.is_empty:
            self._wake_writer()

    async def _receive(self) -> bytes | bytearray | None:
        if self.budget.is_tight:
            await self.budget.wait_for_room(self)
        try:
            return await self.connection.receive()
        except Exception as error:  # boundary: a transport, perhaps somebody's plugin
            self._cut_by(error)
            return None

    async def _write(self) -> None:
        session, self._is_talking = self.session, True
        while not self._is_mute:
            if not self._rest and session.outbox.is_empty:
                if self._said is not None:
                    self._said.set()
                self._writer = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._unpark)
            elif self._rest or not self._send_now(self._take()):
                await self._send()
            elif not session.outbox.is_empty:
                await trio.lowlevel.checkpoint()
        if self._said is not None:
            self._said.set()

    def _take(self) -> bytearray:
        """Take what waits, perhaps nothing: it is under way from now on."""
        data = self.session.take()
        self.asking.roomy()
        if self.session.is_closing:
            self._reschedule_timer()  # our goodbye is among it, whoever's call that was: from now on its answer has a deadline
        self._in_flight = len(data)
        self.budget.moved(len(data))
        return data

    def _send_now(self, data: bytearray) -> bool:
        """Send what goes without waiting, if it is not very much; return whether that was all."""
        sent = 0
        if len(data) <= MAX_INLINE_SEND and not self.connection.framed:
            try:
                sent = self.connection.send_now(data)
            except Exception as error:  # boundary: a transport, perhaps somebody's plugin
                self._output_failed(error)
                return False
        self._rest = data[sent:] if sent else data
        self._in_flight = len(self._rest)
        return not self._rest

    async def _send(self) -> None:
        data, self._rest = self._rest, bytearray()
        if self._is_mute:
            return
        try:
            for message in self.session.split(data) if self.connection.framed else (data,):
                await self._patience.send(message)
        except Exception as error:  # boundary: a transport, perhaps somebody's plugin
            self._output_failed(error)
        self._in_flight = 0

    def _output_failed(self, error: Exception) -> None:
        """What was cut short cannot be gone on with."""
        self._is_mute = True
        self._in_flight = 0
        self._cut_by(error)

    def _cut_by(self, error: Exception) -> None:
        if not self._cut.is_set():
            self._cause = error
            self._cut.set()

    async def _report_transport_end(self) -> None:
        """When the transport has ended: find out how, and tell the session."""
        await self._cut.wait()
        if self.session.is_closing:
            self.session.end_of_input()
            return
        if is_disconnect(self._cause):  # a child, for one, has its status when it has been closed
            await close(self.connection, in_good_order=True, seconds=self._limits.goodbye_timeout, on_violation=self._on_violation)
        self.session.end_of_input(
            describe_transport_end(
                self.connection, self._cause, was_open=self.is_open.is_set(), limits=self._limits, on_violation=self._on_violation
            )
        )

    async def _keep_time(self) -> None:
        while True:
            with self._timer:
                await trio.sleep_forever()
            self._timer = trio.CancelScope()
            self._reschedule_timer()

    def _reschedule_timer_soon(self, now: float) -> None:
        """Something has arrived. What that makes due has longer than a moment, so one look in a moment serves all."""
        look_at = self._looked_at + MOMENT
        if now >= look_at or self.session.state is not ConnectionState.OPEN:
            self._reschedule_timer()
        elif look_at < self._timer.deadline:
            self._timer.deadline = look_at

    def _reschedule_timer(self) -> None:
        self._looked_at = trio.current_time()
        due = self.session.tick(self._looked_at)
        if self.session.is_closing and not self.session.expects_answer:
            self._parting.set()
        # A deadline that moves away is left where it is: waking too early costs one look, moving it costs something with every message.
        if due is not None and due < self._timer.deadline:
            self._timer.deadline = due

    async def _linger(self) -> bool:
        """Let the last word out, and give the peer time to read it; return whether it is out.

        Who said goodbye first closes first. The other reads on until then, as does who was not answered.
        """
        if not self._is_mute and (self._writer is None or not self.session.outbox.is_empty):
            self._said = trio.Event()
            self.wake()  # what waits for somebody to speak does so no longer
            await self._said.wait()
        if self._is_mute:
            return False
        with trio.move_on_after(self._limits.linger):
            try:
                await self.connection.send_eof()
            except Exception as error:  # boundary: a transport, perhaps somebody's plugin
                self._cut_by(error)
                return False
            # Where no goodbye is answered, the peer's end is the answer; it can only come where half of a connection can end.
            if not self.session.was_answered and (self.session.expects_answer or self.connection.facts.half_close):
                await self._silent.wait()
        return True

    def _unpark(self, _: Any) -> trio.lowlevel.Abort:
        self._writer = None
        return trio.lowlevel.Abort.SUCCEEDED
