"""The connections of a server that run, and what those have done that have ended: together they
are the statistics of the server.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs
import trio

from penstock.runtime.connection import (
    ConnectionTask,
    MemoryBudget,
    Peer,
    PublisherTable,
    statistics_of,
    sum_of_directions,
)
from penstock.runtime.server._admission import Slot
from penstock.runtime.server._draining import Draining
from penstock.runtime.server._hosted_streams import transport_of
from penstock.runtime.server._resumable import ResumableConnections
from penstock.spi import DirectionStatistics, ServerStatistics


class ServedConnections:
    """The connections of one server."""

    def __init__(self, budget: MemoryBudget, resumable: ResumableConnections | None = None) -> None:
        self.resumable: ResumableConnections | None = resumable
        """Those that can be resumed, by token; None if the server resumes none."""
        self.began_at: float | None = None
        """When the server began to listen."""
        self._budget = budget
        self.draining: Draining | None = None
        """The drain, once it has begun."""
        self.running: dict[ConnectionTask, Peer] = {}
        """The connections that run, each with its peer."""
        # The protocol of each connection that its transport answers, and whose client is known.
        self._hosted: dict[Slot, str] = {}
        # Sums, and no record for each connection: a server may serve millions of them.
        self._accepted = 0
        # Two records from the start: a census of objects finds no more of them later.
        self._sending, self._receiving = DirectionStatistics(), DirectionStatistics()
        self._sent_bytes = self._received_bytes = self._resumed = 0

    def add(self, connection: ConnectionTask, peer: Peer) -> None:
        """Count a connection from now on."""
        self.running[connection] = peer

    def remove(self, connection: ConnectionTask) -> None:
        """Keep what a connection has done that has ended."""
        self.running.pop(connection, None)
        done = statistics_of(connection)
        # A connection that was cut before its hello was not accepted.
        self._accepted += connection.opened_at is not None
        self._sending = _done(self._sending, done.sending)
        self._receiving = _done(self._receiving, done.receiving)
        self._sent_bytes += done.sent_bytes
        self._received_bytes += done.received_bytes
        self._resumed += done.resumed

    def add_hosted(self, place: Slot, protocol: str) -> None:
        """Count a connection that its transport answers."""
        self._hosted[place] = protocol

    def remove_hosted(self, place: Slot, *, has_session: bool) -> None:
        """Count it no more. With a session it is counted as such from now on."""
        if self._hosted.pop(place, None) is not None and not has_session:
            self._accepted += 1

    @property
    def peers(self) -> Iterator[Peer]:
        """The peers that have said hello, and whose connection has not ended."""
        # A peer without a hello, or one whose connection has ended, can be asked for nothing.
        return (
            peer
            for connection, peer in self.running.items()
            if connection.is_open.is_set() and connection.reason is None
        )

    def take(
        self,
        *,
        hosted: DirectionStatistics,
        handshaking: int,
        refused: Mapping[str, int],
        publishers: PublisherTable | None,
    ) -> ServerStatistics:
        """Return the record of now. `hosted` are the streams without a session."""
        # Also the connections without a hello, and those that are closing: their bytes count, and
        # their streams may still run.
        each = [statistics_of(connection) for connection in self.running]
        connections = Counter((one.protocol, one.transport) for one in each if one.is_open)
        connections.update(
            (protocol, transport_of(place.address)) for place, protocol in self._hosted.items()
        )
        return ServerStatistics(
            age=0.0 if self.began_at is None else trio.current_time() - self.began_at,
            connections=MappingProxyType(dict(connections)),
            handshaking=handshaking,
            accepted=self._accepted
            + len(self._hosted)
            + sum(connection.opened_at is not None for connection in self.running),
            sending=sum_of_directions([self._sending, hosted, *(one.sending for one in each)]),
            receiving=sum_of_directions([self._receiving, *(one.receiving for one in each)]),
            sent_bytes=self._sent_bytes + sum(one.sent_bytes for one in each),
            received_bytes=self._received_bytes + sum(one.received_bytes for one in each),
            # The sum that the budget compares: connections, and the streams and answers of clients
            # without one.
            buffered_bytes=self._budget.held(),
            memory_budget=self._budget.limit,
            # A copy: a record does not change after the call.
            refused=MappingProxyType(dict(refused)),
            suspended=sum(one.is_suspended for one in each),
            resumed=self._resumed + sum(one.resumed for one in each),
            publishers={} if publishers is None else publishers.take(),
        )


def _done(sum_so_far: DirectionStatistics, last: DirectionStatistics) -> DirectionStatistics:
    """Add the numbers that only grow."""
    # The other numbers are of now, and a connection that has ended has no streams.
    return attrs.evolve(
        sum_so_far,
        opened=sum_so_far.opened + last.opened,
        elements=sum_so_far.elements + last.elements,
    )
