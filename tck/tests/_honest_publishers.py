"""Publishers that keep the rules: one without a task, one with a task for each subscription. Saboteurs override one method of a subscription.

Rules of this file

* A subscription's methods are small, each for one duty, so that a saboteur breaks one thing by overriding one method.
* The stream is 0, 1, ... count-1; with `error`, the source raises it after `count` elements.
"""

from typing import Any

import trio

from penstock.api import IllegalDemand, add_demand, check_demand


class HonestSubscription:
    """One subscription: signals on the stack of request()."""

    def __init__(self, publisher: "HonestPublisher", subscriber: Any) -> None:
        self.publisher = publisher
        # rule 3.13: None once it is over, so that nothing keeps the subscriber.
        self.subscriber: Any = subscriber
        self.demand = 0
        self.position = 0
        # rule 3.2: until on_subscribe has returned, requests only raise the demand.
        self.busy = True

    def begin(self) -> None:
        """Subscribe, then signal what has been requested meanwhile."""
        self.signal("on_subscribe", self)
        self.busy = False
        self.open()
        self.pump()

    def open(self) -> None:
        """Open the source; what it raises ends the stream (rules 1.4, 1.9)."""
        try:
            self.publisher.open_source()
        except Exception as error:
            self.fail(error)

    # ------------------------------------------------------------------ what the subscriber calls

    def request(self, n: int, /) -> None:
        if self.subscriber is None:
            return
        try:
            self.add(check_demand(n))
        except IllegalDemand as error:
            self.refuse(error)
            return
        self.pump()

    def cancel(self) -> None:
        self.forget()

    # ------------------------------------------------------------------ the duties

    def add(self, n: int) -> None:
        self.demand = add_demand(self.demand, n)

    def refuse(self, error: IllegalDemand) -> None:
        self.end("on_error", error)

    def pump(self) -> None:
        """A loop, not a recursion (rule 3.3): requests from inside on_next only raise the demand."""
        if self.busy:
            return
        self.busy = True
        while self.due():
            self.step()
        self.busy = False
        self.finish()

    def due(self) -> bool:
        return self.subscriber is not None and self.demand > 0 and self.position < self.publisher.count

    def step(self) -> None:
        self.demand -= 1
        self.position += 1
        self.signal("on_next", self.publisher.element(self.position - 1))

    def finish(self) -> None:
        """Complete with the last element (rule 1.5), or fail where the source does (rule 1.4)."""
        if self.subscriber is None or self.position < self.publisher.count:
            return
        if self.publisher.error is not None:
            self.end("on_error", self.publisher.error)
        else:
            self.end("on_complete")

    def fail(self, error: Exception) -> None:
        if self.subscriber is not None:
            self.end("on_error", error)

    def end(self, signal: str, *arguments: Any) -> None:
        subscriber = self.subscriber
        self.forget()
        self.deliver(subscriber, signal, *arguments)

    def forget(self) -> None:
        self.subscriber = None

    def signal(self, name: str, *arguments: Any) -> None:
        self.deliver(self.subscriber, name, *arguments)

    def deliver(self, subscriber: Any, name: str, *arguments: Any) -> None:
        """Rule 2.13: who raises counts as cancelled, and is reported."""
        try:
            getattr(subscriber, name)(*arguments)
        except Exception as error:
            self.forget()
            self.publisher.report(error)


class HonestPublisher:
    """Serves each subscriber the same elements, from the first one on; `broken` is what its source raises when it is opened."""

    subscription_class: type[HonestSubscription] = HonestSubscription
    broken: Exception | None = None

    def __init__(self, count: int, error: Exception | None = None, *, reports: list[BaseException] | None = None) -> None:
        self.count = count
        self.error = error
        self.reports = reports if reports is not None else []

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            raise TypeError("subscribe() was called with None (rule 1.9)")
        self.serve(subscriber)

    def serve(self, subscriber: Any) -> None:
        self.subscription_class(self, subscriber).begin()

    def refuse(self, subscriber: Any) -> None:
        """Rule 1.9: a refusal is an on_error after on_subscribe."""
        subscription = self.subscription_class(self, subscriber)
        subscription.signal("on_subscribe", subscription)
        subscription.fail(RuntimeError("this publisher takes no subscriber"))

    def open_source(self) -> None:
        if self.broken is not None:
            raise self.broken

    def element(self, index: int) -> Any:
        return index

    def report(self, error: BaseException) -> None:
        self.reports.append(error)


class RefusingPublisher(HonestPublisher):
    """Refuses everybody."""

    def serve(self, subscriber: Any) -> None:
        self.refuse(subscriber)


class TaskSubscription(HonestSubscription):
    """Signals from a task, which exists while there is demand."""

    publisher: "TaskPublisher"

    def pump(self) -> None:
        if not self.busy and self.due():
            self.start()
        elif not self.busy:
            self.finish()

    def start(self) -> None:
        """Rule 3.16: a nursery that has closed is no reason to raise."""
        try:
            self.publisher.nursery.start_soon(self.run)
        except RuntimeError as closed:
            self.end("on_error", closed)
        else:
            self.busy = True

    async def run(self) -> None:
        while self.due():
            await trio.sleep(self.publisher.seconds)
            if self.due():
                self.step()
        self.busy = False
        self.finish()


class TaskPublisher(HonestPublisher):
    """The same with tasks in a nursery; each element comes `seconds` after it is due."""

    subscription_class = TaskSubscription
    seconds = 0.0

    def __init__(self, nursery: trio.Nursery, count: int, error: Exception | None = None, **more: Any) -> None:
        super().__init__(count, error, **more)
        self.nursery = nursery
