"""The streams that belong to a server and to no connection:
those that transports open with `ConnectionHost.open`.

Rules of this file:

* A client has at most `Limits.max_subscriptions` of them, and all clients together
  `Limits.max_connections`: in one of several workers the first, and its part of the second. A
  client is a principal, or else an origin.
* A reservation whose client has asked for no element gives way to a newcomer, the oldest first.
* A stream keeps its place until its publisher has stopped.
* The bytes that a subscriber holds count against `Limits.memory_budget`.
  The stream that holds most ends if that is used up; before it those whose clients have taken
  nothing lately.
* A stream may lend a batch to its publisher, which appends elements without a call. They count when
  the stream looks: `collect`, `on_reservation_used`, the next signal. Until then they are in
  `held()`.
* When the server stops, the streams end after the connections.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import count
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

import trio

from penstock.api import (
    NO_SUCH,
    UNBOUNDED,
    BatchingSubscriber,
    LimitExceeded,
    Limits,
    NotAvailable,
    PublisherFailed,
    SharedBatch,
    Subscriber,
    UsageError,
    held_of,
    quoted_text,
    shown,
)
from penstock.client import LONGEST_NAME, OpenStream, read_pipe
from penstock.core import CLEANUP_SECONDS, ElementRelay, Scope, SourceMemory, report
from penstock.runtime.connection import (
    Authorizer,
    ConnectionEvents,
    ConnectionSettings,
)
from penstock.runtime.server._origin import origin_of
from penstock.runtime.server._refusals import PER_CLIENT, STREAMS, UNASKED
from penstock.runtime.service import (
    CannotOpen,
    FactoryFailed,
    NoSlot,
    OnEnd,
    PublishedStreams,
    StreamSlots,
    UnfitPayload,
)
from penstock.session import OBJECT_BYTES, TASK_BYTES, OldestStream, StreamLook, longest_beside
from penstock.spi import (
    DirectionStatistics,
    HostedSubscription,
    Outcome,
    PeerIdentity,
    Reservation,
    StalledStream,
    Standing,
    waits_for,
)

STOPPED: Final = "the server shuts down"
_BYTES: Final = {bytes}
SLOW_SECONDS: Final = 1.0
"""A client that has taken no element for longer goes first if the memory is full."""

GAVE_WAY: Final = "another client needed the place: no element was asked for"

_numbers: Final = count(1)

OnRefused: TypeAlias = Callable[[str, PeerIdentity, str], None]
"""Called with the reason, the client, and the address of the server."""


class HostedStreams:
    """The streams of one server."""

    def __init__(self, settings: ConnectionSettings, most: int) -> None:
        """`most` is the number of streams that all clients together may have."""
        self.settings: ConnectionSettings = settings
        self._most = most
        # The streams of each client; bounded by Limits.max_connections.
        self._counts: Counter[Hashable] = Counter()
        # Those of each client; bounded as the streams are.
        self._reservations: Counter[Hashable] = Counter()
        self._streams: set[HostedStream] = set()
        # Bounded as the streams are; the oldest is the first.
        self._reserved: dict[_Reservation, None] = {}
        self._unasked: dict[_Reservation, None] = {}
        self._unasked_of: dict[Hashable, dict[_Reservation, None]] = {}
        self._oldest: OldestStream | None = None  # made with the first look
        # Apart: a look of one kind must not be what the other compares with. From the start: a
        # census of objects finds no more of them later.
        self._stalled = OldestStream()
        self._opened = self._elements = 0
        """Those since the beginning; the elements without those of open streams."""
        self.on_refused: OnRefused = _tell_nobody
        """Called for each stream that is refused, and for each that gives way."""
        self.scope: Scope
        """Runs the publishers, and the tasks of transports. Set by `start`."""
        self.is_stopping: bool = False

    def start(self, nursery: trio.Nursery) -> None:
        """Run the tasks in `nursery`."""
        settings = self.settings
        self.scope = Scope(
            nursery,
            on_violation=settings.on_violation,
            # A cleanup of five seconds would make a shutdown longer than `drain`.
            cleanup_timeout=min(CLEANUP_SECONDS, settings.limits.drain),
            max_hold_up=settings.limits.max_hold_up,
        )

    @property
    def is_used(self) -> bool:
        """Whether anything runs."""
        return bool(self._streams) or self.scope.running > 0

    def stop(self) -> None:
        """End every stream, reservation and task."""
        self.is_stopping = True
        # A copy: a stream that ends removes itself.
        for stream in tuple(self._streams):
            stream.end(PublisherFailed(STOPPED))
        # Their transports end with the server, and with them the elements that they held for
        # clients.
        for reservation in tuple(self._reserved):
            reservation.end()
        self.scope.cancel()

    async def open(
        self,
        name: str,
        peer: PeerIdentity,
        subscriber: Subscriber[Any],
        *,
        protocol: str,
        address: str,
        collects: bool = False,
        reservation: Reservation | None = None,
        trace: str = "",
    ) -> None:
        """Do what `ConnectionHost.open` says."""
        self._opened += 1
        events = ConnectionEvents(self.settings.registry.events, address=address, accepted=True)
        reason = await self._refusal(name, peer)
        try:
            if reason:
                # In the words for a missing name: a client must not learn which names exist.
                raise NotAvailable(NO_SUCH)
            self._attach(
                name,
                peer,
                subscriber,
                protocol,
                events,
                address,
                collects=collects,
                reservation=reservation,
                trace=trace,
            )
        except LimitExceeded as full:
            reason = str(full)
            raise
        except CannotOpen as error:
            reason = str(error)
            # The text of these two is for the peer.
            # A forbidden name has the answer of a missing one.
            raise (
                PublisherFailed(str(error))
                if isinstance(error, FactoryFailed | UnfitPayload)
                else NotAvailable(NO_SUCH)
            ) from None
        finally:
            # A stream that was refused has no end that would write a line.
            if reason and events.access is not None:
                events.access.write_line(
                    peer,
                    "stream",
                    f"name={quoted_text(name)} outcome=refused reason={quoted_text(reason)}",
                )

    def reserve(
        self,
        peer: PeerIdentity,
        held: Callable[[], int],
        on_cut: Callable[[str], None],
        *,
        address: str,
    ) -> Reservation:
        """Do what `ConnectionHost.reserve` says."""
        slots = self._slots_of(peer, self._reservations)
        while reason := slots.lacks:
            waiting = self._unasked_of.get(slots.client) if reason == PER_CLIENT else self._unasked
            if not waiting:
                raise self._refuse(reason, peer, address)
            next(iter(waiting)).give_way()
        slots.take()
        # Elements that wait for a client that polls outlive their stream: without this they counted
        # neither as places nor as bytes.
        reservation = _Reservation(self, slots, held, on_cut, peer, address)
        self._reserved[reservation] = None
        self._unasked[reservation] = None
        self._unasked_of.setdefault(slots.client, {})[reservation] = None
        if self.settings.budget is not None:
            self.settings.budget.add(reservation, origin_of(peer))
        return reservation

    def held(self) -> int:
        """Return the bytes that clients make the server hold beside their connections."""
        return sum(stream.held() for stream in self._streams) + sum(
            reservation.held() for reservation in self._reserved
        )

    def open_streams(self) -> Iterator[OpenStream]:
        """Look at the streams that are open."""
        if self._oldest is None:
            self._oldest = OldestStream()
        now, streams = trio.current_time(), tuple(self._streams)
        self._oldest.look(now, [each.look() for each in streams])
        for each in streams:
            # Numbered by the first look: a stream at which nobody looks needs no number.
            if not each.number:
                each.number = next(_numbers)
            yield each.opened(self._oldest.seconds(id(each), now))

    def statistics(self) -> DirectionStatistics:
        """Return the numbers of all streams."""
        now, streams = trio.current_time(), tuple(self._streams)
        looks = {id(each): each.look() for each in streams}
        by_id = {id(each): each for each in streams}
        idle, waiting = (
            None if found is None else by_id[found[0].id].stalled(found[0].demand, found[1])
            for found in self._stalled.look(now, looks.values())
        )
        demands = [look.demand for look in looks.values()]
        return DirectionStatistics(
            streams=len(streams),
            opened=self._opened,
            demand=sum(each for each in demands if each < UNBOUNDED),
            unbounded=sum(each >= UNBOUNDED for each in demands),
            elements=self._elements + sum(look.progress for look in looks.values()),
            without_demand=idle,
            without_elements=waiting,
        )

    def note_asked(self, reservation: "_Reservation") -> None:
        """Let `reservation` give way no more."""
        if reservation not in self._unasked:
            return  # it was noted before
        del self._unasked[reservation]
        client = reservation.client
        of_client = self._unasked_of[client]
        del of_client[reservation]
        if not of_client:
            del self._unasked_of[client]

    def forget_reservation(self, reservation: "_Reservation") -> None:
        """Count `reservation` no more."""
        self.note_asked(reservation)
        self._reserved.pop(reservation, None)
        if self.settings.budget is not None:
            self.settings.budget.remove(reservation)

    def _slots_of(self, peer: PeerIdentity, counts: Counter[Hashable]) -> "_ClientSlots":
        limits = self.settings.limits
        return _ClientSlots(counts, _client_of(peer), limits.max_subscriptions, self._most)

    def _refuse(self, reason: str, peer: PeerIdentity, address: str) -> LimitExceeded:
        """Count a refusal, and return its error."""
        self.on_refused(reason, peer, address)
        return _no_place(self.settings.limits, self._most, reason)

    async def _refusal(self, name: str, peer: PeerIdentity) -> str:
        """Return the reason, for the log of this side, for which `peer` may not have `name`;
        "" if it may.
        """
        settings, service = self.settings, self.settings.service
        if self.is_stopping:
            return STOPPED
        # Judged here, because no decoder of penstock has read this name.
        if len(name.encode()) > settings.limits.max_name:
            return "the name is longer than Limits.max_name"
        # setup= and authenticate= examine clients before anything is served. A transport that calls
        # neither must get no stream.
        if service.is_guarded:
            return "the service has setup=, which examines clients of ReactiveSocket only"
        if service.authenticate is not None and peer.principal is None:
            return "the client was not authenticated"
        if service.authorize is None:
            return ""
        return await Authorizer(service, service.authorize, settings.on_violation).ask(name, peer)

    def _attach(  # noqa: PLR0913  # made in one place, with keywords
        self,
        name: str,
        peer: PeerIdentity,
        subscriber: Subscriber[Any],
        protocol: str,
        events: ConnectionEvents,
        address: str,
        *,
        collects: bool,
        reservation: Reservation | None,
        trace: str,
    ) -> None:
        settings = self.settings
        slots = self._slots_of(peer, self._counts)
        note_bytes = None if settings.budget is None else settings.budget.note_bytes
        memory = SourceMemory(slots.client, note_bytes)

        def observe(pattern: str) -> OnEnd | None:
            # Called when the look-up has succeeded: a stream that is refused is not reported.
            events.start(None, trio.current_time)
            events.report_opened(peer, protocol)
            began_at = events.report_begin(0, name, pattern)
            count = (
                None if settings.publishers is None else settings.publishers.begin_hosted(pattern)
            )
            if count is None and not events.wants_ends:
                return None
            return partial(_report_end, events, hosted, name, pattern, began_at, count)

        # `authorized`: `_refusal` has asked the function.
        published = PublishedStreams(
            settings.service,
            settings.registry,
            places=slots,
            on_violation=settings.on_violation,
            observe=observe,
            authorized=True,
            memory=memory,
        )
        # The stream is reported as ended before its connection is reported as closed,
        # and each of them once.
        hosted = HostedStream(
            subscriber,
            self,
            memory,
            None if events.wants_ends else events,
            facts=HostedFacts(name, peer, protocol, address, trio.current_time(), trace),
            collects=collects,
            reservation=reservation,
        )
        # Before `open`, in which the stream may end and be forgotten.
        self._streams.add(hosted)
        if settings.budget is not None:
            settings.budget.add(hosted, origin_of(peer))
        try:
            published.open(name, peer, hosted, self.scope)
        except NoSlot:
            # Nothing was reported as opened, so nothing is reported as closed.
            self.forget(None, hosted)
            raise self._refuse(slots.lacks, peer, address) from None
        except BaseException:
            self.forget(None, hosted)
            raise

    def forget(self, events: ConnectionEvents | None, stream: "HostedStream") -> None:
        """Free what the server holds for a stream that has ended."""
        self._streams.discard(stream)
        self._elements += stream.elements
        if self.settings.budget is not None:
            self.settings.budget.remove(stream)
        if events is not None:
            events.report_closed("closed", None)


def transport_of(address: str) -> str:
    """Return the scheme of the transport of a server's address."""
    return address.partition(":")[0].rpartition("+")[2]


def _tell_nobody(_reason: str, _peer: PeerIdentity, _address: str) -> None:
    """Do nothing about a refusal."""


def _no_place(limits: Limits, most_in_all: int, reason: str) -> LimitExceeded:
    if reason == STREAMS:
        return LimitExceeded(
            f"all clients together have as many streams over requests as they may have "
            f"({most_in_all:,})",
            limit="max_connections",
            value=most_in_all,
        )
    most = limits.max_subscriptions
    return LimitExceeded(
        f"a client has as many streams as it may have ({most:,})",
        limit="max_subscriptions",
        value=most,
    )


def _client_of(peer: PeerIdentity) -> Hashable:
    """Return what is the same for all streams of one client."""
    principal = peer.principal
    # A principal of the program may be any object. One that cannot be compared leaves the origin.
    if principal is not None and isinstance(principal, str | int | bytes | tuple):
        return "principal", principal
    return origin_of(peer)


def _report_end(
    events: ConnectionEvents,
    stream: "HostedStream",
    name: str,
    pattern: str,
    began_at: float,
    count: Callable[[Outcome, int, int, float], None] | None,
    outcome: Outcome,
    error: BaseException | None,
) -> None:
    if count is not None:
        count(outcome, stream.elements, stream.bytes, began_at)
    if events.wants_ends:
        events.report_end(
            0,
            name,
            outbound=True,
            outcome=outcome,
            error=error,
            elements=stream.elements,
            size=stream.bytes,
            began_at=began_at,
            pattern=pattern,
        )
        events.report_closed("closed", None)


class _ClientSlots(StreamSlots):
    """The places of one client, counted in the table of the server."""

    __slots__ = ("_all", "_counts", "_most", "client")

    def __init__(
        self, counts: Counter[Hashable], client: Hashable, most: int, most_in_all: int
    ) -> None:
        self._counts = counts
        self.client: Hashable = client
        self._most = most
        self._all = most_in_all

    @property
    def lacks(self) -> str:
        """The reason for which no place is free; empty if one is."""
        # Both bounds: a client with many addresses gets no more than all clients together.
        if self._counts[self.client] >= self._most:
            return PER_CLIENT
        return STREAMS if self._counts.total() >= self._all else ""

    def take(self) -> bool:
        if self.lacks:
            return False
        self._counts[self.client] += 1
        return True

    def free(self) -> None:
        self._counts[self.client] -= 1
        # A table of every client that ever came would grow without bound.
        if not self._counts[self.client]:
            del self._counts[self.client]

    def keep(self, size: int, /) -> None:
        """Do nothing: the place is taken already."""

    def free_kept(self, size: int, /) -> None:
        self.free()

    def tasks_stopped(self) -> None:
        """Do nothing: only a place that becomes free matters here."""


class _Reservation(Reservation):
    """Bytes that a client makes the server hold beyond the end of a stream. A `MemoryHolder`."""

    __slots__ = (
        "_address",
        "_on_cut",
        "_owner",
        "_peer",
        "_slots",
        "client",
        "held",
    )

    def __init__(
        self,
        owner: HostedStreams,
        slots: "_ClientSlots",
        held: Callable[[], int],
        on_cut: Callable[[str], None],
        peer: PeerIdentity,
        address: str,
    ) -> None:
        self._owner = owner
        self._slots: _ClientSlots | None = slots
        self._on_cut = on_cut
        self._peer = peer
        self._address = address
        self.client: Hashable = slots.client
        self.held: Callable[[], int] = held
        self.taken_at = -inf

    @property
    def goes_first(self) -> bool:
        """True if the client has taken nothing lately: one that reads keeps its elements, also
        beside many clients of its address that do not.
        """
        return trio.current_time() - self.taken_at > SLOW_SECONDS

    def note_asked(self) -> None:
        self._owner.note_asked(self)

    def note_held(self, size: int, /) -> None:
        budget = self._owner.settings.budget
        if budget is not None:
            budget.note_bytes(size)

    def end(self) -> None:
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.free()
            self._owner.forget_reservation(self)

    def give_way(self) -> None:
        """End: another client needs the place."""
        self._owner.on_refused(UNASKED, self._peer, self._address)
        self._on_cut(GAVE_WAY)
        self.end()

    def close_for_memory(self, why: LimitExceeded, told: str, /) -> None:
        """Let the bytes go."""
        report(self._owner.settings.on_violation, why)
        self._on_cut(told)


class _Batch:
    """The open batch of a stream. A `SharedBatch`."""

    __slots__ = ("elements", "longest")

    def __init__(self, longest: int) -> None:
        self.elements: list[bytes] = []  # bounded by the demand, and by `longest` for each
        self.longest: int = longest

    def held(self) -> int:
        """Return the bytes of the elements and of their objects."""
        return sum(map(len, self.elements)) + OBJECT_BYTES * len(self.elements)


class HostedFacts(NamedTuple):
    """What the record of a stream tells of its beginning."""

    name: str
    peer: PeerIdentity
    protocol: str
    address: str
    began_at: float
    trace: str = ""


NO_FACTS: Final = HostedFacts("", PeerIdentity(address=""), "", "", 0.0)


class HostedStream(ElementRelay[Any], HostedSubscription):
    """One stream: it checks the elements, counts their bytes, and can be ended by the server.
    A `MemoryHolder`, and a `BatchingSubscriber`.
    """

    __slots__ = (
        "_batch",
        "_collects",
        "_events",
        "_expected",
        "_facts",
        "_memory",
        "_owner",
        "_requested",
        "_reservation",
        "_settings",
        "bytes",
        "elements",
        "number",
    )

    def __init__(
        self,
        subscriber: Subscriber[Any],
        owner: "HostedStreams",
        memory: SourceMemory,
        events: ConnectionEvents | None,
        *,
        facts: HostedFacts = NO_FACTS,
        collects: bool = False,
        reservation: Reservation | None = None,
    ) -> None:
        """`memory` is of the sources of this stream. `events` are told at the end that the
        connection is closed; None if the report of the stream's end tells them. `collects`: the
        subscriber asks for elements that were not signalled.
        """
        super().__init__(subscriber)
        self._owner: HostedStreams | None = owner
        self._memory = memory
        self._events = events
        self._settings = owner.settings
        self._collects = collects
        self._reservation = reservation
        self._facts = facts
        self._requested = 0
        self._batch: _Batch | None = None
        self._expected = 0
        """The usual length of an element; 0 before the first."""
        self.number: int = 0
        """Tells it from others, from the first look on."""
        self.elements: int = 0
        """How many were passed on."""
        self.bytes: int = 0
        """Their bytes."""

    @property
    def goes_first(self) -> bool:
        """As the reservation of its client: both hold elements that the client has not taken."""
        return isinstance(self._reservation, _Reservation) and self._reservation.goes_first

    # --- elements

    def on_next(self, element: Any, /) -> None:
        self.on_next_many((element,))
        # Behind the signal, by which the subscriber knows that there is something to collect.
        if self._collects and self._subscriber is not None:
            self._batch = _Batch(longest_beside(self._expected, self._settings.limits.max_element))

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Take elements that the publisher has at hand."""
        if self._batch is not None:
            self.on_reservation_used()  # they came before these
        if self._subscriber is None or not elements:
            return
        # Two passes in C for the usual case:
        # a look at each element in Python costs more than all the rest here.
        if (
            set(map(type, elements)) == _BYTES
            and max(map(len, elements)) <= self._settings.limits.max_element
        ):
            self._pass_on(elements)
            return
        self._pass_on_checked(elements)

    @property
    def lender(self) -> BatchingSubscriber | None:
        """The stream itself, if its subscriber collects: publishers append to `run`."""
        return self if self._collects else None

    @property
    def run(self) -> SharedBatch | None:
        """The open batch."""
        return self._batch

    def on_reservation_used(self) -> None:
        """Signal the batch: the publisher has made all that was requested."""
        elements = self._close_batch()
        if elements:
            self._pass_on(elements)

    def collect(self) -> Sequence[bytes]:
        if self._batch is None:
            return ()
        elements = self._close_batch()
        if elements:
            self._count(elements)
        # The measurement may have ended this stream.
        return () if self._subscriber is None else elements

    def _close_batch(self) -> Sequence[bytes]:
        """Return the elements of the batch. From now on elements are signalled."""
        batch, self._batch = self._batch, None
        if batch is None:
            return ()
        # The publisher may still refer to it. It appends nothing to a closed one.
        batch.longest = -1
        return batch.elements

    def _pass_on(self, elements: Sequence[bytes]) -> None:
        self._count(elements)
        # The measurement may have ended this stream.
        subscriber = self._subscriber
        if subscriber is None:
            return
        many = getattr(subscriber, "on_next_many", None)  # as `on_next_many_of`, without its call
        if many is not None:
            many(elements)
            return
        for each in elements:
            subscriber.on_next(each)

    def _count(self, elements: Sequence[bytes]) -> None:
        count, size = len(elements), sum(map(len, elements))
        self.elements += count
        self.bytes += size
        self._expected = self.bytes // self.elements
        if self._settings.budget is not None:
            self._settings.budget.note_bytes(size)

    def _pass_on_checked(self, elements: Sequence[Any]) -> None:
        sendable: list[bytes] = []
        max_element = self._settings.limits.max_element
        failure: UsageError | None = None
        for element in elements:
            if not isinstance(element, bytes | bytearray | memoryview):
                failure = UsageError(
                    f"a publisher has published {shown(element)}; give bytes, or a serializer"
                )
            elif len(element) > max_element:
                failure = UsageError(
                    f"a publisher has published {len(element):,} bytes; {max_element:,} are "
                    "allowed (max_element)"
                )
            else:
                # A copy of a bytearray: the publisher may change it while it waits.
                sendable.append(element if type(element) is bytes else bytes(element))
                continue
            # The elements before it arrive, and those after it do not.
            break
        if sendable:
            self._pass_on(sendable)
        if failure is not None:
            report(self._settings.on_violation, failure)
            self.end(PublisherFailed("the publisher failed"))

    # --- the subscription

    def request(self, n: int, /) -> None:
        # The budget hears of elements before they are made, and again when they are counted: a
        # publisher may fill the batch in part, and then wait for hours.
        if self._expected and self._settings.budget is not None:
            self._settings.budget.note_bytes(n * self._expected)
        self._requested += n
        super().request(n)

    # --- for those who look at it

    def look(self) -> StreamLook:
        """Look at the stream: its demand, and a number that changes if an element moves."""
        delivered = self.elements + (0 if self._batch is None else len(self._batch.elements))
        return StreamLook(
            id(self), max(0, self._requested - delivered), delivered, self._facts.began_at
        )

    def stalled(self, demand: int, seconds: float) -> StalledStream:
        """Return the record of the stream as one that does not move."""
        # It has no number on a connection.
        name = self._facts.name[:LONGEST_NAME]
        return StalledStream(
            peer=self._facts.peer, stream=0, publisher=name, demand=demand, seconds=seconds
        )

    def opened(self, still: float) -> OpenStream:
        """Return the record of the stream, which has not moved for `still` seconds."""
        facts, look = self._facts, self.look()
        # What the subscriber holds was delivered to it, and its client has not taken it.
        held, reservation = held_of(self._subscriber), self._reservation
        unsent = 0 if held is None else held()
        if isinstance(reservation, _Reservation):
            unsent += reservation.held()
        demand = look.demand
        waits = waits_for(Standing(outbound=True, demand=demand, owed=demand, unsent=unsent))
        opened = OpenStream(
            self,
            {
                "key": f"h{self.number}",
                "name": facts.name[:LONGEST_NAME],
                "outbound": True,
                "peer": facts.peer,
                "local": "",
                "protocol": facts.protocol,
                "transport": transport_of(facts.address),
                "stream": 0,
                "trace": facts.trace,
                "state": "live",
                "requested": min(UNBOUNDED, self._requested),
                "delivered": look.progress,
                "demand": min(UNBOUNDED, demand),
                "held": unsent,
                "serializer": "",
                "still": still,
                "waits_for": waits,
                "limit": "",
            },
        )
        read_pipe(opened, self._upstream)
        return opened

    # --- the end

    def on_error(self, error: BaseException, /) -> None:
        self.on_reservation_used()  # all elements come before it
        super().on_error(error)

    def on_complete(self, /) -> None:
        self.on_reservation_used()
        super().on_complete()

    def end(self, error: PublisherFailed) -> None:
        """Cancel the publisher, and signal `error`."""
        # Taken before `_detach`, which drops both sides.
        upstream = self._upstream
        subscriber = self._detach()
        if upstream is not None:
            upstream.cancel()
        if subscriber is not None:
            subscriber.on_error(error)

    def held(self) -> int:
        """Return the bytes that the client makes the server hold for this stream."""
        held, batch = held_of(self._subscriber), self._batch
        # Also without an element: the publisher's task is held for this client.
        return (
            TASK_BYTES
            + self._memory.held
            + (0 if held is None else held())
            + (0 if batch is None else batch.held())
        )

    def close_for_memory(self, why: LimitExceeded, told: str, /) -> None:
        """End: of all connections and streams this one holds the most, and together they hold too
        much.
        """
        report(self._settings.on_violation, why)
        self.end(PublisherFailed(told))

    def _detach(self) -> Subscriber[Any] | None:
        # Moved out, because each kind of end comes here, and a stream ends once.
        owner, self._owner = self._owner, None
        self._close_batch()
        subscriber = super()._detach()
        if owner is not None:
            owner.forget(self._events, self)
        return subscriber
