"""The accountant: asks connections how many bytes their peers make them hold, and closes the
largest if all together hold too much.

Rules of this file:

* Everything that a peer can make this side hold is in the account of its connection,
  `ConnectionTask.held`: bytes one by one, and objects at a flat price. A connection by itself is
  not: `Limits.max_connections` bounds that.
* At 80 % of the budget the connection that holds most is closed, and the next, until all together
  hold less. Those of one address are closed in the same way at a quarter of the budget: so the
  connections that one address may have do not use up what belongs to all. No other threshold
  exists: no connection is refused, and none is read more slowly, because of another one.
* One that has taken nothing lately (`goes_first`) is closed before all others.
* Only a connection that holds more than an equal share is closed. Else one that was closed, and
  whose publishers take their time to stop, would cost all the small ones their connection.
* Nothing is counted per element. The connections are asked when `slack` bytes have moved since the
  last time. No account grows by more than the bytes that are noted as moved: a stream is noted with
  its price, an element before its publisher makes it.
"""

from typing import Final, NamedTuple

from penstock.api import LimitExceeded
from penstock.runtime.connection._context import MemoryHolder

FULL: Final = 0.80
"""The part of the budget that all clients together may hold."""

OF_ADDRESS: Final = 0.25
"""The part of the budget for one address, IPv6 network or user of this machine."""

FULL_FOR_ALL: Final = "the memory of the server is full"
FULL_FOR_ADDRESS: Final = (
    "the clients of this address hold as much memory of the server as one address may"
)


class _Bound(NamedTuple):
    """Why a holder is closed."""

    why: str
    """For the report of this side."""
    told: str
    """For the peer."""


_ALL: Final = _Bound(
    "more than any other, and all together 80 % of {:,} (Limits.memory_budget)", FULL_FOR_ALL
)
_ADDRESS: Final = _Bound(
    (
        "more than any other of its address, and these together a quarter of {:,} "
        "(Limits.memory_budget)"
    ),
    FULL_FOR_ADDRESS,
)


class MemoryBudget:
    """The memory of the connections of a server, or of the one connection of a client. The
    `SharedMemory` of these connections.
    """

    __slots__ = ("_closed", "_holders", "limit", "moved", "slack")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        # By each holder its origin. Bounded by Limits.max_connections; the order is kept.
        self._holders: dict[MemoryHolder, str | None] = {}
        # Those that were told to close, and still hold memory.
        self._closed: set[MemoryHolder] = set()
        self.moved: int = 0
        """Bytes since the last measurement."""
        self.slack: float = limit * OF_ADDRESS / 4
        """`measure` is due when `moved` has reached this."""

    def add(self, holder: MemoryHolder, origin: str | None = None, /) -> None:
        """Count `holder` from now on. Holders of one `origin` have a share together."""
        self._holders[holder] = origin

    def remove(self, holder: MemoryHolder) -> None:
        """Stop counting `holder`."""
        self._holders.pop(holder, None)
        self._closed.discard(holder)

    def note_bytes(self, size: int) -> None:
        """Note that `size` bytes have arrived, or were requested from publishers,
        or are about to be sent.
        """
        self.moved += size
        if self.moved >= self.slack:
            self.measure()

    def measure(self) -> None:
        """Ask every connection what it holds, and close the largest ones if all together, or those
        of one origin, hold too much.
        """
        held = {holder: holder.held() for holder in self._holders}
        total, allowed = sum(held.values()), self.limit * FULL
        most, of_origin = 0, self.limit * OF_ADDRESS
        # The origins come first: the bytes that one gives back may be enough for all.
        for sizes in self._by_origin(held).values():
            size = sum(sizes.values())
            if size >= of_origin:
                left = self._close_largest(sizes, size, of_origin, _ADDRESS)
                total, size = total + left - size, left
            most = max(most, size)
        if total >= allowed:
            total = self._close_largest(held, total, allowed, _ALL)
        self.moved = 0
        # A quarter of the bytes left. Accounts grow by no more than the bytes that move, so the
        # threshold is not passed unseen.
        # 1/64 of the limit at least: near the threshold each message would cause a measurement
        # otherwise.
        self.slack = max(self.limit / 64, min(allowed - total, of_origin - most) / 4)

    def held(self) -> int:
        """Return what all connections hold together."""
        return sum(holder.held() for holder in self._holders)

    def _by_origin(self, held: dict[MemoryHolder, int]) -> dict[str, dict[MemoryHolder, int]]:
        """Return what the holders of each origin hold."""
        found: dict[str, dict[MemoryHolder, int]] = {}
        for holder, origin in self._holders.items():
            if origin is not None:
                found.setdefault(origin, {})[holder] = held[holder]
        return found

    def _close_largest(
        self, held: dict[MemoryHolder, int], total: int, allowed: float, bound: _Bound
    ) -> int:
        """Close connections, the largest first, until the rest holds less than `allowed`.
        Return what is held then, without them.
        """
        share, why = allowed / len(held), bound.why.format(self.limit)
        # Largest first: the fewest connections are closed. Before them those that have taken
        # nothing: an honest reader must not be closed for a peer that only asks. Those that are
        # closing already are left to their goodbye.
        for holder in sorted(
            held.keys() - self._closed,
            key=lambda holder: (holder.goes_first, held[holder]),
            reverse=True,
        ):
            if total < allowed:
                break
            if held[holder] < share:
                continue
            self._closed.add(holder)
            holder.close_for_memory(
                LimitExceeded(
                    f"{held[holder]:,} bytes were held for one peer, {why}",
                    limit="memory_budget",
                    value=self.limit,
                ),
                bound.told,
            )
            # Its tasks end in the next passes. Counted now, they would cost many others their
            # connection, and the cancels of all their tasks would hold up the run loop. If they do
            # not end, the next measurement counts them.
            total -= held[holder]
        return total
