"""Decides which connections a server keeps:
their number in all, from one origin, before their hello, and per second.

Rules of this file:

* If a number is reached, the oldest connection that has not said hello is cut, and the new one
  takes its place. So silent connections keep no client out. A new connection is refused only if all
  of those that count have said hello.
* An origin with more than 1 in `SHARE` of the places before the hello is a crowd, and the oldest of
  a crowd goes first. Only if no origin is one, the oldest of all goes. So a few addresses cannot
  push out the clients of other addresses, however fast they connect.
* A connection that has lost its transport keeps its place, until a client that has said hello needs
  it: the one that was lost first gives way, of the same origin if that has too many.
* A place is free at once. Its connection may take some scheduler passes to close;
  `wait_departed` bounds how many do.
"""

from collections.abc import Callable
from typing import Final

import trio

from penstock.api import Limits
from penstock.runtime.server._origin import origin_of
from penstock.runtime.server._refusals import BEFORE_HELLO
from penstock.session import CONNECTIONS, PER_ADDRESS
from penstock.spi import PeerIdentity

SHARE: Final = 8
"""An origin with more than one in this number of the places before the hello is a crowd."""

MAX_DEPARTING: Final = 4
"""Connections that were cut and are not closed yet, while others are accepted:
each still has an open file, of the reserve.
"""


class Slot:
    """The place of one connection among those of a server."""

    __slots__ = (
        "_scope",
        "address",
        "cut",
        "drain",
        "is_cancelled",
        "is_suspended",
        "leave",
        "origin",
        "peer",
    )

    def __init__(self, peer: PeerIdentity, origin: str | None, address: str) -> None:
        self.peer: PeerIdentity = peer
        """The peer at the time of its connect: a handshake may change the facts about it."""
        self.origin: str | None = origin
        self.address: str = address
        """The URL that it came to."""
        self._scope: trio.CancelScope | None = None
        self.is_cancelled: bool = False
        self.is_suspended: bool = False
        """The connection has lost its transport, and keeps the place until its client is back."""
        self.cut: Callable[[], None] = self.cancel
        """Ends the connection at once. Called only before the hello."""
        self.leave: Callable[[str], None] = lambda _reason: None
        """Ends the connection with a reason. Called only after the hello."""
        self.drain: Callable[[], None] | None = None
        """Lets the connection end by itself, in place of a cancel.
        Set while its transport attends it.
        """

    def run_in(self, scope: trio.CancelScope) -> None:
        """Let `cancel` cancel `scope`.
        Each connection has its own scope, so each one says its own goodbye.
        """
        self._scope = scope
        # The connection was cancelled before its task began.
        if self.is_cancelled:
            scope.cancel()

    def cancel(self) -> None:
        """Cancel the task of the connection, also if it has not begun."""
        self.is_cancelled = True
        if self.drain is not None:
            self.drain()
        elif self._scope is not None:
            self._scope.cancel()


class _Origin:
    """The connections of one origin."""

    __slots__ = ("count", "handshaking", "suspended")

    def __init__(self) -> None:
        self.count = 0
        self.handshaking: dict[Slot, None] = {}
        self.suspended: dict[Slot, None] = {}


class Admission:
    """The connections that a server has accepted, and room for others."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._places: set[Slot] = set()  # those that count
        self._origins: dict[str, _Origin] = {}  # bounded by the connections
        self._crowds: dict[_Origin, None] = {}  # bounded by SHARE
        # The peer has not said hello. Dicts, because they keep the order: the first is the oldest.
        self._handshaking: dict[Slot, None] = {}
        # Those whose connection has no transport; the first was lost first.
        self._suspended: dict[Slot, None] = {}
        self._one_left = trio.lowlevel.ParkingLot()
        self.rate: AcceptRate = AcceptRate(limits.accept_rate)
        self.max_open: int = limits.max_connections
        """Connections that may be open.
        The server lowers it if the process may not have enough files open.
        """
        self.open: set[Slot] = set()
        """The place of each connection, also of those that were cut and are not closed yet."""
        self.on_cut: Callable[[Slot, str], None] = lambda _place, _reason: None
        """Called for each connection that is cut, with the reason."""

    def admit(self, peer: PeerIdentity, address: str) -> Slot | str:
        """Return a place for a connection of `peer` at `address`, or the reason for a refusal."""
        # A plain function, so that no other connection is accepted in between.
        # A transport may know neither host nor user: memory and pipes.
        # Those connections are not counted by origin.
        origin = origin_of(peer)
        refusal = self._make_room(None if origin is None else self._origins.get(origin))
        return self._add(Slot(peer, origin, address)) if refusal is None else refusal

    def on_hello(self, place: Slot) -> None:
        """Count a connection no longer among those that have not said hello."""
        if place in self._handshaking:
            del self._handshaking[place]
            if place.origin is not None:
                origin = self._origins[place.origin]
                del origin.handshaking[place]
                if not self._is_crowd(origin):
                    self._crowds.pop(origin, None)

    def restore(self, place: Slot) -> None:
        """Count a connection again that was cut while its hello was on the way here from another
        process. One that has not said hello gives way to it.
        """
        if place in self._places:
            return
        self._add(place)
        self.on_hello(place)
        origin = None if place.origin is None else self._origins[place.origin]
        if (
            origin is not None
            and origin.count > self._limits.max_connections_per_address
            and len(origin.handshaking) > len(origin.suspended)
        ):
            self._cut_oldest(origin.handshaking, PER_ADDRESS)
        elif len(self._places) > self.max_open and len(self._handshaking) > len(self._suspended):
            self._cut_oldest(self._crowd(origin), BEFORE_HELLO)

    def is_handshaking(self, place: Slot) -> bool:
        """Return whether the connection has a place, and has not said hello."""
        return place in self._handshaking

    def suspend(self, place: Slot, *, is_suspended: bool) -> None:
        """Note whether a connection has lost its transport. It keeps its place, and its client
        may connect beyond the bounds.
        """
        if place not in self._places or place.is_suspended == is_suspended:
            return
        place.is_suspended = is_suspended
        tables = [self._suspended]
        if place.origin is not None:
            tables.append(self._origins[place.origin].suspended)
        for table in tables:
            if is_suspended:
                table[place] = None
            else:
                del table[place]

    def keep_beyond(self, place: Slot) -> str | None:
        """Let suspended connections make room for one that has said hello, and whose place is
        beyond the bounds. Return the reason for a refusal if they cannot.

        Only the client of a suspended connection may use such a place as it is: its connection has
        a place already.
        """
        origin = None if place.origin is None else self._origins.get(place.origin)
        if origin is not None and origin.count > self._limits.max_connections_per_address:
            return self._end_suspended(origin.suspended, PER_ADDRESS)
        if len(self._places) > self.max_open:
            return self._end_suspended(self._suspended, CONNECTIONS)
        return None

    def vacate(self, place: Slot) -> None:
        """Let `place` count no more: its connection is about to close. It may be called again."""
        if place not in self._places:
            return
        # While it still counts: both of these change the counts of its origin.
        self.suspend(place, is_suspended=False)
        self.on_hello(place)
        self._places.discard(place)
        if place.origin is not None:
            origin = self._origins[place.origin]
            origin.count -= 1
            if not origin.count:
                # A table of every address that ever connected would grow without bound.
                del self._origins[place.origin]

    def remove(self, place: Slot) -> None:
        """Forget a connection that is closed."""
        self.vacate(place)
        self.open.discard(place)
        # All waiters look again: `wait_empty` goes on only when none is left.
        self._one_left.unpark_all()

    def cut_oldest(self, reason: str) -> bool:
        """Cut the oldest connection that has not said hello; return False if all have."""
        return self._cut_oldest(self._handshaking, reason)

    async def wait_departed(self) -> None:
        """Wait while more than `MAX_DEPARTING` connections that were cut are not closed yet.
        May not checkpoint.
        """
        while self.is_departing:
            await self._one_left.park()

    @property
    def is_departing(self) -> bool:
        """Whether more than `MAX_DEPARTING` connections that were cut are not closed yet."""
        return len(self.open) - len(self._places) > MAX_DEPARTING

    @property
    def handshaking(self) -> int:
        """The number of connections that have not said hello."""
        return len(self._handshaking)

    async def wait_empty(self) -> None:
        """Wait until no connection is open. May not checkpoint."""
        while self.open:
            await self._one_left.park()

    # --- inside

    def _make_room(self, origin: _Origin | None) -> str | None:
        """Let silent connections make room for one of `origin`, and return the reason
        if they cannot.
        """
        limits = self._limits
        # The client of a suspended connection has to be let in, and only its hello tells that it is
        # one. So there are as many places beyond the bound as connections are suspended: clients
        # that come back at the same time would cut each other off.
        if origin is not None:
            is_full = origin.count >= limits.max_connections_per_address and len(
                origin.handshaking
            ) >= len(origin.suspended)
            if is_full and not self._cut_oldest(origin.handshaking, PER_ADDRESS):
                return PER_ADDRESS
        # The connections may be too many in all: with few files there are fewer places than
        # `max_pending_handshakes`.
        is_full = len(self._places) >= self.max_open and len(self._handshaking) >= len(
            self._suspended
        )
        if is_full and not self._cut_oldest(self._crowd(origin), BEFORE_HELLO):
            return CONNECTIONS
        if len(self._handshaking) >= limits.max_pending_handshakes:
            self._cut_oldest(self._crowd(origin), BEFORE_HELLO)
        return None

    def _is_crowd(self, origin: _Origin) -> bool:
        return (
            len(origin.handshaking)
            > min(self._limits.max_pending_handshakes, self.max_open) / SHARE
        )

    def _crowd(self, origin: _Origin | None) -> dict[Slot, None]:
        """Return the silent connections that make room for one of `origin`:
        its crowd, another crowd, or all connections.
        """
        crowd = (
            origin
            if origin is not None and self._is_crowd(origin)
            else next(iter(self._crowds), None)
        )
        return self._handshaking if crowd is None else crowd.handshaking

    def _cut_oldest(self, handshaking: dict[Slot, None], reason: str) -> bool:
        oldest = next(iter(handshaking), None)
        if oldest is None:
            return False
        # Its place is free now. Its file is open until the task has ended,
        # and `wait_departed` bounds these.
        self.vacate(oldest)
        oldest.cut()
        self.on_cut(oldest, reason)
        return True

    def _end_suspended(self, suspended: dict[Slot, None], reason: str) -> str | None:
        """End the connection that was lost first; return `reason` without one."""
        longest = next(iter(suspended), None)
        if longest is None:
            return reason
        # The place is freed first: `leave` ends the wait for the client, which would free it again.
        self.vacate(longest)
        longest.leave(reason)
        return None

    def _add(self, place: Slot) -> Slot:
        self._places.add(place)
        self.open.add(place)
        # Bounded apart from the rest: a peer before its hello is unknown, and costs a handshake.
        self._handshaking[place] = None
        if place.origin is not None:
            origin = self._origins.setdefault(place.origin, _Origin())
            origin.count += 1
            origin.handshaking[place] = None
            if self._is_crowd(origin):
                self._crowds[origin] = None
        return place


class AcceptRate:
    """At most `rate` connections a second; after a quiet second that number may come at once."""

    __slots__ = ("_due", "_step")

    def __init__(self, rate: float) -> None:
        self._step = 1 / rate
        self._due = float("-inf")

    def count(self, now: float) -> float:
        """Count a connection, and return the seconds to wait before the next one is accepted."""
        # A token bucket in one number: the time at which the next token is due. Time before the
        # last second is not saved up.
        self._due = max(self._due, now - 1) + self._step
        return max(0.0, self._due - now)
