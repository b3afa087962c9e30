"""The share that one worker has in the work of a server: what its parent counts for all workers,
and what the workers have in common.
"""

from collections.abc import Callable
from typing import Protocol

import attrs

from penstock.api import Limits
from penstock.runtime.server._admission import Admission, Slot
from penstock.runtime.server._attempts import AttemptsShare
from penstock.spi import ConnectionHost, PeerIdentity, WorkerGroup


class Door(Protocol):
    """The parent, which accepts the connections of all workers, as the admission of one sees it. A
    connection has a number there.
    """

    def take(self) -> tuple[int, str] | None:
        """Return the number of the connection that the listener has returned last, and the reason
        if it is to be refused; None for a connection that no listener has returned.
        """

    def adopt(self, peer: PeerIdentity) -> int:
        """Return the number of a connection that is a part of another one."""

    def on_taken(self, number: int) -> None:
        """The connection is served here: the parent may forget its socket."""

    def on_known(self, number: int) -> None:
        """The client has made itself known."""

    def on_open(self, number: int) -> None:
        """Both sides have said hello, and the connection needs a place within the bounds."""

    def on_suspended(self, number: int, *, is_suspended: bool) -> None:
        """The connection has lost its transport, or has another one."""

    def on_closed(self, number: int) -> None:
        """The connection needs its place no longer."""


@attrs.frozen(kw_only=True)
class Share:
    """The share of one worker."""

    group: WorkerGroup
    parts: int
    """The number of workers. Each has the same part of `Limits.memory_budget`."""
    door: Door
    attempts: AttemptsShare
    begin: Callable[[ConnectionHost, "SharedAdmission"], None]
    """Called when the server listens: from now on other workers are answered."""

    def part_of(self, number: int) -> int:
        """Return the part of a number that one worker has."""
        return max(1, -(-number // self.parts))


class SharedAdmission(Admission):
    """The connections of one worker. Its parent decides which of them have a place, for all
    workers together, and this admission tells it what becomes of them.
    """

    def __init__(self, limits: Limits, door: Door) -> None:
        super().__init__(limits)
        self._door = door
        self._numbers: dict[Slot, int] = {}  # bounded as the places are
        self._by_number: dict[int, Slot] = {}
        self.on_refused_elsewhere: Callable[[str, int], None] = lambda _reason, _count: None
        """Called with a reason and a number of clients that the parent has refused by itself."""

    def admit(self, peer: PeerIdentity, address: str) -> Slot | str:
        handed = self._door.take()
        if handed is not None and handed[1]:
            self._door.on_closed(handed[0])
            return handed[1]
        # The bounds are the same here. The parent has seen to them, so this one never refuses a
        # connection that it has handed over, and counts those that are part of another one.
        place = super().admit(peer, address)
        if isinstance(place, Slot):
            number = self._door.adopt(peer) if handed is None else handed[0]
            self._numbers[place] = number
            self._by_number[number] = place
            self._door.on_taken(number)
        elif handed is not None:
            self._door.on_closed(handed[0])
        return place

    def on_hello(self, place: Slot) -> None:
        super().on_hello(place)
        number = self._numbers.get(place)
        if number is not None:
            self._door.on_known(number)

    def keep_beyond(self, place: Slot) -> str | None:
        # The parent answers with `leave`, if a place is beyond the bounds.
        number = self._numbers.get(place)
        if number is not None:
            self._door.on_open(number)
        return None

    def suspend(self, place: Slot, *, is_suspended: bool) -> None:
        was_suspended = place.is_suspended
        super().suspend(place, is_suspended=is_suspended)
        number = self._numbers.get(place)
        if number is not None and place.is_suspended != was_suspended:
            self._door.on_suspended(number, is_suspended=is_suspended)

    def vacate(self, place: Slot) -> None:
        # First, so that nothing more is told of a place that is free.
        number = self._numbers.pop(place, None)
        if number is not None:
            del self._by_number[number]
            self._door.on_closed(number)
        super().vacate(place)

    # --- for the parent

    def cut(self, number: int, reason: str) -> None:
        """Cut a connection without a hello: another one needs its place. One whose hello has come
        goes on: the parent did not know it, and learns it from `Door.on_known`.
        """
        place = self._by_number.get(number)
        if place is not None and self.is_handshaking(place):
            self.vacate(place)
            place.cut()
            self.on_cut(place, reason)

    def leave(self, number: int, reason: str) -> None:
        """End a connection with a reason: it has no place."""
        place = self._by_number.get(number)
        if place is not None:
            place.leave(reason)
