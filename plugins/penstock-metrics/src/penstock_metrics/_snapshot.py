"""A snapshot: what all collected servers and connections have done and hold at one time,
as plain numbers.
"""

from collections import Counter
from typing import Protocol

import attrs

from penstock.spi import DirectionStatistics, PeerStatistics, ServerStatistics, StalledStream
from penstock_metrics._publishers import LabelCounts, Labels


class Measured(Protocol):
    """A `penstock.Server` or a `penstock.Peer`."""

    def statistics(self) -> ServerStatistics | PeerStatistics:
        """Return the record of now."""


@attrs.define
class Direction:
    """The streams of one direction, added up."""

    streams: int = 0
    opened: int = 0
    demand: int = 0
    unbounded: int = 0
    elements: int = 0
    bytes: int = 0
    without_demand: float = 0.0
    """The seconds for which the oldest stream without demand has not moved; 0 without such a
    stream.
    """
    without_elements: float = 0.0

    def add(self, statistics: DirectionStatistics, bytes_on_the_wire: int) -> None:
        """Add what one server or one connection reports."""
        self.streams += statistics.streams
        self.demand += statistics.demand
        self.unbounded += statistics.unbounded
        self.without_demand = max(self.without_demand, _seconds(statistics.without_demand))
        self.without_elements = max(self.without_elements, _seconds(statistics.without_elements))
        self.add_ended(statistics, bytes_on_the_wire)

    def add_ended(self, statistics: DirectionStatistics, bytes_on_the_wire: int) -> None:
        """Add only the numbers that never become smaller:
        the server or the connection is no longer collected.
        """
        self.opened += statistics.opened
        self.elements += statistics.elements
        self.bytes += bytes_on_the_wire


@attrs.define
class Snapshot:
    """All numbers of one time."""

    connections: Counter[tuple[str, str, str]] = attrs.field(factory=Counter)
    """The open connections by side, protocol and transport."""
    handshaking: int = 0
    accepted: int = 0
    refused: Counter[str] = attrs.field(factory=Counter)
    sending: Direction = attrs.field(factory=Direction)
    receiving: Direction = attrs.field(factory=Direction)
    buffered_bytes: dict[str, int] = attrs.field(factory=lambda: {"server": 0, "client": 0})
    """By side: the budget of a server is compared with the bytes of its clients alone."""
    memory_budget: int = 0
    """The budget of the servers. A client has a budget for each connection."""
    publishers: dict[str, LabelCounts] = attrs.field(factory=dict)
    """By label."""

    def add(self, statistics: ServerStatistics | PeerStatistics, labels: Labels) -> None:
        """Add what one server or one connection reports."""
        self._add_publishers(statistics, labels, is_over=False)
        side = "server" if isinstance(statistics, ServerStatistics) else "client"
        self.buffered_bytes[side] += statistics.buffered_bytes
        self.sending.add(statistics.sending, statistics.sent_bytes)
        self.receiving.add(statistics.receiving, statistics.received_bytes)
        if isinstance(statistics, ServerStatistics):
            for (protocol, transport), count in statistics.connections.items():
                self.connections["server", protocol, transport] += count
            self.handshaking += statistics.handshaking
            self.memory_budget += statistics.memory_budget
            self._add_server_totals(statistics)
        elif statistics.is_open:
            self.connections["client", statistics.protocol, statistics.transport] += 1

    def add_ended(self, statistics: ServerStatistics | PeerStatistics, labels: Labels) -> None:
        """Add only the numbers that never become smaller."""
        self._add_publishers(statistics, labels, is_over=True)
        self.sending.add_ended(statistics.sending, statistics.sent_bytes)
        self.receiving.add_ended(statistics.receiving, statistics.received_bytes)
        if isinstance(statistics, ServerStatistics):
            self._add_server_totals(statistics)

    def _add_publishers(
        self, statistics: ServerStatistics | PeerStatistics, labels: Labels, *, is_over: bool
    ) -> None:
        for pattern, publisher in statistics.publishers.items():
            counts = self.publishers.setdefault(labels.of(pattern), LabelCounts())
            counts.add(publisher, is_over=is_over)

    def _add_server_totals(self, statistics: ServerStatistics) -> None:
        self.accepted += statistics.accepted
        self.refused.update(statistics.refused)


def _seconds(stalled: StalledStream | None) -> float:
    return 0.0 if stalled is None else stalled.seconds
