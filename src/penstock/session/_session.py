"""A session is one side of one connection: streams in both directions, demand, and the end.
It does no I/O and reads no clock.

Its delegate feeds it bytes and the time, takes bytes from it, and gets plain calls for its events.
The rules of one protocol are in its dialect; the session is the same for all protocols.

* Bad input has three answers, and no fourth. *Fatal*: a goodbye with a fixed reason, and everything
  ends. *One stream*: an error or a cancel on that id. *Tolerated*: ignored for a token of the
  oddity budget; if that is empty, it is fatal.
* After the session is over nothing is sent, and neither the delegate nor a stream gets another
  call.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, final

from penstock.api import (
    CHECK_BYTES,
    ConnectionLost,
    Limits,
    PenstockError,
    ProtocolError,
    Role,
    Subscriber,
)
from penstock.session._channel import Channel, ignore
from penstock.session._dialect import Dialect, DialectHost
from penstock.session._handshake import ChooseDialect, HandshakeGuard
from penstock.session._outbox import Outbox
from penstock.session._reasons import DEAD, explain_connection_end
from penstock.session._receiving_stream import ReceivingStream
from penstock.session._states import ConnectionEvent, ConnectionState
from penstock.session._stream_tables import SessionDelegate, StreamTables
from penstock.session._watchers import ElementAge, IdleStreams, MessageAge, UnusedConnection

CUT = "the connection ended without a goodbye: the peer's process or the network is gone"
"""The text of the error that streams get if only the end of the transport is known."""

CUT_EARLY = (
    "the connection ended before the peer answered: is it a server of this protocol that "
    "listens there, and in the clear (tls:// if not)?"
)
"""The same, before the peer's hello. A server of RSocket says none: its first frame counts."""

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_OPEN: Final = ConnectionState.OPEN

# A number and not None: the decoder counts it down with every message.
NO_MESSAGE_BOUND = 1 << 62


@final
class Released:
    """The delegate of a session that was released, and the owner of its streams. A call may still
    come, of any name: a publisher fails while it cleans up, for example. It does nothing.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Callable[..., None]:
        return ignore


# Any: it stands for each of the objects around a session.
RELEASED: Final[Any] = Released()


class SurvivedLinks(Protocol):
    """The transport connections of a session that goes on after a loss."""

    def end_dead_link(self) -> None:
        """End the transport that is used now: the peer gives no sign of life on it."""


class Session:
    """One side of one connection."""

    def __init__(
        self,
        delegate: SessionDelegate,
        make_dialect: Callable[[DialectHost], Dialect],
        *,
        role: Role,
        limits: Limits,
        random: Callable[[], float],
        choose: ChooseDialect | None = None,
    ) -> None:
        """With `choose`, the peer's first bytes choose the dialect: it gets them until it
        returns a dialect, or raises.
        """
        self.delegate: SessionDelegate = delegate
        self.channel: Channel = Channel(
            role=role,
            limits=limits,
            random=random,
            wake=delegate.wake,
            fail=self.close_protocol_error,
        )
        self.streams: StreamTables = StreamTables(self.channel, delegate)
        # Set here: the channel and the tables need each other, and the channel lies below.
        self.channel.owner = self.streams
        self.outbox: Outbox = self.channel.outbox
        self.close_reason: tuple[str, Exception | None] = ("closed", None)
        """Why the connection ended: a token or the peer's reason;
        and the error, unless it was a plain goodbye.
        """
        self.foreign_refusal: bytes | None = None
        """The bytes, perhaps none, that a client of another protocol gets instead of a goodbye."""
        self.received_bytes: int = 0
        """Bytes that have come from the peer, those behind the end not counted."""
        self.links: SurvivedLinks | None = None
        """Set on a connection that can be resumed:
        there the keepalive ends a dead transport, and not the session.
        """
        self.cuts_streams: bool = False
        """Streams were open when this side said goodbye."""
        # The goodbye of a peer that leaves when the streams have ended.
        self._farewell: tuple[str, Exception | None] | None = None
        # The refusal of a peer at a later time.
        self._refusal: tuple[float, str, Exception | None] | None = None
        # None until the first tick after the goodbye.
        self._goodbye_since: float | None = None
        self._handshake: HandshakeGuard = HandshakeGuard(limits, choose)
        # Elements first: a silent peer is a lost connection, which a client may make again, rather
        # than a protocol error.
        self._element_age = ElementAge(self.channel)
        self._message_age = MessageAge(self.channel)
        UnusedConnection(self, self.channel)
        IdleStreams(self.channel, self.streams)
        # Last, because the dialect's constructor reads the channel and the tables. With `choose` it
        # is the dialect that says goodbye if the peer's first bytes never choose one.
        self.channel.dialect = make_dialect(self)

    # --- facts

    @property
    def state(self) -> ConnectionState:
        """Where the connection is in its life."""
        return self.channel.state

    @property
    def is_quiet(self) -> bool:
        """Nothing runs: no stream in either direction, no publisher or handler that has to stop, no
        byte that waits to be taken.
        """
        streams = self.streams
        return (
            self.outbox.is_empty and not streams.has_streams() and not streams.stopping_publishers
        )

    def held(self) -> int:
        """Return how many bytes the peer makes this connection hold, its tasks aside: in its
        buffers and in its streams.
        """
        channel = self.channel
        received = channel.budgets.partials.bytes + channel.dialect.held()
        if self.outbox.retained is not None:
            received += self.outbox.retained.held
        return self.outbox.waiting + received + channel.held_by_streams() + self.streams.held()

    # --- for the delegate: bytes and time

    def start(self, now: float) -> None:
        """Begin. If the peer's first bytes choose the dialect, the dialect begins later."""
        self.channel.now = now
        self._handshake.start(now)
        if not self._handshake.awaits_choice:
            self.channel.dialect.start(now)

    def receive(self, data: bytes, now: float, *, most: int = NO_MESSAGE_BOUND) -> bool:
        """Take received bytes and act on at most `most` messages. Return whether there is more
        to do; if so, call again with no data.
        """
        channel = self.channel
        channel.now = now
        if channel.state.is_over:
            return False
        # A session that is not open looks at every chunk more closely;
        # an open one pays nothing for that.
        size, was_open, channel.is_receiving = len(data), channel.state is _OPEN, True
        self.received_bytes += size
        try:
            if not was_open:
                data = self._receive_early(data)
            more = channel.dialect.feed(data, most)
        except ProtocolError as error:
            self.close_protocol_error(error)
            return False
        finally:
            # Also after an error: if not, later messages of this side would count as answers.
            channel.is_receiving = False
        # A counter instead of a look at all streams: they are looked at once for each MiB of input.
        unread = channel.budgets.unread
        unread.fed += size
        if unread.fed > CHECK_BYTES:
            self.streams.bound_unread()
        # Two conditions instead of two calls:
        # most chunks end no short stream and leave nothing incomplete.
        if channel.budgets.churn.began_at and self._has_churned(now):
            # The rest is decoded first, for the goodbye of the peer:
            # a second chunk would be held beside it.
            return more
        undecoded = channel.dialect.held()
        if undecoded or self._message_age.began_at is not None:
            self._message_age.note(size, undecoded, now)
        if channel.budgets.partials.streams:
            self._element_age.note(now)
        channel.last_input_at = now
        return more if was_open else not self._fail_long_handshake() and more

    def on_next_link(self) -> None:
        """Go on over another link: a dialect may have dropped what had come of a message."""
        self._message_age.note(0, self.channel.dialect.held(), self.channel.now)

    def end_of_input(self, error: Exception | None = None, *, is_clean: bool = False) -> None:
        """End the session because the transport has ended, with `error` if more is known than that.

        `is_clean` says that the peer closed it, and that it was not reset.
        """
        state = self.channel.state
        if state.is_over:
            return
        if self._farewell is not None and not state.is_closing:
            self.receive_goodbye(*self._farewell)
            return
        if is_clean and _is_goodbye_without_reason(self.channel, self.streams):
            error = ConnectionLost(f"the peer closed the connection: {explain_connection_end('')}")
            self.close_reason = "closed", None
            self._end(ConnectionEvent.TRANSPORT_ENDED, error)
            return
        # Before the hello the advice is another one: the port may speak another protocol, or TLS.
        is_early = state in {
            ConnectionState.FRESH,
            ConnectionState.GREETING,
            ConnectionState.EXAMINING,
        }
        # The first reason wins: if this side had closed already,
        # the transport's end is only the answer.
        end = self.streams.end_error or error or ConnectionLost(CUT_EARLY if is_early else CUT)
        if not state.is_closing:
            self.close_reason = "lost", end
        self._end(ConnectionEvent.TRANSPORT_ENDED, end)

    def take(self) -> bytearray:
        """Return the bytes to send now, perhaps none."""
        return self.outbox.take()

    def split(self, data: bytearray) -> Iterable[bytes | bytearray | memoryview]:
        """Cut bytes that were taken into the messages of a framed transport."""
        # A refusal in another protocol consists of none of the dialect's frames.
        return (data,) if self.foreign_refusal is not None else self.channel.dialect.split(data)

    def tick(self, now: float) -> float | None:
        """Do what is due. Return when to call again, or None."""
        self.channel.now = now
        state = self.channel.state
        if state.is_over:
            return None
        if state.is_closing:
            return self._tick_goodbye(now)
        due = self.channel.deadlines.run(now)
        if state is not _OPEN:
            handshake_due = self._tick_handshake(now)
            due = handshake_due if due is None or handshake_due is None else min(due, handshake_due)
        # If something due has closed the connection, its goodbye has a deadline from now on.
        return self.tick(now) if self.channel.state is not state else due

    # --- for the delegate: streams

    def subscribe(self, target: Any, subscriber: Subscriber[Any]) -> ReceivingStream:
        """Open a stream to the peer's publisher `target` and give `subscriber` its subscription."""
        return self.streams.subscribe(target, subscriber)

    # --- closing

    def close(
        self, reason: str, error: Exception | None = None, *, at: float | None = None
    ) -> None:
        """Say goodbye: every stream ends now, in both directions,
        and nothing more is sent after it.

        With `at` a connection that is not open yet ends at that time, or with the time of the
        handshake if that is over sooner.
        """
        channel = self.channel
        if at is not None and at > channel.now and channel.state is not _OPEN:
            if self._refusal is None or at < self._refusal[0]:
                self._refusal = at, reason, error
                channel.deadlines.change_phase()
            return
        # The first reason stays: later ones are often its consequences.
        if channel.state.is_closing:
            return
        if reason == DEAD and self.links is not None:
            self.links.end_dead_link()
            return
        self.close_reason = reason or "closed", error
        # Before the session is open a refusal by the peer may be on its way, also in a protocol
        # without answers to a goodbye.
        is_unanswered = channel.state is _OPEN and not channel.dialect.answers_goodbye
        # A client of another protocol never answers:
        # waiting for it took the whole Limits.goodbye_timeout.
        is_unanswered = is_unanswered or self.foreign_refusal is not None
        channel.move(
            ConnectionEvent.UNANSWERED_GOODBYE_SENT
            if is_unanswered
            else ConnectionEvent.GOODBYE_SENT
        )
        # The goodbye has a deadline of its own, from the next tick on.
        channel.deadlines.clear()
        self.cuts_streams = self.streams.has_streams()
        # Streams end before the goodbye is queued: their last messages go out before it, and no
        # message of a stream after it.
        self.streams.end_all(
            error
            or ConnectionLost(f"this side closed the connection{f': {reason}' if reason else ''}")
        )
        # `close` drops no element that a stream has encoded: those bytes are in the buffer already.
        self.outbox.close()
        self.outbox.put(
            channel.dialect.goodbye(reason)
            if self.foreign_refusal is None
            else self.foreign_refusal
        )

    def close_protocol_error(self, error: ProtocolError) -> None:
        """End the connection because of a mistake of the peer."""
        self.close(
            error.reason,
            ConnectionLost(
                f"the connection was ended because the peer broke the protocol: {error}"
            ),
        )

    def close_internal_error(self, error: PenstockError) -> None:
        """End the connection because of a fault on this side.
        The peer is told no more than that.
        """
        self.close("internal", error)

    def release(self) -> None:
        """End the session if it is not over, and break the circles of references between it and the
        objects around it: it is freed when it is dropped.

        A call that opens a stream afterwards gets the reason of the end, as before.
        """
        # The session and its delegate, the channel and the tables of streams refer to one another.
        # A server whose clients come and go left some 220 objects in circles for each, and the
        # garbage collector then held up all other connections.
        # If the peer has not answered the goodbye, the session still waits for it.
        self.end_of_input()
        # Only now: `end_of_input` has called the delegate.
        streams, drain, use = self.streams, self.streams.drain, self.streams.use
        self.delegate = streams.delegate = RELEASED
        streams.observers = use.keepalive = use.watcher = None
        drain.announcers, drain.on_peer_draining = (), None
        self.channel.release(RELEASED)
        release_dialect(self.channel.dialect)

    # --- for the dialect: the handshake and the peer's goodbye

    def hello_sent(self) -> None:
        """Note that this side's hello is queued;
        or, if a server sends none, that the client's has come.
        """
        self.channel.move(ConnectionEvent.HELLO_SENT)

    def receive_introduction(self, data: bytes, *, is_held: bool = False) -> None:
        """Let the delegate examine the peer's introduction.
        Until it has decided nothing more is fed to the dialect.

        With `is_held` an extension examines it first, and this is called again
        when the extension has let the peer in.
        """
        # A client need not wait for the decision, so requests often follow. The dialect keeps their
        # bytes undecoded until then.
        if self.channel.state is not ConnectionState.EXAMINING:
            self.channel.move(ConnectionEvent.INTRODUCED)
        if not is_held:
            self.delegate.on_introduction(data)

    def admit(self) -> None:
        """Accept the peer whose introduction was examined."""
        # The verdict may come after the client has gone, or after its time was over.
        # If not, the connection has ended meanwhile.
        if self.channel.state is ConnectionState.EXAMINING:
            self.receive_hello()

    def receive_hello(self) -> None:
        """Open the session: the peer's hello has come and is accepted."""
        self.channel.move(ConnectionEvent.HELLO_RECEIVED)
        self.channel.deadlines.open()
        self.delegate.on_open()

    def receive_goodbye(
        self, reason: str, error: Exception | None = None, *, waits: bool = False
    ) -> None:
        """End the session with the peer's goodbye. `error` is what streams get if the dialect
        knows better what the goodbye means.

        With `waits` both sides leave when the open streams have ended, and what is encoded is sent.
        """
        state = self.channel.state
        if state.is_over:
            return  # a second goodbye, in the same chunk as the first
        if waits and self._farewell is not None:
            self.channel.count_oddity()
            return
        if waits and state is _OPEN and (self.streams.has_streams() or not self.outbox.is_empty):
            self._farewell = reason, error
            self.streams.drain.note_peer()
            # It is asked after the end of each stream.
            if self.streams.use.watcher is not None:
                self.channel.deadlines.hasten(self.streams.use.watcher, self.channel.now)
            return
        # One goodbye of each side is enough: goodbyes that cross answer each other.
        answer = b"" if state.is_closing else self.channel.dialect.goodbye("")
        if not state.is_closing:
            # Escaped and cut: it is the peer's text, and it goes into log lines.
            self.close_reason = ascii(reason[:200])[1:-1] or "closed", None
        error = error or self.streams.end_error
        error = error or ConnectionLost(
            f"the peer closed the connection: {explain_connection_end(reason)}"
        )
        self._end(ConnectionEvent.GOODBYE_RECEIVED, error, answer=answer)

    # --- for the watcher of an unused connection

    @property
    def peer_leaves(self) -> bool:
        """The peer has said that it leaves when the streams have ended."""
        return self._farewell is not None

    def end_left(self) -> bool:
        """End the session of a peer that leaves, without a stream. Return False if bytes for it
        wait.
        """
        if self._farewell is None or not self.outbox.is_empty:
            return False
        self.receive_goodbye(*self._farewell)
        return True

    # --- inside

    def _has_churned(self, now: float) -> bool:
        """End the connection if too many short streams have ended. Judged after the chunk:
        see StreamChurn.count.
        """
        error = self.channel.budgets.churn.verdict(now)
        if error is not None:
            self.close_protocol_error(error)
        return error is not None

    def _receive_early(self, data: bytes) -> bytes:
        """Count bytes that arrive before the session is open, and let them choose the dialect.
        Return the bytes for the dialect.
        """
        handshake, channel = self._handshake, self.channel
        handshake.count(data)
        if not handshake.awaits_choice:
            return data
        chosen = handshake.choose(self, data)
        if chosen is None:
            return b""
        # Only the chosen dialect is started: the first one has sent nothing.
        release_dialect(channel.dialect)
        channel.dialect, first_bytes = chosen
        channel.dialect.start(channel.now)
        return first_bytes

    def _fail_long_handshake(self) -> bool:
        """End the connection if the peer has sent too much before its hello was complete.
        Return whether it was ended.
        """
        # An introduction that is being examined is complete. The bytes after it have other bounds.
        if self.channel.state not in {ConnectionState.FRESH, ConnectionState.GREETING}:
            return False
        if not self._handshake.is_too_long(self.channel.dialect.preauth_bytes):
            return False
        self.close_protocol_error(
            ProtocolError(
                "the peer sent too much before its hello was complete", reason="limit:hello"
            )
        )
        return True

    def _tick_handshake(self, now: float) -> float | None:
        due, is_over = self._handshake.tick(now)
        if self._refusal is not None:
            at, reason, error = self._refusal
            if now >= at or is_over:
                self.close(reason, error)
                return due
            due = min(due, at)
        # The dialect decides: in a protocol without an answer to the introduction,
        # silence may mean acceptance.
        if is_over:
            self.channel.dialect.overdue()
        return due

    def _tick_goodbye(self, now: float) -> float | None:
        # Counted from the first tick after the goodbye: close() is called between two readings of
        # the clock, and `channel.now` may be old.
        self._goodbye_since = now if self._goodbye_since is None else self._goodbye_since
        is_done = self.channel.state is ConnectionState.CLOSING_UNANSWERED and self.outbox.is_empty
        due = now if is_done else self._goodbye_since + self.channel.limits.goodbye_timeout
        if now < due:
            return due
        error = self.streams.end_error or ConnectionLost(
            "the peer did not answer the goodbye in time"
        )
        self._end(ConnectionEvent.TRANSPORT_ENDED, error)
        return None

    def _end(self, event: ConnectionEvent, error: Exception, *, answer: bytes = b"") -> None:
        # The state moves first, so that nothing that the streams' ends cause can be sent.
        self.channel.move(event)
        self.channel.deadlines.clear()
        self.streams.end_all(error)
        # Streams that ended have put their gathered elements into the buffer.
        # After the end only the answer is sent.
        self.outbox.clear()
        if answer:
            self.outbox.put(answer)
        if self.streams.observers is not None:
            self.streams.observers.closed()
        # Last: the delegate looks at the final state, and may drop the session.
        self.delegate.on_end(error)


def release_dialect(dialect: Dialect) -> None:
    """Let a dialect that is not used any more break its circles. That of a plugin may lack the
    method: the collector frees it.
    """
    release: Callable[[], None] | None = getattr(dialect, "release", None)
    if release is not None:
        release()


def _is_goodbye_without_reason(channel: Channel, streams: StreamTables) -> bool:
    """Return whether the end of the transport is the peer's goodbye: in a protocol that has no
    other, when the peer owes nothing.
    """
    # A publisher that leaves within a stream, or a message, has not left in good order.
    is_plain = (
        channel.state is _OPEN
        and not channel.dialect.answers_goodbye
        and not channel.dialect.held()
    )
    return is_plain and len(streams.opened) <= streams.cancelled.count
