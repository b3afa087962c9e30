"""`OutputQueue`: the demand and the waiting elements of one subscriber of a stage that has several.
For `share`, `window`, `group_by`.

Rules of this file:

* Signals to the subscriber are serial (rule 1.3), and nothing recurses (rule 3.3). An element that
  arrives while the subscriber is in a signal waits, and the loop in `_pass_on` signals it
  afterwards.
* Completion waits for the waiting elements. An error does not (rule 4.2), and a cancel drops them.
* The owner is told of each change only after the queue itself has changed, so it may push
  or end the queue from there.
"""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Final, Generic, TypeVar

import attrs

from penstock.api import (
    UNBOUNDED,
    PipePart,
    SlowSubscriber,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    shown,
)
from penstock.streams._slow_subscribers import SlowPolicy
from penstock.streams.ops._step import WINDOW

T = TypeVar("T")


class QueueOwner(ABC):
    """The stage that pushes elements into queues."""

    __slots__ = ()

    @abstractmethod
    def on_queue_demand(self, queue: "OutputQueue[Any]") -> None:
        """The subscriber has requested more."""

    @abstractmethod
    def on_queue_closed(self, queue: "OutputQueue[Any]") -> None:
        """The subscriber has cancelled, has got its end, or has failed because it was too slow.
        Called once.
        """


@attrs.frozen
class End:
    """How a stream ended: with an error, or completed if `error` is None."""

    error: BaseException | None


@attrs.frozen
class Overflow:
    """The policies of a queue for an element that does not fit into it."""

    slow: SlowPolicy
    buffer: int
    """How many elements may wait.
    With `SlowPolicy.WAIT` the owner requests no more than there is room for.
    """


def check_overflow(name: str, slow: SlowPolicy, buffer: int | None) -> Overflow:
    """Return the policy. UsageError names the operator and the argument."""
    if not isinstance(slow, SlowPolicy):
        raise UsageError(
            f"{name}(slow={shown(slow)}): choose one of "
            f"{', '.join(f'SlowPolicy.{each.name}' for each in SlowPolicy)}"
        )
    if slow is SlowPolicy.LATEST:
        if buffer is not None:
            raise UsageError(
                f"{name}(buffer={shown(buffer)}) with SlowPolicy.LATEST, which keeps exactly one "
                "element. Use DROP_OLDEST"
            )
        return Overflow(slow, 1)
    if buffer is not None and (type(buffer) is not int or buffer < 1):
        raise UsageError(
            f"{name}(buffer={shown(buffer)}): give how many elements may wait, an integer of at "
            "least 1"
        )
    return Overflow(slow, WINDOW if buffer is None else buffer)


class OutputQueue(Subscription, Generic[T]):
    """The subscription of one subscriber. Elements may be pushed before there is a subscriber."""

    __slots__ = (
        "_end",
        "_is_closed",
        "_is_signalling",
        "_overflow",
        "_owner",
        "_subscriber",
        "_waiting",
        "demand",
    )

    def __init__(self, owner: QueueOwner, overflow: Overflow) -> None:
        self._owner = owner
        self._overflow = overflow
        self._subscriber: Subscriber[T] | None = None  # None before `start`, and after the end
        self._waiting: Final[deque[T]] = deque()  # bounded by overflow.buffer
        self._end: End | None = None  # not signalled yet
        self._is_signalling = False  # on_subscribe, or the loop of _pass_on, is on the stack
        self._is_closed = False
        self.demand: int = 0
        """Elements requested and not signalled yet."""

    @property
    def is_closed(self) -> bool:
        """Whether no further element can be signalled."""
        return self._is_closed

    @property
    def has_subscriber(self) -> bool:
        """Whether a subscriber is there and has not got its end."""
        return self._subscriber is not None

    @property
    def room(self) -> int:
        """How many more elements can be pushed before one is dropped."""
        return self.demand + self._overflow.buffer - len(self._waiting)

    def pipe_part(self) -> PipePart:
        """Return the part for those who look at the pipe. What feeds the owner is another pipe."""
        # The run of a shared source is no stage.
        return PipePart(getattr(self._owner, "_part_label", "share"), len(self._waiting))

    def start(self, subscriber: Subscriber[T]) -> None:
        """Signal on_subscribe, then the elements that are requested in it."""
        self._subscriber = subscriber
        self._is_signalling = True
        try:
            subscriber.on_subscribe(self)
        finally:
            self._is_signalling = False
        self._pass_on()

    def push(self, element: T) -> None:
        """Signal `element`, or let it wait. If the queue is full, do as the policy says."""
        if self._is_closed or self._end is not None:
            return
        slow, waiting = self._overflow.slow, self._waiting
        if self._is_signalling or not self.demand:
            if len(waiting) < self._overflow.buffer or slow is SlowPolicy.WAIT:
                waiting.append(element)
            elif slow is SlowPolicy.FAIL:
                self.end(End(self._too_slow()))
            elif slow is not SlowPolicy.DROP_NEWEST:
                waiting.popleft()
                waiting.append(element)
            return
        waiting.append(element)
        self._pass_on()

    def end(self, end: End) -> None:
        """Signal the end: an error at once, a completion after the waiting elements; but inside
        a signal, after that signal.
        """
        if self._is_closed or self._end is not None:
            return
        self._end = end
        if end.error is not None:
            self._waiting.clear()
        self._pass_on()

    # --- the subscription: called by the subscriber

    def request(self, n: int, /) -> None:
        if not self._is_closed:
            self.demand = add_demand(self.demand, n)
            self._pass_on()
            if not self._is_closed:
                self._owner.on_queue_demand(self)

    def cancel(self, /) -> None:
        self._close()

    # --- inside

    def _pass_on(self) -> None:
        """Signal the waiting elements that are requested, then the end if nothing waits."""
        subscriber = self._subscriber
        if self._is_signalling or subscriber is None:
            return
        self._is_signalling = True
        try:
            while self.demand and self._waiting:  # a cancel inside on_next clears both
                if self.demand < UNBOUNDED:  # rule 3.17: 2^63-1 is without bound
                    self.demand -= 1
                subscriber.on_next(self._waiting.popleft())
        finally:
            self._is_signalling = False
        end = self._end
        if end is not None and not self._waiting and not self._is_closed:
            self._close()
            if end.error is None:
                subscriber.on_complete()
            else:
                subscriber.on_error(end.error)

    def _close(self) -> None:
        """Forget the subscriber and its elements, and tell the owner."""
        if not self._is_closed:
            self._is_closed = True
            self._subscriber = None
            self.demand = 0
            self._waiting.clear()
            self._owner.on_queue_closed(self)

    def _too_slow(self) -> SlowSubscriber:
        buffer = self._overflow.buffer
        return SlowSubscriber(
            f"this subscriber had no demand left and {buffer} elements waiting when another one "
            "arrived; "
            "SlowPolicy.FAIL ends a subscriber that lags further. Request more, or choose a "
            "larger buffer or another policy",
            limit="buffer",
            value=buffer,
        )
