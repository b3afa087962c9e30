"""The streams that are open now: one record for each, made when a program or an inspector asks.

Rules of this file:

* What a stream waits for is decided in one plain function, `waits_for`, from numbers that streams
  keep for their own work.
"""

import enum
from typing import NamedTuple

import attrs

from penstock.spi._peer_identity import PeerIdentity


class WaitsFor(enum.Enum):
    """What must happen before the next element of a stream moves."""

    DEMAND = "demand"
    """Its subscriber must request: nothing that it has requested is left."""

    PUBLISHER = "publisher"
    """Its publisher must make an element that was requested of it. For a stream of the peer that is
    the peer, or the network on the way from it.
    """

    NETWORK = "network"
    """The peer, or the network on the way to it, must take what was sent; or a lost connection must
    come back.
    """

    LIMIT = "limit"
    """A limit holds it up: `LiveStream.limit` is its name."""

    PERMISSION = "permission"
    """A function of the service decides whether the peer may have it."""


class Standing(NamedTuple):
    """What decides what a stream waits for."""

    outbound: bool
    is_permitted: bool = True
    """The service has accepted the stream."""
    is_suspended: bool = False
    """Its connection has no transport now."""
    has_ended: bool = False
    """Its publisher has ended, and its last elements are being sent."""
    demand: int = 0
    """Elements that the subscriber has requested and that have not come."""
    owed: int = 0
    """Elements that the publisher was asked for and that have not come."""
    unsent: int = 0
    """Bytes that the network has not taken."""
    limit: str = ""
    """The limit because of which the publisher is not asked."""


def waits_for(standing: Standing) -> WaitsFor:
    """Decide what a stream waits for."""
    if not standing.is_permitted:
        return WaitsFor.PERMISSION
    if standing.is_suspended or standing.has_ended:
        return WaitsFor.NETWORK
    if standing.owed or (standing.demand and not standing.outbound):
        return WaitsFor.PUBLISHER
    # The publisher is not asked although the subscriber wants more: there is no room.
    if standing.demand:
        return WaitsFor.LIMIT if standing.limit else WaitsFor.NETWORK
    # Without demand: the subscriber can request only after what it gets first.
    return WaitsFor.NETWORK if standing.unsent else WaitsFor.DEMAND


class StreamPart(NamedTuple):
    """One part of the pipe behind a stream."""

    label: str
    """The operator or the source, as a person calls it: ``batch``."""
    held: int
    """The elements that it holds."""


@attrs.frozen(kw_only=True)
class LiveStream:
    """One stream or request that is open, at one time."""

    key: str
    """Tells it from all others of this process."""

    name: str
    """The name of its publisher, or that of the request; empty if it has none."""

    outbound: bool
    """True if this side publishes it."""

    peer: PeerIdentity
    """The other side."""

    local: str
    """The address of this side of the connection, as the peer sees it; empty if it is not known."""

    protocol: str
    """The protocol: ``rsio``, ``http``."""

    transport: str
    """The scheme of the transport: ``tcp``."""

    stream: int
    """Its id on the connection; the same on both sides. 0 where streams have none."""

    trace: str = ""
    """The ``traceparent`` of W3C Trace Context with which it was opened, where its protocol shows
    it: the same on both sides, also behind a proxy. Empty if it has none.
    """

    state: str
    """The state of its protocol: ``live``."""

    requested: int | None
    """Elements requested since the beginning; 2^63-1 is without bound, and None is not known."""

    delivered: int | None
    """Elements that have passed; None if it is not known."""

    demand: int
    """Elements that were requested and have not come."""

    held: int
    """Bytes that wait here."""

    serializer: str
    """The serializer of its elements; empty if it is not known."""

    position: int | None
    """The position of the next element, if a log feeds it."""

    lag: int | None
    """How many elements the log has from there on."""

    still: float
    """Seconds since it last moved, as far as looks have noticed."""

    waits_for: WaitsFor
    """What must happen before the next element moves."""

    limit: str
    """The limit that holds it up, with `WaitsFor.LIMIT`."""

    parts: tuple[StreamPart, ...]
    """The pipe behind it, from its subscriber up."""

    waits_on: tuple[str, ...]
    """The keys of the streams of this process that it waits for."""

    place: str
    """Where the code that it waits for is now: ``billing.py:42 in totals``; empty if that is not
    known.
    """

    stage: str = ""
    """The operator of `parts` that is working on an element: the elements above it wait for it.
    Empty if none is.
    """
