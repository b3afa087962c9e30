"""The counts and the waits of a session's streams: computed when they are asked for.

Rules of this file:

* Nothing is counted here: the session and its streams keep the counts for their own work.
* Each open stream is looked at once for each direction, so the cost is
  that of the number of open streams.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from penstock.api import UNBOUNDED
from penstock.session._receiving_stream import ReceivingStream
from penstock.session._sending_stream import SendingStream
from penstock.session._session import Session


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


class OldestStream:
    """Tells since when streams have not moved, by comparing each look with the one before."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}  # bounded by the open streams: each look makes it anew

    def seconds(self, stream_id: int, now: float) -> float:
        """Return for how long a stream has not moved, as the last look has seen it."""
        known = self._seen.get(stream_id)
        return 0.0 if known is None else now - known[3]

    def look(
        self, now: float, streams: Iterable[StreamLook]
    ) -> tuple[tuple[StreamLook, float] | None, tuple[StreamLook, float] | None]:
        """Return the stream without demand that has not moved for the longest time, and its
        seconds; and the same of those with demand.
        """
        before, seen = self._seen, dict[int, _Seen]()
        oldest: list[tuple[StreamLook, float] | None] = [None, None]
        for stream in streams:
            known, has_demand = before.get(stream.id), stream.demand > 0
            # With the time of the beginning:
            # an id may be used again as soon as its stream has ended.
            if known is None or known[:3] != (has_demand, stream.progress, stream.began_at):
                # Seen for the first time without any movement:
                # it has stood since it began, and not since this look.
                is_untouched = known is None and not stream.progress and stream.began_at is not None
                since = stream.began_at if is_untouched and stream.began_at is not None else now
                known = (has_demand, stream.progress, stream.began_at, since)
            seen[stream.id] = known
            # Apart, because they have different causes:
            # the subscriber does not request, or the publisher has nothing.
            longest, seconds = oldest[has_demand], now - known[3]
            if longest is None or seconds > longest[1]:
                oldest[has_demand] = (stream, seconds)
        self._seen = seen
        return oldest[False], oldest[True]


class StalledCounts(NamedTuple):
    """A stream on which no element moves."""

    stream: int
    publisher: str
    """The publisher's name; empty for a stream of the peer."""
    demand: int
    seconds: float
    """The time since the last movement that was noticed."""


class DirectionCounts(NamedTuple):
    """The streams of one direction. The fields are those of `penstock.spi.DirectionStatistics`."""

    streams: int
    opened: int
    demand: int
    unbounded: int
    elements: int
    without_demand: StalledCounts | None
    without_elements: StalledCounts | None


class SessionCounts:
    """The counts of one session, in both directions."""

    __slots__ = ("_receiving", "_sending", "_session")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sending = OldestStream()
        self._receiving = OldestStream()

    def sending(self, now: float) -> DirectionCounts:
        """Return the counts of the streams that this side publishes."""
        serving, requests = self._session.streams.serving, self._session.channel.budgets.requests
        looks = [look_at_sending(stream) for stream in serving.values()]
        without_demand, without_elements = self._sending.look(now, looks)
        # An element that was requested and is not outstanding has come:
        # so none is counted by itself.
        return DirectionCounts(
            streams=len(looks),
            opened=requests.streams,
            demand=sum(look.demand for look in looks if look.demand < UNBOUNDED),
            unbounded=sum(look.demand == UNBOUNDED for look in looks),
            elements=requests.requested - sum(stream.outstanding for stream in serving.values()),
            without_demand=_stalled(without_demand, serving),
            without_elements=_stalled(without_elements, serving),
        )

    def receiving(self, now: float) -> DirectionCounts:
        """Return the counts of the streams that this side has subscribed to."""
        streams, received = self._session.streams, self._session.channel.budgets.received
        # A stream that was cancelled leaves its place to another object,
        # whose elements nothing waits for.
        opened = [
            stream for stream in streams.opened.values() if isinstance(stream, ReceivingStream)
        ]
        looks = [look_at_receiving(stream) for stream in opened]
        without_demand, without_elements = self._receiving.look(now, looks)
        return DirectionCounts(
            streams=len(looks),
            opened=streams.use.asked,
            demand=sum(look.demand for look in looks if look.demand < UNBOUNDED),
            unbounded=sum(look.demand == UNBOUNDED for look in looks),
            elements=received.total(look.demand for look in looks),
            without_demand=_stalled(without_demand, {}),
            without_elements=_stalled(without_elements, {}),
        )


def look_at_receiving(stream: ReceivingStream) -> StreamLook:
    """Look at a stream that this side has subscribed to."""
    # Elements lower the demand that is left, and requests raise it:
    # a stream moves if this number changes.
    return StreamLook(stream.id, stream.outstanding, stream.outstanding, None)


def look_at_sending(stream: SendingStream) -> StreamLook:
    """Look at a stream that this side publishes."""
    outstanding, run = stream.outstanding, stream.run
    # Demand without bound stays so, also while a part of it is requested from the publisher.
    demand = min(UNBOUNDED, stream.available + outstanding)
    # The publisher appends to the run without a call; the stream counts these elements later.
    progress = stream.sent if run is None else stream.sent + len(run.elements) - run.counted
    return StreamLook(stream.id, demand, progress, stream.began_at)


def _stalled(
    found: tuple[StreamLook, float] | None, serving: Mapping[int, SendingStream]
) -> StalledCounts | None:
    if found is None:
        return None
    stream, seconds = found
    # Looked up here, for one stream: a text for each stream would cost more than the rest of the
    # look.
    target = serving[stream.id].target if stream.id in serving else None
    return StalledCounts(stream.id, "" if target is None else str(target), stream.demand, seconds)
