"""The requests of this side: it opens streams and asks for single values,
as far as the outbox has room.

* `OutgoingRequests` opens a stream or asks for one value.
* `PendingAnswer` is the wait of one task for one value: as a stream that is its own subscriber
  (`AnswerStream`), or as the subscriber of a stream that something else also looks at
  (`AnswerSubscriber`).
* `SendBatcher` decides when queued messages are sent:
  at once, together with those of other tasks, or by the writer task.
"""

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio
from trio.lowlevel import current_task, reschedule, wait_task_rescheduled

from penstock.api import ByteWindow, SignalKind, Subscriber, Subscription
from penstock.client import AwaitedAnswer
from penstock.core import WOKEN, StreamTap
from penstock.runtime.connection._event_reporting import (
    ConnectionEvents,
    ObservedStream,
    StreamReport,
)
from penstock.session import (
    ANSWERED,
    DEMAND_SIZE,
    STREAM_BYTES,
    Channel,
    Outbox,
    ReceivingState,
    ReceivingStream,
    Session,
)

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_NEW: Final = ReceivingState.NEW

MAX_BATCH: Final = 8
"""Messages in one send, while few tasks are due.
With more, the peer is idle while they are encoded.
"""

DUE_FOR_EACH: Final = 4
"""Tasks that may be due for each message of a send. If more are, the peer has enough to do, and a
send waits for further messages.

With 256 requests in flight, sends of 8 messages took a sixth of the time of the requests.
"""

MAX_DELAY: Final = 0.001
"""Seconds for which a message waits for the next task to run."""

MAX_UNBATCHED: Final = 4
"""Messages that are sent one by one while nothing arrives."""


class LinkOutput(Protocol):
    """The part of a link's writer that is used here."""

    in_flight: int
    """The bytes of a send that is under way."""

    def flush(self) -> None:
        """Send what is queued, as far as the transport takes it without waiting."""

    def wake(self) -> None:
        """Let the writer task send what is queued."""


class _NoWriter:
    """Stands for the writer of a connection that is over."""

    __slots__ = ()

    in_flight = 0

    def flush(self) -> None:
        """Do nothing."""

    def wake(self) -> None:
        """Do nothing."""


NO_WRITER: Final[LinkOutput] = _NoWriter()


class SendBatcher:
    """The requests of one connection. `message_queued` is called after each;
    it is the one decision on when to send.

    Why: to send costs more than to encode a request. Answers that arrive together wake their tasks
    in one scheduler pass, and most of these tasks make their next request in that same pass. Sent
    together, 16 requests in flight are 1.17 to 1.43 times as fast.

    Rules:

    * A message waits only for tasks that were woken and have not run yet (`woken`). The scheduler
      runs all of them in its next pass, whether they were cancelled meanwhile or not. So a message
      waits for one pass at most, and never for a task that does not come.
    * The last of these tasks sends what the others have queued, with its own next request. If it
      makes none, the reader sends: it waits for the woken tasks before it reads on (`gather`). (The
      last task once sent before its own request, which then cost a second send:
      16 requests in flight took 7 % longer.)
    * If no task is due, a message is sent at once.
    * The tasks may do other work before they make a request. So `MAX_BATCH` messages are sent
      without waiting for the rest, and so is a message that has waited for `MAX_DELAY`. While more
      than `DUE_FOR_EACH` tasks are due for each message, only the delay counts.
    * If `MAX_UNBATCHED` messages were sent one by one and nothing has arrived from the peer since,
      many tasks are making their first request. Then the writer task sends: it runs after them, and
      takes all that they have queued.
    """

    __slots__ = (
        "_began",
        "_is_gathering",
        "_messages",
        "is_requesting",
        "unbatched",
        "woken",
        "writer",
    )

    writer: LinkOutput
    """The writer of the current link;
    set before the first message, and again when the link is replaced.
    """

    def __init__(self) -> None:
        self.woken: int = 0
        """Tasks that were woken and have not run yet. Count a task here when it is woken; it
        calls `task_resumed` first thing.
        """
        self.unbatched: int = 0
        """Messages that were sent one by one. The reader sets this to 0 when something arrives."""
        self.is_requesting: bool = False
        """True while a caller queues messages that it sends itself afterwards, so the writer
        need not be woken for them.
        """
        # The reader waits for the woken tasks, and sends what they leave.
        self._is_gathering = False
        self._messages = 0
        self._began = 0.0  # when the first of these messages was queued

    def message_queued(self) -> None:
        """Send what is queued, or leave it to a task that is due, or to the writer."""
        if not self.woken:
            # A request alone must not wait for a scheduler pass: that made a single request in
            # flight 1.6 to 1.95 times as slow.
            # The last of the woken tasks sends for all of them.
            if (self._messages and self._is_gathering) or self.unbatched < MAX_UNBATCHED:
                self._messages = 0
                # Set back by the reader: a peer that answers shows that more answers,
                # and more woken tasks, will come.
                self.unbatched += 1
                self.writer.flush()
                return
            # The writer task runs behind the tasks that are making their first requests,
            # and sends all of them.
            self.writer.wake()
        now = monotonic()
        self._messages = messages = self._messages + 1
        if messages == 1:
            self._began = now
        # More in one send would let the peer idle; fewer cost a system call each.
        elif (
            messages >= MAX_BATCH and messages * DUE_FOR_EACH >= self.woken
        ) or now >= self._began + MAX_DELAY:
            self._messages = 0
            self.writer.flush()

    def send_now(self) -> None:
        """Send what is queued: a stream has gathered as much as is sent at a time, so nothing is
        won by a wait for more.
        """
        self.writer.flush()

    async def gather(self) -> None:
        """Let the woken tasks run, and send what they have queued.
        For the reader, before it reads on. Checkpoints.
        """
        self._is_gathering = True
        try:
            # The scheduler may put the reader before them. After a second pass all of them have
            # run.
            for _ in range(2):
                if self.woken:
                    await trio.lowlevel.checkpoint()
        finally:
            self._is_gathering = False
            if self._messages:
                self._messages = 0
                self.writer.flush()

    def task_resumed(self) -> None:
        """Count a woken task as running. The last one sends, unless the reader waits for it:
        then its next request may go along.
        """
        # Counted off before the send: the send may wake tasks, which would be counted on top.
        self.woken -= 1
        if self._messages and not self.woken and not self._is_gathering:
            self._messages = 0
            self.writer.flush()


class PendingAnswer(AwaitedAnswer):
    """Takes one element, and wakes the task that waits for it."""

    if not TYPE_CHECKING:  # a type checker knows no slots that the subclasses have
        __slots__ = ()

    # The constructors of the subclasses set these.
    _batcher: SendBatcher
    # The task in `receive`; still set after it was woken, and None after a cancel.
    _task: trio.lowlevel.Task | None
    is_over: bool  # said again, as in `AnswerStream`: a type checker cannot tell what is set here

    @property
    def waiting_task(self) -> trio.lowlevel.Task | None:
        """The task that waits for the value, for those who look at the stream."""
        return self._task

    async def receive(self) -> Any:
        """Return the value. A cancel is passed on to the peer.
        Raises the error that the stream ends with. Checkpoints.
        """
        if self.is_over:
            await trio.lowlevel.checkpoint()
        else:
            self._task = current_task()
            try:
                await wait_task_rescheduled(self._abort)
            finally:
                # `_wake` has counted this task as woken.
                # Other requests wait until it is counted off.
                if self._task is not None:
                    self._batcher.task_resumed()
        if self._error is not None:
            self._raise_error()
        return self._value

    def _wake(self) -> None:
        task = self._task
        if task is not None:
            self._batcher.woken += 1
            # The task runs in the next scheduler pass, with all others
            # that this batch of answers wakes.
            reschedule(task, WOKEN)

    def _abort(self, _: Any) -> trio.lowlevel.Abort:
        # None: this task was not woken by `_wake`, so it must not be counted off.
        self.is_over, self._task = True, None
        self.give_up()
        return trio.lowlevel.Abort.SUCCEEDED


class AnswerSubscriber(PendingAnswer):
    """The wait for one value as a subscriber, for a stream that is observed,
    or whose elements are decoded on their way.
    """

    __slots__ = ("_batcher", "_error", "_task", "_value", "is_over", "subscription")

    subscription: Subscription

    def __init__(self, batcher: SendBatcher) -> None:
        self._batcher = batcher
        self._value = self._error = self._task = None
        self.is_over = False

    def give_up(self) -> None:
        self.subscription.cancel()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        subscription.request(1)


class AnswerStream(PendingAnswer, ReceivingStream):
    """The wait for one value as the stream itself: one object and three calls a request less,
    which is a twentieth of its cost.
    """

    __slots__ = ("_batcher", "_error", "_task", "_value", "is_over")

    # These belong to the base, and are said again for type checkers: this constructor sets them,
    # because a second one would cost each request a call.
    id: int
    state: ReceivingState
    element_size: int
    outstanding: int
    is_over: bool
    target: Any

    def __init__(self, batcher: SendBatcher, channel: Channel, stream_id: int) -> None:
        self.id = stream_id
        self.state = _NEW
        self.element_size = -1
        self.outstanding = 1
        self._channel = channel
        self._subscriber = self  # dropped with the end of the stream, as any subscriber is
        self._parts = self._window = self.target = None
        self._batcher = batcher
        self._value = self._error = self._task = None
        self.is_over = False

    def give_up(self) -> None:
        self.cancel()

    def held(self) -> int:
        """Return the price of this object:
        the base would ask the subscriber, which is this object.
        """
        return STREAM_BYTES

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Do nothing: the demand goes out with the request."""

    def receive_answer(self, element: bytes, /) -> bool:
        # As the base does, without its calls of a subscriber.
        if self.outstanding <= 0 or self._parts is not None or self._channel.incoming is not None:
            return False
        if self._subscriber is not None:
            self._subscriber = None
            self.state = ANSWERED
            self._value, self.is_over = element, True
            task = self._task
            if task is not None:
                self._batcher.woken += 1
                reschedule(task, WOKEN)
        return True


class ObservedAnswer(AnswerStream):
    """The wait for one value, shown to a tap."""

    __slots__ = ("_tap",)

    def __init__(
        self, batcher: SendBatcher, channel: Channel, stream_id: int, tap: StreamTap
    ) -> None:
        super().__init__(batcher, channel, stream_id)
        self._tap: StreamTap | None = tap  # None after the end, and without a reader

    def show(self, tap: StreamTap | None) -> None:
        """Show the signals to `tap` from now on, and at once those that have passed."""
        self._tap = tap
        if tap is not None:
            tap.signal(SignalKind.ON_SUBSCRIBE)
            tap.signal(SignalKind.REQUEST, 1)

    def receive_answer(self, element: bytes, /) -> bool:
        is_wanted = self._subscriber is not None
        was_taken = super().receive_answer(element)
        if was_taken and is_wanted and self._tap is not None:
            self._tap.elements(1, len(element))
            self._end_tap(SignalKind.ON_COMPLETE)
        return was_taken

    def on_next(self, element: Any, /) -> None:
        if self._tap is not None:
            self._tap.elements(1, len(element))
        super().on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        self._end_tap(SignalKind.ON_ERROR, error)
        super().on_error(error)

    def on_complete(self, /) -> None:
        self._end_tap(SignalKind.ON_COMPLETE)
        super().on_complete()

    def cancel(self, /) -> None:
        if self._subscriber is not None:
            self._end_tap(SignalKind.CANCEL)
        super().cancel()

    def _end_tap(self, kind: SignalKind, error: BaseException | None = None) -> None:
        # Taken out: a stream has one last signal.
        tap, self._tap = self._tap, None
        if tap is not None:
            tap.signal(kind, 0, error)


class OutgoingRequests:
    """The requests of this side on one connection."""

    __slots__ = (
        "_events",
        "_make_stream",
        "_session",
        "_streams",
        "batcher",
        "is_observed",
        "outbox",
        "room",
        "usual_data",
    )

    def __init__(self, session: Session, events: ConnectionEvents, batcher: SendBatcher) -> None:
        self.batcher: SendBatcher = batcher
        self.is_observed: bool = events.wants_streams
        """True if a plugin listens to streams, or may want to tap one."""
        self.room: trio.Event | None = None
        """Set when the outbox may have room again;
        None while no task waits, so that the writer need not look.
        """
        self.outbox: Outbox = session.outbox
        """Where requests are queued: without room in it a request must wait."""
        self.usual_data: int = session.channel.limits.max_frame - DEMAND_SIZE
        """Bytes of data that any request may have.
        For more, `check_length` knows the bound of its kind.
        """
        self._session = session
        self._streams = session.streams
        self._make_stream = partial(AnswerStream, batcher)
        self._events = events
        # Through these the session sends at once, and leaves nothing to the task of the writer.
        session.channel.send_demand, session.channel.urge = self.send_demand, batcher.send_now

    def subscribe(
        self, target: Any, subscriber: Subscriber[Any], window: ByteWindow | None = None
    ) -> None:
        """Open a stream to a publisher of the peer. Its bytes are counted in `window`."""
        # The outbox reports the queued message at once; with this flag the writer is not woken for
        # it: `message_queued` follows.
        self.batcher.is_requesting = True
        try:
            if self.is_observed:
                report = StreamReport(self._events)
                observed = ObservedStream(subscriber, report)
                stream = self._streams.subscribe(target, observed, window)
                # Nothing is reported if the subscriber has cancelled inside on_subscribe.
                if not observed.is_over:
                    self._events.report_asked(report, observed, stream.id, str(target))
            else:
                self._streams.subscribe(target, subscriber, window)
        # Done also if the request raised: something else may have been queued meanwhile.
        finally:
            self.batcher.is_requesting = False
            self.batcher.message_queued()

    def ask(self, target: Any) -> AnswerStream:
        """Open a stream for one element and return it."""
        make = partial(self._make_observed, target) if self.is_observed else self._make_stream
        stream = self._streams.ask(target, make)
        self.batcher.message_queued()
        return stream

    def _make_observed(self, target: Any, channel: Channel, stream_id: int) -> AnswerStream:
        # The request will never be sent, so it is not reported.
        if channel.state.is_closing:
            return self._make_stream(channel, stream_id)
        report = StreamReport(self._events)
        answer = ObservedAnswer(self.batcher, channel, stream_id, report)
        self._events.report_asked(report, answer, stream_id, str(target))
        return answer

    def send_demand(self, message: bytes) -> None:
        """Queue the demand of a stream, and send it."""
        # At once: the task that reads the stream may use the elements that it has before the
        # writer's task runs, and a peer without demand would wait for it. Streams of short elements
        # were a third slower.
        self.batcher.is_requesting = True
        self._session.channel.send(message)
        self.batcher.is_requesting = False
        self.batcher.message_queued()

    @property
    def has_room(self) -> bool:
        """True if a request may be queued. Its size does not count: callers bound it. On a
        closing connection the request itself raises.
        """
        return self.outbox.room() > 0 or self._session.state.is_closing

    async def wait_for_room(self) -> None:
        """Wait while the outbox is full. Checkpoints only if it waits."""
        # A loop: of the tasks that are woken together, the first ones may fill the outbox again.
        while not self.has_room:
            if self.room is None:
                self.room = trio.Event()
            await self.room.wait()

    def on_room(self) -> None:
        """Wake the tasks that wait for room:
        the writer has emptied the outbox, or the connection is over.
        """
        if self.room is not None:
            self.room.set()
            self.room = None
