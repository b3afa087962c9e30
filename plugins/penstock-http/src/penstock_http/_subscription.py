"""One subscription of a client: its demand, the elements that the client may not have yet,
and how it has ended.

Rules of this file:

* A position is the number of an element, counted from 0. The elements from `base` on are kept until
  the client has them for certain.
* A client that sends positions says so itself. For a client that sends none, an answer has arrived
  if it was written to its end and the front end does not report it as lost.
* Demand is counted in all, and not as a rest: an answer that is sent again uses up none.
* Nothing is requested from the publisher before the client asks for elements: a poll, pushes,
  events. A subscribe and a `requestMore` make the server hold no element.
* No more is requested from the publisher than may be kept, and one element while no size is known.
  So a client that requests much, and takes nothing, costs a bounded amount.
* Most elements are not signalled: the stream of the server has them until `collect`, which each
  request calls before it looks.
"""

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from penstock.api import Subscriber, Subscription, add_demand
from penstock.spi import HostedSubscription, Reservation

ELEMENT_BYTES: Final = 64
"""What an element costs beside its bytes."""


class Unfit(Exception):
    """A position cannot be. `status` is the answer; the stream ends with it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@attrs.frozen
class Ended:
    """How a stream has ended: the answer to each request after its last element."""

    status: int
    text: str = ""


COMPLETED: Final = Ended(410)
CANCELLED: Final = Ended(404, "this subscription was cancelled")


class Delivery:
    """The elements of one answer, from `start` on."""

    __slots__ = ("_kept", "is_written", "start")

    def __init__(self, kept: "ClientSubscription", start: int) -> None:
        self._kept = kept
        self.start: int = start
        self.is_written: bool = False

    def on_written(self) -> None:
        """The answer was written to its end."""
        self.is_written = True

    def on_lost(self) -> None:
        """The answer was not written to its end,
        or its connection was reset before another request came.
        """
        self._kept.resend(self)


class ClientSubscription(Subscriber[bytes]):
    """The subscriber of a publisher, for a client that asks again and again."""

    def __init__(self, *, max_elements: int, max_bytes: int, now: float) -> None:
        """At most `max_elements` are kept, and `max_bytes` of them
        if elements have about one size.
        """
        self._max_elements = max_elements
        self._max_bytes = max_bytes
        self._upstream: Subscription | None = None
        # The same, if elements may wait there.
        self._collecting: HostedSubscription | None = None
        self._kept: list[bytes] = []
        self._bytes = 0
        self._all_bytes = 0  # of all elements that came
        self._asked = 0  # requested from the publisher, in all
        # Those of the last request: one, or one for each push. Bounded by `max_elements`.
        self._deliveries: list[Delivery] = []
        self.base: int = 0
        """The position of the first element that is kept."""
        self.cursor: int = 0
        """The position of the next element to send."""
        self.sent: int = 0
        """All elements below this position were sent at least once."""
        self.requested: int = 0
        """The demand in all."""
        self.ended: Ended | None = None
        self.used_at: float = now
        """When the client was last seen."""
        self.is_polled: bool = False
        """The client has asked for elements."""
        self.reservation: Reservation | None = None
        """The place and the memory of the server for this client."""
        self.on_change: Callable[[], None] | None = None
        """Called when there may be something to answer. Set while a request waits;
        another request takes its place.
        """

    # --- the subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self.ended is not None:
            subscription.cancel()  # the server has taken the place back meanwhile
            return
        self._upstream = subscription
        if isinstance(subscription, HostedSubscription):
            self._collecting = subscription
        self._ask()

    def on_next(self, element: bytes, /) -> None:
        self.on_next_many((element,))

    def on_next_many(self, elements: Sequence[bytes], /) -> None:
        """Keep elements that the publisher has at hand."""
        if self.ended is None:
            self._keep(elements)
            if self.on_change is not None:  # as `wake`
                self.on_change()

    def collect(self) -> None:
        """Keep the elements that came without a signal."""
        collecting = self._collecting
        if collecting is not None and (elements := collecting.collect()):
            self._keep(elements)

    def on_error(self, error: BaseException, /) -> None:
        self._end(Ended(500, str(error)))

    def on_complete(self, /) -> None:
        self._end(COMPLETED)

    def kept_bytes(self) -> int:
        """Return the bytes that wait for the client. Not named `held`: the front end reserves
        them, and they must not count twice.
        """
        return self._bytes + ELEMENT_BYTES * len(self._kept)

    # --- the client

    @property
    def end(self) -> int:
        """The position behind the last element that came."""
        return self.base + len(self._kept)

    @property
    def has_elements(self) -> bool:
        """Whether an element may be sent now."""
        cursor = self.cursor
        return cursor < self.requested and cursor < self.base + len(self._kept)

    @property
    def is_over(self) -> bool:
        """Whether the stream has ended, and every element was sent."""
        return self.ended is not None and self.cursor >= self.base + len(self._kept)

    @property
    def is_full(self) -> bool:
        """Whether the publisher is asked for nothing because too much is kept."""
        return self._room() <= 0 and self.end >= self._asked

    def note_poll(self) -> None:
        """Note that the client asks for elements: from now on the publisher is asked."""
        self.is_polled = True
        if self.reservation is not None:
            self.reservation.note_asked()
        self._ask()

    def request(self, n: int, in_all: int | None) -> None:
        """Add `n` to the demand; or let it be `in_all`, if that is given:
        then a request that is repeated adds nothing.
        """
        self.requested = (
            add_demand(self.requested, n) if in_all is None else max(self.requested, in_all)
        )
        self._ask()

    def acknowledge(self, position: int) -> None:
        """Forget the elements below `position`: the client has them.
        Raises Unfit for a position that cannot be.
        """
        if position > self.sent:
            raise Unfit(
                400, f"the position {position} was not reached: the next one is {self.sent}"
            )
        if position < self.base:
            raise Unfit(
                409,
                (
                    f"the elements from position {position} on are not kept any more; those from "
                    f"{self.base} on are"
                ),
            )
        self._forget(position)
        self._ask()

    def go_to(self, position: int | None) -> None:
        """Begin the next answer at `position`. None:
        behind the last answer, or at its beginning again if that was lost.
        """
        last = self._deliveries[-1] if self._deliveries else None
        if position is not None:
            self.acknowledge(position)
            self.cursor = position
        elif last is not None and not last.is_written:
            self.cursor = max(last.start, self.base)
        else:
            self._forget(self.cursor)
            self._ask()
        self._deliveries = []

    def take(
        self, most: int, most_bytes: int, *, apart: bool = False
    ) -> tuple[list[bytes], Delivery]:
        """Take elements for an answer:
        `most` at most, and no more than `most_bytes`, unless the first one alone is longer.

        If `apart` is True, they are written, and lost, apart from those that were taken before.
        """
        start = self.cursor
        upto = min(self.base + len(self._kept), self.requested, start + most)
        first = start - self.base
        elements = self._kept[first : first + upto - start]
        if sum(map(len, elements)) > most_bytes:
            elements = _fitting(elements, most_bytes)
        self.cursor += len(elements)
        self.sent = max(self.sent, self.cursor)
        if apart or not self._deliveries:
            # The oldest ones are acknowledged: no more elements are kept.
            del self._deliveries[: -self._max_elements]
            self._deliveries.append(Delivery(self, start))
        return elements, self._deliveries[-1]

    def sent_element(self, position: int) -> bytes | None:
        """Return an element that was sent before, or None if it is not kept."""
        return self._kept[position - self.base] if self.base <= position < self.sent else None

    def forget_sent(self, keep: int) -> None:
        """Forget elements that were sent, but for the last `keep`:
        the client reads them from an answer that does not end.
        """
        position = self.cursor - keep
        if position > self.base:
            self._forget(position)
            self._ask()

    def resend(self, delivery: Delivery) -> None:
        """Send the elements of `delivery` again, and the following ones, if no later request has
        said more.
        """
        if delivery in self._deliveries and self.base <= delivery.start:
            self.cursor = delivery.start
            del self._deliveries[self._deliveries.index(delivery) :]
            self.wake()

    def cancel(self, ended: Ended = CANCELLED) -> None:
        """End the stream from this side. Nothing of it is kept."""
        self.ended = ended
        self._kept, self._bytes, self.base = [], 0, self.cursor
        upstream, self._upstream, self._collecting = self._upstream, None, None
        if upstream is not None:
            upstream.cancel()
        self.wake()

    # --- inside

    def _end(self, ended: Ended) -> None:
        self._upstream = self._collecting = None
        if self.ended is None:
            self.ended = ended
            self.wake()

    def _keep(self, elements: Sequence[bytes]) -> None:
        self._kept += elements
        size = sum(map(len, elements))
        self._bytes += size
        self._all_bytes += size
        # The size of elements is known now, or another one: there may be room for more.
        if self.requested > self._asked:
            self._ask()

    def wake(self) -> None:
        """Let a request that waits look again."""
        if self.on_change is not None:
            self.on_change()

    def _forget(self, position: int) -> None:
        count = position - self.base
        if count > 0:
            self._bytes -= sum(map(len, self._kept[:count]))
            del self._kept[:count]
            if not self.base and self.reservation is not None:
                self.reservation.note_taken()
            self.base = position
            self.cursor = max(self.cursor, position)

    def _ask(self) -> None:
        upstream = self._upstream
        more = self.requested - self._asked
        if (
            more > 0
            and self.is_polled
            and upstream is not None
            and (wanted := min(more, self._room())) > 0
        ):
            self._asked += wanted
            upstream.request(wanted)

    def _room(self) -> int:
        """Return how many more elements may be requested."""
        kept = len(self._kept)
        end = self.base + kept
        under_way = self._asked - end
        if not end:
            return 1 - under_way
        size = max(1, self._all_bytes // end)
        room = min(self._max_elements - kept, (self._max_bytes - self._bytes) // size)
        # One at least if nothing is kept:
        # an element may be larger than everything that may be kept.
        return (room if kept else max(room, 1)) - under_way


def _fitting(elements: list[bytes], most_bytes: int) -> list[bytes]:
    total = 0
    for count, element in enumerate(elements):
        total += len(element)
        if total > most_bytes:
            return elements[: max(count, 1)]
    return elements
