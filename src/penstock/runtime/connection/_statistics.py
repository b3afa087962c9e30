"""The statistics of one connection, computed when they are asked for."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from penstock.client import OpenStream, SessionStreams
from penstock.runtime.connection._resumption import Resumption
from penstock.session import Session, SessionCounts
from penstock.spi import (
    DirectionStatistics,
    PeerIdentity,
    PeerStatistics,
    PublisherStatistics,
    StalledStream,
    direction_statistics,
)


class ConnectionStatistics:
    """The statistics of one connection."""

    __slots__ = ("_counts", "_session", "_streams", "_transport", "resumption")

    def __init__(self, session: Session, transport: str) -> None:
        self._session = session
        self._transport = transport
        self.resumption: Resumption | None = None
        """The part that lets the connection go on after a loss, if it can."""
        self._counts = SessionCounts(session)
        self._streams: SessionStreams | None = None  # made with the first look

    def streams(
        self,
        now: float,
        *,
        number: int,
        peer: PeerIdentity,
        local: str,
        in_flight: int,
        content_of: Callable[[Any], tuple[str, str] | None],
    ) -> Iterator[OpenStream]:
        """Look at the streams that are open."""
        if self._streams is None:
            self._streams = SessionStreams(self._session)
        return self._streams.take(
            now,
            number=number,
            peer=peer,
            local=local,
            transport=self._transport,
            in_flight=in_flight,
            is_suspended=self.resumption is not None and self.resumption.is_suspended,
            content_of=content_of,
        )

    def take(
        self,
        now: float,
        *,
        peer: PeerIdentity,
        opened_at: float | None,
        buffered: int,
        publishers: Mapping[str, PublisherStatistics],
    ) -> PeerStatistics:
        """Return the record of now. `buffered` is what the connection holds."""
        session = self._session
        return PeerStatistics(
            protocol=session.channel.dialect.name,
            transport=self._transport,
            # A connection that is closing takes no request any more.
            is_open=opened_at is not None and not session.state.is_closing,
            age=None if opened_at is None else now - opened_at,
            sending=direction_statistics(peer, self._counts.sending(now)),
            receiving=direction_statistics(peer, self._counts.receiving(now)),
            sent_bytes=session.outbox.taken_bytes,
            received_bytes=session.received_bytes,
            buffered_bytes=buffered,
            retained_bytes=0 if session.outbox.retained is None else session.outbox.retained.held,
            is_suspended=self.resumption is not None and self.resumption.is_suspended,
            resumed=0 if self.resumption is None else self.resumption.resumed,
            publishers=publishers,
        )


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
    return max(
        (one for one in stalled if one is not None), key=lambda one: one.seconds, default=None
    )
