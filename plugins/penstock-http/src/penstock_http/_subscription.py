"""One subscription of a client: its demand, the elements that the client may not have yet,
and how it has ended.

Rules of this file:

* A position is the number of an element, counted from 0. The elements from `base` on are kept until
  the client has them for certain.
* A client that sends positions says so itself. For a client that sends none, an answer has arrived
  if it was written to its end and the front end does not report it as lost.
* Polls without positions may come at the same time, and each gets other elements. A poll whose
  answer is lost later gives them back, for the next poll. An answer that is still being written
  after `GIVEN_UP` seconds counts as lost when another poll comes: the client waits for it no more.
* Demand is counted in all, and not as a rest: an answer that is sent again uses up none.
* Nothing is requested from the publisher before the client asks for elements: a poll, pushes,
  events. A subscribe and a `requestMore` make the server hold no element.
* No more is requested from the publisher than may be kept, and one element while no size is known.
  So a client that requests much, and takes nothing, costs a bounded amount.
* The elements of a streamed batch are kept until the batch is over. The client's system tells
  meanwhile what it has taken, and as much more may be kept.
* An answer that is being written counts as well, until the client's system has taken it. The server
  ends it if it needs the memory.
* Most elements are not signalled: the stream of the server has them until `collect`, which each
  request calls before it looks.
"""

from bisect import insort
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from operator import attrgetter
from typing import Final

import attrs

from penstock.api import Subscriber, Subscription, add_demand
from penstock.spi import HostedSubscription, Reservation

ELEMENT_BYTES: Final = 64
"""What an element costs beside its bytes."""

MOST_TEXT: Final = 1_024
"""Bytes of the text of a publisher that failed, as over RS.io."""

FIRST_BYTES: Final = 64 << 10
"""Bytes that are kept for a client that has taken no element yet. The system of a client that reads
nothing acknowledges about as many.
"""

GIVEN_UP: Final = 5.0
"""Seconds for which an answer may be written while its client polls again."""


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
LOST: Final = Ended(404, "this subscription ended with the connection of its client: http.lost=end")


class Delivery:
    """The elements of one answer, from `start` up to `end`."""

    __slots__ = ("_kept", "began", "end", "is_poll", "is_written", "start")

    def __init__(
        self, kept: "ClientSubscription", start: int, end: int, now: float, *, is_poll: bool
    ) -> None:
        self._kept = kept
        self.start: int = start
        self.end: int = end
        self.began: float = now
        self.is_poll: bool = is_poll
        """Other polls may be answered at the same time."""
        self.is_written: bool = False

    def on_written(self) -> None:
        """The answer was written to its end."""
        self.is_written = True

    def on_lost(self) -> None:
        """The answer was not written to its end, or its connection was reset too soon."""
        self._kept.resend(self)


class ClientSubscription(Subscriber[bytes]):
    """The subscriber of a publisher, for a client that asks again and again."""

    __slots__ = (
        "_again",
        "_all_bytes",
        "_asked",
        "_bytes",
        "_collecting",
        "_deliveries",
        "_kept",
        "_max_bytes",
        "_max_elements",
        "_taken",
        "_upstream",
        "_writes",
        "base",
        "cursor",
        "ended",
        "is_polled",
        "on_change",
        "requested",
        "reservation",
        "sent",
        "used_at",
    )

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
        self._taken = 0  # bytes of the first answer that the client's system has acknowledged
        # Those that may be lost: of polls at the same time, or one for each push. Bounded by
        # `max_elements`.
        self._deliveries: list[Delivery] = []
        # Lost ones, by position: later elements were delivered. Bounded by `max_elements`.
        self._again: list[Delivery] = []
        # The answers that are being written: `size`, `element` and `abort` of `hold`. Bounded by
        # the connections of the client.
        self._writes: dict[object, tuple[int, int, Callable[[], None]]] = {}
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
        # A surrogate, as in a name of `os.listdir`, has no UTF-8; and a client takes no long answer
        # of an error.
        text = str(error).encode(errors="replace")[:MOST_TEXT].decode(errors="ignore")
        self._end(Ended(500, text))

    def on_complete(self, /) -> None:
        self._end(COMPLETED)

    def kept_bytes(self) -> int:
        """Return the bytes that wait for the client: the kept elements, and the answers that are
        being written. An answer is not counted if its elements are among the kept ones. Not named
        `held`: the front end reserves them, and they must not count twice.
        """
        held = self._bytes + ELEMENT_BYTES * len(self._kept)
        for size, element, _ in self._writes.values():
            if element < self.base:
                held += size
        return held

    def hold(self, size: int, element: int, abort: Callable[[], None]) -> Callable[[], None]:
        """Do what `Holder.hold` says. The bytes count also after the end of the stream."""
        write = object()
        self._writes[write] = size, element, abort
        if element < self.base and self.reservation is not None:
            self.reservation.note_held(size)
        return partial(self._let_go, write)

    def _let_go(self, write: object) -> None:
        del self._writes[write]
        if self.ended is not None and self.reservation is not None and not self.kept_bytes():
            self.reservation.end()

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
        return (
            self.ended is not None
            and self.cursor >= self.base + len(self._kept)
            and not self._again
        )

    @property
    def has_lost(self) -> bool:
        """Whether elements are to be sent again that come before the cursor."""
        return bool(self._again)

    @property
    def position(self) -> int:
        """The position of the first element of the next answer to a poll."""
        return self._again[0].start if self._again else self.cursor

    @property
    def is_full(self) -> bool:
        """Whether the publisher is asked for nothing because too much is kept."""
        return self._room() <= 0 and self.end >= self._asked

    @property
    def waits_for_reader(self) -> bool:
        """Whether more may be kept once the client's system has acknowledged what was sent."""
        return (
            self._most_bytes < self._max_bytes
            and len(self._kept) < self._max_elements
            and self.cursor == self.end
            and self.is_full
        )

    def note_acknowledged(self) -> None:
        """Note that the client's system has acknowledged all elements that were sent."""
        self._taken = self._bytes
        self._ask()

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
        self._again = [lost for lost in self._again if lost.start >= position]
        self._forget(position)
        self._ask()

    def go_to(self, position: int | None, now: float, *, is_poll: bool = False) -> None:
        """Begin the next answer at `position`. None: after the last answer, or at its beginning
        again if that was lost. `is_poll`: answers to other polls may still be written.
        """
        if position is not None:
            self.acknowledge(position)
            self.cursor = position
            self._deliveries, self._again = [], []
            return
        deliveries, self._deliveries = self._deliveries, []
        for delivery in deliveries:
            if delivery.is_written:
                continue  # this request says that it has arrived
            if is_poll and delivery.is_poll and now - delivery.began < GIVEN_UP:
                self._deliveries.append(delivery)
            else:
                self._give_back(delivery)
        if self._again and not is_poll:
            # The answers to other requests are one run of elements.
            self.cursor = min(self.cursor, self._again[0].start)
            self._again = []
        unsure = [delivery.start for delivery in (*self._deliveries, *self._again)]
        self._forget(min(self.cursor, *unsure) if unsure else self.cursor)
        self._ask()

    def take(
        self, most: int, most_bytes: int, now: float, into: Delivery | None = None
    ) -> tuple[list[bytes], Delivery]:
        """Take elements for an answer that grows, or for a push: `most` at most, and no more than
        `most_bytes`, unless the first one alone is longer. `into` has those of the same answer that
        were taken before.
        """
        start = self.cursor
        first = start - self.base
        elements = self._kept[first : first + min(self.requested - start, most)]
        if sum(map(len, elements)) > most_bytes:
            elements = _fitting(elements, most_bytes)
        self.cursor += len(elements)
        self.sent = max(self.sent, self.cursor)
        if into is None:
            into = self._deliver(start, self.cursor, now, is_poll=False)
        into.end = self.cursor
        return elements, into

    def take_for_poll(self, most: int, most_bytes: int, now: float) -> tuple[list[bytes], Delivery]:
        """Do the same for the answer to a poll. Those that were lost come first."""
        if not self._again:
            elements, delivery = self.take(most, most_bytes, now)
            delivery.is_poll = True
            return elements, delivery
        lost = self._again[0]
        first = lost.start - self.base
        elements = self._kept[first : first + min(lost.end - lost.start, most)]
        if sum(map(len, elements)) > most_bytes:
            elements = _fitting(elements, most_bytes)
        delivery = self._deliver(lost.start, lost.start + len(elements), now, is_poll=True)
        lost.start = delivery.end
        if lost.start == lost.end:
            del self._again[0]
        return elements, delivery

    def _deliver(self, start: int, end: int, now: float, *, is_poll: bool) -> Delivery:
        # The oldest ones are acknowledged: no more elements are kept.
        del self._deliveries[: -self._max_elements]
        delivery = Delivery(self, start, end, now, is_poll=is_poll)
        self._deliveries.append(delivery)
        return delivery

    def sent_element(self, position: int) -> bytes | None:
        """Return an element that was sent before, or None if it is not kept."""
        return self._kept[position - self.base] if self.base <= position < self.sent else None

    def forget_sent(self, keep: int) -> None:
        """Forget elements that were sent, but for the last `keep`, and for half of the bytes that
        may be kept: the client reads them from an answer that does not end.
        """
        position, most = max(self.base, self.cursor - keep), self._most_bytes // 2
        if self._bytes > most:
            # Else large elements fill all that may be kept, and no other one is requested.
            lengths = map(len, reversed(self._kept[position - self.base : self.cursor - self.base]))
            kept = sum(size <= most for size in accumulate(lengths))
            position = self.cursor - kept
        if position > self.base:
            self._forget(position)
            self._ask()

    def resend(self, delivery: Delivery) -> None:
        """Send the elements of `delivery` again, if no later request has said that they have
        arrived.
        """
        if delivery in self._deliveries:
            later = self._deliveries[self._deliveries.index(delivery) + 1 :]
            self._deliveries.remove(delivery)
            if self.base <= delivery.start:
                self._give_back(delivery)
                if not delivery.is_poll:
                    # Pushes are one after the other: those that follow were not delivered either.
                    self._deliveries = [each for each in self._deliveries if each not in later]
                self.wake()

    def _give_back(self, delivery: Delivery) -> None:
        """Let the elements of `delivery` be sent again, but for those that the client has."""
        start = max(delivery.start, self.base)
        if not delivery.is_poll or delivery.end == self.cursor:
            self.cursor = min(self.cursor, start)
        elif start < delivery.end:
            # A copy: its answer may still be written.
            lost = Delivery(self, start, delivery.end, delivery.began, is_poll=True)
            insort(self._again, lost, key=attrgetter("start"))

    def cut(self, why: str) -> None:
        """End the stream and its answers: the server needs its place or its memory."""
        self.cancel(Ended(503, why))
        for _, _, abort in tuple(self._writes.values()):
            abort()

    def cancel(self, ended: Ended = CANCELLED) -> None:
        """End the stream from this side. Nothing of it is kept."""
        self.ended = ended
        self._kept, self._bytes, self.base = [], 0, self.cursor
        self._deliveries, self._again = [], []
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
            if self.reservation is not None:
                self.reservation.taken_at = self.used_at
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

    @property
    def _most_bytes(self) -> int:
        """The bytes that may be kept: few before the client has taken any."""
        if self.base or self._taken > FIRST_BYTES:
            return self._max_bytes
        return min(FIRST_BYTES + self._taken, self._max_bytes)

    def _room(self) -> int:
        """Return how many more elements may be requested."""
        kept = len(self._kept)
        end = self.base + kept
        under_way = self._asked - end
        if not end:
            return 1 - under_way
        size = max(1, self._all_bytes // end)
        room = min(self._max_elements - kept, (self._most_bytes - self._bytes) // size)
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
