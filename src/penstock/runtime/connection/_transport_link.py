"""A link: one transport connection with its reader and its writer.
The connection outlives it if the link is replaced.
"""

from collections.abc import Callable

import trio

from penstock.core import report
from penstock.runtime.connection._context import ConnectionContext
from penstock.runtime.connection._end_report import describe_transport_end, is_disconnect
from penstock.runtime.connection._goodbye import close
from penstock.runtime.connection._lazy_event import LazyEvent
from penstock.runtime.connection._reader import Reader
from penstock.runtime.connection._resumption import SurrenderedConnection
from penstock.runtime.connection._writer import Writer
from penstock.session import ConnectionState
from penstock.spi import Connection


class TransportLink:
    """One transport connection at work for a logical connection."""

    __slots__ = ("_parts", "cause", "connection", "ended", "reader", "replaced", "writer")

    def __init__(self, connection: Connection, parts: ConnectionContext) -> None:
        """Make the parts of the link, and point the logical connection at them."""
        self._parts = parts
        self.connection: Connection = connection
        # The writer first: the reader is handed it.
        self.writer: Writer = Writer(connection, parts, self.end)
        self.reader: Reader = Reader(connection, parts, self.writer, self.end)
        self.ended: LazyEvent = LazyEvent()
        """The transport has ended, or failed."""
        self.cause: Exception | None = None
        """The exception of the transport; None if it ended in good order."""
        self.replaced: LazyEvent = LazyEvent()
        """Another link has taken the place of this one."""
        # Attributes, and not a method that asks which link is the current one:
        # these are called for each message.
        parts.runner.read_and_dispatch = self.reader.receive_and_dispatch
        parts.runner.after_batch = self.reader.after_batch
        parts.requests.batcher.writer = self.writer
        # The delegate's `wake` is replaced too:
        # one call less for each first message in an empty outbox.
        parts.session.outbox.wake = self.writer.on_queued

    def cancel(self) -> None:
        """End the tasks of the link, also in the middle of a send."""
        self.writer.cancel()
        self.reader.stop_reading_ahead()

    def release(self) -> None:
        """Break the circles of references around this link: it is over."""
        self.writer.release()
        self.reader.release()
        self.cause = None  # its traceback has the frames of the reader

    def end(self, cause: Exception | None) -> None:
        """Note that the transport has ended; the first cause counts."""
        # Reader and writer often fail together:
        # the first exception is the cause, the second one a consequence.
        if self.ended.is_set():
            return
        self.cause = cause
        self.ended.set()
        if self._parts.links is not None and self._parts.session.state is ConnectionState.OPEN:
            # At once: bytes that go to a dead transport are lost to the next link.
            self.writer.stop()
        self._parts.timer.wake()  # the task of the connection goes on from here

    @property
    def is_quiet(self) -> bool:
        """True if no message was cut: another link can go on where this one has ended."""
        # `held` counts bytes of a message that has arrived in part: the rest of it will never come.
        return (
            not self.writer.has_lost_bytes
            and not self.writer.in_flight
            and not self._parts.session.channel.dialect.held()
        )

    @property
    def is_gone(self) -> bool:
        """True if the peer or the network ended the transport, and not a fault of its code."""
        return is_disconnect(self.cause)

    @property
    def is_lost(self) -> bool:
        """True if the peer or the network ended the transport, or the peer took nothing for too
        long: another transport may do better.
        """
        return self.is_gone or isinstance(self.cause, trio.TooSlowError)

    def surrender(self) -> Connection:
        """Let another connection task have the transport, and return it.
        The reader must have been stopped.
        """
        self.writer.stop()
        connection, self.connection = self.connection, SurrenderedConnection(self.connection)
        return connection

    def on_open(self) -> None:
        """Tell the transport that both sides have said hello."""
        self._tell(self.connection.on_open)

    def on_goodbye(self) -> None:
        """Tell the transport why this side ends the connection."""
        session = self._parts.session
        reason = session.close_reason[0]
        # A peer that left first has given the reason, and not this side. "closed" is how the
        # session notes an end without a reason.
        is_orderly = session.state is ConnectionState.CLOSED_BY_PEER or reason == "closed"
        self._tell(self.connection.on_goodbye, "" if is_orderly else reason)

    def _tell(self, hook: Callable[..., None], *arguments: str) -> None:
        try:
            hook(*arguments)
        except Exception as error:  # boundary: a transport may be a plugin
            report(self._parts.on_violation, error)

    def held(self) -> int:
        """Return the number of bytes that are in flight or were read ahead, or
        that wait in the transport.
        """
        # The session counts what is queued; these bytes have left it, or have not reached it yet.
        return self.writer.in_flight + self.reader.held() + self.connection.held()

    async def describe_end(self) -> Exception:
        """Return how the transport ended, as an exception for the streams. Closes it first: a
        child process has its exit status then.
        """
        parts = self._parts
        # If the transport itself is at fault, it is aborted at the end,
        # and not asked for a good one.
        if self.is_gone:
            await close(
                self.connection,
                in_good_order=True,
                seconds=parts.limits.goodbye_timeout,
                on_violation=parts.on_violation,
            )
        return describe_transport_end(
            self.connection,
            self.cause,
            was_open=parts.is_open.is_set(),
            limits=parts.limits,
            on_violation=parts.on_violation,
        )
