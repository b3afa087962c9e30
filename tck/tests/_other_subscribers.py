"""Subscribers and a processor in other forms than the honest ones, each with switches for faults.
Without a switch they keep the rules.

| form | what it does |
|---|---|
| `ChannelSubscriber` | a task takes the elements from a queue, and requests when half of the window of eight is handled |
| `IteratorSubscriber` | a task iterates: each step requests one element and waits for it |
| `TaskProcessor` | a task moves elements from a window of four to one subscriber. An error overtakes them |
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import trio

from penstock.api import IllegalDemand, add_demand, check_demand


class OtherSubscriber(ABC):
    """The parts that both forms of a subscriber share.
    Handlers are called by `handle` and `handle_end`, in a task.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        faults: frozenset[str],
        on_element: Callable[[Any], object],
        on_failure: Callable[[Any], object],
        on_end: Callable[[], object],
    ) -> None:
        self.nursery = nursery
        self.faults = faults
        self.on_element = on_element
        self.on_failure = on_failure
        self.on_end = on_end
        self.subscription: Any = None
        self.over = False
        self.handled = 0
        self.mail: deque[tuple[str, Any]] = deque()  # bounded by the demand, and one end
        self.came = trio.Event()
        self.asking = False

    def has(self, fault: str) -> bool:
        return fault in self.faults

    # ------------------------------------------------------------------ signals

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is None and not self.has("none-accepted"):
            raise TypeError("rule 2.13")
        if self.subscription is not None or self.over:
            if self.has("second-subscription-replaces"):
                self.subscription = subscription
                self.ask(1)
            elif not self.has("second-subscription-ignored"):
                subscription.cancel()
            return
        self.subscription = subscription
        self.nursery.start_soon(self.run)
        self.begin()

    def on_next(self, element: Any, /) -> None:
        if element is None and not self.has("none-accepted"):
            raise TypeError("rule 2.13")
        if self.over:
            if self.has("late-elements-raise"):
                raise RuntimeError("cancelled")
            return
        if self.has("loses-elements-inside-request") and self.asking:
            return
        if self.has("raises-at-the-50th") and self.handled + len(self.mail) == 49:
            raise RuntimeError("full")
        self.post("element", element)

    def on_error(self, error: Any, /) -> None:
        if error is None or not isinstance(error, BaseException):
            raise TypeError("rule 2.13")
        self.finish("error", error)

    def on_complete(self) -> None:
        self.finish("end", None)

    # ------------------------------------------------------------------ duties

    @abstractmethod
    def begin(self) -> None:
        """Make the first request."""

    @abstractmethod
    def done(self) -> None:
        """An element was handled: request more if it is time."""

    def ask(self, n: int) -> None:
        if self.subscription is None or self.has("never-asks"):
            return
        self.asking = True
        self.subscription.request(
            -n if self.has("asks-for-less-than-nothing") and self.handled >= 3 else n
        )
        self.asking = False

    def finish(self, kind: str, value: Any) -> None:
        if self.over:
            return
        if self.has("cancels-at-the-end"):
            self.subscription and self.subscription.cancel()
        if self.has("asks-at-the-end"):
            self.ask(1)
        if self.has("ends-need-an-element") and not self.handled and not self.mail:
            return
        if self.has("the-end-overtakes"):
            self.mail.clear()
        self.over = True
        if not self.has("uses-it-after-the-end"):
            self.subscription = None
        if self.subscription is None and not self.came.is_set() and not self.mail:
            self.came.set()
        self.post(kind, value)

    def post(self, kind: str, value: Any) -> None:
        self.mail.append((kind, value))
        self.came.set()

    async def run(self) -> None:
        while True:
            while not self.mail:
                self.came = trio.Event()
                await self.came.wait()
            await trio.lowlevel.checkpoint()
            if not self.mail:
                return
            kind, value = self.mail.popleft()
            if kind != "element":
                self.handle_end(kind, value)
                return
            self.handle(value)

    def handle(self, element: Any) -> None:
        self.handled += 1
        try:
            if not (self.has("skips-the-30th") and self.handled == 30):
                self.on_element(element)
        except Exception:
            if not self.has("a-raise-does-not-cancel"):
                self.shut_down()
            return
        if self.has("reports-twice") and self.handled == 7:
            self.on_element(element)
        self.done()

    def handle_end(self, kind: str, value: Any) -> None:
        if kind == "error":
            self.on_failure(ValueError("failed") if self.has("another-error") else value)
        elif self.has("completion-is-silent"):
            return
        else:
            self.on_end()
        if self.has("uses-it-after-the-end"):
            self.ask(1)

    # ------------------------------------------------------------------ from outside

    def request(self, n: int) -> None:
        self.ask(n)

    def shut_down(self) -> None:
        subscription, self.subscription = self.subscription, None
        self.over = True
        self.mail.clear()
        if subscription is not None and not self.has("never-cancels"):
            subscription.cancel()


class ChannelSubscriber(OtherSubscriber):
    """A window of eight elements; half of it is requested anew when it was handled."""

    left = 8

    def begin(self) -> None:
        self.ask(8)

    def done(self) -> None:
        self.left -= 1
        if self.left <= 4:
            self.left += 4
            self.ask(4)


class IteratorSubscriber(OtherSubscriber):
    """One element at a time."""

    def begin(self) -> None:
        self.ask(1)

    def done(self) -> None:
        self.ask(1)


SUBSCRIBERS: Final = {"channel": ChannelSubscriber, "iterator": IteratorSubscriber}


class TaskProcessor:
    """A task moves elements from a window of four to one subscriber."""

    window = 4

    def __init__(self, nursery: trio.Nursery, faults: frozenset[str]) -> None:
        self.nursery = nursery
        self.faults = faults
        self.upstream: Any = None
        self.downstream: Any = None
        self.served = False
        self.running = False
        self.demand = 0
        self.moved = 0
        self.kept: deque[Any] = deque()
        self.end: tuple[Any, ...] | None = None

    def has(self, fault: str) -> bool:
        return fault in self.faults

    # ------------------------------------------------------------------ downstream

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            raise TypeError("rule 1.9")
        if self.served:
            subscriber.on_subscribe(_Nothing())
            subscriber.on_error(RuntimeError("one subscriber only"))
            return
        self.served = True
        self.downstream = subscriber
        self.running = True
        self.signal("on_subscribe", self)
        self.running = False
        self.wake()

    def request(self, n: int, /) -> None:
        if self.downstream is None:
            return
        try:
            self.demand = add_demand(self.demand, check_demand(n))
        except IllegalDemand as error:
            self.cancel_upstream()
            self.end = ("on_error", error)
            self.kept.clear()
        if self.has("early-demand-forgotten") and self.upstream is None and self.end is None:
            self.demand = 0
        self.wake()

    def cancel(self) -> None:
        self.downstream = None
        self.kept.clear()
        if not self.has("cancel-stays-here"):
            self.cancel_upstream()

    # ------------------------------------------------------------------ upstream

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is None:
            raise TypeError("rule 2.13")
        if (
            self.upstream is not None
            or self.end is not None
            or (self.served and self.downstream is None)
        ):
            subscription.cancel()
            return
        self.upstream = subscription
        subscription.request(6 if self.has("keeps-two-more") else self.window)

    def on_next(self, element: Any, /) -> None:
        if element is None:
            raise TypeError("rule 2.13")
        if self.upstream is None:
            return
        self.kept.append(element)
        self.wake()

    def on_error(self, error: Any, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError("rule 2.13")
        self.upstream = None
        if not self.has("errors-wait"):
            self.kept.clear()
        self.end = ("on_error", RuntimeError("wrapped") if self.has("another-error") else error)
        self.wake()

    def on_complete(self) -> None:
        if self.has("completion-drops-the-kept"):
            self.kept.clear()
        self.upstream = None
        self.end = ("on_complete",)
        self.wake()

    # ------------------------------------------------------------------ duties

    def cancel_upstream(self) -> None:
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.cancel()

    def due(self) -> bool:
        if self.downstream is None:
            return False
        if self.has("completion-waits-for-demand") and self.end and not self.demand:
            return False
        return bool((self.kept and self.demand > 0) or (self.end and not self.kept))

    def wake(self) -> None:
        if self.running or not self.due():
            return
        try:
            self.nursery.start_soon(self.run)
        except RuntimeError as closed:
            self.signal("on_error", closed)
            self.cancel()
        else:
            self.running = True

    async def run(self) -> None:
        while self.due():
            seen = self.demand
            await trio.lowlevel.checkpoint()
            if self.has("request-in-a-checkpoint-forgotten"):
                self.demand = min(self.demand, seen)
            if self.due():
                self.move()
        self.running = False

    def move(self) -> None:
        if not self.kept:
            end, self.end = self.end, None
            assert end is not None
            downstream, self.downstream = self.downstream, None
            self.deliver(downstream, *end)
            return
        self.demand -= 1
        self.moved += 1
        element = self.kept.popleft()
        if not (self.has("loses-the-20th") and self.moved == 20):
            self.signal("on_next", element)
        if self.upstream is not None and not (
            self.has("stops-asking-after-64") and self.moved >= 64
        ):
            self.upstream.request(1)

    def signal(self, name: str, *arguments: Any) -> None:
        self.deliver(self.downstream, name, *arguments)

    def deliver(self, downstream: Any, name: str, *arguments: Any) -> None:
        try:
            getattr(downstream, name)(*arguments)
        except Exception:
            self.cancel()


class _Nothing:
    """The subscription of a subscriber that was refused."""

    def request(self, n: int, /) -> None:
        """Do nothing."""

    def cancel(self) -> None:
        """Do nothing."""
