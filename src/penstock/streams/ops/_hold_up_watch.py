"""`HoldUpWatch`: fails the subscribers that hold up all others of an operator for too long.
For `share` and `processor`.

Rules of this file:

* A subscriber holds up the others while it is the reason why nothing is requested upstream although
  another one wants elements. The operator finds that out, and passes it on with `update`.
* The bound counts from the time at which the subscriber began to hold up the others.
  It begins anew with each of its requests.
* Without a subscriber that has a bound the watch has no timer and no task:
  inside one process that is the usual case.
"""

from collections.abc import Callable, Collection
from math import inf
from typing import Generic, TypeVar

import trio

from penstock.api import SlowSubscriber
from penstock.core import Scope
from penstock.streams._slow_subscribers import held_up
from penstock.streams.ops._timer import Timer

K = TypeVar("K")


class HoldUpWatch(Generic[K]):
    """The bounds of the subscribers of one operator. `K` is how the operator names a subscriber."""

    __slots__ = ("_asked", "_bounds", "_fail", "_since", "_timer", "_what")

    def __init__(
        self, what: str, asked: float | None, fail: Callable[[K, SlowSubscriber], None]
    ) -> None:
        """`asked` is the bound that the operator sets for all its subscribers.
        `fail` ends one of them.
        """
        self._what = what
        self._asked = asked
        self._fail = fail
        self._bounds: dict[K, float] = {}  # of the subscribers with a bound
        self._since: dict[K, float] = {}  # of the subscribers that hold up the others: since when
        self._timer: Timer | None = None

    @property
    def is_needed(self) -> bool:
        """Whether a subscriber has a bound. Without one, `update` need not be called."""
        return bool(self._bounds)

    def begin(self, scope: Scope, fail: Callable[[BaseException], None]) -> None:
        """Let the timer run in `scope`. `fail` is called if it cannot run."""
        self._timer = Timer(scope, self._what, on_deadline=self._fail_overdue, fail=fail)

    def add(self, subscriber: K, own: float) -> None:
        """Take a new subscriber. `own` is its bound if the operator sets none."""
        bound = own if self._asked is None else self._asked
        if bound < inf:
            self._bounds[subscriber] = bound

    def remove(self, subscriber: K) -> None:
        """Forget a subscriber that has left."""
        self._bounds.pop(subscriber, None)
        self._since.pop(subscriber, None)

    def note_request(self, subscriber: K) -> None:
        """Let the bound of a subscriber begin anew: it has requested something."""
        self._since.pop(subscriber, None)

    def update(self, holding: Collection[K]) -> None:
        """Take note that these subscribers, and no others, hold up the rest now."""
        now = trio.current_time()
        self._since = {each: self._since.get(each, now) for each in holding if each in self._bounds}
        self._set_timer(now)

    def stop(self) -> None:
        """End the timer."""
        self._since.clear()
        if self._timer is not None:
            self._timer.stop()

    def _set_timer(self, now: float) -> None:
        if self._timer is None:
            return
        if self._since:
            self._timer.set(
                max(
                    0.0,
                    min(since + self._bounds[each] for each, since in self._since.items()) - now,
                )
            )
        else:
            self._timer.clear()

    def _fail_overdue(self) -> None:
        now = trio.current_time()
        for subscriber, since in tuple(self._since.items()):
            bound = self._bounds[subscriber]
            # Looked up again: the failure of one subscriber may have let the others go on.
            if since + bound <= now and self._since.get(subscriber) == since:
                self._fail(
                    subscriber,
                    held_up(bound, what=self._what, setting=f"{self._what}(max_hold_up=...)"),
                )
        self._set_timer(now)
