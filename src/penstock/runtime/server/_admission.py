"""Decides which connections a server accepts: their number in all, from one address, before their hello, and per second."""

import sys
from collections import Counter
from typing import Final

import trio

from penstock.api import Limits
from penstock.plugins import Connection
from penstock.runtime.server._memory_budget import MemoryBudget

if sys.platform != "win32":
    import resource

SPARE_FILES: Final = 256
"""Files of the process that connections leave to the rest of it."""


class Admission:
    """The connections that a server has accepted, and room for others."""

    def __init__(self, limits: Limits, budget: MemoryBudget) -> None:
        self._limits = limits
        self._budget = budget
        self._max_open = max_open_connections(limits)
        self._per_host: Counter[str] = Counter()  # bounded by the connections
        self._handshaking: set[Connection] = set()  # the peer has not said hello
        self._one_left = trio.lowlevel.ParkingLot()
        self.open: set[trio.CancelScope] = set()
        """The cancel scope of each connection."""

    def has_room(self, connection: Connection) -> bool:
        """Return True if `connection` may be served."""
        limits, host = self._limits, connection.peer.host
        return (
            len(self.open) < self._max_open
            and not self._budget.is_full
            and len(self._handshaking) < limits.max_pending_handshakes
            # A transport may not know a host: memory, pipes, Unix sockets. Those connections are not counted by address.
            and (host is None or self._per_host[host] < limits.max_connections_per_address)
        )

    def add(self, connection: Connection) -> trio.CancelScope:
        """Count a connection, and return what ends it. Plain, so that no other connection can be accepted in between."""
        # A scope per connection, so that a shutdown reaches each one, and each says its own goodbye.
        scope = trio.CancelScope()
        self.open.add(scope)
        # Bounded apart from the rest: a peer before its hello is unknown, and costs a handshake.
        self._handshaking.add(connection)
        if connection.peer.host is not None:
            self._per_host[connection.peer.host] += 1
        return scope

    def on_hello(self, connection: Connection) -> None:
        """Count a connection no longer among those that have not said hello."""
        self._handshaking.discard(connection)

    def remove(self, connection: Connection, scope: trio.CancelScope, host: str | None) -> None:
        """Stop counting a connection; `host` is what its peer was when it was added."""
        self.open.discard(scope)
        # All waiters look again: `wait_empty` goes on only when none is left.
        self._one_left.unpark_all()
        self._handshaking.discard(connection)
        if host is not None:
            self._per_host[host] -= 1
            if not self._per_host[host]:
                del self._per_host[host]  # a counter of every address that ever connected would grow without bound

    async def wait_empty(self) -> None:
        """Wait until no connection is open. May not checkpoint."""
        while self.open:
            await self._one_left.park()


class AcceptRate:
    """At most `rate` connections a second; after a quiet second that number may come at once."""

    __slots__ = ("_due", "_step")

    def __init__(self, rate: float) -> None:
        self._step = 1 / rate
        self._due = float("-inf")

    def count(self, now: float) -> float:
        """Count a connection, and return the seconds to wait before the next one is accepted."""
        # A token bucket in one number: the time at which the next token is due. Time before the last second is not saved up.
        self._due = max(self._due, now - 1) + self._step
        return max(0.0, self._due - now)


def max_open_connections(limits: Limits) -> int:
    """Return the number of connections that may be open: each takes a file, and the rest of the process needs some as well."""
    if sys.platform == "win32":
        return limits.max_connections
    # The soft limit: a process that runs out of files can neither accept nor open its own log.
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limits.max_connections if files == resource.RLIM_INFINITY else max(1, min(limits.max_connections, files - SPARE_FILES))
