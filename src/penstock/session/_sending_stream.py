"""An outbound stream: one of our publishers, subscribed to by the peer. It is the publisher's subscriber, and encodes what it gets.

Rules of this file:

* Demand permits sending, not buffering: the publisher is asked for elements only while the peer has asked for them *and* the outbox
  has room; and only for as many as will roughly fill that room.
* Elements of one length make a run. Whoever signals may put them there without a call, so what they use up of the demand is counted
  when somebody looks; every move of the stream that they must not pass closes the run.
* An element larger than a part is held as it is, and written part by part; what follows it in its stream waits behind it.
* After the end, in whatever way, nothing is sent for this id (rule 1.7), and the publisher is let go.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from penstock.api import PublicError, Subscriber, Subscription, UsageError
from penstock.session._advice import PRIVATE
from penstock.session._demand_ledger import DemandLedger
from penstock.session._dialect import Fault
from penstock.session._element_run import ElementRun

if TYPE_CHECKING:
    from penstock.session._session import Session

UNKNOWN: Final = -1
"""The mean size of elements before the first one was seen: until then one is asked for, and no more can come than there is room for."""


_NO_HEAD: Final = bytearray()


class SendingStream(DemandLedger, Subscriber[bytes]):
    """A stream that the peer has opened."""

    __slots__ = (
        "_awaiting_demand",
        "_ending",
        "_expected_size",
        "_gathered",
        "_head",
        "_held",
        "_length",
        "_offset",
        "_outbox",
        "_part",
        "_session",
        "_unreserved_pulls",
        "_unsent_fixed",
        "_upstream",
        "_weighed",
        "_yields_blocks",
        "began",
        "element_size",
        "id",
        "idle_since",
        "is_live",
        "keep",
        "run",
        "target",
        "when_over",
    )

    def __init__(self, session: "Session", stream_id: int, target: Any, demand: int) -> None:
        self.target: Any = target
        self.available: int = demand
        self.reserved: int = 0
        self.id: int = stream_id
        self.is_live: bool = True
        self.element_size: int = 0
        self.began: float = session.now
        self.idle_since: float | None = None
        """Since when it was seen without demand and without anything to send; any demand ends that."""
        self.keep: Callable[[bytes], None] | None = None
        """Called with each element that is sent, for whoever must be able to send it again."""
        self.when_over: Callable[[], None] | None = None
        """Called when the stream has ended here; its publisher may still be stopping."""
        self._session = session
        self._outbox = session.outbox
        self._awaiting_demand = False
        self._upstream: Subscription | None = None
        self._length = -1
        self._head = _NO_HEAD
        self.run: ElementRun | None = None
        """Elements of one length, which go out together; never empty. A pump puts more of them there, if nothing stands in between."""
        self._weighed = 0  # what of all that is gathered the outbox knows of
        self._expected_size = UNKNOWN
        self._held: deque[bytes] | None = None
        self._offset = 0
        self._part = 0
        self._gathered: bytearray | None = None
        self._unsent_fixed: memoryview | None = None
        self._ending = False
        self._yields_blocks = False
        self._unreserved_pulls = 0  # elements that were pulled, with nothing reserved for them any more

    @property
    def is_idle(self) -> bool:
        """Nothing was asked for, and nothing is on its way."""
        return not (self.available or self.reserved or self._held or self._unsent_fixed)

    @property
    def due(self) -> int:
        run = self.run
        return self.reserved if run is None else self.reserved - len(run.elements) + run.counted

    @property
    def weight(self) -> int:
        """Bytes that wait here, outside of the outbox."""
        held = sum(map(len, self._held)) - self._offset if self._held else 0
        run = sum(map(len, self.run.elements)) if self.run else 0
        return held + run + len(self._gathered or b"") + len(self._unsent_fixed or b"")

    # --- for the owner, who knows the publisher

    def accept(self, *, element_size: int = 0, idle_until_demand: bool = False) -> None:
        """Begin. The owner is told to attach the publisher at once, or with the first demand: until then nothing is held for it."""
        self.element_size = element_size
        self._yields_blocks = element_size > 0
        self._awaiting_demand = True
        self._session.send(self._session.dialect.begin(self.id, element_size))
        if self.available or not idle_until_demand:
            self._begin()

    def accept_at_once(self) -> None:
        """Begin, where elements have no one size and the owner attaches the publisher right behind this."""
        self._session.send(self._session.dialect.begin(self.id, 0))

    def refuse(self, text: str) -> None:
        """End before it began."""
        self._session.count_short_stream(self)
        self._end_with_text(text, Fault.REFUSED)

    # --- for the peer

    def granted(self, n: int) -> None:
        """The peer asks for `n` more."""
        self.idle_since = None
        self.grant(n)
        if self._awaiting_demand:
            self._begin()
        elif self._unsent_fixed is not None or not self.reserved:
            self.pull()

    def cancelled(self) -> None:
        """The peer wants no more, or is gone."""
        upstream = self._detach()
        if upstream is not None:
            upstream.cancel()

    def cancelled_with(self, text: str) -> None:
        """The peer broke this stream's contract: let the publisher go, and say so."""
        upstream = self._upstream
        self._end_with_text(text, Fault.INVALID)
        if upstream is not None:
            upstream.cancel()

    def forget_header(self) -> None:
        """Take the long way with the next element: what elements mean has changed."""
        self._length = -1
        if self.run is not None:
            self.run.length = -1

    # --- the subscriber of our publisher

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if not self.is_live:
            subscription.cancel()
            return
        self._upstream = subscription
        self.pull()

    def on_next(self, element: bytes, /) -> None:
        # The path of most elements: as long as the last one, whose header serves again. A pump does the same in its own loop.
        run = self.run
        if run is None or type(element) is not bytes or len(element) != run.length:
            self._on_other(element)
            return
        elements = run.elements
        elements.append(element)
        if len(elements) - run.counted >= self.reserved:
            self.on_reservation_used()

    def on_reservation_used(self) -> None:
        """All that was reserved is in the run."""
        self._count_run()
        if not self.reserved:
            self.pull()

    def on_error(self, error: BaseException, /) -> None:
        self._session.publisher_failed(self, error)
        self._end_with_text(str(error) if isinstance(error, PublicError) else PRIVATE, Fault.FAILED)

    def on_complete(self, /) -> None:
        if self._held or self._unsent_fixed:
            self._ending = True  # after what is still being sent
        elif self.is_live:
            self._detach()
            self._session.send(self._session.dialect.complete(self.id))

    # --- the outbox's side

    def pull(self) -> None:
        """Ask the publisher for as many elements as may be sent and will roughly fill the room that there is."""
        if self._unsent_fixed is not None:
            self._send_surplus()
            return
        if self.run is not None:
            self._weigh(len(self.run.elements) * (len(self.run.elements[0]) + len(self._head)))
        if self.reserved or self._unreserved_pulls or not self.available or self._upstream is None or self._held:
            return
        room = self._outbox.room()
        if room <= 0:
            self._outbox.block(self)
            return
        size = self._expected_size if self._length < 0 else self._length
        most = 1 if self._yields_blocks or size < 0 else room // (size + 8) or 1
        n = self.reserve(most)
        self._session.proportion.asked += n
        self._session.on_buffered(n * max(size, 0))
        self._upstream.request(n)

    @property
    def begins(self) -> int:
        """Bytes of the element that the next part begins; 0 while one is under way, and for what goes in one message."""
        size = len(self._held[0]) if self._held else 0
        return 0 if self._offset or size <= self._session.max_unsplit else size

    @property
    def is_mid_element(self) -> bool:
        """Parts of an element have been written, and its last one has not."""
        return self._offset > 0

    def write_part(self, into: bytearray, /, most: int) -> bool:
        """Write a part of the element that is being sent, or the next small one behind it; return whether more waits."""
        held, session = self._held, self._session
        if not held:
            return False
        element, before = held[0], self._offset
        if not self._offset and len(element) <= session.max_unsplit:
            into += session.dialect.header(self.id, len(element))
            into += element
            held.popleft()
            self._outbox.large -= len(element)
        else:
            end = min(len(element), self._offset + most)
            last = end == len(element)
            into += session.dialect.part(self.id, self._part, end - self._offset, not self._offset, last)
            into += memoryview(element)[self._offset : end]
            self._offset = end
            self._outbox.large -= end - before
            if last:
                held.popleft()
                self._offset = 0
                self._part += 1
        if held:
            return True
        self._held = None
        if self._ending:
            self.on_complete()
        else:
            self.pull()
        return False

    def flush(self) -> bytearray:
        """Return the messages of what was gathered: a run of elements of one length, or packed ones."""
        self._weigh(0)
        run = self.run
        if run is not None:
            self._count_run()
            self.run, run.length = None, -1
            run.elements.insert(0, b"")  # so that there is a header before the first one, too
            return self._head.join(run.elements)
        gathered, self._gathered = self._gathered, None
        messages = bytearray()
        if gathered and self.is_live:
            self._session.dialect.write_packed(messages, self.id, self.element_size, gathered)
        return messages

    # --- inside

    def _begin(self) -> None:
        self._awaiting_demand = False
        if self.is_live:
            self._session.owner.attach(self)

    def _begin_run(self, first: bytes) -> None:
        """Gather elements from now on; the outbox will ask for them when the writer comes, or before any other message."""
        self.run = ElementRun(first)
        self._session.buffering_streams[self] = None
        self._outbox.gather(self)
        if self.reserved == 1:
            self.on_reservation_used()

    def _count_run(self) -> None:
        """Commit what was put into the run since it was counted last."""
        run = self.run
        if run is not None:
            self.commit(len(run.elements) - run.counted)
            run.counted = len(run.elements)

    def _weigh(self, gathered: int) -> None:
        """Tell the outbox how much is gathered here."""
        self._outbox.gathered += gathered - self._weighed
        self._weighed = gathered

    def _on_other(self, element: object) -> None:
        """An element that begins a run, or differs from the last one, in whatever way."""
        session = self._session
        if type(element) is bytes and len(element) == self._length and self.run is None:
            self._begin_run(element)
            return
        if not self.is_live:
            return
        if not isinstance(element, bytes | bytearray | memoryview):
            self._fault(
                f"a {type(element).__name__} was published, and only bytes can be sent as they are. "
                "Give the publisher a serializer, such as serializer='json'"
            )
            return
        data = bytes(element)
        if self.keep is not None:
            self.keep(data)
        if session.outgoing is not None:
            data = session.outgoing(data)
            if session.is_closing:
                return  # the change has ended the connection
        if len(data) > session.limits.max_element and not self.element_size:
            self._fault(f"an element of {len(data)} bytes; the most that a peer takes is {session.limits.max_element}")
        elif self.element_size:
            self._on_fixed(data)
        else:
            self._on_sized(data)

    def _on_sized(self, element: bytes) -> None:
        self.commit()
        length = len(element)
        self._expected_size = length if self._expected_size < 0 else (self._expected_size + length) // 2
        if self._held is not None or length > self._session.max_unsplit:
            self._hold(element)
        else:
            head = self._session.dialect.header(self.id, length)
            self._outbox.put(head)
            self._outbox.buffer += element
            if self.keep is None and self._session.outgoing is None:
                self._length, self._head = length, bytearray(head)
        if not self.reserved:
            self.pull()

    def _hold(self, element: bytes) -> None:
        self.forget_header()  # what follows waits behind it
        if self._held is None:
            self._held = deque()  # bounded by what was reserved, which the room for it bounded
            self._session.buffering_streams[self] = None
            self._outbox.enqueue_large(self)
        self._held.append(element)
        self._outbox.large += len(element)
        self._session.on_buffered(len(element))
        self._expected_size = max(self._expected_size, len(element))

    def _on_fixed(self, element: bytes) -> None:
        """One element of fixed size, or several of them in one piece."""
        size = self.element_size
        count, rest = divmod(len(element), size)
        if rest or not count:
            self._fault(f"an element of {len(element)} bytes on a stream whose elements have {size}; give one or more of them, whole")
            return
        if self._unreserved_pulls:
            self._unreserved_pulls -= 1
        else:
            self._unreserve(1)  # what was reserved for the pull is counted with the rest
        # A piece of several takes more than its pull has reserved: so while they come, one is pulled at a time.
        self._yields_blocks = count > 1
        if count > 1 and self.reserved:
            # More was pulled when single elements came. What that has reserved is this piece's as well: the peer has asked for it, and
            # may ask for no more before it has come.
            self._unreserved_pulls += self.reserved
            self._unreserve(self.reserved)
        if count > 1:
            self._session.on_buffered(len(element))
        self._session.buffering_streams[self] = None
        self._unsent_fixed = memoryview(element if self._unsent_fixed is None else bytes(self._unsent_fixed) + element)
        self._send_surplus()

    def _unreserve(self, n: int) -> None:
        self.roll_back(n)
        self._session.proportion.asked -= n

    def _send_surplus(self) -> None:
        """Send as much of the last piece as was asked for and finds room; what is left waits, and nothing is pulled meanwhile."""
        surplus, size = self._unsent_fixed, self.element_size
        if surplus is None or not self.available:
            return
        room = self._outbox.room()
        if room <= 0:
            self._outbox.block(self)
            return
        count = self.reserve(min(len(surplus) // size, room // size or 1))
        self.commit(count)
        sent = count * size
        self._session.proportion.asked += count
        if self._gathered is None:
            self._gathered = bytearray()
            self._outbox.gather(self)
        self._gathered += surplus[:sent]
        self._weigh(len(self._gathered))
        self._expected_size = sent if self._expected_size < 0 else (self._expected_size + sent) // 2
        if sent < len(surplus):
            self._unsent_fixed = surplus[sent:]
            self._send_surplus()  # there is neither demand nor room for more: stand in the queue, or wait to be asked
            return
        self._unsent_fixed = None
        if self._ending:
            self.on_complete()
        elif not self.reserved:
            self.pull()

    def _fault(self, text: str) -> None:
        upstream = self._upstream
        self.on_error(UsageError(text))
        if upstream is not None:
            upstream.cancel()

    def _end_with_text(self, text: str, fault: Fault) -> None:
        if self.is_live:
            self._detach()
            self._session.answer(self._session.dialect.error(self.id, text[: self._session.limits.max_error_text // 4], fault))

    def _detach(self) -> Subscription | None:
        """End: forget the publisher and what waits, and free the id."""
        upstream, self._upstream = self._upstream, None
        if self.is_live:
            if self.run or self._gathered:
                self._outbox.buffer += self.flush()
            self.is_live = False
            self._length = -1  # whatever may still come takes the long way, and is dropped there
            self._session.proportion.asked -= self.reserved
            self._session.buffering_streams.pop(self, None)
            self._outbox.large -= sum(map(len, self._held)) - self._offset if self._held else 0
            self._awaiting_demand = False
            self._outbox.forget(self)
            self._held = self._gathered = self._unsent_fixed = None
            self._session.release_id(self)
            when_over, self.when_over = self.when_over, None
            if when_over is not None:
                when_over()
        return upstream
