"""A processor that keeps the rules with several subscribers: it reads a few elements ahead and
keeps them until all have got them.

Rules of this file

* The slowest subscriber decides: an element that one subscriber has not got yet is kept, and at
  most `window` elements are kept.
* The work is done in a loop, not by recursion (rule 3.3):
  a call from inside only makes the loop run once more.
"""

from collections import deque
from typing import Any

from penstock.api import IllegalDemand, add_demand, check_demand


class Branch:
    """One subscriber of the processor."""

    def __init__(self, processor: "HonestFanOut", subscriber: Any) -> None:
        self.processor = processor
        # rule 3.13: None after the end.
        self.subscriber: Any = subscriber
        self.position = processor.first
        self.demand = 0

    def request(self, n: int, /) -> None:
        if self.subscriber is None:
            return
        try:
            self.add(check_demand(n))
        except IllegalDemand as error:
            self.end("on_error", error)
            self.processor.on_subscriber_cancelled()
            return
        self.processor.work()

    def cancel(self) -> None:
        if self.subscriber is not None:
            self.forget()
            self.processor.on_subscriber_cancelled()

    def add(self, n: int) -> None:
        self.demand = add_demand(self.demand, n)

    def due(self) -> bool:
        return (
            self.subscriber is not None and self.demand > 0 and self.position < self.processor.last
        )

    def step(self) -> bool:
        """Signal the next element or the end; return whether there was one."""
        processor = self.processor
        if self.due():
            self.demand -= 1
            self.position += 1
            self.signal("on_next", processor.kept[self.position - 1 - processor.first])
            return True
        if (
            self.subscriber is not None
            and processor.end is not None
            and self.position == processor.last
        ):
            self.end(*processor.end)
            return True
        return False

    def end(self, signal: str, *arguments: Any) -> None:
        self.deliver(self.forget(), signal, *arguments)

    def forget(self) -> Any:
        subscriber, self.subscriber = self.subscriber, None
        self.processor.branches.remove(self)
        return subscriber

    def signal(self, name: str, *arguments: Any) -> None:
        self.deliver(self.subscriber, name, *arguments)

    def deliver(self, subscriber: Any, name: str, *arguments: Any) -> None:
        try:
            getattr(subscriber, name)(*arguments)
        except Exception:  # rule 2.13: a subscriber that raises counts as cancelled
            self.cancel()


class HonestFanOut:
    """Passes all signals on to all of its subscribers."""

    branch: type[Branch] = Branch
    window = 4

    def __init__(self) -> None:
        self.upstream: Any = None
        self.branches: list[Branch] = []
        # Bounded by `window`: no more is requested upstream.
        self.kept: deque[Any] = deque()
        self.first = 0
        self.under_way = 0
        self.end: tuple[Any, ...] | None = None
        self.working = False
        self.again = False

    @property
    def last(self) -> int:
        """The position after the newest element."""
        return self.first + len(self.kept)

    # ------------------------------------------------------------------ as a publisher

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            raise TypeError("subscribe() was called with None (rule 1.9)")
        branch = self.branch(self, subscriber)
        # rule 3.2: until on_subscribe has returned, requests only raise the demand.
        outer, self.working = self.working, True
        self.branches.append(branch)
        branch.signal("on_subscribe", branch)
        self.working = outer
        self.work()

    # ------------------------------------------------------------------ as a subscriber

    def on_subscribe(self, subscription: Any, /) -> None:
        self.refuse_none(subscription)
        if self.upstream is not None or self.end is not None:
            subscription.cancel()
            return
        self.upstream = subscription
        self.work()

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        self.under_way -= 1
        if self.upstream is not None or self.end is None:
            self.keep(element)
            self.work()

    def on_error(self, error: Any, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError("on_error wants an exception (rule 2.13)")
        self.upstream = None
        self.fail(error)

    def on_complete(self) -> None:
        self.upstream = None
        self.end = ("on_complete",)
        self.work()

    # ------------------------------------------------------------------ duties

    def refuse_none(self, value: Any) -> None:
        if value is None:
            raise TypeError("None is never a signal's value (rule 2.13)")

    def keep(self, element: Any) -> None:
        self.kept.append(element)

    def work(self) -> None:
        """Signal and request until nothing more is due."""
        self.again = True
        if self.working:
            return
        self.working = True
        while self.again:
            self.again = False
            for branch in tuple(self.branches):
                self.again |= branch.step()
            self.trim()
            self.fill()
        self.working = False

    def trim(self) -> None:
        """Drop the elements that all subscribers have got."""
        slowest = min((branch.position for branch in self.branches), default=self.first)
        while self.first < slowest:
            self.kept.popleft()
            self.first += 1

    def fill(self) -> None:
        """Request as many elements upstream as there is room for."""
        room = self.window - len(self.kept) - self.under_way
        if self.upstream is not None and room > 0:
            self.under_way += room
            self.upstream.request(room)

    def fail(self, error: Any) -> None:
        """Rule 4.2: an error does not wait behind elements."""
        self.first += len(self.kept)
        self.kept.clear()
        self.end = ("on_error", error)
        for branch in tuple(self.branches):
            branch.end(*self.end)

    def on_subscriber_cancelled(self) -> None:
        """Cancel upstream after the last subscriber;
        otherwise serve the others, which may have waited for this one.
        """
        if self.branches:
            self.work()
        elif self.end is None:
            self.shut_down()

    def shut_down(self) -> None:
        self.end = ("on_error", RuntimeError("all subscribers of this processor have cancelled"))
        self.first += len(self.kept)
        self.kept.clear()
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.cancel()
