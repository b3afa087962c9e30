"""An inbound stream: a publisher of the peer's that this side has subscribed to. It is the subscriber's subscription.

Rules of this file:

* Elements beyond what was asked for end the stream, here and there: the subscriber's buffer was sized by its demand (rule 1.1).
* Parts of an element are joined and count as one; they are bounded in number, bytes and age, over the stream and over the connection.
* An id is never used again. After a cancel its stream is *retired*: what still arrives for it is delimited and dropped.
"""

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from penstock.api import UNBOUNDED, ConnectionLost, ProtocolError, Subscriber, Subscription

if TYPE_CHECKING:
    from penstock.session._session import Session


TINY_WEIGHT: Final = 1
EMPTY_WEIGHT: Final = 10
"""A part that adds nothing and ends nothing has no honest use: a hundred of them empty the budget."""


class Partial:
    """An element of which parts have arrived."""

    __slots__ = ("began", "parts", "pieces", "size")

    def __init__(self, began: float) -> None:
        self.began = began
        self.pieces: list[bytes] = []
        self.parts = 0
        self.size = 0


class ReceivingStream(Subscription):
    """A stream that this side has opened."""

    __slots__ = ("_partials", "_session", "_subscriber", "element_size", "id", "outstanding")

    def __init__(self, session: "Session", stream_id: int, subscriber: Subscriber[Any], demand: int = 0) -> None:
        self.id: int = stream_id
        self.element_size: int = -1
        self.outstanding: int = demand
        self._session = session
        self._subscriber: Subscriber[Any] | None = subscriber
        self._partials: dict[int, Partial] | None = None

    # --- the subscription

    def request(self, n: int, /) -> None:
        if self._subscriber is None:
            return  # rule 3.6
        before = self.outstanding
        self.outstanding = min(UNBOUNDED, before + n)
        if before < UNBOUNDED:
            self._session.request(self, n)

    def cancel(self, /) -> None:
        if self._subscriber is not None:
            self._forget()
            self._session.retire(self)

    # --- what the peer sends

    def begun(self, element_size: int) -> None:
        """The publisher has accepted."""
        if self.element_size >= 0:
            raise ProtocolError(f"stream {self.id} was accepted twice", reason=f"protocol:stream {self.id}")
        self.element_size = element_size
        subscriber = self._subscriber
        told = getattr(subscriber, "on_element_size", None) if element_size else None
        if told is not None:
            told(element_size)

    def receive_element(self, element: bytes, /) -> None:
        """Deliver an element."""
        if self.outstanding <= 0:
            self._overrun()
        elif self._subscriber is not None:
            if self.outstanding < UNBOUNDED:
                self.outstanding -= 1
            if self._session.incoming is not None:
                element = self._session.incoming(element)
            if self._subscriber is not None:  # the change may have ended it
                self._subscriber.on_next(element)

    def answered(self, element: bytes, /) -> bool:
        """Deliver the one element that was asked for, and the end with it; return whether it is as simple as that."""
        if self.outstanding <= 0 or self._partials is not None or self._session.incoming is not None:
            return False
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_next(element)
            subscriber.on_complete()
        return True

    def receive_run(self, elements: Sequence[bytes], /) -> None:
        """Deliver elements that came one right behind the other."""
        count = len(elements)
        many = getattr(self._subscriber, "on_next_many", None)
        if many is None or count > self.outstanding or self._session.incoming is not None:
            for element in elements:
                self.receive_element(element)
            return
        if self.outstanding < UNBOUNDED:
            self.outstanding -= count
        many(elements)

    def receive_packed(self, count: int, elements: bytes, /) -> None:
        """Deliver packed elements: as one piece of memory to a subscriber that takes those, else each on its own."""
        if count > self.outstanding:
            self._overrun()
            return
        packed = getattr(self._subscriber, "on_next_packed", None)
        if packed is not None and self._session.incoming is None:
            if self.outstanding < UNBOUNDED:
                self.outstanding -= count
            packed(count, elements)
            return
        size = self.element_size
        self.receive_run([elements[at : at + size] for at in range(0, count * size, size)])

    def receive_part(self, element: int, data: bytes, last: bool, /) -> None:  # noqa: FBT001  # as the decoder calls it
        """Join a part to its element, and deliver that with its last part."""
        if self._subscriber is None:
            return
        partial = self._partial(element, is_alone=last)
        if partial is None:
            return
        limits, session = self._session.limits, self._session
        partial.parts += 1
        partial.size += len(data)
        session.partial_bytes += len(data)
        partial.pieces.append(data)
        if len(data) < limits.tiny_part and (not data or not last):
            session.count_oddity(TINY_WEIGHT if data or last else EMPTY_WEIGHT)
        size = self.element_size
        if partial.size > (size or limits.max_element) or partial.parts > limits.max_parts:
            self.fault(
                f"an element in {partial.parts} parts has {partial.size} bytes so far; {size or limits.max_element} is the most here"
            )
        elif session.partial_bytes > limits.partial_bytes:
            self.fault(f"unfinished elements hold {session.partial_bytes} bytes; {limits.partial_bytes} is the most here")
        elif last:
            self._join(element, partial)

    def completed(self) -> None:
        """The publisher is done."""
        if self._partials:
            self.fault("the stream completed within an element: its last part is missing", tell_peer=False)
            return
        subscriber = self._forget()
        if subscriber is not None:
            subscriber.on_complete()

    @property
    def is_wanted(self) -> bool:
        """Somebody here still listens."""
        return self._subscriber is not None

    def failed(self, error: Exception) -> None:
        """The publisher failed, or the connection."""
        subscriber = self._forget()
        if subscriber is not None:
            subscriber.on_error(error)

    def lost(self, error: Exception) -> None:
        """The connection has ended, and every stream of it with an exception of its own.

        One that is raised in a thousand tasks collects the traceback of each, and holds on to what all of their frames hold.
        """
        try:
            own = copy(error)
        except Exception:  # boundary: an exception of somebody's plugin, which may be made in a way that nobody can repeat
            own = error
        own.__cause__, own.__suppress_context__ = error.__cause__, error.__suppress_context__
        self.failed(own)

    @property
    def takes_whole(self) -> bool:
        """Elements in one piece may come straight here: the stream has begun, and none is under way in parts."""
        return self.element_size >= 0 and not self._partials

    def is_joining(self, element: int) -> bool:
        """Parts of this element have arrived, and its last one has not."""
        return self._partials is not None and element in self._partials

    def oldest_partial(self) -> float | None:
        """Return when the first of the unfinished elements began."""
        return min((partial.began for partial in self._partials.values()), default=None) if self._partials else None

    def stale(self, *, is_silent: bool) -> None:
        """An element was left unfinished for too long; `is_silent` says that nothing else comes either."""
        what = f"an element was left unfinished for more than {self._session.limits.partial_age:g} s"
        if is_silent:
            lost = ConnectionLost(
                f"stream {self.id}: {what} (Limits.partial_age), and nothing follows; the peer hangs, or the network is gone"
            )
            self.fault(what, error=lost)
        else:
            self.fault(what)

    # --- inside

    def _partial(self, element: int, *, is_alone: bool) -> Partial | None:
        """Return the element that a part belongs to; its first part takes demand. One in a single part is never unfinished."""
        partials = self._partials
        if partials is None:
            partials = self._partials = {}
        partial = partials.get(element)
        if partial is not None:
            return partial
        limits, session = self._session.limits, self._session
        if self.outstanding <= 0:
            self._overrun()
        elif not is_alone and (len(partials) >= limits.max_partials or session.partials >= limits.max_partials_in_all):
            self.fault(f"{len(partials) + 1} elements of one stream are under way in parts; {limits.max_partials} is the most here")
        else:
            if self.outstanding < UNBOUNDED:
                self.outstanding -= 1
            session.partials += 1
            partial = partials[element] = Partial(session.now)
            session.unfinished.note(self)
        return partial

    def _join(self, element: int, partial: Partial) -> None:
        if self._partials is not None:
            del self._partials[element]
        self._session.partials -= 1
        self._session.partial_bytes -= partial.size
        if self.element_size and partial.size != self.element_size:
            self.fault(f"an element of {partial.size} bytes on a stream whose elements have {self.element_size}")
        elif self._subscriber is not None:
            joined = b"".join(partial.pieces)
            if self._session.incoming is not None:
                joined = self._session.incoming(joined)
            if self._subscriber is not None:  # the change may have ended it
                self._subscriber.on_next(joined)

    def _overrun(self) -> None:
        self.fault("an element arrived that was not asked for")

    def fault(self, text: str, *, tell_peer: bool = True, error: Exception | None = None) -> None:
        """End the stream because the peer broke its contract: cancel there, an error here, `error` if something else was the reason."""
        subscriber = self._forget()
        if tell_peer:
            self._session.retire(self)
        if subscriber is not None:
            subscriber.on_error(error or ProtocolError(f"stream {self.id}: {text}. The peer must act", reason="protocol:demand"))

    def _forget(self) -> Subscriber[Any] | None:
        subscriber, self._subscriber = self._subscriber, None
        if self._partials:
            session = self._session
            session.partials -= len(self._partials)
            session.partial_bytes -= sum(partial.size for partial in self._partials.values())
        self._partials = None
        return subscriber


class CancelledStream:
    """A stream that this side has cancelled and the peer has not ended: what arrives for it is dropped."""

    __slots__ = ("_session", "element_size")

    def __init__(self, session: "Session", element_size: int) -> None:
        self._session = session
        self.element_size = element_size

    @property
    def takes_whole(self) -> bool:
        """They may come straight here, to be dropped."""
        return True

    def receive_element(self, element: bytes, /) -> None:
        """Drop it: it was on its way when the cancel was sent (rule 2.8)."""
        self._session.retirement.late_elements(1)

    def receive_run(self, elements: Sequence[bytes], /) -> None:
        """Drop them."""
        self._session.retirement.late_elements(len(elements))

    def receive_packed(self, count: int, elements: bytes, /) -> None:
        """Drop them."""
        self._session.retirement.late_elements(count)

    def receive_part(self, element: int, data: bytes, last: bool, /) -> None:  # noqa: FBT001  # as the decoder calls it
        """Drop it; its last part is what demand was for."""
        if last:
            self._session.retirement.late_elements(1)
        elif len(data) < self._session.limits.tiny_part:
            self._session.count_oddity()
