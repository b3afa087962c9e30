"""A conversation is a connection at work: one nursery with a reader, exactly one writer, a timer, and the publishers that the peer reads.

Rules of this file:

* Nothing is written but by the writer, and nobody's cancellation reaches it: a send that was cut short would leave half a message.
  So reader, writer and timer are shielded; cancelling the conversation says goodbye, waits for its answer within the deadline, and
  then ends them.
* Nothing that the peer sends raises out of here. The conversation ends, for a reason that `over` tells.
* When `run` returns, nothing of the connection runs any more, and its transport is closed.
"""

from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import trio

from penstock.api import ConnectionLost, LimitExceeded, Limits, PenstockError, Role, Subscriber
from penstock.core import Report, tell
from penstock.plugins import Connection
from penstock.runtime._exports import Exports
from penstock.session import ConnectionState, Outbound, RsioDialect, Session

MESSAGES_A_TURN = 64
"""Messages that are decoded between two looks at the clock."""


class Conversation:
    """One connection, from the first byte to the last."""

    def __init__(
        self,
        connection: Connection,
        exports: Exports,
        *,
        role: Role,
        limits: Limits,
        make_dialect: Callable[[Session], RsioDialect],
        chance: Callable[[], float],
        on_violation: Report,
        began: float,
    ) -> None:
        self.connection: Connection = connection
        self.session: Session = Session(self, make_dialect, role=role, limits=limits, chance=chance)
        self.is_open: trio.Event = trio.Event()
        """Both sides have said hello, or never will."""
        self.reason: Exception | None = None
        """Why it is over, once it is."""
        self._limits = limits
        self._exports = exports
        self._on_violation = on_violation
        self._over = trio.Event()
        self._silent = trio.Event()
        """Nothing more comes from the peer."""
        self._said: trio.Event | None = None
        """Set when nothing waits to be sent, or nothing can be; made when somebody waits for that."""
        self._is_mute = False
        """Nothing can be sent any more."""
        self._communication = trio.CancelScope(shield=True)
        self._writer: trio.lowlevel.Task | None = None
        self._timer = trio.CancelScope()
        self.session.start(began)  # here, so that our hello comes before whatever is asked for next

    # --- for whoever opened it

    async def run(self) -> None:
        """Talk until the conversation is over; cancelled, say goodbye first. Returns, whatever the peer does."""
        async with trio.open_nursery() as nursery:
            self._exports.open(nursery, self.session)
            self._retime()
            nursery.start_soon(self._communicate)
            try:
                await self._over.wait()
            finally:
                self.leave("shutdown")
                await self._part()

    async def _part(self) -> None:
        """Wait for the end of the goodbyes, let the last word out, and close: all within the deadlines, whatever the peer does."""
        limits = self._limits
        with trio.move_on_after(limits.goodbye_timeout + limits.linger, shield=True):
            await self._over.wait()
            await self._linger()
        self._end(ConnectionLost("the peer did not answer the goodbye in time"))
        self._communication.cancel()
        with trio.CancelScope(shield=True):
            await self.connection.abort()

    def leave(self, reason: str) -> None:
        """Say goodbye, once, and let everything end."""
        self.session.leave(reason)
        self._retime()

    def subscribe(self, target: Any, subscriber: Subscriber[Any]) -> None:
        """Open a stream to a publisher of the peer's."""
        self.session.subscribe(target, subscriber)

    # --- what the session tells

    def wake(self) -> None:
        """There is something to send."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            trio.lowlevel.reschedule(writer)

    def opened(self) -> None:
        """Both sides have said hello."""
        self.is_open.set()

    def serve(self, stream: Outbound) -> None:
        """The peer subscribes."""
        self._exports.serve(stream, self.connection.peer)

    def attach(self, stream: Outbound) -> None:
        """A stream that was accepted begins."""
        self._exports.attach(stream, self.connection.peer)

    def publisher_failed(self, stream: Outbound, error: BaseException) -> None:
        """A publisher failed while the peer read it; the peer is told less."""
        if isinstance(error, Exception):
            tell(self._on_violation, error)

    def warned(self, warning: PenstockError) -> None:
        """The peer does what it may, and somebody should know."""
        tell(self._on_violation, warning)

    def over(self, error: Exception) -> None:
        """The session has ended."""
        self._end(error)

    def _end(self, error: Exception) -> None:
        if self.reason is None:
            self.reason = error
        self.is_open.set()
        self._over.set()

    # --- the tasks

    async def _communicate(self) -> None:
        """Reader, writer, timer: beyond the reach of everybody's cancellation but `_part`'s."""
        with self._communication:
            async with trio.open_nursery() as nursery:
                for work in (self._read, self._write, self._keep_time):
                    nursery.start_soon(work)

    async def _read(self) -> None:
        connection, session = self.connection, self.session
        try:
            while (data := await connection.receive()) is not None:
                turn_ends = monotonic() + self._limits.turn
                more = session.receive(bytes(data), trio.current_time(), most=MESSAGES_A_TURN)
                while more:
                    if monotonic() > turn_ends:
                        await trio.lowlevel.checkpoint()
                        turn_ends = monotonic() + self._limits.turn
                    more = session.receive(b"", trio.current_time(), most=MESSAGES_A_TURN)
                self._retime()
        except (trio.BrokenResourceError, trio.ClosedResourceError, LimitExceeded):
            pass  # the network, or we ourselves; or a message that the transport would not take in
        session.end_of_input()
        self._silent.set()

    async def _write(self) -> None:
        session = self.session
        try:
            while True:
                if session.outbox.is_empty:
                    if self._said is not None:
                        self._said.set()
                    self._writer = trio.lowlevel.current_task()
                    await trio.lowlevel.wait_task_rescheduled(self._unpark)
                elif data := session.take():
                    if session.is_deaf:
                        self._retime()  # our goodbye is among it, whoever's call that was: from now on its answer has a deadline
                    with trio.fail_after(self._limits.write_stall):
                        await self.connection.send(data)
                else:
                    await trio.lowlevel.checkpoint()
        except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError):
            self._is_mute = True
            session.end_of_input()  # what was cut short cannot be gone on with
            if self._said is not None:
                self._said.set()

    async def _keep_time(self) -> None:
        while True:
            with self._timer:
                await trio.sleep_forever()
            self._timer = trio.CancelScope()
            self._retime()

    def _retime(self) -> None:
        due = self.session.tick(trio.current_time())
        self._timer.deadline = float("inf") if due is None else due

    async def _linger(self) -> None:
        """Let the last word out. Where it answers a goodbye, the peer closes first: a transport that is closed too early loses it."""
        if not self._is_mute and (self._writer is None or not self.session.outbox.is_empty):
            self._said = trio.Event()
            await self._said.wait()
        if self._is_mute:
            return
        with trio.move_on_after(self._limits.linger), suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await self.connection.send_eof()
            if self.session.was_told_to_leave:
                await self._silent.wait()

    def _unpark(self, _: Any) -> trio.lowlevel.Abort:
        self._writer = None
        return trio.lowlevel.Abort.SUCCEEDED

    @property
    def is_over(self) -> bool:
        """Nothing more will be said."""
        return self.session.state is ConnectionState.OVER
