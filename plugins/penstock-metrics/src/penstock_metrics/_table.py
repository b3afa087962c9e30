"""Every metric, in one table: its name, its kind, its labels, its meaning,
and how it is read from a snapshot.

The collector of Prometheus, the instruments of OpenTelemetry
and the page of the documentation are all made from this table.
"""

import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

import attrs

from penstock_metrics._publishers import LabelCounts
from penstock_metrics._snapshot import Direction, Snapshot

Sample: TypeAlias = tuple[tuple[str, ...], float]
"""The values of the labels, and the number."""


class Kind(enum.Enum):
    """The meaning of a number."""

    GAUGE = "gauge"
    """The value of now, which may become smaller."""

    COUNTER = "counter"
    """A number that never becomes smaller while the process runs."""


# Frozen: the table never changes.
@attrs.frozen(kw_only=True)
class Metric:
    """One metric."""

    name: str
    """As Prometheus has it; the name of a counter ends in ``_total``."""

    kind: Kind
    """Gauge or counter."""

    labels: tuple[str, ...] = ()
    """The names of its labels."""

    unit: str = ""
    """``bytes`` or ``seconds``, or empty for a number of things."""

    help: str
    """Its meaning, in one sentence."""

    read: Callable[[Snapshot], Iterable[Sample]] = attrs.field(repr=False, eq=False)
    """Returns its samples."""


def _one(read: Callable[[Snapshot], float]) -> Callable[[Snapshot], Iterable[Sample]]:
    return lambda snapshot: [((), read(snapshot))]


def _both(read: Callable[[Direction], float]) -> Callable[[Snapshot], Iterable[Sample]]:
    return lambda snapshot: [
        (("sent",), read(snapshot.sending)),
        (("received",), read(snapshot.receiving)),
    ]


def _publishers(read: Callable[[LabelCounts], float]) -> Callable[[Snapshot], Iterable[Sample]]:
    return lambda snapshot: [
        ((label,), read(counts)) for label, counts in snapshot.publishers.items()
    ]


def _connections(snapshot: Snapshot) -> Iterable[Sample]:
    return list(snapshot.connections.items())


def _refused(snapshot: Snapshot) -> Iterable[Sample]:
    return [((reason,), count) for reason, count in snapshot.refused.items()]


def _buffered(snapshot: Snapshot) -> Iterable[Sample]:
    return [((side,), size) for side, size in snapshot.buffered_bytes.items()]


def _stalled(snapshot: Snapshot) -> Iterator[Sample]:
    for direction, sums in (("sent", snapshot.sending), ("received", snapshot.receiving)):
        yield (direction, "demand"), sums.without_demand
        yield (direction, "elements"), sums.without_elements


def _ended(snapshot: Snapshot) -> Iterable[Sample]:
    return [
        ((label, outcome.value), count)
        for label, counts in snapshot.publishers.items()
        for outcome, count in counts.ended.items()
    ]


_DIRECTION: Final = ("direction",)
_PUBLISHER: Final = ("publisher",)
_SIDE: Final = ("side",)

METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        name="penstock_connections",
        kind=Kind.GAUGE,
        labels=("side", "protocol", "transport"),
        help="Open connections. The side is server or client.",
        read=_connections,
    ),
    Metric(
        name="penstock_handshaking_connections",
        kind=Kind.GAUGE,
        help="Connections of servers whose client has not said hello.",
        read=_one(lambda snapshot: snapshot.handshaking),
    ),
    Metric(
        name="penstock_accepted_connections_total",
        kind=Kind.COUNTER,
        help="Connections of servers on which both sides have said hello.",
        read=_one(lambda snapshot: snapshot.accepted),
    ),
    Metric(
        name="penstock_refused_connections_total",
        kind=Kind.COUNTER,
        labels=("reason",),
        help="Connections that servers have refused. The reason is a token of a fixed list.",
        read=_refused,
    ),
    Metric(
        name="penstock_subscriptions",
        kind=Kind.GAUGE,
        labels=_DIRECTION,
        help="Open streams and requests.",
        read=_both(lambda sums: sums.streams),
    ),
    Metric(
        name="penstock_subscriptions_opened_total",
        kind=Kind.COUNTER,
        labels=_DIRECTION,
        help="Streams and requests that were opened, with those that were refused.",
        read=_both(lambda sums: sums.opened),
    ),
    Metric(
        name="penstock_outstanding_demand",
        kind=Kind.GAUGE,
        labels=_DIRECTION,
        help=(
            "Elements that were requested and have not come, without the streams whose demand has "
            "no bound."
        ),
        read=_both(lambda sums: sums.demand),
    ),
    Metric(
        name="penstock_unbounded_subscriptions",
        kind=Kind.GAUGE,
        labels=_DIRECTION,
        help="Open streams whose demand has no bound.",
        read=_both(lambda sums: sums.unbounded),
    ),
    Metric(
        name="penstock_stalled_seconds",
        kind=Kind.GAUGE,
        labels=("direction", "lacks"),
        unit="seconds",
        help=(
            "The time for which the oldest stalled stream has not moved. It lacks demand, or it "
            "has demand and lacks elements."
        ),
        read=_stalled,
    ),
    Metric(
        name="penstock_elements_total",
        kind=Kind.COUNTER,
        labels=_DIRECTION,
        help="Elements of all streams and requests.",
        read=_both(lambda sums: sums.elements),
    ),
    Metric(
        name="penstock_wire_bytes_total",
        kind=Kind.COUNTER,
        labels=_DIRECTION,
        unit="bytes",
        help="Bytes on the wire, with all headers.",
        read=_both(lambda sums: sums.bytes),
    ),
    Metric(
        name="penstock_buffered_bytes",
        kind=Kind.GAUGE,
        labels=_SIDE,
        unit="bytes",
        help=(
            "Bytes that peers make this process hold: the clients of its servers, and the servers "
            "of its connections."
        ),
        read=_buffered,
    ),
    Metric(
        name="penstock_memory_budget_bytes",
        kind=Kind.GAUGE,
        labels=_SIDE,
        unit="bytes",
        help=(
            "Limits.memory_budget of the servers of this process: at 80 % of it the connection "
            "that holds most is closed. The side is always server."
        ),
        read=lambda snapshot: [(("server",), snapshot.memory_budget)],
    ),
    Metric(
        name="penstock_publisher_subscriptions",
        kind=Kind.GAUGE,
        labels=_PUBLISHER,
        help="Open streams and requests of a publisher of this process.",
        read=_publishers(lambda counts: counts.open),
    ),
    Metric(
        name="penstock_publisher_subscriptions_ended_total",
        kind=Kind.COUNTER,
        labels=("publisher", "outcome"),
        help=(
            "Streams and requests of a publisher that have ended: completed, failed, cancelled or "
            "lost."
        ),
        read=_ended,
    ),
    Metric(
        name="penstock_publisher_elements_total",
        kind=Kind.COUNTER,
        labels=_PUBLISHER,
        help="Elements of the streams of a publisher that have ended.",
        read=_publishers(lambda counts: counts.elements),
    ),
    Metric(
        name="penstock_publisher_bytes_total",
        kind=Kind.COUNTER,
        labels=_PUBLISHER,
        unit="bytes",
        help="Bytes of these elements, without headers.",
        read=_publishers(lambda counts: counts.bytes),
    ),
    Metric(
        name="penstock_publisher_seconds_total",
        kind=Kind.COUNTER,
        labels=_PUBLISHER,
        unit="seconds",
        help="The durations of the streams of a publisher that have ended since the first scrape.",
        read=_publishers(lambda counts: counts.seconds),
    ),
)
"""Every metric."""
