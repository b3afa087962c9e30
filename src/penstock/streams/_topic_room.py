"""The wait of `Topic.publish` until all subscribers have room,
with a bound for each subscriber (`_hold_up`).
"""

from collections.abc import Callable
from math import inf

import trio

from penstock.streams._hold_up import check_hold_up
from penstock.streams._slow_policy import SlowPolicy


class TopicRoom:
    """Where `publish` waits for room. `wake` it when a subscriber makes room, joins, or leaves."""

    __slots__ = ("_asked", "_least", "_lot")

    def __init__(self, asked: float | None, slow: SlowPolicy) -> None:
        """`asked` is the bound that the topic sets for all of its subscribers."""
        self._asked = check_hold_up(asked, slow)
        # Of all subscribers that have ever joined:
        # a wait that ends too early costs one look at each of them.
        self._least = inf
        self._lot = trio.lowlevel.ParkingLot()

    def bound(self, own: float) -> float:
        """Return the bound of a subscriber that joins now;
        `own` is its bound if the topic sets none.
        """
        bound = own if self._asked is None else self._asked
        if bound < self._least:
            self._least = bound
            self.wake()  # a publish that waits must not wait longer for this subscriber
        return bound

    def wake(self) -> None:
        """Let a publish that waits look again."""
        self._lot.unpark_all()

    async def wait(
        self, is_full: Callable[[], bool], fail_overdue: Callable[[float], float]
    ) -> None:
        """Wait until `is_full` returns False.

        `fail_overdue` is called when a bound may be over, with the time at which the wait began; it
        fails the subscribers whose bound is over, and returns when the next one will be.
        """
        if self._least == inf:
            # Without a cancel scope, which costs as much as the wait itself.
            # A subscriber with a bound wakes this.
            while self._least == inf and is_full():
                await self._lot.park()
        began = trio.current_time()
        due = began + self._least
        while is_full():
            with trio.CancelScope(deadline=due) as scope:
                await self._lot.park()
            now = trio.current_time()
            # Without the deadline it was woken, perhaps by a new subscriber with a shorter bound:
            # the deadline may be nearer then.
            due = fail_overdue(began) if scope.cancelled_caught else min(due, now + self._least)


def time_or_never() -> float:
    """Return the time of trio's clock;
    before every time if trio does not run, because no publish waits then.
    """
    try:
        return trio.current_time()
    except RuntimeError:
        return -inf
