"""The accountant: asks connections how many bytes their peers make them hold, and closes the
largest if all together hold too much.

Rules of this file:

* Everything that a peer can make this side hold is in the account of its connection,
  `ConnectionTask.held`: bytes one by one, and objects at a flat price. A connection by itself is
  not: `Limits.max_connections` bounds that.
* At 80 % of the budget the connection that holds most is closed, and the next, until all together
  hold less. No other threshold exists: no connection is refused, and none is read more slowly,
  because of another one.
* One that has taken nothing (`goes_first`) is closed before all others.
* Only a connection that holds more than an equal share is closed. Else one that was closed, and
  whose publishers take their time to stop, would cost all the small ones their connection.
* Nothing is counted per element. The connections are asked when `slack` bytes have moved since the
  last time. No account grows by more than the bytes that are noted as moved: a stream is noted with
  its price, an element before its publisher makes it.
"""

from typing import Final

from penstock.runtime.connection._context import MemoryHolder

FULL: Final = 0.80


class MemoryBudget:
    """The memory of the connections of a server, or of the one connection of a client. The
    `SharedMemory` of these connections.
    """

    __slots__ = ("_closed", "_holders", "limit", "moved", "slack")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        # Bounded by Limits.max_connections; a dict keeps the order, a set would not.
        self._holders: dict[MemoryHolder, None] = {}
        # Those that were told to close, and still hold memory.
        self._closed: set[MemoryHolder] = set()
        self.moved: int = 0
        """Bytes since the last measurement."""
        self.slack: float = limit * FULL / 4
        """`measure` is due when `moved` has reached this."""

    def add(self, holder: MemoryHolder) -> None:
        """Count `holder` from now on."""
        self._holders[holder] = None

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
        """Ask every connection what it holds, and close the largest ones if that is too much."""
        held = {holder: holder.held() for holder in self._holders}
        total, allowed = sum(held.values()), self.limit * FULL
        if total >= allowed:
            total = self._close_largest(held, total, allowed)
        self.moved = 0
        # A quarter of the bytes left. Accounts grow by no more than the bytes that move, so the
        # threshold is not passed unseen.
        # 1/64 of the limit at least: near the threshold each message would cause a measurement
        # otherwise.
        self.slack = max(self.limit / 64, (allowed - total) / 4)

    def held(self) -> int:
        """Return what all connections hold together."""
        return sum(holder.held() for holder in self._holders)

    def _close_largest(self, held: dict[MemoryHolder, int], total: int, allowed: float) -> int:
        """Close connections, the largest first, until the rest holds less than `allowed`.
        Return what is held then.
        """
        share = allowed / len(held)
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
            holder.close_for_memory(held[holder], self.limit)
            # A closed session has dropped its buffers, but bytes in flight remain:
            # so it is asked again.
            total += holder.held() - held[holder]
        return total
