"""The connection as its streams see it: they may send, answer, count an oddity, and fail the
connection. The outbox holds what they send.

`Channel` lies below the streams, so that they know nothing of the session; the session owns one and
lies above them. Streams tell upward through `StreamOwner`.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from penstock.api import Limits, ProtocolError, Role, SharedBytes
from penstock.session._deadlines import Deadlines
from penstock.session._dialect import Dialect
from penstock.session._fair_turns import LargeElementSender, RoundRobin
from penstock.session._reassembly import PartialElements
from penstock.session._received_elements import ReceivedElements
from penstock.session._request_ratio import RequestRatio
from penstock.session._retained_bytes import RetainedBytes
from penstock.session._states import CONNECTION_MOVES, ConnectionEvent, ConnectionState
from penstock.session._stream_churn import StreamChurn
from penstock.session._token_bucket import TokenBucket

MAX_LARGE: Final = 2
"""Large elements of a connection that may wait at a time:
while one is written, the next is there.
"""

MAX_ASKED: Final = 4
"""How often the room may be given away between two turns of the writer: publishers that do not
yield at once must not stop the others.
"""

MOST_AT_ONCE: Final = 64
"""Streams of unknown or large elements that are asked in one turn of the writer, at most."""


class Sender(Protocol):
    """A stream as the outbox sees it."""

    def flush(self) -> bytearray:
        """Return the messages of the elements that were gathered."""

    def pull(self) -> None:
        """Request elements from the publisher, if there is room for them."""


class Outbox:
    """The messages and elements of one connection that wait for the writer. It pulls more elements
    from streams when there is room.

    * Small messages are bytes already, in order. A stream that has gathered elements writes them
      before any message that comes after them.
    * Large elements are not copied here.
      Their streams write them part by part, in turns (`RoundRobin`).
    * Above the high-water mark no publisher is asked for elements. A stream that would ask waits in
      `_blocked` and goes on when the writer has taken the buffer. The writer takes the whole buffer
      at once, so a low-water mark would bound nothing.
    * A stream whose next element may be large waits in `_unsure` while `MAX_LARGE` of them wait to
      be written. In each turn of the writer one of these streams is asked, then two, then four: if
      a large element comes, the next turn begins with one again. So 1,024 streams of 1 MiB elements
      hold two of them, and 1,024 streams whose publishers wait for something have all been asked
      after some turns.
    """

    __slots__ = (
        "_answer_bytes",
        "_blocked",
        "_gathering",
        "_high",
        "_large",
        "_limits",
        "_turn",
        "_unsure",
        "answers",
        "asked",
        "buffer",
        "gathered",
        "large",
        "large_elements",
        "max_waiting",
        "owed",
        "owing",
        "retained",
        "taken_bytes",
        "wake",
    )

    def __init__(self, limits: Limits, wake: Callable[[], None]) -> None:
        self.buffer: bytearray = bytearray()
        self._limits = limits
        self.max_waiting: int = limits.outbound_high + limits.max_element + limits.outbound_control
        """More bytes than these cannot come from the high-water mark, one element and all
        answers together: the peer does not read.
        """
        self.wake: Callable[[], None] = wake
        self._large = RoundRobin(limits)
        # Ordered sets: a stream stands here once, however often it is asked.
        # All three are bounded by the number of streams.
        self._blocked: dict[Sender, None] = {}
        self._unsure: dict[Sender, None] = {}
        self._turn = 1  # streams of `_unsure` that are asked in the next turn of the writer
        self._gathering: list[Sender] = []
        self.gathered: int = 0
        """Bytes that streams have gathered and not written. The streams keep this count."""
        self._high = limits.outbound_high  # 0 while nothing is requested from publishers
        self.answers: int = 0
        """Waiting messages that answer something the peer sent."""
        self._answer_bytes = 0
        self.taken_bytes: int = 0
        """Bytes that the writer has taken."""
        self.large: int = 0
        """Bytes of large elements that streams hold. The streams keep this count."""
        self.large_elements: int = 0
        """The number of large elements that streams hold. The streams also keep this count."""
        self.asked: int = 0
        """Bytes that were requested from publishers since the last turn of the writer."""
        self.owed: int = 0
        """Bytes that were requested from publishers and have not come.
        The streams keep this count, and the next.
        """
        self.owing: int = 0
        """The number of these publishers."""
        self.retained: RetainedBytes | None = None
        """The bytes that were taken and are not acknowledged, on a connection that can be resumed.
        """

    @property
    def waiting(self) -> int:
        """Bytes in the buffer."""
        return len(self.buffer)

    @property
    def is_empty(self) -> bool:
        """Nothing waits."""
        return not (self.buffer or self._large.queue or self._gathering)

    def put(self, data: bytes | bytearray, *, wakes: bool = True) -> None:
        """Queue a message behind the elements that were gathered before it. Without `wakes` the
        caller lets the writer know of it.
        """
        # Order within a stream: a completion must not overtake the elements before it.
        if self._gathering:
            self._flush()
        # Only the first message finds the writer asleep.
        # A wake-up for each message would cost more than encoding it.
        if wakes and not self.buffer:
            self.wake()
        self.buffer += data

    def count_answer(self, size: int) -> bool:
        """Count an answer of `size` bytes.
        Return whether the answers that wait are within `Limits.outbound_control`.
        """
        # Reset by take(): an answer that the writer has taken no longer waits.
        self.answers += 1
        self._answer_bytes += size
        return (
            self.answers <= self._limits.outbound_control_count
            and self._answer_bytes <= self._limits.outbound_control
        )

    def room(self) -> int:
        """Return how many bytes of elements may be requested; nothing at 0 or less."""
        # A large element must not keep the small ones of other streams waiting, so it takes no
        # room. Above this bound nothing is requested. Each stream may already have requested one;
        # which publisher yields soon is unknown, so none can be waited for.
        if self.large and self.large >= self._limits.outbound_high + self._limits.max_element:
            return 0
        if self.retained is not None and self.retained.is_full:
            return 0
        return self._high - len(self.buffer) - self.gathered

    def may_start(self) -> bool:
        """Return whether a call may be started that answers with an element of unknown size."""
        if self.retained is not None and self.retained.is_full:
            return False
        return (
            self.large_elements < MAX_LARGE
            and len(self.buffer) + self.gathered < self._limits.outbound_high
        )

    def may_pull_large(self) -> bool:
        """Return whether a stream may be asked whose next element may be large.
        Those that wait go first.
        """
        return (
            self.large_elements < MAX_LARGE
            and self.asked < self._limits.outbound_high
            and not self._unsure
        )

    def block(self, sender: Sender) -> None:
        """Let `sender` pull when there is room again."""
        self._blocked[sender] = None

    def block_unsure(self, sender: Sender) -> None:
        """Let `sender`, whose next element may be large, pull in its turn."""
        self._unsure[sender] = None

    @property
    def needs_turn(self) -> bool:
        """Streams wait for a turn of the writer, and not for the peer to read:
        nothing needs to be sent for them to go on.
        """
        if self.retained is not None and self.retained.has_new_room:
            return True
        if self._unsure and self.large_elements < MAX_LARGE and self.room() > 0:
            return True
        return bool(self._blocked) and self.asked > 0 and self.room() > 0

    def take_turn(self) -> None:
        """Let waiting streams pull although there is nothing to send."""
        self.asked = 0
        if self.retained is not None:
            self.retained.has_new_room = False
        self._unblock()

    def add_large(self, sender: LargeElementSender) -> None:
        """Let `sender` write parts, in turn with others."""
        # The sender holds the bytes. Copying a large element in here would cost its size again, and
        # delay everything after it.
        self._large.add(sender)
        self._turn = 1
        self.wake()

    def remove_large(self, sender: LargeElementSender) -> None:
        """Forget a sender of large elements whose stream has ended."""
        self._large.remove(sender)

    def ask_blocked(self) -> None:
        """Let blocked streams pull: large elements were dropped, so there may be room although
        the writer has taken nothing.
        """
        self._unblock()
        self.wake()  # the writer lets requests go on that wait for room

    def gather(self, sender: Sender) -> None:
        """Call `sender.flush` when the writer comes, or before the next message."""
        # Once per run or block, not once per element.
        self._gathering.append(sender)
        self.wake()

    def hold(self) -> None:
        """Request nothing from publishers until `resume`."""
        self._high = 0

    def resume(self) -> None:
        """Request elements from publishers again."""
        self._high = self._limits.outbound_high
        self._unblock()

    def take(self) -> bytearray:
        """Return the bytes to send now:
        the whole buffer, and parts of large elements up to the high-water mark.
        """
        if self._gathering:
            self._flush()
        # The buffer itself, without a copy.
        # Its messages go before the parts, so that small ones are not delayed.
        data, self.buffer = self.buffer, bytearray()
        # Only waiting answers count. The connection has its own deadline for bytes
        # that the transport does not take.
        self.answers = self._answer_bytes = 0
        self.asked = 0
        if self._large.queue:
            self._large.write(data, self._limits.outbound_high)
        if self._blocked or self._unsure:
            self._unblock()
        self.taken_bytes += len(data)
        if self.retained is not None and data:
            self.retained.add(data)
        return data

    def forget(self, sender: Sender) -> None:
        """Forget a stream that has ended."""
        self._blocked.pop(sender, None)
        self._unsure.pop(sender, None)
        # A stream that has ended has flushed before, so nothing is lost.
        if sender in self._gathering:
            self._gathering.remove(sender)

    def clear(self) -> None:
        """Drop everything: the connection is over."""
        self.buffer = bytearray()
        self.close()

    def close(self) -> None:
        """Take nothing more from streams.
        The messages in the buffer still go out before the goodbye.
        """
        self._large.clear()
        self._blocked.clear()
        self._unsure.clear()
        self._gathering.clear()
        self.gathered = 0

    def _flush(self) -> None:
        gathering, self._gathering = self._gathering, []
        for sender in gathering:
            messages = sender.flush()
            if self.buffer:
                self.buffer += messages
            else:
                # Usually one stream alone has gathered. Then nothing is copied.
                self.buffer = messages

    def _unblock(self) -> None:
        # Before the others, which ask for more: 63 busy streams once took the whole turn, again and
        # again, and 961 were never asked.
        if self._unsure:
            self._ask_unsure()
        # Each stream gets one turn. One that is still without room blocks again
        # and must not be asked twice here.
        for _ in range(len(self._blocked)):
            if self.room() <= 0 or self.asked >= MAX_ASKED * self._limits.outbound_high:
                break
            # Looked up anew each time: a pull may end other streams, which changes the table.
            sender = next(iter(self._blocked), None)
            if sender is None:
                break  # the pull before has ended the other streams
            del self._blocked[sender]
            sender.pull()

    def _ask_unsure(self) -> None:
        """Let some of the streams pull whose next element may be large."""
        turn, self._turn = self._turn, min(2 * self._turn, MOST_AT_ONCE)
        waiting, self._unsure = self._unsure, {}
        # Out of the table while they are asked:
        # a stream that asks again stands behind those that have waited longer.
        for sender in tuple(waiting)[:turn]:
            if self.large_elements >= MAX_LARGE or self.room() <= 0:
                break
            del waiting[sender]
            sender.pull()
        self._unsure = waiting | self._unsure
        if not self._unsure:
            self._turn = 1


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


class PeerBudgets:
    """The remaining budgets of the peer on one connection, and the counts of its requests."""

    __slots__ = ("churn", "controls", "oddities", "partials", "received", "requests", "unread")

    def __init__(self, limits: Limits) -> None:
        # Oddities are harmless one by one. Controls are normal messages that cost the peer a few
        # bytes and this side some work.
        self.oddities: TokenBucket = TokenBucket(limits.glitch_burst, limits.glitch_rate)
        self.controls: TokenBucket = TokenBucket(limits.control_burst, limits.control_rate)
        # Elements that a subscriber gets pay for its requests, so an honest reader by single
        # elements never meets the control rate.
        self.requests: RequestRatio = RequestRatio()
        self.received: ReceivedElements = ReceivedElements()
        self.churn: StreamChurn = StreamChurn(limits)
        self.partials: PartialElements = PartialElements(limits)
        self.unread: SharedBytes = SharedBytes(limits.unread_bytes)


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
            _ignore,
            _ignore,
            _ignore,
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


def _ignore(*_: object) -> None:
    """Do nothing."""
