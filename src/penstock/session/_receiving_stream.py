"""A receiving stream: this side has subscribed to a publisher of the peer.
The stream is the subscriber's subscription.

* Elements beyond the demand end the stream, on both sides:
  the subscriber's buffer was sized by its demand (rule 1.1).
* Parts of an element are joined and count as one element.
* An id is never used again. After a cancel a `CancelledStream` stands in the table under the id; it
  delimits and drops late elements.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any, Final, TypeVar

from penstock.api import (
    UNBOUNDED,
    ByteWindow,
    ConnectionLost,
    LimitExceeded,
    PipePart,
    ProtocolError,
    Subscriber,
    Subscription,
    WithMetadata,
    held_of,
    on_content_of,
    on_element_size_of,
    on_fact_of,
    on_next_many_of,
    on_next_packed_of,
    on_next_sized_of,
)
from penstock.session._budgets import STREAM_BYTES
from penstock.session._channel import Channel
from penstock.session._reassembly import BrokenElementError, Reassembly, part_cost
from penstock.session._states import RECEIVING_MOVES, ReceivingEvent, ReceivingState

E = TypeVar("E", bound=BaseException)

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_NEW: Final = ReceivingState.NEW
_EVENT_ACCEPTED: Final = ReceivingEvent.ACCEPTED
_EVENT_COMPLETED: Final = ReceivingEvent.COMPLETED

ANSWERED: Final = RECEIVING_MOVES[ReceivingState.REQUESTED, ReceivingEvent.COMPLETED]
"""The state of a request for one value after its answer, whether it was accepted before or not:
without a look into the table.
"""

ANNOUNCED: Final = -2
"""In the place of the size of elements: the stream is not accepted, and its serializer was
announced. It needs no further room.
"""

SIZED_RUN: Final = 16
"""Elements of a run whose size is told to a stage that counts bytes. To add up their lengths
took a recorder half of its time.
"""

UNASKED: Final = "an element arrived that was not asked for"


class ReceivingStream(Subscription):
    """A stream that this side has opened."""

    __slots__ = (
        "_channel",
        "_parts",
        "_subscriber",
        "_window",
        "element_size",
        "id",
        "outstanding",
        "state",
        "target",
    )

    def __init__(
        self,
        channel: Channel,
        stream_id: int,
        subscriber: Subscriber[Any],
        demand: int = 0,
        window: ByteWindow | None = None,
    ) -> None:
        self.id: int = stream_id
        self.state: ReceivingState = _NEW
        self.element_size: int = -1
        """The size of every element, 0 if it differs, below 0 until the peer accepts.
        The decoder also looks at it.
        """
        self.outstanding: int = demand
        self.target: Any = None
        """What the peer was asked for, once it was: a name, or a request for one value."""
        self._channel = channel
        # None once the subscriber must get no more signals:
        # the reference is dropped with the end (rule 3.13).
        self._subscriber: Subscriber[Any] | None = subscriber
        self._parts: Reassembly | None = None
        # None if the subscriber has no window:
        # it takes what it has asked for, and a request for one value needs no bound.
        self._window = window
        if window is not None:
            channel.budgets.unread.add(window, self)

    # --- the subscription

    def request(self, n: int, /) -> None:
        if self._subscriber is None:
            return  # rule 3.6
        before = self.outstanding
        # rule 3.17: 2^63-1 is unbounded. A request after it changes nothing, so it is not sent.
        if before == UNBOUNDED:
            return
        channel, after = self._channel, before + n
        if after < UNBOUNDED:
            self.outstanding = after
            channel.budgets.received.requested += n
        else:
            # From here on the elements are counted when they come: see ReceivedElements.
            self.outstanding = UNBOUNDED
            channel.budgets.received.requested -= before
        # In state NEW the subscribe message will carry the demand.
        if self.state is not _NEW:
            (channel.send_demand or channel.send)(channel.dialect.request(self.id, n))

    def cancel(self, /) -> None:
        if self._subscriber is not None:
            self._cancel()

    # --- for the session

    def on_connection_end(self, error: Exception) -> None:
        """End with a copy of the connection's error:
        each of the streams raises its own in another task.
        """
        self.receive_error(own_copy(error))

    def on_partial_timeout(self, *, is_silent: bool) -> None:
        """End because an element was unfinished for too long.
        `is_silent` says that nothing else arrives either.
        """
        what = (
            f"an element was left unfinished for more than {self._channel.limits.partial_age:g} s"
        )
        if not is_silent:
            self.fail_contract(what)
            return
        # A silent peer has not broken the contract: a ConnectionLost lets a client reconnect.
        text = (
            f"stream {self.id}: {what} (Limits.partial_age), and nothing follows; the peer hangs, "
            "or the network is gone"
        )
        self.fail_contract(what, error=ConnectionLost(text))

    # --- what the peer sends

    def receive_accept(self, element_size: int) -> None:
        """Note that the peer has accepted, and the size of its elements."""
        # The decoder delimits elements by this size. A second acceptance could change the meaning
        # of bytes that are on their way.
        if self.element_size >= 0:
            raise ProtocolError(
                f"stream {self.id} was accepted twice", reason=f"protocol:stream {self.id}"
            )
        self.state = RECEIVING_MOVES[self.state, _EVENT_ACCEPTED]
        self.element_size = element_size
        # Once for each stream, here: afterwards a stream of bytes has nothing between it
        # and its reader.
        if on_content_of(self._subscriber) is not None:
            choose_decoder(self, None, "")
        on_element_size = on_element_size_of(self._subscriber) if element_size else None
        if on_element_size is not None:
            on_element_size(element_size)

    def receive_element(self, element: bytes, /) -> None:
        """Deliver an element."""
        # rule 1.1. Checked before the subscriber:
        # demand that a cancelled stream had is counted by its CancelledStream.
        if self.outstanding <= 0:
            self.fail_contract(UNASKED)
        elif self._subscriber is not None:
            if self.outstanding < UNBOUNDED:
                self.outstanding -= 1
            else:
                self._channel.budgets.received.requested += 1
            if self._channel.incoming is not None:
                element = self._channel.incoming(element)
            if self._subscriber is not None:  # the change may have ended the stream
                if self._window is not None:
                    self._window.received += len(element)
                self._subscriber.on_next(element)

    def receive_answer(self, element: bytes, /) -> bool:
        """Deliver the only element and the end with it.
        Return False, and do nothing, if the stream needs another path.
        """
        if self.outstanding <= 0 or self._parts is not None or self._channel.incoming is not None:
            return False
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            self.state = ANSWERED
            # The rest of the demand never comes.
            # Demand without bound has counted nothing yet, and this element is the first.
            self._channel.budgets.received.requested -= (
                self.outstanding - 1 if self.outstanding < UNBOUNDED else -1
            )
            subscriber.on_next(element)
            subscriber.on_complete()
        return True

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        """Deliver elements that arrived one right behind the other. They have `size` bytes;
        below 0, the decoder does not know it.
        """
        count = len(elements)
        # One call for the whole run if the subscriber takes it, all of it was asked for, and no
        # extension changes single elements.
        on_next_many = on_next_many_of(self._subscriber)
        if on_next_many is None or count > self.outstanding or self._channel.incoming is not None:
            for element in elements:
                self.receive_element(element)
            return
        if self.outstanding < UNBOUNDED:
            self.outstanding -= count
        else:
            self._channel.budgets.received.requested += count
        if self._window is not None:
            # An estimate would be the peer's choice: with the first and the last element of a run,
            # it made this side hold 95 MB uncounted.
            self._window.received += size if size >= 0 else sum(map(len, elements))
        # A stage that counts bytes takes the size as well. Not looked for with short runs:
        # the look costs them too much.
        on_next_sized = (
            on_next_sized_of(self._subscriber) if size >= 0 and count >= SIZED_RUN else None
        )
        if on_next_sized is None:
            on_next_many(elements)
        else:
            on_next_sized(elements, size)

    def receive_packed(self, count: int, elements: bytes, /) -> None:
        """Deliver packed elements:
        as one piece of memory if the subscriber takes those, else one by one.
        """
        # A packed message is judged as a whole:
        # none of its elements is delivered if one of them was not asked for.
        if count > self.outstanding:
            self.fail_contract(UNASKED)
            return
        on_next_packed = on_next_packed_of(self._subscriber)
        if on_next_packed is not None and self._channel.incoming is None:
            if self.outstanding < UNBOUNDED:
                self.outstanding -= count
            else:
                self._channel.budgets.received.requested += count
            if self._window is not None:
                self._window.received += len(elements)
            on_next_packed(count, elements)
            return
        size = self.element_size
        self.receive_run(
            [elements[at : at + size] for at in range(0, count * size, size)], len(elements)
        )

    def receive_part(self, number: int, part: bytes, last: bool, /) -> None:  # noqa: FBT001  # as the decoder calls it
        """Join a part to its element, and deliver the element with its last part."""
        joined = self._join_part(number, part, last=last)
        if joined is not None:
            self._deliver_joined(joined)

    def receive_last_part(self, number: int, part: bytes, beside: int) -> None:
        """Deliver an element with its last part. The first `beside` bytes of it are metadata."""
        joined = self._join_part(number, part, last=True)
        if joined is not None:
            self.note_beside(beside)
            self._deliver_joined(WithMetadata(joined[beside:], metadata=joined[:beside]))

    def note_beside(self, size: int) -> None:
        """Count bytes that the subscriber gets beside an element: it holds them as well."""
        if self._window is not None:
            self._window.received += size

    def _join_part(self, number: int, part: bytes, *, last: bool) -> bytes | None:
        """Return the element if this is its last part."""
        if self._subscriber is None:
            return None
        channel = self._channel
        # Bounds on number and bytes are checked before the part is kept,
        # the age by a timer (PartialElements.overdue).
        try:
            parts = self._parts_of(number, is_single_part=last)
            if parts is None:
                return None
            if cost := part_cost(part, is_last=last, tiny=channel.limits.tiny_part):
                channel.count_oddity(cost)
                if channel.state.is_closing:
                    return None  # the budget was empty, which has ended all streams
            parts.add(number, part, self.element_size or channel.limits.max_element)
            if last:
                return parts.join(number)
        except BrokenElementError as broken:
            self.fail_contract(str(broken))
        return None

    def receive_complete(self) -> None:
        """End well."""
        if self._parts:
            # The peer has ended the stream already, so it is not told.
            self.fail_contract(
                "the stream completed within an element: its last part is missing",
                is_ended_by_peer=True,
            )
            return
        subscriber = self._end(_EVENT_COMPLETED)
        if subscriber is not None:
            subscriber.on_complete()

    def receive_error(self, error: Exception) -> None:
        """End with an error: the peer has refused or failed the stream,
        or the connection has ended.
        """
        subscriber = self._end(ReceivingEvent.FAILED)
        if subscriber is not None:
            subscriber.on_error(error)

    def fail_contract(
        self, text: str, *, is_ended_by_peer: bool = False, error: Exception | None = None
    ) -> None:
        """End the stream because the peer broke its contract: a cancel to the peer, and to the
        subscriber `error` or a ProtocolError.
        """
        # Read before the stream ends: ending drops the reference.
        subscriber = self._subscriber
        if is_ended_by_peer:
            self._end(ReceivingEvent.FAILED)
        elif subscriber is not None:
            self._cancel()
        if subscriber is not None:
            subscriber.on_error(
                error
                or ProtocolError(
                    f"stream {self.id}: {text}. The peer must act", reason="protocol:demand"
                )
            )

    def fail_unread(self, unread: int) -> None:
        """End the stream because it holds the most of its connection, and all streams together
        hold too many unread bytes.
        """
        most = self._channel.limits.unread_bytes
        what = (
            f"the streams of this connection hold {unread:,} bytes that were not read, and this "
            "one holds the most"
        )
        advice = (
            f"{most:,} may be held (Limits.unread_bytes); read it faster, or open it with a "
            "smaller demand"
        )
        self.fail_contract(
            "", error=LimitExceeded(f"{what}; {advice}", limit="unread_bytes", value=most)
        )

    # --- for those who look at the pipe

    def pipe_part(self) -> PipePart:
        """Return the part for those who look at the pipe."""
        return PipePart("stream of the peer")

    @property
    def subscriber_below(self) -> object:
        """The subscriber, for those who look at the pipe."""
        # The wait for one value is stream and subscriber in one.
        subscriber: object = self._subscriber
        return None if subscriber is self else subscriber

    @property
    def channel(self) -> Channel:
        """The connection that the stream belongs to."""
        return self._channel

    # --- facts

    @property
    def is_wanted(self) -> bool:
        """The stream has not ended for the subscriber."""
        return self._subscriber is not None

    @property
    def takes_whole(self) -> bool:
        """Unsplit elements may come straight here: the stream is accepted, and no element is
        unfinished. The decoder asks.
        """
        return self.element_size >= 0 and not self._parts

    @property
    def takes_runs(self) -> bool:
        """Elements of one length may come as an `EqualRun`. The decoder asks."""
        return getattr(self._subscriber, "takes_runs", False)  # as `takes_runs_of`, inline

    def held(self) -> int:
        """Return the price of the stream, and how many bytes of elements its subscriber has not
        read, if it can tell.
        """
        # The wait for one value is stream and subscriber in one, and has nothing unread.
        subscriber: object = self._subscriber
        held = None if subscriber is self else held_of(subscriber)
        return STREAM_BYTES + (0 if held is None else held())

    def is_joining(self, number: int) -> bool:
        """Return whether the element of that number is unfinished."""
        return self._parts is not None and number in self._parts

    @property
    def oldest_part_at(self) -> float | None:
        """When the oldest unfinished element began, or None if every element is finished."""
        return None if self._parts is None else self._parts.oldest_at

    # --- inside

    def _parts_of(self, number: int, *, is_single_part: bool) -> Reassembly | None:
        """Return the parts of this stream, with the element begun; its first part takes demand.
        None without demand.
        """
        channel, parts = self._channel, self._parts
        if parts is None:
            parts = self._parts = Reassembly(channel.budgets.partials, channel.limits)
        if number in parts:
            return parts
        if self.outstanding <= 0:
            self.fail_contract(UNASKED)
            return None
        parts.begin(number, channel.now, is_single_part=is_single_part)
        # The first part takes the demand of its element, so an element
        # that never ends has used its share.
        if self.outstanding < UNBOUNDED:
            self.outstanding -= 1
        else:
            channel.budgets.received.requested += 1
        channel.budgets.partials.streams[self] = None
        return parts

    def _deliver_joined(self, element: bytes) -> None:
        if self.element_size and len(element) != self.element_size:
            self.fail_contract(
                f"an element of {len(element)} bytes on a stream whose elements have "
                f"{self.element_size}"
            )
            return
        if self._channel.incoming is not None:
            element = self._channel.incoming(element)
        if self._subscriber is not None:  # the change may have ended the stream
            if self._window is not None:
                self._window.received += len(element)
            self._subscriber.on_next(element)

    def _cancel(self) -> None:
        was_sent = self.state is not _NEW
        # An element that was begun has used its demand, and its last part may be on its way.
        unfinished = 0 if self._parts is None else len(self._parts)
        self._end(ReceivingEvent.CANCELLED)
        if was_sent:  # if not, the peer never heard of the stream
            self._channel.owner.on_receiving_cancelled(self, unfinished)

    def _end(self, event: ReceivingEvent) -> Subscriber[Any] | None:
        """Forget the subscriber and return it; None if the stream has ended before."""
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            self.state = RECEIVING_MOVES[self.state, event]
            # Demand that no element will use.
            # An unfinished element has used its demand, and never comes either.
            missing = self.outstanding if self.outstanding < UNBOUNDED else 0
            if self._parts is not None:
                missing += len(self._parts)
            self._channel.budgets.received.requested -= missing
        if self._window is not None:
            self._channel.budgets.unread.remove(self._window, self)
        if self._parts is not None:
            self._parts.clear()
            self._channel.budgets.partials.streams.pop(self, None)
            self._parts = None
        return subscriber


def tell_subscriber(stream: ReceivingStream, fact: object) -> None:
    """Give a fact to the subscriber of a stream, if it takes facts."""
    on_fact = on_fact_of(stream._subscriber)  # noqa: SLF001  # a method of the stream in all but its place: the class is full
    if on_fact is not None:
        on_fact(fact)


def announce_content(stream: ReceivingStream, serializer: str, schema: str) -> bool:
    """Note what the elements of a stream are, before it is accepted.
    Return False if that is too late, or was done before.
    """
    if stream.element_size >= 0 or stream.element_size == ANNOUNCED:
        return False
    stream.element_size = ANNOUNCED
    choose_decoder(stream, serializer, schema)
    return True


def choose_decoder(stream: ReceivingStream, serializer: str | None, schema: str) -> None:
    """Let the subscriber of a stream choose how its elements are read;
    None if the peer announces no serializer.
    """
    on_content = on_content_of(stream._subscriber)  # noqa: SLF001  # a function of this module, for a class that has enough methods
    if on_content is not None:
        subscriber = on_content(serializer, schema)
        if stream._subscriber is not None:  # noqa: SLF001  # it may have cancelled, because it cannot read them
            stream._subscriber = subscriber  # noqa: SLF001  # as above


def pass_by(stream: ReceivingStream, relay: Subscriber[Any], subscriber: Subscriber[Any]) -> None:
    """Let the signals of a stream go to `subscriber`, and no longer through `relay`."""
    # An extension may have put another object in the place of the relay.
    if stream._subscriber is relay:  # noqa: SLF001  # as above
        stream._subscriber = subscriber  # noqa: SLF001  # as above


def own_copy(error: E) -> E:
    """Return a copy of `error` to raise, or to give to one subscriber: an exception that is kept is
    never raised itself. The copy has the cause of the original, and no traceback.
    """
    # Each `raise` of a stored exception adds frames to its traceback, and each of these frames
    # keeps everything that its variables refer to: the chunk that was fed, the request that was
    # made. So the peer, or a loop of the program, would fill the memory with one exception.
    try:
        own = copy(error)
    except Exception:  # boundary: an exception of a plugin's, whose constructor copy() cannot call
        # The object itself, without the frames that it has gathered.
        return error.with_traceback(None)
    own.__cause__, own.__suppress_context__ = error.__cause__, error.__suppress_context__
    return own
