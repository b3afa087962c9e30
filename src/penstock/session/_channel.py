"""The connection as its streams see it: they may send, answer, count an oddity, and fail the
connection. The outbox (`_outbox.py`) holds what they send.

`Channel` lies below the streams, so that they know nothing of the session; the session owns one and
lies above them. Streams tell upward through `StreamOwner`.
"""

from collections.abc import Callable
from typing import Any, Protocol

from penstock.api import Limits, ProtocolError, Role
from penstock.session._budgets import PeerBudgets
from penstock.session._deadlines import Deadlines
from penstock.session._dialect import Dialect
from penstock.session._outbox import Outbox
from penstock.session._states import CONNECTION_MOVES, ConnectionEvent, ConnectionState


class StreamOwner(Protocol):
    """The calls that streams make upward.

    A parameter `stream` is the stream that calls.
    Its class lies above this module, so it is Any here.
    """

    def attach_publisher(self, stream: Any, /) -> None:
        """Subscribe an accepted stream to its publisher."""

    def on_publisher_failed(self, stream: Any, error: BaseException, /) -> None:
        """Report a publisher's failure on this side. The peer is told less than `error` says."""

    def on_sending_refused(self, stream: Any, reason: str, /) -> None:
        """Report a stream that this side has ended with an error that its publisher did not cause.
        `reason` is for this side.
        """

    def on_sending_ended(self, stream: Any, /) -> None:
        """Free the id of a sent stream."""

    def on_receiving_cancelled(self, stream: Any, unfinished: int, /) -> None:
        """Tell the peer to stop a stream that this side has cancelled while
        that number of elements was unfinished.
        """


class Channel:
    """One connection, as its streams see it."""

    __slots__ = (
        "_fail",
        "budgets",
        "buffering_streams",
        "deadlines",
        "dialect",
        "incoming",
        "is_receiving",
        "last_input_at",
        "limits",
        "now",
        "on_buffered",
        "outbox",
        "outgoing",
        "owner",
        "random",
        "request_bytes",
        "role",
        "send_demand",
        "state",
        "urge",
    )

    dialect: Dialect
    """Set by the session once it is known."""
    owner: StreamOwner

    def __init__(
        self,
        *,
        role: Role,
        limits: Limits,
        random: Callable[[], float],
        wake: Callable[[], None],
        fail: Callable[[ProtocolError], None],
    ) -> None:
        """`wake` tells the writer that something waits;
        `fail` ends the connection because of a mistake of the peer.
        """
        self.role: Role = role
        self.limits: Limits = limits
        # For jitter of extensions only. A parameter, so that tests are deterministic
        # and this layer imports no random module.
        self.random: Callable[[], float] = random
        self.state: ConnectionState = ConnectionState.FRESH
        self.now: float = 0.0
        """The time of the last received chunk or tick. Nothing in this layer reads a clock."""
        self.last_input_at: float = float("-inf")
        """When the peer last sent something:
        it tells a silent peer from one that abandons an element.
        """
        self.outbox: Outbox = Outbox(limits, wake)
        self.budgets: PeerBudgets = PeerBudgets(limits)
        self.deadlines: Deadlines = Deadlines()
        # A dict as an ordered set: streams are weighed in the order in
        # which they began to hold bytes.
        self.buffering_streams: dict[Any, None] = {}
        """Sent streams, and data of requests, that hold bytes outside the outbox,
        and perhaps some that no longer do.
        """
        # The runtime sets it to the call of its memory budget.
        self.on_buffered: Callable[[int], object] = lambda _: None
        """Called with the number of bytes about to be buffered, once per batch."""
        self.outgoing: Callable[[bytes], bytes] | None = None
        """An extension's change of elements that are sent."""
        self.incoming: Callable[[bytes], bytes] | None = None
        """An extension's change of elements that are received."""
        self.request_bytes: int = 0
        """Bytes of data of requests of the peer that are served now."""
        self.is_receiving: bool = False
        """Received bytes are being acted on, so a message that is queued now answers the peer."""
        # None, and not `send`: a reference of the object to itself would keep the connection until
        # the garbage collector comes.
        self.send_demand: Callable[[bytes], None] | None = None
        """Queues the demand of a receiving stream. The runtime sends it at once."""
        self.urge: Callable[[], None] | None = None
        """Called when the publisher of a sent stream is about to make many more elements. The
        runtime sends those that wait.
        """
        # A callback, because the session lies above this module.
        self._fail = fail

    def release(self, owner: StreamOwner) -> None:
        """Refer to `owner` and to nothing else above: the session is over."""
        self.owner, self._fail, self.outbox.wake, self.on_buffered = (
            owner,
            ignore,
            ignore,
            ignore,
        )
        self.send_demand = self.urge = None

    def move(self, event: ConnectionEvent) -> None:
        """Move the connection's state."""
        self.state = CONNECTION_MOVES[self.state, event]

    def send(self, message: bytes) -> None:
        """Queue a message, unless the connection is closing. An empty message, for which a
        dialect has no bytes, is not sent.
        """
        # After a goodbye nothing may follow.
        # Checked here, so that no caller on the path of a message has to.
        if self.state.is_closing or not message:
            return
        outbox = self.outbox
        outbox.put(message)
        # Without this bound a peer that reads nothing could make this side hold its answers for
        # ever.
        if len(outbox.buffer) > outbox.max_waiting or (
            outbox.retained is not None and outbox.retained.held > outbox.retained.most
        ):
            self._fail_slow_reader()

    def answer(self, message: bytes) -> None:
        """Queue a message; if the peer has caused it, count it among the answers that may wait."""
        self.send(message)
        # Messages that this side sends on its own are bounded by its demand and its program;
        # answers only by the peer's reading.
        if (
            self.is_receiving
            and not self.state.is_closing
            and not self.outbox.count_answer(len(message))
        ):
            self._fail_slow_reader()

    def count_oddity(self, cost: int = 1, *, reason: str = "limit:glitches") -> None:
        """Tolerate something odd while the budget lasts.
        `reason` is what the peer is told when it is empty.
        """
        # Races between two honest sides produce a few oddities;
        # only an attack, or a broken peer, produces thousands.
        if not self.budgets.oddities.spend(cost, self.now):
            self._fail(ProtocolError("too many oddities in too short a time", reason=reason))

    def spend_control_token(self) -> bool:
        """Count a message that costs the peer little and this side some work.
        Return whether it may be acted on.
        """
        # Checked before the message is acted on: the work is what the bound protects.
        if self.budgets.controls.spend(1, self.now):
            return True
        self._fail(
            ProtocolError(
                (
                    "requests, cancels and pings come faster than is allowed here "
                    "(Limits.control_rate)"
                ),
                reason="limit:control",
            )
        )
        return False

    def fail_connection(self, error: ProtocolError) -> None:
        """End the connection because of a mistake of the peer."""
        self._fail(error)

    def held_by_streams(self) -> int:
        """Return how many bytes sent streams hold outside the outbox."""
        # Streams leave this table late: to take each out when its last byte goes would cost
        # something for every element.
        for stream in [stream for stream in self.buffering_streams if not stream.weight]:
            del self.buffering_streams[stream]
        return sum(stream.weight for stream in self.buffering_streams)

    def _fail_slow_reader(self) -> None:
        self.outbox.clear()  # the unread bytes would keep the goodbye from the peer
        self._fail(
            ProtocolError("answers pile up because the peer does not read", reason="slow-reader")
        )


def ignore(*_: object) -> None:
    """Do nothing: the stand-in for a call of an object that is gone, or not there yet."""
