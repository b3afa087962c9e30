"""Requests that wait for elements: a poll, pushes, a streamed batch, server-sent events.
Still without I/O.

Each is used in the same way: `begin` with a function that is called when there may be something
new, `advance` with the time until it is over, and `release` at last. `due` is when to call
`advance` again if nothing happens. The newest request of a subscription wins: an older one is
answered at once.
"""

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from penstock_http._batches import fixed_size, length_prefixed
from penstock_http._conditions import names_batches, names_fixed_size, reads_batches, wait_of
from penstock_http._messages import (
    FIXED_SIZE,
    LENGTH_PREFIXED,
    NO_STORE,
    POSITION,
    REQUESTED,
    Holder,
    Request,
    Response,
    answer,
    refusal,
)
from penstock_http._settings import Settings
from penstock_http._subscription import COMPLETED, LOST, ClientSubscription, Delivery

HEARTBEAT: Final = 15.0
"""Seconds between two comments in a stream of events, so that no proxy takes it for dead."""

KEPT_EVENTS: Final = 256
"""Events that are kept for a page that connects again."""

UNBUFFERED: Final = ("X-Accel-Buffering", "no")
"""Tells nginx to pass on each part at once."""

LOOKS: Final = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
"""Seconds between two looks whether the client's system has acknowledged a batch that may not grow
before. A system sends an acknowledgement up to 0.2 s late.
"""

SHUTDOWN: Final = "the server shuts down"


Acknowledged = Callable[[], bool | None]
"""Tells whether the client's system has acknowledged all that was written; None if unknown."""


def _unknown() -> None:
    """Tell nothing."""


class _Exchange:
    """The common part of all exchanges."""

    def __init__(self, subscription: ClientSubscription, due: float) -> None:
        self._subscription = subscription
        self._is_current = False
        self._wake: Callable[[], None] = _nothing
        self.due: float = due
        """When to call `advance` again, if nothing is reported before."""

    def begin(self, wake: Callable[[], None]) -> None:
        """Let `wake` be called when there may be something new. An older request of the same
        subscription is called a last time.
        """
        older, self._subscription.on_change = self._subscription.on_change, wake
        self._wake = wake
        self._is_current = True
        if not self._subscription.is_polled:
            self._subscription.note_poll()
        if older is not None:
            older()

    @property
    def holder(self) -> Holder:
        """The client whose memory the bytes of the answer are."""
        return self._subscription

    def release(self, now: float) -> None:
        """Wait no longer."""
        self._subscription.used_at = max(self._subscription.used_at, now)
        if self.is_current:
            self._subscription.on_change = None
        self._is_current = False

    @property
    def is_current(self) -> bool:
        """Whether no newer request has come."""
        return self._is_current and self._subscription.on_change is self._wake

    def _positions(self) -> tuple[tuple[str, str], ...]:
        return (POSITION, str(self._subscription.position)), (
            REQUESTED,
            str(self._subscription.requested),
        )

    def _response(
        self,
        elements: list[bytes],
        delivery: Delivery,
        positions: tuple[tuple[str, str], ...],
        *,
        takes_fixed: bool,
    ) -> Response:
        """Return an answer with `elements`."""
        headers: tuple[tuple[str, str], ...] = (NO_STORE, *positions)
        size, element = len(elements[0]), -1
        if len(elements) == 1:
            body, element = elements[0], delivery.start
        elif takes_fixed and size and all(len(element) == size for element in elements):
            body, headers = fixed_size(elements), (*headers, ("Content-Encoding", FIXED_SIZE))
        else:
            body = length_prefixed(elements)
            headers = (*headers, ("Content-Encoding", LENGTH_PREFIXED))
        return Response(
            status=200,
            headers=headers,
            body=body,
            outcome=delivery,
            holder=self._subscription,
            element=element,
        )

    def _final(self) -> Response | None:
        """Return the answer behind the last element, or None if the stream goes on."""
        subscription = self._subscription
        ended = subscription.ended
        if ended is None or not subscription.is_over:
            return None
        if ended is COMPLETED:
            return answer(ended.status, *self._positions())
        return refusal(ended.status, ended.text, *self._positions())


class Poll(_Exchange):
    """A request for elements that are answered together."""

    def __init__(
        self, subscription: ClientSubscription, request: Request, settings: Settings, now: float
    ) -> None:
        super().__init__(subscription, now + wait_of(request, settings.hold))
        self._settings = settings
        self._most = settings.max_elements if reads_batches(request) else 1
        self._takes_fixed = names_fixed_size(request)

    def advance(self, now: float, *, draining: bool = False) -> Response | None:
        """Return the answer, or None if it has to wait."""
        subscription = self._subscription
        subscription.collect()
        if self._is_current and not self.is_current:
            return answer(204, *self._positions())
        if subscription.has_lost or subscription.has_elements:
            return self._elements(now)
        final = self._final()
        if final is not None:
            return final
        if draining:
            return refusal(503, SHUTDOWN)
        has_demand = subscription.cursor < subscription.requested
        return None if has_demand and now < self.due else answer(204, *self._positions())

    def _elements(self, now: float) -> Response:
        positions = self._positions()
        elements, delivery = self._subscription.take_for_poll(
            self._most, self._settings.max_bytes, now
        )
        return self._response(elements, delivery, positions, takes_fixed=self._takes_fixed)


class Pushes(_Exchange):
    """A request for more elements, over HTTP/2:
    each is pushed on its stream at once, until the demand is used up.

    A client that reads batches gets them if its Accept-Encoding names their coding;
    others get one element in each push.
    """

    head: Final = answer(200)
    """The answer to the request itself. It has no body, and ends behind the last push."""

    def __init__(
        self,
        subscription: ClientSubscription,
        request: Request,
        settings: Settings,
        now: float,
        path: str,
    ) -> None:
        """`path` is the one of the subscription, as the client knows it."""
        super().__init__(subscription, now + settings.stream)
        self._settings = settings
        self._path = path
        self._most = settings.max_elements if names_batches(request) else 1
        self._next = subscription.cursor
        self.is_over: bool = False
        """Nothing more is pushed on the stream of this request."""

    def advance(self, now: float, *, draining: bool = False) -> tuple[str, Response] | None:
        """Return the path and the answer to push, or None if nothing can be pushed now."""
        subscription = self._subscription
        subscription.collect()
        path, positions = f"{self._path}/element/{subscription.cursor}", self._positions()
        # Elements that are to be sent again were in a push that the client has reset:
        # it may reset each.
        is_late = now >= self.due or not self.is_current or subscription.cursor < self._next
        if subscription.has_elements and not is_late:
            elements, delivery = subscription.take(self._most, self._settings.max_bytes, now)
            self._next = subscription.cursor
            return path, self._response(elements, delivery, positions, takes_fixed=False)
        final = None if is_late else self._final()
        if final is None and draining and not is_late:
            final = refusal(503, SHUTDOWN)
        has_demand = subscription.cursor < subscription.requested and not subscription.is_full
        self.is_over = final is not None or is_late or not has_demand
        return None if final is None else (path, final)


class _Streaming(_Exchange, ABC):
    """An answer whose body grows."""

    head: Response
    """The beginning of the answer: the length of its body is not known."""

    def __init__(self, subscription: ClientSubscription, due: float) -> None:
        super().__init__(subscription, due)
        self.delivery: Delivery | None = None
        """The elements of the answer so far; None before the first."""
        self.is_over: bool = False
        """The last part is the end of the answer."""

    @abstractmethod
    def advance(
        self, now: float, acknowledged: Acknowledged = _unknown, *, draining: bool = False
    ) -> bytes | None:
        """Return the next part of the body, an empty one if there is nothing now, or None
        if the answer is over. It may be over with a part: see `is_over`.
        """

    def on_lost(self) -> None:
        """The answer was not written to its end, or its connection was reset."""
        if self.delivery is not None:
            self.delivery.on_lost()

    def on_written(self) -> None:
        """The answer was written to its end."""
        if self.delivery is not None:
            self.delivery.on_written()

    def end(self) -> None:
        """End the subscription: its client has gone, and is not waited for. A client that has asked
        again over another connection has not gone.
        """
        if self.is_current and self._subscription.ended is None:
            self._subscription.cancel(LOST)


class StreamedBatch(_Streaming):
    """A batch that is written as its elements come.

    It ends when the demand is used up, when too many elements are kept, and when none comes.
    """

    def __init__(
        self, subscription: ClientSubscription, request: Request, settings: Settings, now: float
    ) -> None:
        self._hold = wait_of(request, settings.hold)
        super().__init__(subscription, now + self._hold)
        self._until = now + settings.stream
        self._looks = 0  # at the acknowledgement of the elements that were written last
        self._settings = settings
        coding = ("Content-Encoding", LENGTH_PREFIXED)
        self.head = Response(status=200, headers=(NO_STORE, UNBUFFERED, coding, *self._positions()))

    def first(self, now: float) -> Response | None:
        """Return an answer without elements, if that is due at once:
        the stream has ended, or nothing is requested.
        """
        final = self._final()
        if final is not None:
            return final
        subscription = self._subscription
        return (
            None
            if subscription.cursor < subscription.requested
            else answer(204, *self._positions())
        )

    def advance(
        self, now: float, acknowledged: Acknowledged = _unknown, *, draining: bool = False
    ) -> bytes | None:
        subscription = self._subscription
        if not self.is_current:
            return None
        if draining or now >= self._until or subscription.ended is not None:
            self._looks = 0
        if self._looks and now >= self.due:
            self._look(now, acknowledged)
        if self._looks:
            return b""
        subscription.collect()
        if subscription.has_elements and now < self._until:
            elements, self.delivery = subscription.take(
                self._settings.max_elements, self._settings.max_bytes, now, self.delivery
            )
            self.due = min(now + self._hold, self._until)
            has_demand = subscription.cursor < subscription.requested
            if has_demand and subscription.waits_for_reader and acknowledged() is not None:
                self._looks, self.due = 1, now  # when these elements were written
            # Found out now: the end of the body goes out with its last elements.
            grows = has_demand and self._may_grow(draining=draining)
            self.is_over = not (self._looks or grows)
            return length_prefixed(elements)
        return b"" if now < self.due and self._may_grow(draining=draining) else None

    def _look(self, now: float, acknowledged: Acknowledged) -> None:
        """Let the batch grow if the client's system has acknowledged it. Else look again later, and
        let it end after the last look.
        """
        if acknowledged():
            self._subscription.note_acknowledged()
        elif self._looks <= len(LOOKS):
            self.due = now + LOOKS[self._looks - 1]
            self._looks += 1
            return
        self._looks = 0
        self.due = min(now + self._hold, self._until)

    def _may_grow(self, *, draining: bool) -> bool:
        """Return whether the answer may get another element."""
        subscription = self._subscription
        if subscription.cursor >= subscription.requested:
            return False
        return subscription.has_elements or not (
            subscription.ended is not None or subscription.is_full or draining
        )


class Events(_Streaming):
    """Server-sent events: one for each element, with its position as the id."""

    def __init__(
        self, subscription: ClientSubscription, settings: Settings, now: float, *, text: bool
    ) -> None:
        super().__init__(subscription, now)
        self._settings = settings
        self._text = text
        self._has_begun = False
        kind = ("Content-Type", "text/event-stream")
        self.head = Response(status=200, headers=(NO_STORE, UNBUFFERED, kind))

    def first(self, now: float) -> Response | None:
        """Return None: even a stream without demand is open, and waits for some."""
        return None

    def advance(
        self, now: float, acknowledged: Acknowledged = _unknown, *, draining: bool = False
    ) -> bytes | None:
        subscription = self._subscription
        if self.is_over or not self.is_current or draining:
            return None
        subscription.collect()
        if subscription.has_elements:
            self.due = now + HEARTBEAT
            return self._elements(now)
        ended = subscription.ended
        if ended is not None and subscription.is_over:
            self.is_over = True
            return (
                b"event: rsio-complete\ndata:\n\n"
                if ended is COMPLETED
                else self._error(ended.text)
            )
        if now < self.due:
            return b""
        # The first comes at once, so that the page learns that the stream is open.
        first, self._has_begun = not self._has_begun, True
        self.due = now + HEARTBEAT
        return b"retry: 2000\n: open\n\n" if first else b": \n\n"

    def _elements(self, now: float) -> bytes:
        subscription = self._subscription
        position = subscription.cursor
        elements, self.delivery = subscription.take(
            KEPT_EVENTS, self._settings.max_bytes, now, self.delivery
        )
        parts = [] if self._has_begun else [b"retry: 2000\n"]
        self._has_begun = True
        for number, element in enumerate(elements, position):
            data = self._data(element)
            if data is None:
                self.is_over = True
                parts.append(self._error(f"element {number} is no text; ask without text=1"))
                break
            parts.append(b"id: %d\n%b\n" % (number, data))
        subscription.forget_sent(KEPT_EVENTS)
        return b"".join(parts)

    def _data(self, element: bytes) -> bytes | None:
        """Return the lines of an event, or None if the element is not a text."""
        if not self._text:
            return b"data: %b\n" % base64.b64encode(element)
        try:
            element.decode()
        except UnicodeDecodeError:
            return None
        # A page reads CR as the end of a line too, and cannot tell which of the two it was.
        if b"\r" in element or b"\0" in element:
            return None
        return b"".join(b"data: %b\n" % line for line in element.split(b"\n"))

    def _error(self, text: str) -> bytes:
        lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
        return f"event: rsio-error\n{lines}\n".encode()


def _nothing() -> None:
    """Do nothing."""
