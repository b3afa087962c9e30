"""A sending stream: the peer has subscribed to a publisher of this side. The stream is the
publisher's subscriber, and encodes its elements.

Rules of this file:

* After every kind of end nothing is sent for this id (rule 1.7), and the reference to the publisher
  is dropped.
* Demand permits sending, not buffering: elements are requested from the publisher only if the peer
  has requested them *and* the outbox has room, and only as many as will roughly fill that room.
* Demand is reserved *before* an element exists. So a stream never requests more from its publisher
  than it may send. 2^63-1 is unbounded and stays so (rule 3.17).
* Where an element goes depends on what waits for the writer (the output of the stream):

  =====================  ===============  =======================  ==========================
  waits                  kept in          an element that fits     a longer one
  =====================  ===============  =======================  ==========================
  nothing                --               goes into the outbox,    goes into the outbox, or is
                                          or begins a run          held if it is large
  a run of elements      `run`            joins the run            closes the run, then as
                                                                   with nothing
  a large element        `_large`         waits after it           waits after it
  elements of one size   `_fixed`         is packed with them      ends the stream
  =====================  ===============  =======================  ==========================

  The publisher's pump appends to the run without a call. The stream counts what that uses of the
  demand, and weighs it, when it looks at the run. Every move that elements must not pass closes the
  run first.
* What becomes of the elements that wait depends on who ends the stream:

  ==============================================  ============================================
  end                                             elements that wait, and the peer
  ==============================================  ============================================
  the publisher completes                         are sent first, as demand and room permit,
                                                  then the completion
  the publisher fails: its code raises, gives     the same, then the error
  what cannot be sent, or is stopped by a limit
  of this side (`LimitExceeded`, `SlowSubscriber`)
  or with its nursery (`PublisherStopped`)
  this side refuses the stream                    none wait; the error goes out at once
  the peer breaks the contract of the stream, or  a run and packed elements are sent, all others
  leaves it idle for too long                     are dropped; the error goes out at once
  the peer cancels, or the connection ends        the same, without an error
  ==============================================  ============================================

  Until the end is sent, the stream is FLUSHING or FAILING and keeps its place. A cancel ends that.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Self, TypeAlias

from penstock.api import (
    NO_SUCH,
    UNBOUNDED,
    BytesList,
    NotAvailable,
    Subscriber,
    Subscription,
    UsageError,
    WithMetadata,
    public_code,
    public_text,
    text_of,
)
from penstock.session._channel import Channel
from penstock.session._dialect import Fault
from penstock.session._element_output import (
    CLOSED,
    ElementRun,
    Failure,
    FixedSizeElements,
    LargeElements,
)
from penstock.session._outbox import MAX_ASKED, Outbox
from penstock.session._states import SENDING_MOVES, SendingEvent, SendingState

UNKNOWN_SIZE: Final = -1
"""The expected size of an element before the first one came.
Until then one is requested at a time.
"""

LEAST_PULL: Final = 8
"""A stream whose elements wait for the writer asks for more if at least this fraction of the room
is free: an eighth, 16 KiB by default.
"""

HEADER_ALLOWANCE: Final = 8
"""The room is divided by the expected size plus this:
the headers of the shipped protocols have 3 to 16 bytes.
"""

OBJECT_ALLOWANCE: Final = 48
"""While several publishers owe elements, the room is divided by the expected size plus this:
what an object of bytes costs in a list.
"""

MOST_ELEMENTS: Final = 512
"""Elements that a publisher is asked for at a time. It makes more before the first of them are
sent if it is asked for more.
"""

LEAST_SHARE: Final = 1 << 10
"""Bytes that a publisher may be asked for at once, however many others owe theirs. Less would
cost a request for each few elements.
"""

_WITHOUT_PUBLISHER: Final = {SendingState.AWAITING_DEMAND, SendingState.AWAITING_ROOM}

_ONLY_BYTES: Final = {bytes}

TOO_LONG: Final = (1 << 62, 0)
"""The longest length and the sum for elements of other types than bytes: no run accepts them."""

TIMES_EXPECTED: Final = 4
"""A run accepts elements up to this number of times the expected length.
JSON objects and lines of logs rarely vary more.
"""

ALWAYS_ACCEPTED: Final = 64
"""Bytes of an element that an open run always accepts:
a limit below the size of a header would bound nothing.
"""

TEXT_BYTES_PER_CHARACTER: Final = 4
"""UTF-8 takes at most four bytes a character, and `Limits.max_error_text` counts bytes."""

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_REQUESTED: Final = SendingState.REQUESTED
_AWAITING_DEMAND: Final = SendingState.AWAITING_DEMAND
_UNANNOUNCED: Final = SendingState.UNANNOUNCED
_LIVE: Final = SendingState.LIVE
_FLUSHING: Final = SendingState.FLUSHING
_FAILING: Final = SendingState.FAILING
_ENDED: Final = SendingState.ENDED
_EVENT_QUEUED: Final = SendingEvent.QUEUED
_EVENT_ACCEPTED: Final = SendingEvent.ACCEPTED
_EVENT_DEFERRED: Final = SendingEvent.DEFERRED
_EVENT_ANNOUNCED: Final = SendingEvent.ANNOUNCED
_EVENT_ATTACHED: Final = SendingEvent.ATTACHED
_EVENT_COMPLETED: Final = SendingEvent.COMPLETED
_EVENT_FAILED: Final = SendingEvent.FAILED
_EVENT_FLUSHED: Final = SendingEvent.FLUSHED

# Moves of the table, looked up once: the path of a request for one value makes three moves at a
# time.
_CALLED: Final = SENDING_MOVES[SendingState.REQUESTED, SendingEvent.DEFERRED]
_ANNOUNCED: Final = SENDING_MOVES[_CALLED, SendingEvent.ANNOUNCED]
_ANSWERED: Final = SENDING_MOVES[
    SENDING_MOVES[_ANNOUNCED, SendingEvent.COMPLETED], SendingEvent.FLUSHED
]


WhenOver: TypeAlias = Callable[["SendingStream", SendingEvent], None]
"""Called once for a stream that has ended: FLUSHED if its publisher had completed, FAILED if it had
failed, else the event that ended it."""


class SendingStream(Subscriber[bytes]):
    """A stream that the peer has opened.

    There may be 100,000 idle streams. The benchmark allows 400 bytes for each on each side, and an
    object of six attributes has 96. So `_large`, `_fixed` and `run`, which only busy streams need,
    are made when they are needed.
    """

    __slots__ = (
        "_channel",
        "_expected_size",
        "_fixed",
        "_gathered",
        "_large",
        "_longest",
        "_owed",
        "_upstream",
        "available",
        "began_at",
        "element_size",
        "id",
        "idle_since",
        "reserved",
        "run",
        "sent",
        "sent_bytes",
        "state",
        "target",
        "when_over",
    )

    id: int
    available: int
    reserved: int
    state: SendingState
    element_size: int
    run: ElementRun | None
    """Elements that go out together.
    A pump appends to it those that are not longer than `run.longest`.
    """
    sent: int
    """Elements that were encoded, or are held here. A run adds those that were counted."""
    sent_bytes: int
    """Their bytes."""
    _channel: Channel
    _upstream: Subscription | None
    _longest: int
    """The length of the longest element that may begin a run."""
    _gathered: int
    """Bytes of the run and of packed elements that the outbox knows of."""
    _expected_size: int
    _owed: int
    """Bytes that the publisher was asked for, until all of them have come."""
    _large: LargeElements | None
    _fixed: FixedSizeElements | None

    def __init__(self, channel: Channel, stream_id: int, target: Any, demand: int) -> None:
        self.id = stream_id
        self.target: Any = target
        self.state = _REQUESTED
        self.available = demand
        self.reserved = 0
        self.element_size = 0
        self.run = None
        self.sent = 0
        self.sent_bytes = 0
        self._channel = channel
        self._upstream = None
        self._longest = CLOSED
        self._gathered = 0
        self._owed = 0
        self._expected_size = UNKNOWN_SIZE
        self._large = None
        self._fixed = None
        self.began_at: float = channel.now
        self.idle_since: float | None = None
        """When the stream was first seen without demand and without anything to send.
        A request ends that.
        """
        self.when_over: WhenOver | None = None
        """Called when the stream has ended here; its publisher may still be stopping."""

    @property
    def is_connection_closing(self) -> bool:
        """Whether the connection is ending, or has ended."""
        return self._channel.state.is_closing

    @property
    def is_ended(self) -> bool:
        """Nothing more may be sent."""
        return self.state is _ENDED

    # --- for the service

    def accept(self, *, element_size: int = 0, idle_until_demand: bool = False) -> None:
        """Accept. The publisher is attached at once, or with the first demand if it is idle until
        then: an idle stream holds nothing.

        If it is idle and the demand has come already,
        the peer hears of the acceptance with the publisher's first signal.
        """
        self.element_size = element_size
        # Such a publisher decides in its own code whether the peer may have it, and
        # that code runs only now.
        if idle_until_demand and self.available:
            self.state = SENDING_MOVES[self.state, _EVENT_QUEUED]
            self.attach_waiting()
            return
        self.state = SENDING_MOVES[self.state, _EVENT_ACCEPTED]
        self._channel.send(self._channel.dialect.begin(self.id, element_size))
        # The send may have ended the connection, and with it this stream.
        if self.state is _AWAITING_DEMAND and not idle_until_demand:
            self._attach()

    def accept_call(self, call: Subscription) -> None:
        """Accept a request for one value. `call` gets a request when there is room for its
        answer, and answers with `answer`.
        """
        channel = self._channel
        if self.state is _REQUESTED:
            self.state = _CALLED
        else:  # the table names what is wrong
            self.state = SENDING_MOVES[self.state, _EVENT_DEFERRED]
        self._upstream = call
        # As `pull` does, for the usual case: the demand came with the request, and there is room.
        # It has no run and no size to look at.
        if self.available == 1 and channel.outbox.room() > 0:
            self.available, self.reserved = 0, 1
            channel.budgets.requests.requested += 1
            call.request(1)
        else:
            self.pull()

    def refuse(
        self,
        text: str,
        reason: str = "",
        code: int | None = None,
        *,
        fault: Fault = Fault.REFUSED,
    ) -> None:
        """End the stream before it begins. The peer gets `text`, and `code` if the program has
        given one; `reason` is for the log of this side, and may say more.

        `fault` says whether a function of the program may have acted. The text cannot tell: such a
        function may have chosen the same words.
        """
        # A refusal costs this side more than the peer's subscribe cost the peer:
        # opening refused streams fast is an attack.
        self._channel.budgets.churn.count(self.began_at)
        self._cut(SendingEvent.REFUSED, text, fault, code)
        self._channel.owner.on_sending_refused(self, reason or text)

    # --- what the peer sends

    def receive_request(self, n: int) -> None:
        """Add demand."""
        self.idle_since = None
        self.grant(n)
        # With elements still reserved the publisher has enough to do: the last of them pulls again.
        if self.state is _AWAITING_DEMAND:
            self.attach_waiting()
        elif not self.reserved or (self._fixed is not None and self._fixed.unsent is not None):
            self.pull()

    def receive_cancel(self) -> None:
        """End the stream because the peer cancelled it."""
        upstream = self.end_cancelled()
        if upstream is not None:
            upstream.cancel()

    def end_cancelled(self) -> Subscription | None:
        """End the stream, and return the subscription to its publisher, which the caller cancels;
        None if it has no publisher.
        """
        return None if self.state is _ENDED else self._detach(SendingEvent.CANCELLED)

    def cancel_with_error(self, text: str) -> None:
        """Cancel the publisher and send an error at once, because the peer broke the stream's
        contract.
        """
        upstream = self._upstream
        self._cut(SendingEvent.CANCELLED, text, Fault.INVALID)
        self._channel.owner.on_sending_refused(self, text)
        if upstream is not None:
            upstream.cancel()

    # --- the publisher's subscriber

    def answer(self, element: bytes) -> None:
        """Take the only element and the end.
        They cross in one message if nothing speaks against it.
        """
        channel = self._channel
        dialect = channel.dialect
        if (
            self.state is not _UNANNOUNCED
            or type(element) is not bytes
            or channel.outgoing is not None
            or (size := len(element)) > dialect.max_unsplit
            or size > channel.limits.max_element
        ):
            self.on_next(element)
            self.on_complete()
            return
        # The short way: no run, no separate completion, and nothing to detach. It saves a third of
        # a request's cost on the serving side.
        self.state = _ANSWERED
        self._upstream, self.reserved, self.sent, self.sent_bytes = None, 0, 1, size
        if self._owed:  # the call had to wait for room, and was asked by `pull`
            self.settle()
        channel.outbox.put(dialect.answer(self.id, element))
        # As `_leave` does.
        channel.owner.on_sending_ended(self)
        when_over, self.when_over = self.when_over, None
        if when_over is not None:
            when_over(self, _EVENT_FLUSHED)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        # The peer may have cancelled while the publisher was being attached.
        if self.state is _ENDED:
            subscription.cancel()
            return
        self._upstream = subscription
        self.pull()

    def on_error(self, error: BaseException, /) -> None:
        if self.state is _FLUSHING or self.state is _FAILING:
            return  # rule 1.7: the publisher has signalled its end before
        if isinstance(error, NotAvailable):
            self._deny(error)
            return
        if self.state is _UNANNOUNCED:
            self.announce()
        if self.run is not None:
            self._count_run()  # the report below has the number of elements
        # The full error stays here. Its text may hold paths or secrets,
        # so only a PublicError's text crosses the wire.
        self._channel.owner.on_publisher_failed(self, error)
        self._fail(public_text(error), public_code(error))

    def on_complete(self, /) -> None:
        if self.state is _UNANNOUNCED:
            self.announce()
        if self.state is _LIVE:  # if not, the stream has ended, or its publisher has
            self.state = SENDING_MOVES[_LIVE, _EVENT_COMPLETED]
            self._upstream = None  # rule 2.4
            if not self._large and (self._fixed is None or self._fixed.unsent is None):
                self._finish(None)

    # --- for its elements

    def attach_waiting(self) -> None:
        """Attach the publisher, which waits for demand, if there is room for its element;
        else in turn with others.
        """
        # A publisher that is attached costs 1.5 KiB, also if it is never asked.
        if self._channel.outbox.may_start():
            if self.state is SendingState.AWAITING_ROOM:
                self.state = SENDING_MOVES[self.state, _EVENT_DEFERRED]
                self._channel.owner.attach_publisher(self)
            else:
                self._attach()
        else:
            self._channel.outbox.block_unsure(self)

    def announce(self) -> None:
        """Send the acceptance, which a stream in the state UNANNOUNCED still owes to the peer."""
        self.state = SENDING_MOVES[self.state, _EVENT_ANNOUNCED]
        self._channel.send(self._channel.dialect.begin(self.id, self.element_size))

    def on_drained(self) -> None:
        """Go on: the last block is gathered. End if the publisher has ended, else pull."""
        if self.state is _FLUSHING or self.state is _FAILING:
            self._finish(None if self._fixed is None else self._fixed.failure)
        elif not self.reserved:
            self.pull()

    def on_written(self) -> None:
        """Go on, as `on_drained`, while the outbox is being taken: no large element is left."""
        if self.state is _FLUSHING or self.state is _FAILING:
            self._finish(None if self._large is None else self._large.failure)
        elif not self.reserved:
            # After the parts of this take: a publisher that signals at once could put a large
            # element before small ones of this stream.
            self._channel.outbox.block(self)

    def on_bad_element(self, text: str) -> None:
        """End the stream because its publisher gave something that cannot be sent."""
        upstream = self._upstream
        self.on_error(UsageError(text))
        if upstream is not None:
            upstream.cancel()

    # --- inside

    def _deny(self, error: NotAvailable) -> None:
        """Answer as if the name did not exist.
        After the first element this is only the text of an error.
        """
        if self.state is _ENDED:
            return
        text = text_of(error)
        reason = f"it raised NotAvailable: {text}" if text else "it raised NotAvailable"
        self._channel.owner.on_publisher_failed(self, error)
        if self.state is _UNANNOUNCED:
            self.refuse(NO_SUCH, reason, fault=Fault.UNTOUCHED)
        else:
            self._fail(NO_SUCH)
            self._channel.owner.on_sending_refused(self, reason)

    def _attach(self) -> None:
        self.state = SENDING_MOVES[self.state, _EVENT_ATTACHED]
        self._channel.owner.attach_publisher(self)

    def _fail(self, text: str, code: int | None = None) -> None:
        """End with the error `text`, after the elements that the publisher gave before it."""
        if self.state is _ENDED:
            return
        self.state = SENDING_MOVES[self.state, _EVENT_FAILED]
        self._upstream = None  # rule 2.4
        # Kept beside the elements that it waits for: an idle stream has no room for it.
        if self._large:
            self._large.failure = text, code
        elif self._fixed is not None and self._fixed.unsent is not None:
            self._fixed.failure = text, code
        else:
            self._finish((text, code))

    def _finish(self, failure: Failure | None) -> None:
        """Send the end of the publisher, after its last element: an error if it has failed."""
        self._detach(_EVENT_FLUSHED)
        if failure is None:
            self._channel.send(self._channel.dialect.complete(self.id))
        else:
            self._send_error(failure[0], Fault.FAILED, failure[1])

    def _cut(self, event: SendingEvent, text: str, fault: Fault, code: int | None = None) -> None:
        """End with an error that does not wait: its cause is not the publisher."""
        if self.state is not _ENDED:
            self._detach(event)
            self._send_error(text, fault, code)

    def _send_error(self, text: str, fault: Fault, code: int | None = None) -> None:
        most = self._channel.limits.max_error_text // TEXT_BYTES_PER_CHARACTER
        dialect: Any = self._channel.dialect
        coded_error = None if code is None else getattr(dialect, "coded_error", None)
        self._channel.answer(
            dialect.error(self.id, text[:most], fault)
            if coded_error is None
            else coded_error(self.id, text[:most], fault, code)
        )

    def _detach(self, event: SendingEvent) -> Subscription | None:
        """End: forget the publisher and all waiting elements, and free the id.
        Return the publisher's subscription.
        """
        upstream, self._upstream = self._upstream, None
        channel = self._channel
        if self.run is not None or (self._fixed is not None and self._fixed.gathered):
            # The publisher signalled these elements before the end,
            # so they go out before it (rule 1.7 speaks of later ones).
            channel.outbox.buffer += self.flush()
        # The publisher has ended. Elements that are lost now do not change its outcome.
        if self.state is _FLUSHING:
            outcome = _EVENT_FLUSHED
        elif self.state is _FAILING:
            outcome = _EVENT_FAILED
        else:
            outcome = event
        self.state = SENDING_MOVES[self.state, event]
        self._longest = CLOSED  # a late element takes the slow path, which drops it
        channel.budgets.requests.requested -= self.reserved
        if self._owed:
            self.settle()
        channel.buffering_streams.pop(self, None)
        channel.outbox.forget(self)
        # It refers to this stream: without a circle both are freed at once.
        large, self._large = self._large, None
        if large is not None:
            channel.outbox.remove_large(large)
            large.clear()
        self._fixed = None  # the same
        self._leave(outcome)
        if large is not None and not channel.state.is_closing:
            channel.outbox.ask_blocked()
        return upstream

    def _leave(self, outcome: SendingEvent) -> None:
        """Free the id, and call `when_over`."""
        self._channel.owner.on_sending_ended(self)
        # Called once, and after the id is free: the callback may look at the tables.
        when_over, self.when_over = self.when_over, None
        if when_over is not None:
            when_over(self, outcome)

    # --- demand

    def grant(self, n: int) -> None:
        """Add `n` elements that the peer requested."""
        # rule 3.17: the sum of two demands may exceed 2^63-1, which is unbounded.
        total = self.available + n
        self.available = total if total < UNBOUNDED else UNBOUNDED

    def reserve(self, most: int) -> int:
        """Reserve up to `most` elements, and return how many."""
        # Unbounded demand stays unbounded, however much of it is reserved.
        n = min(most, self.available)
        if self.available < UNBOUNDED:
            self.available -= n
        self.reserved += n
        return n

    def roll_back(self, n: int) -> None:
        """Make `n` reserved elements available again."""
        self.reserved -= n
        # Through grant(), so that unbounded demand stays unbounded.
        self.grant(n)

    # --- facts

    @property
    def upstream(self) -> Subscription | None:
        """The subscription to the publisher, for those who look at the pipe."""
        return self._upstream

    @property
    def is_idle(self) -> bool:
        """Nothing is requested, and no element is on its way."""
        fixed = self._fixed
        return not (
            self.available or self.reserved or self._large or (fixed is not None and fixed.unsent)
        )

    @property
    def outstanding(self) -> int:
        """How many elements were requested from the publisher and have not come, the uncounted
        ones of the run subtracted.
        """
        run = self.run
        return self.reserved if run is None else self.reserved - len(run.elements) + run.counted

    @property
    def weight(self) -> int:
        """Bytes that wait here, outside the outbox."""
        run, fixed, large = self.run, self._fixed, self._large
        return (
            (0 if run is None else run.size)
            + (0 if fixed is None else fixed.weight)
            + (0 if large is None else large.weight)
        )

    def close_run(self) -> None:
        """Encode the next element anew: what elements or headers mean has changed."""
        self._longest = CLOSED
        if self.run is not None:
            self.run.longest = CLOSED

    def commit(self, n: int = 1) -> None:
        """Count `n` reserved elements as sent."""
        self.reserved -= n
        self.sent += n

    # --- the publisher's elements

    def on_next(self, element: bytes, /) -> None:
        # The path of most elements. A pump does the same in its own loop.
        # Nothing is encoded here: flush() joins the whole run in one loop. Without runs an element
        # costs 1.9 to 8 times as much.
        run = self.run
        if run is None or type(element) is not bytes or len(element) > run.longest:
            self._on_other(element)
            return
        elements = run.elements
        elements.append(element)
        if len(elements) - run.counted >= self.reserved:
            self.on_reservation_used()

    def on_next_many(self, elements: Sequence[bytes], /) -> None:
        """Take elements that the publisher has at hand."""
        for position, element in enumerate(elements):
            run = self.run
            # The first elements may have to open a run. From then on all go into it, if they are
            # bytes and none is too long.
            if run is not None and run.longest >= 0:
                rest = elements[position:] if position else elements
                longest, weight = TOO_LONG
                if type(elements) is BytesList or set(map(type, rest)) == _ONLY_BYTES:
                    longest, weight = longest_and_sum(rest)
                if longest <= run.longest:
                    # Those before, so that these can be counted without a second look at their
                    # lengths.
                    self._count_run()
                    run.add(rest, weight)
                    self._note_counted(run, len(rest), weight)
                    if not self.reserved:
                        self.on_reservation_used()
                else:
                    for other in rest:
                        self.on_next(other)
                return
            self.on_next(element)

    @property
    def lender(self) -> Self:
        """The stream itself: publishers append to `run`."""
        return self

    def on_reservation_used(self) -> None:
        """Count the run and pull again: the run holds all that was requested."""
        self._count_run()
        if not self.reserved:
            # The peer reads these while the publisher makes the next ones. Else each side would
            # wait for the other in turn. An outbox that is half full costs a pass of the loop less
            # than if the writer's task came for it.
            urge, run = self._channel.urge, self.run
            if (
                urge is not None
                and self.available
                and run is not None
                and (
                    run.counted >= MOST_ELEMENTS // 2
                    or run.weighed >= self._channel.limits.outbound_high // 2
                )
            ):
                urge()
            self.pull()

    # --- the outbox's sender

    def pull(self) -> None:
        """Request as many elements as may be sent and will roughly fill the outbox's room."""
        fixed = self._fixed
        # Elements that are here go before others are requested.
        if fixed is not None and fixed.unsent is not None:
            fixed.send_unsent()
            return
        run = self.run
        if run is not None:
            self._count_run()
            self._note_gathered(run.weighed + run.counted * HEADER_ALLOWANCE)
        # All that was asked for has come: from now on the room is divided among fewer publishers.
        if self._owed and not self.reserved:
            self.settle()
        # One pull at a time: reserved elements are still to come.
        # A held large element is written before more are pulled.
        if self.reserved or not self.available or self._upstream is None or self._large:
            if self.state in _WITHOUT_PUBLISHER:
                self.attach_waiting()
            return
        if fixed is not None and fixed.unreserved_pulls:
            return
        outbox = self._channel.outbox
        room = outbox.room()
        # The expected size is what is known of the next element.
        # The first of a stream may be large as well.
        size = self._expected_size
        each = max(size, 0) + (OBJECT_ALLOWANCE if outbox.owing else HEADER_ALLOWANCE)
        if size > self._channel.dialect.max_unsplit or (size < 0 and outbox.large_elements):
            if room <= 0 or not outbox.may_pull_large():
                outbox.block_unsure(self)
                return
        elif room <= 0 or outbox.asked >= MAX_ASKED * self._channel.limits.outbound_high:
            (outbox.block_unsure if size < 0 else outbox.block)(self)
            return
        elif self._gathered and room < max(each, self._channel.limits.outbound_high // LEAST_PULL):
            # The writer comes for the gathered elements, and makes room for many. A pull costs as
            # much as some ten elements, also one for the last that fits.
            outbox.block(self)
            return
        # The last lengths are the best guess at the next ones. Before the first element, and for
        # blocks, one is pulled: eight streams of 20 KB elements once held 1.8 MB for a peer that
        # did not read, because each had asked for as many as its demand allowed.
        one = size < 0 or (fixed is not None and fixed.yields_blocks)
        n = self.reserve(
            1
            if one
            else min(MOST_ELEMENTS, share(outbox, self._channel.limits.outbound_high, room) // each)
            or 1
        )
        self._channel.budgets.requests.requested += n
        self._owed = n * each
        outbox.owed += self._owed
        outbox.owing += 1
        outbox.asked += self._owed
        # The memory budget hears of elements before they come. It once heard of them a second
        # later, and 30 peers that read nothing held 1.6 MB of a budget of 1 MB.
        self._channel.on_buffered(n * max(size, 0))
        # That may have cut the connection, and ended this stream.
        if self._upstream is not None:
            self._upstream.request(n)

    def settle(self) -> None:
        """Tell the outbox that the publisher owes nothing more."""
        outbox = self._channel.outbox
        outbox.owed -= self._owed
        outbox.owing -= 1
        self._owed = 0

    def flush(self) -> bytearray:
        """Return the messages of the gathered elements: a run, or packed ones."""
        # Noted first: these bytes go into the buffer, and would count twice in the room.
        self._note_gathered(0)
        run = self.run
        if run is not None:
            self._count_run()
            # The pump may still refer to this run. It appends nothing to a closed one.
            self.run, run.longest = None, CLOSED
            return self._channel.dialect.join_run(self.id, run.elements)
        messages = bytearray()
        if self._fixed is not None and self._fixed.gathered:
            self._channel.dialect.write_packed(
                messages, self.id, self.element_size, self._fixed.take()
            )
        return messages

    # --- for LargeElements and FixedSizeElements

    def on_fixed_gathered(self, size: int) -> None:
        """Tell the outbox of packed elements that wait for the writer."""
        if not self._gathered:
            # First since the writer came: from now on the outbox flushes this stream before any
            # later message.
            self._channel.outbox.gather(self)
        self.sent_bytes += size
        self._note_gathered(self._gathered + size)
        self._expected_size = size if self._expected_size < 0 else (self._expected_size + size) // 2

    # --- inside

    def _begin_run(self, first: bytes) -> None:
        self.run = ElementRun(first, self._longest)
        self._channel.buffering_streams[self] = None
        self._channel.outbox.gather(self)
        # The publisher was asked for one element, and this is it:
        # no call of a pump follows that would count the run.
        if self.reserved == 1:
            self.on_reservation_used()

    def _count_run(self) -> None:
        run = self.run
        if run is None:
            return
        weighed = run.weighed
        if new := run.count():
            self._note_counted(run, new, run.weighed - weighed)

    def _note_counted(self, run: ElementRun, new: int, weight: int) -> None:
        self.commit(new)
        self.sent_bytes += weight
        # Lengths that grow are followed at once, and shrinking ones slowly: too small a guess asks
        # the publisher for too many elements.
        mean = run.weighed // run.counted
        self._expected_size = max(mean, (self._expected_size + mean) // 2)
        if self._longest >= 0 and run.longest >= 0:
            self._longest = run.longest = longest_beside(
                self._expected_size, self._channel.dialect.max_unsplit
            )

    def _note_gathered(self, size: int) -> None:
        """Tell the outbox how many bytes are gathered here."""
        self._channel.outbox.gathered += size - self._gathered
        self._gathered = size

    def _on_other(self, element: object) -> None:
        """Take an element that begins a run, or does not fit into it."""
        # The second element begins a run: for a single one a run would be one object more.
        if type(element) is bytes and len(element) <= self._longest and self.run is None:
            self._begin_run(element)
            return
        # The first element always comes here: no run is open before it.
        if self.state is _UNANNOUNCED:
            self.announce()
        if self.state is not _LIVE:
            return  # the stream has ended, or its publisher has (rule 1.7)
        if not isinstance(element, bytes | bytearray | memoryview):
            self.on_bad_element(
                f"an element of type {type(element).__name__} was published, and only bytes can "
                "be sent as they are. Give the publisher the type of its elements (its return "
                "annotation, or type=), or a serializer, such as serializer='json'"
            )
            return
        if (
            type(element) is WithMetadata
            and not self.element_size
            and getattr(self._channel.dialect, "carries_metadata", False)
        ):
            self._send_with_metadata(element)
            return
        # bytes() copies a bytearray or a memoryview:
        # the publisher may change it before the writer comes.
        channel, data = self._channel, bytes(element)
        if channel.outgoing is not None:
            data = channel.outgoing(data)
            if channel.state.is_closing:
                return  # the change has raised, which ended the connection
        if self.element_size:
            if self._fixed is None:
                self._fixed = FixedSizeElements(channel, self)
            channel.buffering_streams[self] = None
            if wrong := self._fixed.add(data):
                self.on_bad_element(wrong)
        elif len(data) > channel.limits.max_element:
            self.on_bad_element(
                f"an element of {len(data)} bytes; a peer takes at most "
                f"{channel.limits.max_element} (Limits.max_element)"
            )
        else:
            self._send(data)

    def _send(self, element: bytes) -> None:
        """Send one element, whole or in parts."""
        run, length = self.run, len(element)
        if run is not None and run.longest >= 0 and length <= self._channel.dialect.max_unsplit:
            self._append(run, element)
            return
        if run is None and length <= self._longest:
            self._begin_run(element)
            return
        self.commit()
        self.sent_bytes += length
        self._expected_size = (
            length if self._expected_size < 0 else (self._expected_size + length) // 2
        )
        if self._large or length > self._channel.dialect.max_unsplit:
            self._hold(element)
        else:
            self._channel.outbox.put(self._channel.dialect.join_run(self.id, [element]))
            # else each element must be changed, so none may go into a run.
            if self._channel.outgoing is None:
                self._longest = longest_beside(
                    self._expected_size, self._channel.dialect.max_unsplit
                )
        if not self.reserved:
            self.pull()

    def _send_with_metadata(self, element: WithMetadata) -> None:
        """Send an element that goes in a message of its own, with its metadata."""
        channel, size = self._channel, len(element) + len(element.metadata)
        if size > channel.dialect.max_unsplit:
            self.on_bad_element(
                f"an element of {len(element)} bytes with {len(element.metadata)} of metadata; the "
                f"two go in one message, of {channel.dialect.max_unsplit} at most "
                "(Limits.split_outbound_at)"
            )
            return
        self.commit()
        self.sent_bytes += size
        if self._large:
            channel.on_buffered(len(element.metadata))
            self._hold(element)
        else:
            self.close_run()  # the elements that follow go in another run
            channel.outbox.put(channel.dialect.join_run(self.id, [element]))
        if not self.reserved:
            self.pull()

    def _append(self, run: ElementRun, element: bytes) -> None:
        """Append an element that is longer than those before, or was not bytes,
        and weigh it at once.
        """
        # The budget has heard of the expected length only.
        if len(element) > run.longest:
            self._channel.on_buffered(len(element))
        run.elements.append(element)
        self._count_run()
        self._note_gathered(run.weighed + run.counted * HEADER_ALLOWANCE)
        if not self.reserved:
            self.pull()

    def _hold(self, element: bytes) -> None:
        self.close_run()  # the elements that follow wait behind this one
        large = self._large
        if large is None:
            large = self._large = LargeElements(self._channel, self)
        if not large:
            self._channel.buffering_streams[self] = None
            self._channel.outbox.add_large(large)
        large.add(element)
        # The largest length at once: the next pull must know that such elements may come.
        self._expected_size = max(self._expected_size, len(element))


def longest_beside(expected: int, most: int) -> int:
    """Return the length of the longest element that a run accepts if `expected` is the usual
    length, and `most` the limit.
    """
    return min(most, max(ALWAYS_ACCEPTED, expected * TIMES_EXPECTED))


def longest_and_sum(elements: Sequence[bytes]) -> tuple[int, int]:
    """Return the length of the longest element and the sum of all lengths.
    There is at least one element.
    """
    # A list of lengths, its maximum and its sum take twice as long as a set of one length. Runs of
    # different lengths usually differ here.
    first = len(elements[0])
    if (
        len(elements[-1]) == len(elements[len(elements) // 2]) == first
        and len(set(map(len, elements))) == 1
    ):
        return first, first * len(elements)
    lengths = list(map(len, elements))
    return max(lengths), sum(lengths)


def share(outbox: Outbox, high: int, room: int) -> int:
    """Return for how many bytes of small elements a publisher may be asked. `high` is the
    high-water mark; `room` is free of it.
    """
    # A publisher yields some passes of the run loop later. While all were given the whole room, 63
    # streams of 1-byte elements held 25 MB.
    # A share each, because some may not yield for hours, and the room
    # that they owe must not be lost to the others.
    return min(room, max(high - outbox.owed, 2 * high // (outbox.owing + 1), LEAST_SHARE))
