"""The statistics of a connection and of a server:
frozen records, made when a program or a plugin asks for them.

Rules of this file:

* A number that only grows has counted everything since the beginning, also what ended long ago.
  Each other number is that of one time.
* No element is counted for these records: they are computed from counts that streams and
  connections keep for their own work.
"""

import enum
from collections.abc import Mapping
from typing import TypeAlias

import attrs

from penstock.spi._events import Outcome
from penstock.spi._peer_identity import PeerIdentity


# Frozen, because each describes one time;
# by keyword, because numbers by position could not be read.
@attrs.frozen(kw_only=True)
class StalledStream:
    """A stream on which no element moves.

    Streams are compared with what they were at the last call of `statistics()`. So the time begins
    with the first call that has seen this state of the stream. If the stream has sent no element
    yet, the time begins with the stream.
    """

    peer: PeerIdentity
    """The other side of its connection."""

    stream: int
    """Its id on that connection."""

    publisher: str
    """The publisher's name; empty for a stream of the peer, whose name is not kept."""

    demand: int
    """The elements that were requested and have not come; 2^63-1 is without bound."""

    seconds: float
    """The time since the last movement that was noticed."""


@attrs.frozen(kw_only=True)
class DirectionStatistics:
    """The streams of one direction:
    those that this side publishes, or those that it has subscribed to.
    """

    streams: int = 0
    """Streams and requests that are open now."""

    opened: int = 0
    """Streams and requests since the beginning, with those that were refused."""

    demand: int = 0
    """Elements that were requested and have not come,
    without the streams whose demand has no bound.
    """

    unbounded: int = 0
    """Streams whose demand has no bound."""

    elements: int = 0
    """Elements since the beginning."""

    without_demand: StalledStream | None = None
    """The stream without demand that has not moved for the longest time: its subscriber does not
    read.
    """

    without_elements: StalledStream | None = None
    """The same of the streams that have demand:
    the publisher has nothing to publish, or the network does not carry it.
    """


class Fact(enum.Enum):
    """What costs something to keep, and so is kept only if a plugin says that it reads it: see
    the hook `penstock_reads`.
    """

    PUBLISHERS = "publishers"
    """`ServerStatistics.publishers` and `PeerStatistics.publishers`."""


@attrs.frozen(kw_only=True)
class PublisherStatistics:
    """The streams and requests that a publisher of this side has served."""

    streams: int = 0
    """Those that are open now."""

    ended: Mapping[Outcome, int] = attrs.field(factory=dict)
    """Those that have ended, since the beginning, by outcome."""

    elements: int = 0
    """The elements of those that have ended."""

    element_bytes: int = 0
    """Their bytes, without headers."""

    seconds: float = 0.0
    """The durations of those that have ended since `statistics()` was called for the first time,
    added up: before that they are not read, and a clock costs more than all the other numbers.
    """


StalledCounts: TypeAlias = tuple[int, str, int, float]
"""The fields of a `StalledStream` but the peer, in their order."""

DirectionCounts: TypeAlias = tuple[
    int, int, int, int, int, StalledCounts | None, StalledCounts | None
]
"""The fields of `DirectionStatistics`, in their order."""


def direction_statistics(peer: PeerIdentity, counts: DirectionCounts) -> DirectionStatistics:
    """Return the record of one direction from the counts of a session, which knows no identity."""
    streams, opened, demand, unbounded, elements, without_demand, without_elements = counts
    return DirectionStatistics(
        streams=streams,
        opened=opened,
        demand=demand,
        unbounded=unbounded,
        elements=elements,
        without_demand=_stalled(peer, without_demand),
        without_elements=_stalled(peer, without_elements),
    )


def _stalled(peer: PeerIdentity, counts: StalledCounts | None) -> StalledStream | None:
    if counts is None:
        return None
    stream, publisher, demand, seconds = counts
    return StalledStream(
        peer=peer, stream=stream, publisher=publisher, demand=demand, seconds=seconds
    )


@attrs.frozen(kw_only=True)
class PeerStatistics:
    """One connection at one time."""

    protocol: str
    """The name of the dialect: ``rsio``."""

    transport: str
    """The scheme of the transport: ``tcp``."""

    is_open: bool
    """Both sides have said hello, and the connection has not ended."""

    age: float | None
    """Seconds since both sides have said hello; None if they have not."""

    sending: DirectionStatistics
    """The streams that this side publishes."""

    receiving: DirectionStatistics
    """The streams that this side has subscribed to."""

    sent_bytes: int
    """Bytes on the wire, with all headers, since the beginning."""

    received_bytes: int
    """The same of what has come."""

    buffered_bytes: int
    """Bytes that the peer makes this side hold, as `Limits.memory_budget` counts them."""

    retained_bytes: int = 0
    """Those of them that were sent and are not acknowledged, if the connection can be resumed:
    at most about `Limits.resume_bytes`.
    """

    is_suspended: bool = False
    """The connection has lost its transport, and goes on if the client is back in time."""

    resumed: int = 0
    """How often it went on over another transport."""

    publishers: Mapping[str, PublisherStatistics] = attrs.field(factory=dict)
    """What each publisher has done that this side offers to the peer, by name or pattern.

    Empty for a connection of a server, whose own statistics have it, and if no plugin has
    `Fact.PUBLISHERS`.
    """


@attrs.frozen(kw_only=True)
class ServerStatistics:
    """A server at one time. Each number that only grows includes the connections
    that have ended.
    """

    age: float
    """Seconds since the server began to listen."""

    connections: Mapping[tuple[str, str], int]
    """The open connections by protocol and transport: ``{("rsio", "tcp"): 7}``. Those of clients
    that send requests are there as well: ``{("http", "https"): 3}``.
    """

    handshaking: int
    """Connections whose client has not said hello."""

    accepted: int
    """Connections whose client is known, since the beginning: both sides have said hello, or the
    first request has come.
    """

    sending: DirectionStatistics
    """The streams that the server publishes, of all connections."""

    receiving: DirectionStatistics
    """The streams that the server has subscribed to at its clients."""

    sent_bytes: int
    """Bytes on the wire, with all headers, since the beginning; without those of HTTP requests,
    which their transport answers.
    """

    received_bytes: int
    """The same of what has come."""

    buffered_bytes: int
    """Bytes that all clients together make the server hold, as `Limits.memory_budget` counts them,
    over every protocol.
    """

    memory_budget: int
    """`Limits.memory_budget`: the connection that holds most is closed
    when `buffered_bytes` reaches 80 % of this.
    """

    refused: Mapping[str, int]
    """The refused connections since the beginning, by reason: those of `Server.refused`."""

    suspended: int = 0
    """Connections that have lost their transport and wait for their client.
    They are among `connections`.
    """

    resumed: int = 0
    """How often a connection went on over another transport, since the beginning."""

    publishers: Mapping[str, PublisherStatistics] = attrs.field(factory=dict)
    """What each publisher of the service has done, by the name or pattern under which it is
    offered; requests whose data is not a name are under "". Empty if no plugin has
    `Fact.PUBLISHERS`.
    """
