"""Publishers that keep the rules: one without a task, one with a task for each subscription.
Saboteurs override one method.

Rules of this file

* The methods of a subscription are small, and each has one duty.
  So a saboteur breaks one thing by overriding one method.
* The stream is 0, 1, ... count-1. With `error`, the source raises it after `count` elements.
"""

from typing import Any

import trio

from penstock.api import IllegalDemand, add_demand, check_demand


class HonestSubscription:
    """One subscription. It signals inside request()."""

    def __init__(self, publisher: "HonestPublisher", subscriber: Any) -> None:
        self.publisher = publisher
        # rule 3.13: None after the end, so that this object does not keep the subscriber.
        self.subscriber: Any = subscriber
        self.demand = 0
        self.position = 0
        # rule 3.2: until on_subscribe has returned, requests only raise the demand.
        self.busy = True

    def begin(self) -> None:
        """Subscribe, then signal the elements that were requested meanwhile."""
        self.signal("on_subscribe", self)
        self.busy = False
        self.open()
        self.pump()

    def open(self) -> None:
        """Open the source; an exception ends the stream (rules 1.4, 1.9)."""
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

    # ------------------------------------------------------------------ duties

    def add(self, n: int) -> None:
        self.demand = add_demand(self.demand, n)

    def refuse(self, error: IllegalDemand) -> None:
        self.end("on_error", error)

    def pump(self) -> None:
        """A loop, not a recursion (rule 3.3): requests inside on_next only raise the demand."""
        if self.busy:
            return
        self.busy = True
        while self.due():
            self.step()
        self.busy = False
        self.finish()

    def due(self) -> bool:
        return (
            self.subscriber is not None and self.demand > 0 and self.position < self.publisher.count
        )

    def step(self) -> None:
        self.demand -= 1
        self.position += 1
        self.signal("on_next", self.publisher.element(self.position - 1))

    def finish(self) -> None:
        """Complete with the last element (rule 1.5), or fail if the source does (rule 1.4)."""
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
        """Rule 2.13: a subscriber that raises counts as cancelled, and is reported."""
        try:
            getattr(subscriber, name)(*arguments)
        except Exception as error:
            self.forget()
            self.publisher.report(error)


class HonestPublisher:
    """Serves each subscriber the same elements, from the first one on. `broken` is the exception
    of its source when it is opened.
    """

    subscription_class: type[HonestSubscription] = HonestSubscription
    broken: Exception | None = None

    def __init__(
        self,
        count: int,
        error: Exception | None = None,
        *,
        reports: list[BaseException] | None = None,
    ) -> None:
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
    """Refuses every subscriber."""

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
        """Rule 3.16: request() does not raise if the nursery has closed."""
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
    """A publisher with tasks in a nursery; each element comes `seconds` after it is requested."""

    subscription_class = TaskSubscription
    seconds = 0.0

    def __init__(
        self, nursery: trio.Nursery, count: int, error: Exception | None = None, **more: Any
    ) -> None:
        super().__init__(count, error, **more)
        self.nursery = nursery
