"""The links of a connection, one after another, and the nursery in which its tasks run.

Rules of this file:

* The host is shielded. `limit` gives it a deadline: publishers and handlers are asked to stop
  first, each in its own way.
* There is never a second writer: that of a link stops when the link ends, and the next link begins
  only if nothing was in flight.
"""

from collections.abc import Awaitable, Callable
from math import inf
from typing import TypeAlias

import trio

from penstock.api import ConnectionLost, UsageError
from penstock.core import CLEANUP_SECONDS, report
from penstock.runtime.connection._context import ConnectionContext
from penstock.runtime.connection._end_report import describe_transport_end
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._goodbye import close
from penstock.runtime.connection._inline_tasks import Host
from penstock.runtime.connection._lazy_event import LazyEvent
from penstock.runtime.connection._requests import NO_WRITER
from penstock.runtime.connection._resumption import Resumption
from penstock.runtime.connection._transport_link import TransportLink
from penstock.session import ConnectionState, ignore
from penstock.spi import Connection

ReplaceLink: TypeAlias = Callable[[Exception], Awaitable[Connection | None]]
"""Asked for a new transport connection when one has ended without a goodbye, with how that was.
None ends the session.

It is asked only if no message was cut:
the session goes on as if nothing had happened, and so must that of the peer.
A protocol without goodbyes (ReactiveSocket) ends every connection in this way,
so the hook is asked then too.
"""


class LinkSwitcher(Host):
    """The link of a connection, and its host:
    the task that is the first reader, and the parent of all other tasks.
    """

    __slots__ = (
        "_deadline",
        "_events",
        "_following",
        "_parts",
        "_replace_link",
        "_scope",
        "_use",
        "current",
        "has_ended",
    )

    current: TransportLink
    """The link that is used now, or that was used last."""

    def __init__(
        self,
        connection: Connection,
        parts: ConnectionContext,
        replace_link: ReplaceLink | None,
        use: Callable[[Connection], None],
        events: ConnectionEvents,
    ) -> None:
        """`use` is called with the transport connection of each link."""
        self.is_over = LazyEvent()
        self._parts = parts
        self._replace_link = replace_link
        self._use = use
        self._events = events
        # around the task that looks for the next link, while there is one.
        self._following: trio.CancelScope | None = None
        self._scope: trio.CancelScope | None = None  # of the host's nursery
        self._deadline = inf  # of the host
        self.has_ended: bool = False
        """The host has ended: no task of the connection runs
        but the one of `ConnectionTask.run`.
        """
        if replace_link is not None:
            parts.links = self
        self._start_link(connection)

    # --- for the task of the connection

    def keep(self, resumption: Resumption) -> None:
        """From now on a lost link suspends the connection in place of ending it."""
        self._parts.resumption = resumption
        # The object and no methods of it: a bound method is another object for each connection.
        self._parts.links = self._parts.session.links = self

    def drop(self) -> None:
        """End the transport connection that is used now: the peer goes on over another one."""
        self.current.end(trio.BrokenResourceError("the peer goes on over another connection"))

    def fail(self, reason: str, error: ConnectionLost) -> None:
        """End the connection: the number of bytes that the peer claims to have does not fit."""
        self._parts.session.close(reason, error)
        self._parts.timer.reschedule()

    @property
    def is_followed(self) -> bool:
        """True while a task looks for the link after this one."""
        return self._following is not None

    def follow(self) -> None:
        """Let another link take the place of the ended one, or end the session."""
        session = self._parts.session
        # A goodbye was said: the end of the transport is its answer, and needs no description.
        if session.state.is_closing:
            session.end_of_input()
        else:
            # A task, because it may take long: that of the connection must tick meanwhile.
            self._following = trio.CancelScope()
            self._parts.nursery.start_soon(self._follow, self.current, self._following)

    def limit(self, seconds: float) -> None:
        """Let the host end within that time."""
        self._deadline = min(self._deadline, trio.current_time() + seconds)
        # The host may not have begun, and has no scope then: `on_begin` sets the deadline.
        if self._scope is not None:
            self._scope.deadline = self._deadline

    def stop(self) -> None:
        """End the tasks of the link, and the reader. Publishers and handlers run on until they
        have stopped in their own way.
        """
        # Each publisher was asked to stop when the session ended, and bounds its own cleanup.
        # This is for one that does not.
        self.limit(2 * CLEANUP_SECONDS)
        if self._following is not None:
            self._following.cancel()
        self.current.cancel()
        self._parts.runner.stop()
        self.is_over.set()

    def release(self) -> None:
        """Break the circles of references around this object: the host has ended."""
        parts = self._parts
        self.current.release()
        self._use = ignore
        parts.links = parts.session.links = None
        # A program may still hold a stream, and its requests ask for a writer.
        parts.requests.batcher.writer = NO_WRITER
        parts.timer.release()
        parts.runner.release()

    # --- as the host

    def on_begin(self, nursery: trio.Nursery) -> None:
        self._scope, self._parts.nursery = nursery.cancel_scope, nursery
        self._scope.shield, self._scope.deadline = True, self._deadline
        self.current.writer.start()

    def on_leave(self) -> None:
        # Before the nursery closes. If an interrupt in a handler ends all tasks,
        # no writer is left to send a goodbye.
        self.current.writer.stop()

    def on_ended(self) -> None:
        self.has_ended = True
        self._parts.session.delegate.on_end(
            ConnectionLost("what ran this connection was interrupted")
        )

    # --- inside

    def _start_link(self, connection: Connection) -> None:
        self._use(connection)
        self.current = TransportLink(connection, self._parts)

    async def _follow(self, link: TransportLink, scope: trio.CancelScope) -> None:
        connection: Connection | None = None
        try:
            with scope:
                connection = await self._connection_after(link)
                if connection is not None:
                    self._start_link(connection)
                    # The hellos were said on the first link, so each further transport is told
                    # here.
                    self.current.on_open()
                    if self._parts.resumption is None:
                        self.current.writer.start()
                    else:
                        self._parts.resumption.start_writer(self.current.writer.start)
                    # Last: the reader that has ended goes on with the new link.
                    link.replaced.set()
        finally:
            self._following = None
            # The hook may hand over a connection while this is cancelled.
            # Nothing else knows of it, so it is closed here.
            if connection is not None and connection is not self.current.connection:
                await self._abort(connection)

    async def _connection_after(self, link: TransportLink) -> Connection | None:
        """Return the transport connection that goes on for `link`, or end the session."""
        session = self._parts.session
        if (
            self._parts.resumption is not None
            and link.is_lost
            and session.state is ConnectionState.OPEN
        ):
            return await self._resumed(link, self._parts.resumption)
        # May take up to `goodbye_timeout`: a child process is waited for here.
        error = await link.describe_end()
        if self._replace_link is not None and link.is_gone:
            # Bytes that arrived before the end still belong to the session.
            await link.reader.input_ended.wait()  # by then it has decoded all that has arrived
            if session.state is ConnectionState.OPEN and link.is_quiet:
                connection = await self._replacement(self._replace_link, error)
                if connection is not None:
                    return connection
        session.end_of_input(error, is_clean=link.cause is None)
        return None

    async def _resumed(self, link: TransportLink, resumption: Resumption) -> Connection | None:
        """Suspend the connection until the peer is back, or end the session."""
        parts, session = self._parts, self._parts.session
        # At once, and not in good order: a transport that is dead would be waited for.
        await self._abort(link.connection)
        # Bytes that arrived before the end still belong to the session, and are counted.
        await link.reader.input_ended.wait()
        error: Exception = describe_transport_end(
            link.connection,
            link.cause,
            was_open=True,
            limits=parts.limits,
            on_violation=parts.on_violation,
        )
        if session.state is ConnectionState.OPEN:
            parts.timer.pause()
            self._events.report_suspended(error)
            try:
                connection = await resumption.next_link(error)
                # A limit may have closed the session meanwhile.
                if session.state.is_closing:
                    await self._abort(connection)
                    return None
                self._events.report_resumed(connection.peer)
                return connection
            except ConnectionLost as lost:
                error = lost
            finally:
                parts.timer.go_on()
        session.end_of_input(error)
        return None

    def end_dead_link(self) -> None:
        """End the transport that is used now: the peer gives no sign of life on it."""
        seconds = self._parts.limits.keepalive_timeout
        self.current.end(
            trio.BrokenResourceError(f"the peer gave no sign of life for {seconds:g} s")
        )

    async def _replacement(self, replace_link: ReplaceLink, error: Exception) -> Connection | None:
        try:
            connection: object = await replace_link(error)
        except Exception as raised:  # boundary: a hook; its failure counts as None
            report(self._parts.on_violation, raised)
            return None
        if connection is not None and not isinstance(connection, Connection):
            what = "return a penstock.spi.Connection whose handshake is done, or None"
            report(
                self._parts.on_violation,
                UsageError(f"replace_link returned {connection!r}; {what}"),
            )
            return None
        # The hook may take long: the session's own deadlines run meanwhile.
        if connection is not None and self._parts.session.state is not ConnectionState.OPEN:
            await self._abort(connection)  # a deadline of the session has passed meanwhile
            return None
        return connection

    async def wait_for_next(self) -> bool:
        """Wait until the link that has ended was replaced; return False if it never will be. The
        reader that has ended calls this.
        """
        link = self.current
        # The reader must not wait for a link after the session has ended:
        # it would keep the host from ending.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_after, self._parts.over, nursery.cancel_scope)
            await link.replaced.wait()
            nursery.cancel_scope.cancel()
        return link.replaced.is_set()

    async def _abort(self, connection: Connection) -> None:
        parts = self._parts
        await close(
            connection,
            in_good_order=False,
            seconds=parts.limits.goodbye_timeout,
            on_violation=parts.on_violation,
        )


async def _cancel_after(event: LazyEvent, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
