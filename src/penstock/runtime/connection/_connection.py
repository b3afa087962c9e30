"""The tasks of one logical connection:
its session, its streams and requests, and one link after another.

Rules of this file:

* An idle connection has two tasks. One runs `run`: it waits for the end, ticks, and says goodbye.
  The other is the host: it is the first reader, and its nursery has all other tasks: publishers,
  handlers, the writer while it waits for the transport, the change of links.
* The host is shielded. A cancelled connection says goodbye, waits for the answer within the
  deadline, and ends the host then.
* Publishers are shielded too: a goodbye stops each in its own way. A publisher that was cancelled
  first would look to its subscriber like one that failed, and in the log like a fault, when all
  that happens is that a server is shut down.
* Nothing that the peer sends, and nothing that the transport raises, raises out of here. The
  connection ends, and `reason` tells why.
* When a transport has ended, its `farewell` is asked before the streams are told: the exit status
  of a child process is worth more than "it is gone".
* After both goodbyes the transport is closed in good order; every other end is an abort.
* When `run` returns, no task of the connection runs, and its transport is closed.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from weakref import ref

import attrs
import trio

from penstock.api import ConnectionLost, LimitExceeded, Limits, NotAvailable, Subscription
from penstock.client import OpenStream
from penstock.core import Report, report
from penstock.runtime.connection._access_log import failure_reason
from penstock.runtime.connection._context import ConnectionContext, SharedMemory
from penstock.runtime.connection._decoding_turns import decoding_turns
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._goodbye import close, linger
from penstock.runtime.connection._incoming_requests import IncomingRequests
from penstock.runtime.connection._inline_tasks import READER, InlineTaskRunner
from penstock.runtime.connection._lazy_event import LazyEvent
from penstock.runtime.connection._link_switcher import LinkSwitcher, ReplaceLink
from penstock.runtime.connection._live_streams import clients
from penstock.runtime.connection._publisher_counts import PublisherTable
from penstock.runtime.connection._requests import OutgoingRequests, SendBatcher
from penstock.runtime.connection._resumption import Handover, Resumption, UnreadConnection
from penstock.runtime.connection._shared_writer import SharedWriter
from penstock.runtime.connection._statistics import ConnectionStatistics
from penstock.runtime.connection._timer import SessionTimer
from penstock.runtime.connection._transport_link import TransportLink
from penstock.runtime.service import Service, content_of, is_shutdown, report_publisher_failure
from penstock.session import (
    NOT_RESUMED,
    TASK_BYTES,
    ConnectionState,
    SendingStream,
    Session,
    SessionDelegate,
    ignore,
)
from penstock.spi import (
    Connection,
    Fact,
    PeerIdentity,
    PeerStatistics,
    PublisherStatistics,
    Registry,
)

# A connection in one of these states may be closed in good order:
# the peer knows that it has heard everything.
_PARTED: Final = frozenset({ConnectionState.CLOSED, ConnectionState.CLOSED_BY_PEER})
"""Both sides have said goodbye."""

STOPPED_AT_ONCE: Final = 64
"""Publishers of an ended connection that are cancelled without turns."""

_NO_REFUSAL: Final = frozenset({"closed", "lost", "shutdown"})
"""Reasons of ends before the hello that do not refuse this peer."""


@attrs.frozen(kw_only=True)
class ConnectionSettings:
    """What all connections of a client or of a server have in common."""

    # Made once per client or server, and shared by its connections:
    # nothing in it changes while they run.
    service: Service
    registry: Registry
    limits: Limits
    on_violation: Report
    budget: SharedMemory | None = None
    """The memory that the connections of a server share."""
    replace_link: ReplaceLink | None = None
    shared_writer: SharedWriter | None = None
    """Sends for the connections of a server."""

    publishes: Callable[[], bool] = attrs.field(init=False, eq=False)
    """Returns whether the service offers anything now. One function for all connections."""

    content_of: Callable[[Any], tuple[str, str] | None] = attrs.field(init=False, eq=False)
    """Returns the serializer and the type of a publisher's elements.
    This is also one function for all connections.
    """

    publishers: PublisherTable | None = attrs.field(init=False, eq=False)
    """Counts the streams of each publisher; None if no plugin reads that."""

    @publishers.default
    def _make_publishers(self) -> PublisherTable | None:
        return PublisherTable() if Fact.PUBLISHERS in self.registry.reads else None

    @content_of.default
    def _make_content_of(self) -> Callable[[Any], tuple[str, str] | None]:
        return partial(content_of, self.service)

    @publishes.default
    def _make_publishes(self) -> Callable[[], bool]:
        service = self.service
        return lambda: not service.is_empty


class ConnectionTask:
    """One logical connection, from the first byte to the last. It is the delegate of its
    session, and a holder of shared memory.
    """

    goes_first: bool = False
    """When the memory is full, only its size counts."""

    origin: str | None = None
    """The address, network or user that its peer comes from, for the memory budget of a server."""

    # Set to the methods of the objects that act:
    # the session calls these for each message, and one call is enough.
    serve: Callable[[SendingStream], None]
    """The peer subscribes."""
    attach: Callable[[SendingStream], None]
    """A stream that was accepted begins."""
    source_of: Callable[[SendingStream], Any]
    """The source of a stream that is being accepted."""
    on_fire_and_forget: Callable[[Any], None]
    """The peer sent a message that has no answer."""

    def __init__(
        self,
        connection: Connection,
        settings: ConnectionSettings,
        *,
        make_session: Callable[[SessionDelegate], Session],
        events: ConnectionEvents,
        began: float,
        resumption: Resumption | None = None,
        handover: Handover | None = None,
    ) -> None:
        """`began` is when the time for the handshake started to run.
        The last two are as in `new_connection`.
        """
        # The session needs its delegate, and the link needs the session: so the runner gets its
        # functions from the link, below.
        turns = decoding_turns()
        runner = InlineTaskRunner(_no_link, ignore, turns=turns, turn=settings.limits.turn)
        batcher = SendBatcher()
        self.session: Session = make_session(self)
        runner.may_start = self.session.outbox.may_start
        self.requests: OutgoingRequests = OutgoingRequests(self.session, events, batcher)
        self.reason: Exception | None = None
        """Why the connection is over, once it is."""
        self.handover: Handover | None = handover
        """Decides, when the session opens, whether the transport belongs to another connection.
        None once it does not.
        """
        self.opened_at: float | None = None
        """When both sides had said hello, if they have."""
        self._settings = settings
        self._events = events
        self.counts: ConnectionStatistics = ConnectionStatistics(self.session, events.transport)
        """For `statistics_of`."""
        of_service = settings.service, settings.registry
        self._incoming = IncomingRequests(
            *of_service,
            self.session,
            runner,
            batcher,
            subscribe=self.requests.subscribe,
            events=events,
            publishers=settings.publishers,
            on_violation=settings.on_violation,
            note_bytes=None if settings.budget is None else settings.budget.note_bytes,
        )
        # The session looks these up at each call.
        # As attributes they cost one call less per stream than methods that pass on.
        (self.serve, self.on_fire_and_forget), self.attach = (
            self._incoming.calls,
            self._incoming.attach,
        )
        self.source_of = self._incoming.source_of
        leaving = LazyEvent()
        self._parts = ConnectionContext(
            session=self.session,
            limits=settings.limits,
            turns=turns,
            runner=runner,
            requests=self.requests,
            budget=settings.budget,
            shared_writer=settings.shared_writer,
            on_violation=settings.on_violation,
            timer=SessionTimer(self.session, leaving, batcher),
            resumption=resumption,
            is_open=LazyEvent(),
            over=LazyEvent(),
            leaving=leaving,
        )
        self._link_switcher = LinkSwitcher(
            connection, self._parts, settings.replace_link, self._use, events
        )
        # Asked when the connection has no stream: a side that publishes waits for subscribers.
        self.session.streams.use.publishes = settings.publishes
        self.session.streams.content_of = settings.content_of
        events.start(self.session, trio.current_time)
        self.session.start(began)  # here, so that our hello comes before any request

    # --- for the side that opened it

    @property
    def connection(self) -> Connection:
        """The transport connection that is used now."""
        return self._link_switcher.current.connection

    @property
    def is_open(self) -> LazyEvent:
        """Set when both sides have said hello, or never will."""
        return self._parts.is_open

    @property
    def over(self) -> LazyEvent:
        """Set when the connection is over."""
        return self._parts.over

    async def run(self, nursery: trio.Nursery) -> None:
        """Run until the connection is over; cancelled, say goodbye first. Returns within its
        deadlines, also if the peer is mute.

        The other tasks run in `nursery`, which is open around this call.
        They have ended when this returns.
        """
        budget = self._settings.budget
        if budget is not None:
            # Before the first byte: the bytes of a stranger are also in the account.
            budget.add(self, self.origin)
            self.session.channel.on_buffered = budget.note_bytes
        own = None if self._events.accepted else clients()
        if own is not None:
            own.add(self)
        try:
            self._parts.timer.reschedule()
            nursery.start_soon(self._parts.runner.run_for, self._link_switcher, name=READER)
            try:
                while True:
                    # A cancel from outside reaches only this wait, because the host is shielded.
                    # Then this side says goodbye.
                    await self._parts.timer.wait_until(self._needs_action)
                    if self._parts.leaving.is_set():
                        break
                    if self.handover is not None and self.handover.is_due(self.session):
                        # The transport belongs to another connection task from now on,
                        # so no link is looked for.
                        await hand_over(
                            self.handover,
                            self._link_switcher.current,
                            self._parts,
                            self.identify().principal,
                        )
                        break
                    self._link_switcher.follow()
            finally:
                await self._end()
        finally:
            if own is not None:
                own.discard(self)
            if budget is not None:
                budget.remove(self)
            if self._parts.resumption is not None:
                # From now on no token leads here.
                self._parts.resumption.close()
            access = self._events.access
            # A connection that only asked to resume another one has no line: the other one goes on.
            if access is not None and (self.handover is None or self.handover.connection is None):
                access.write_connection(self.session, self.identify())
            # An observer may count on it that nothing of the connection runs any more.
            self._events.report_closed(*self.session.close_reason)
            # Last: nothing is called any more. Objects that the program still holds, such as a
            # `Peer`, can be asked as before.
            if self._link_switcher.has_ended:
                self.session.release()
                self._link_switcher.release()

    def leave(self, reason: str) -> None:
        """Say goodbye, once, and let everything end."""
        batcher = self._parts.requests.batcher
        # The goodbye is sent from here: a shutdown would start a task of the writer for each
        # connection.
        batcher.is_requesting = True
        try:
            self.session.close(reason)
        finally:
            batcher.is_requesting = False
            self._link_switcher.current.writer.flush()
        self._parts.timer.reschedule()  # from now on the answer has a deadline
        # A hook looks for another link, or none comes: no answer can arrive.
        if self._link_switcher.current.ended.is_set():
            self._parts.leaving.set()
            self._parts.timer.wake()

    def cut(self) -> None:
        """End at once and without a goodbye, for a peer that has not said hello: in a flood of
        such peers each must cost little.
        """
        # The writer first: nothing is sent to this peer any more.
        self._link_switcher.current.writer.stop()
        self.session.end_of_input()

    @property
    def refusal(self) -> str | None:
        """The reason for which this side ended the connection before the hellos; None if it did
        not, or the peer left first.
        """
        session = self.session
        if self._events.is_reported_open or session.state is ConnectionState.CLOSED_BY_PEER:
            return None
        reason, _ = session.close_reason
        return None if reason in _NO_REFUSAL else reason

    def own_publishers(self) -> Mapping[str, PublisherStatistics]:
        """Return what the publishers of a client have done; those of a server belong to it, and
        not to one of its connections.
        """
        table = None if self._events.accepted else self._settings.publishers
        return {} if table is None else table.take()

    def open_streams(self) -> Iterable[OpenStream]:
        """Look at the streams that are open, if both sides have said hello."""
        if not self._events.number or self._link_switcher.has_ended:
            return ()
        link = self._link_switcher.current
        return self.counts.streams(
            trio.current_time(),
            number=self._events.number,
            peer=self.identify(),
            local=link.connection.local_address,
            in_flight=link.writer.in_flight,
            content_of=self._settings.content_of,
        )

    # --- for the memory budget

    def held(self) -> int:
        """Return the number of bytes that the peer makes the connection hold, in its buffers,
        streams and tasks.
        """
        # released: it holds nothing, and its session cannot be asked.
        if self._link_switcher.has_ended:
            return 0
        held = (
            self.session.held() + self._incoming.memory.held + self._parts.runner.tasks * TASK_BYTES
        )
        # No link holds anything.
        if self._parts.resumption is not None and self._parts.resumption.is_suspended:
            return held
        # The link holds bytes in flight, read ahead, and in the transport. The budget would not see
        # them otherwise.
        return held + self._link_switcher.current.held()

    def close_for_memory(self, why: LimitExceeded, _told: str, /) -> None:
        """Say goodbye: of all connections this one holds the most, and together they hold too
        much.
        """
        report(self._settings.on_violation, why)
        self.session.close("limit:memory", ConnectionLost(f"this side cut the connection: {why}"))
        self._parts.timer.reschedule()

    # --- for the session

    def wake(self) -> None:
        """Do nothing: something was queued before there was a link, whose writer looks first
        thing. `TransportLink` replaces this in the outbox.
        """

    def identify(self) -> PeerIdentity:
        """Return the identity of the peer, with the principal that an extension
        or the service has recognised.
        """
        return self._incoming.peer

    def introduce(self, peer: object) -> None:
        """Let handlers subscribe to the publishers of this peer."""
        # Weak: the peer refers to this connection, and the objects of a connection are freed
        # without a pass of the collector.
        self._incoming.introduce(ref(peer))

    def recognise(self, principal: Any) -> None:
        """Add the principal to the identity of the peer."""
        self._incoming.recognise(principal)

    def await_result(
        self, awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None]
    ) -> None:
        """Await in a task of the connection."""

        def finish(result: Any, error: Exception | None) -> None:
            then(result, error)
            # The result may have closed the connection, or have set a time at
            # which it is to be closed.
            self._parts.timer.reschedule()

        self._incoming.await_result(awaitable, finish)

    def on_open(self) -> None:
        """Both sides have said hello."""
        if self.handover is not None and self.handover.is_due(self.session):
            self._parts.timer.wake()  # the transport belongs to a connection that was open before
            return
        # Forgotten at the hello. With the hashes in place of tokens, an idle connection takes 0.9
        # KiB for resume, and not 1.7.
        self.handover = None
        resumption = self._parts.resumption
        if resumption is not None:
            if resumption.begin(self.session, self._link_switcher, self.identify()):
                self._link_switcher.keep(resumption)
                self.counts.resumption = resumption
            else:
                # The peer lacks the extension: a lost link ends this connection, as any other.
                self._parts.resumption = None
        self.opened_at = trio.current_time()
        self._link_switcher.current.on_open()
        self._events.report_opened(self.identify(), self.session.channel.dialect.name)
        self.is_open.set()

    def on_introduction(self, data: bytes) -> None:
        """The client has sent its setup data, and no extension holds it."""
        self._incoming.check_setup(data)

    def stop_publishers(self, publishers: Sequence[Subscription]) -> None:
        """Cancel publishers whose streams have ended with the connection: a few at once, and many
        in turns.
        """
        # After the host no task of a publisher runs, and none can be started.
        if len(publishers) <= STOPPED_AT_ONCE or self._link_switcher.has_ended:
            for each in publishers:
                each.cancel()
        else:
            # A task of the host: the connection has not ended while a publisher is not cancelled.
            self._parts.nursery.start_soon(
                self._stop_in_turns, publishers, name="penstock end of publishers"
            )

    def on_publisher_failed(self, stream: SendingStream, error: BaseException) -> None:
        """Report the full error of a publisher; the peer gets less of it."""
        # Before the report: an observer gets the error also if it is not worth a report.
        self._events.on_failure(stream, error)
        # Denied, and not failed: `on_stream_refused` follows.
        if isinstance(error, NotAvailable):
            return
        access = self._events.access
        if access is not None and not stream.is_ended and not is_shutdown(error):
            access.write_stream(stream, self.identify(), "failed", failure_reason(error))
        report_publisher_failure(self._settings.on_violation, error, stream.target)

    def on_stream_refused(self, stream: SendingStream, reason: str) -> None:
        """Write why a stream was refused: the peer is told less."""
        access = self._events.access
        if access is not None:
            access.write_stream(stream, self.identify(), "refused", reason)

    def on_warning(self, warning: Exception) -> None:
        """Report what the peer may do, but a person should see."""
        report(self._settings.on_violation, warning)

    def on_end(self, error: Exception) -> None:
        """The session has ended."""
        # The first reason counts: later ones only follow from it.
        if self.reason is None:
            self.reason = error
            # The setup function must not run on for a client that is gone.
            self._incoming.close()
        self.is_open.set()
        self._parts.over.set()
        self._parts.leaving.set()
        # The order is not important from here on: each of these only wakes tasks.
        self._parts.timer.wake()
        self.requests.on_room()  # requests that wait for room fail now

    # --- inside

    async def _stop_in_turns(self, publishers: Sequence[Subscription]) -> None:
        waiting = iter(publishers)
        try:
            await self._parts.turns.stop_in_turns(
                (each.cancel for each in waiting), self._settings.limits.turn
            )
        finally:
            # Not waiting any longer: the time of the host is over.
            for each in waiting:
                each.cancel()

    def _use(self, connection: Connection) -> None:
        self._incoming.use(connection.peer)

    def _needs_action(self) -> bool:
        # `leaving` is set by the session's end, by a goodbye that has no answer,
        # or by a failure of the host.
        links, handover = self._link_switcher, self.handover
        if self._parts.leaving.is_set() or (handover is not None and handover.is_due(self.session)):
            return True
        return links.current.ended.is_set() and not links.is_followed

    async def _end(self) -> None:
        """Say goodbye, and end all tasks of the connection."""
        links = self._link_switcher
        try:
            # Limited first: if a dialect raised inside `leave`, the host would have no deadline.
            links.limit(self._settings.limits.drain)
            self.leave("shutdown")
            await self._say_goodbye()
        finally:
            links.stop()
            # Shielded: no task of the connection may outlive this one. The host has a deadline.
            with trio.CancelScope(shield=True):
                await self._parts.timer.wait_unticked(lambda: links.has_ended)

    async def _say_goodbye(self) -> None:
        """Wait for the end of the goodbyes, send the last bytes, and close: all within the
        deadlines, also if the peer does not react.
        """
        # The link of this moment: a hook that is asked for another one is cancelled below.
        limits, session, link, is_sent = (
            self._settings.limits,
            self.session,
            self._link_switcher.current,
            False,
        )
        with trio.move_on_after(limits.goodbye_timeout + limits.linger, shield=True):
            # The session is over when the answer has arrived, or when its own deadline has passed.
            # A link that has ended brings no answer: a hook that still looks for another one is not
            # waited for, because a session that is closing takes no other link.
            if session.channel.dialect.answers_goodbye and not link.ended.is_set():
                await self._parts.timer.wait_until(
                    lambda: self._parts.over.is_set() or link.ended.is_set()
                )
            if link.ended.is_set() and not self._link_switcher.is_followed:
                session.end_of_input()  # this end of the transport is the answer to the goodbye
            link.on_goodbye()
            is_sent = await linger(link.connection, self._parts, link.reader, link.writer)
        # Many deadlines may pass at the same time. Shielded, and without a deadline:
        # in each pass some connections go on.
        with trio.CancelScope(shield=True):
            await self._parts.turns.begin_end(limits.turn)
        # If this side has a reason, the missing answer is only its consequence.
        self.on_end(
            session.streams.end_error
            or ConnectionLost("the peer did not answer the goodbye in time")
        )
        # The writer first: a send in progress would fail when the transport is closed under it,
        # and be taken for a fault.
        self._link_switcher.stop()
        has_parted = session.state in _PARTED or not session.channel.dialect.answers_goodbye
        await self._close(link.connection, in_good_order=is_sent and has_parted)
        if self._link_switcher.current is not link:  # replaced while the goodbye was under way
            await self._close(self._link_switcher.current.connection, in_good_order=False)

    async def _close(self, connection: Connection, *, in_good_order: bool) -> None:
        settings = self._settings
        await close(
            connection,
            in_good_order=in_good_order,
            seconds=settings.limits.goodbye_timeout,
            on_violation=settings.on_violation,
        )


def statistics_of(connection: ConnectionTask) -> PeerStatistics:
    """Return the counts of a connection, and the bytes that it holds now."""
    now, peer = trio.current_time(), connection.connection.peer
    return connection.counts.take(
        now,
        peer=peer,
        opened_at=connection.opened_at,
        buffered=connection.held(),
        publishers=connection.own_publishers(),
    )


async def hand_over(
    handover: Handover, link: TransportLink, parts: ConnectionContext, principal: object
) -> None:
    """Give the transport of `link` to a connection that was lost, or refuse to."""
    session = parts.session
    try:
        with trio.fail_after(parts.limits.handshake_timeout):
            # The writer may send the answer some passes before it says so,
            # and the peer may have sent more by then.
            await handover.prepare(principal, parts.runner.stop)
            if not await link.writer.wait_flushed():
                return
    except trio.TooSlowError:
        session.close(NOT_RESUMED, ConnectionLost("the lost connection was not found in time"))
    except ConnectionLost as refused:
        session.close(NOT_RESUMED, refused)
    else:
        # Before the end of the session, which would close the transport that goes on.
        # Optional: a peer of RSocket sends on without waiting, so more may have come.
        take_rest: Callable[[], list[bytes]] | None = getattr(
            session.channel.dialect, "take_rest", None
        )
        rest = [] if take_rest is None else take_rest()
        if link.reader.unused:
            rest.append(link.reader.unused)
        connection = link.surrender()
        handover.connection = UnreadConnection(connection, rest) if rest else connection
        session.end_of_input()


async def _no_link() -> bool:
    """Stand in for the reader until the first link is made, in the same constructor."""
    raise AssertionError("a connection reads before it has a link; this is a fault of penstock's")
