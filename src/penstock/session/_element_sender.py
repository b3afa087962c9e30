"""Encodes the elements of one sent stream and requests more of them from the publisher, as demand and the outbox's room permit.

* Demand permits sending, not buffering: elements are requested from the publisher only if the peer has requested them *and* the outbox has
  room, and only as many as will roughly fill that room.
* Elements of one length make a run (`ElementRun`). The publisher's pump appends to the run without a call; the stream counts what that uses
  of the demand when it looks at the run. Every move of the stream that elements must not pass closes the run first.
* An element longer than the dialect's `max_unsplit` is held and written in parts (`LargeElements`); elements of its stream wait behind it.
"""

from abc import ABC, abstractmethod
from typing import Final

from penstock.api import Subscription
from penstock.session._channel import Channel
from penstock.session._demand_ledger import DemandLedger
from penstock.session._element_run import ElementRun
from penstock.session._fixed_size import FixedSizeElements
from penstock.session._large_elements import LargeElements
from penstock.session._states import SendingState

UNKNOWN_SIZE: Final = -1
"""The expected size of an element before the first one came. Until then one is requested at a time."""

NO_RUN_LENGTH: Final = -1
"""No element has this length: the next one does not go into a run."""

HEADER_ALLOWANCE: Final = 8
"""The room is divided by the expected size plus this: the headers of the shipped protocols have 3 to 12 bytes."""

NO_HEAD: Final = bytearray()


class ElementSender(DemandLedger, ABC):
    """The elements of one sent stream. `SendingStream` adds its life: acceptance, end, and the publisher's other signals.

    There may be 100,000 idle streams. The benchmark allows 400 bytes for each on each side, and an object of six attributes has 96.
    So `_large`, `_fixed` and `run`, which only busy streams need, are made when they are needed.
    """

    __slots__ = (
        "_channel",
        "_expected_size",
        "_fixed",
        "_gathered",
        "_head",
        "_large",
        "_run_length",
        "_upstream",
        "element_size",
        "id",
        "run",
        "state",
    )

    # The constructor of SendingStream sets all of these: a second constructor would cost each request a call.
    id: int
    state: SendingState
    element_size: int
    run: ElementRun | None
    """Elements of one length that go out together. A pump appends to it while `run.length` fits."""
    _channel: Channel
    _upstream: Subscription | None
    _run_length: int
    """The length of the last element, if the next one of this length may begin a run."""
    _head: bytearray
    """The header of an element of that length."""
    _gathered: int
    """Bytes of the run and of packed elements that the outbox knows of."""
    _expected_size: int
    _large: LargeElements | None
    _fixed: FixedSizeElements | None

    # --- defined by SendingStream

    @abstractmethod
    def on_drained(self) -> None:
        """Go on: no element waits here any more."""

    @abstractmethod
    def on_bad_element(self, text: str) -> None:
        """End the stream because its publisher gave something that cannot be sent."""

    # --- facts

    @property
    def is_idle(self) -> bool:
        """Nothing is requested, and no element is on its way."""
        fixed = self._fixed
        return not (self.available or self.reserved or self._large or (fixed is not None and fixed.unsent))

    @property
    def outstanding(self) -> int:
        """How many elements were requested from the publisher and have not come, the uncounted ones of the run subtracted."""
        run = self.run
        return self.reserved if run is None else self.reserved - len(run.elements) + run.counted

    @property
    def weight(self) -> int:
        """Bytes that wait here, outside the outbox."""
        run, fixed, large = self.run, self._fixed, self._large
        return (0 if run is None else run.size) + (0 if fixed is None else fixed.weight) + (0 if large is None else large.size)

    def close_run(self) -> None:
        """Encode the next element anew: what elements or headers mean has changed."""
        self._run_length = NO_RUN_LENGTH
        if self.run is not None:
            self.run.length = NO_RUN_LENGTH

    # --- the publisher's elements

    def on_next(self, element: bytes, /) -> None:
        # The path of most elements: the same length as the last one. A pump does the same in its own loop.
        # Nothing is encoded here: flush() joins the whole run with one header. Without runs an element costs 1.9 to 4.3 times as much.
        run = self.run
        if run is None or type(element) is not bytes or len(element) != run.length:
            self._on_other(element)
            return
        elements = run.elements
        elements.append(element)
        if len(elements) - run.counted >= self.reserved:
            self.on_reservation_used()

    def on_reservation_used(self) -> None:
        """Count the run and pull again: the run holds all that was requested."""
        self._count_run()
        if not self.reserved:
            self.pull()

    # --- the outbox's sender

    def pull(self) -> None:
        """Request as many elements as may be sent and will roughly fill the outbox's room."""
        fixed = self._fixed
        if fixed is not None and fixed.unsent is not None:
            fixed.send_unsent()
            return
        run = self.run
        if run is not None:
            # All elements of a run have the first one's length, so one multiplication weighs them.
            self._note_gathered(len(run.elements) * (len(run.elements[0]) + len(self._head)))
        # One pull at a time: reserved elements are still to come. A held large element is written before more are pulled.
        if self.reserved or not self.available or self._upstream is None or self._large:
            return
        if fixed is not None and fixed.unreserved_pulls:
            return
        room = self._channel.outbox.room()
        if room <= 0:
            self._channel.outbox.block(self)
            return
        # The last length is the best guess at the next one. Before the first element, and for blocks, one is pulled: eight streams of 20 KB
        # elements once held 1.8 MB for a peer that did not read, because each had asked for as many as its demand allowed.
        size = self._expected_size if self._run_length < 0 else self._run_length
        one = size < 0 or (fixed is not None and fixed.yields_blocks)
        n = self.reserve(1 if one else room // (size + HEADER_ALLOWANCE) or 1)
        self._channel.budgets.requests.requested += n
        # The memory budget hears of elements before they come. It once heard of them a second later, and 30 peers that read nothing held
        # 1.6 MB of a budget of 1 MB.
        self._channel.on_buffered(n * max(size, 0))
        self._upstream.request(n)

    def flush(self) -> bytearray:
        """Return the messages of the gathered elements: a run of elements of one length, or packed ones."""
        self._note_gathered(0)
        run = self.run
        if run is not None:
            self._count_run()
            # The pump may still refer to this run. With no length that fits, it appends nothing more to it.
            self.run, run.length = None, NO_RUN_LENGTH
            run.elements.insert(0, b"")  # join() puts the header between elements, and there must be one before the first
            return self._head.join(run.elements)
        messages = bytearray()
        if self._fixed is not None and self._fixed.gathered and self.state is not SendingState.ENDED:
            self._channel.dialect.write_packed(messages, self.id, self.element_size, self._fixed.take())
        return messages

    # --- for LargeElements and FixedSizeElements

    def on_fixed_gathered(self, size: int) -> None:
        """Tell the outbox of packed elements that wait for the writer."""
        if not self._gathered:
            # First since the writer came: from now on the outbox flushes this stream before any later message.
            self._channel.outbox.gather(self)
        self._note_gathered(self._gathered + size)
        self._expected_size = size if self._expected_size < 0 else (self._expected_size + size) // 2

    # --- inside

    def _begin_run(self, first: bytes) -> None:
        self.run = ElementRun(first)
        self._channel.buffering_streams[self] = None
        self._channel.outbox.gather(self)
        # The publisher was asked for one element, and this is it: no call of a pump follows that would count the run.
        if self.reserved == 1:
            self.on_reservation_used()

    def _count_run(self) -> None:
        run = self.run
        if run is not None:
            self.commit(len(run.elements) - run.counted)
            run.counted = len(run.elements)

    def _note_gathered(self, size: int) -> None:
        """Tell the outbox how many bytes are gathered here."""
        self._channel.outbox.gathered += size - self._gathered
        self._gathered = size

    def _on_other(self, element: object) -> None:
        """Take an element that begins a run or differs from the last one."""
        # The second element of one length in a row begins a run: for a single one a run would be one object more.
        if type(element) is bytes and len(element) == self._run_length and self.run is None:
            self._begin_run(element)
            return
        if self.state is SendingState.ENDED:
            return
        if not isinstance(element, bytes | bytearray | memoryview):
            self.on_bad_element(
                f"a {type(element).__name__} was published, and only bytes can be sent as they are. "
                "Give the publisher a serializer, such as serializer='json'"
            )
            return
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
            self.on_bad_element(f"an element of {len(data)} bytes; a peer takes at most {channel.limits.max_element} (Limits.max_element)")
        else:
            self._send(data)

    def _send(self, element: bytes) -> None:
        """Send one element, whole or in parts."""
        self.commit()
        length = len(element)
        self._expected_size = length if self._expected_size < 0 else (self._expected_size + length) // 2
        if self._large or length > self._channel.dialect.max_unsplit:
            self._hold(element)
        else:
            head, outbox = self._channel.dialect.header(self.id, length), self._channel.outbox
            # put() wakes the writer and keeps the order; the element itself is appended without a second look.
            outbox.put(head)
            outbox.buffer += element
            if self._channel.outgoing is None:  # else each element must be changed, so none may go into a run
                self._run_length, self._head = length, bytearray(head)
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
        self._expected_size = max(self._expected_size, len(element))
