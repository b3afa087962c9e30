"""The statistics of one connection, computed when they are asked for.

Rules of this file:

* Nothing is counted here: the session and its streams keep the counts for their own work.
* Each open stream is looked at once for each direction, so the cost is that of the number of open streams.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from penstock.api import UNBOUNDED
from penstock.plugins import DirectionStatistics, PeerIdentity, PeerStatistics, StalledStream
from penstock.runtime.connection._resumption import Resumption
from penstock.session import ReceivingStream, SendingStream, Session


class StreamLook(NamedTuple):
    """What one look at a stream has found."""

    id: int
    demand: int
    progress: int
    """A number that changes if an element moves."""
    began_at: float | None
    """When the stream began, on the session's clock; None if this is not kept."""


_Seen: TypeAlias = tuple[bool, int, float | None, float]
"""Whether it had demand, its progress, when it began, and since when it has been so."""


class StallWatch:
    """Tells since when streams have not moved, by comparing each look with the one before."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}  # bounded by the open streams: each look makes it anew

    def look(self, now: float, streams: Iterable[StreamLook]) -> tuple[tuple[StreamLook, float] | None, tuple[StreamLook, float] | None]:
        """Return the stream without demand that has not moved for the longest time, and its seconds; and the same of those with demand."""
        before, seen = self._seen, dict[int, _Seen]()
        oldest: list[tuple[StreamLook, float] | None] = [None, None]
        for stream in streams:
            known, has_demand = before.get(stream.id), stream.demand > 0
            # With the time of the beginning: an id may be used again as soon as its stream has ended.
            if known is None or known[:3] != (has_demand, stream.progress, stream.began_at):
                is_untouched = known is None and not stream.progress and stream.began_at is not None
                since = stream.began_at if is_untouched and stream.began_at is not None else now
                known = (has_demand, stream.progress, stream.began_at, since)
            seen[stream.id] = known
            longest, seconds = oldest[has_demand], now - known[3]
            if longest is None or seconds > longest[1]:
                oldest[has_demand] = (stream, seconds)
        self._seen = seen
        return oldest[False], oldest[True]


class ConnectionStatistics:
    """The statistics of one connection."""

    __slots__ = ("_receiving", "_sending", "_session", "_transport", "resumption")

    def __init__(self, session: Session, transport: str) -> None:
        self._session = session
        self._transport = transport
        self.resumption: Resumption | None = None
        """The part that lets the connection go on after a loss, if it can."""
        self._sending = StallWatch()
        self._receiving = StallWatch()

    def take(self, now: float, *, peer: PeerIdentity, opened_at: float | None, buffered: int) -> PeerStatistics:
        """Return the record of now. `buffered` is what the connection holds."""
        session = self._session
        return PeerStatistics(
            protocol=session.channel.dialect.name,
            transport=self._transport,
            is_open=opened_at is not None and not session.state.is_closing,
            age=None if opened_at is None else now - opened_at,
            sending=self._take_sending(now, peer),
            receiving=self._take_receiving(now, peer),
            sent_bytes=session.outbox.taken_bytes,
            received_bytes=session.received_bytes,
            buffered_bytes=buffered,
            retained_bytes=0 if session.outbox.retained is None else session.outbox.retained.held,
            is_suspended=self.resumption is not None and self.resumption.is_suspended,
            resumed=0 if self.resumption is None else self.resumption.resumed,
        )

    def _take_sending(self, now: float, peer: PeerIdentity) -> DirectionStatistics:
        serving, requests = self._session.streams.serving, self._session.channel.budgets.requests
        looks = [_look_at_sending(stream) for stream in serving.values()]
        without_demand, without_elements = self._sending.look(now, looks)
        return DirectionStatistics(
            streams=len(looks),
            opened=requests.streams,
            demand=sum(look.demand for look in looks if look.demand < UNBOUNDED),
            unbounded=sum(look.demand == UNBOUNDED for look in looks),
            elements=requests.requested - sum(stream.outstanding for stream in serving.values()),
            without_demand=_stalled(without_demand, peer, serving),
            without_elements=_stalled(without_elements, peer, serving),
        )

    def _take_receiving(self, now: float, peer: PeerIdentity) -> DirectionStatistics:
        streams, received = self._session.streams, self._session.channel.budgets.received
        # A stream that was cancelled leaves its place to another object, whose elements nothing waits for.
        opened = [stream for stream in streams.opened.values() if isinstance(stream, ReceivingStream)]
        looks = [StreamLook(stream.id, stream.outstanding, stream.outstanding, None) for stream in opened]
        without_demand, without_elements = self._receiving.look(now, looks)
        return DirectionStatistics(
            streams=len(looks),
            opened=streams.use.asked,
            demand=sum(look.demand for look in looks if look.demand < UNBOUNDED),
            unbounded=sum(look.demand == UNBOUNDED for look in looks),
            elements=received.total(look.demand for look in looks),
            without_demand=_stalled(without_demand, peer, {}),
            without_elements=_stalled(without_elements, peer, {}),
        )


def _look_at_sending(stream: SendingStream) -> StreamLook:
    outstanding, run = stream.outstanding, stream.run
    # Demand without bound stays so, also while a part of it is requested from the publisher.
    demand = min(UNBOUNDED, stream.available + outstanding)
    # The publisher appends to the run without a call; the stream counts these elements later.
    progress = stream.sent if run is None else stream.sent + len(run.elements) - run.counted
    return StreamLook(stream.id, demand, progress, stream.began_at)


def _stalled(found: tuple[StreamLook, float] | None, peer: PeerIdentity, serving: Mapping[int, SendingStream]) -> StalledStream | None:
    if found is None:
        return None
    stream, seconds = found
    # Looked up here, for one stream: a text for each stream would cost more than the rest of the look.
    target = serving[stream.id].target if stream.id in serving else None
    publisher = "" if target is None else str(target)
    return StalledStream(peer=peer, stream=stream.id, publisher=publisher, demand=stream.demand, seconds=seconds)


def sum_of_directions(each: Iterable[DirectionStatistics]) -> DirectionStatistics:
    """Return the sum of several connections, with the oldest stalled streams of all of them."""
    directions = tuple(each)
    return DirectionStatistics(
        streams=sum(one.streams for one in directions),
        opened=sum(one.opened for one in directions),
        demand=sum(one.demand for one in directions),
        unbounded=sum(one.unbounded for one in directions),
        elements=sum(one.elements for one in directions),
        without_demand=_oldest(one.without_demand for one in directions),
        without_elements=_oldest(one.without_elements for one in directions),
    )


def _oldest(stalled: Iterable[StalledStream | None]) -> StalledStream | None:
    return max((one for one in stalled if one is not None), key=lambda one: one.seconds, default=None)
