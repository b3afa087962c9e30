"""A publisher that keeps the early draft's rules.
Saboteurs override one method of its subscription.

Its signals come from a task, because the draft's own subscribers may make no call inside a signal.
Sleeps use the kit's MockClock.
"""

from typing import Any

import trio

from penstock.api import UNBOUNDED, InvalidStateError
from tck.tests._honest_publishers import HonestSubscription, TaskPublisher, TaskSubscription


class HonestDraftSubscription(TaskSubscription):
    """One subscription of the draft."""

    publisher: "DraftPublisher"

    def request_more(self, n: int, /) -> None:
        if self.subscriber is None:
            self.refuse_when_over("request_more")
            return
        if n <= 0:
            self.refuse_demand(n)
            return
        if self.is_too_much(n):
            self.overflow()
            return
        self.add(n)
        self.pump()

    def cancel(self) -> None:
        if self.subscriber is None:
            self.refuse_when_over("cancel")
            return
        self.forget()

    def refuse_demand(self, n: int) -> None:
        raise ValueError(f"request_more({n}): demand is a positive integer (draft rule D2.4)")

    def is_too_much(self, n: int) -> bool:
        return self.demand + n > UNBOUNDED

    def overflow(self) -> None:
        self.end(
            "on_error", InvalidStateError("the total demand is above 2^63-1 (draft rule D2.3)")
        )

    def add(self, n: int) -> None:
        self.demand += n

    def refuse_when_over(self, method: str) -> None:
        raise InvalidStateError(
            f"{method} on a subscription that has ended (draft rules D2.1, D3.1)"
        )

    def forget(self) -> None:
        self.publisher.active.pop(id(self.subscriber), None)
        super().forget()


class DraftPublisher(TaskPublisher):
    """Gives every subscriber the same elements, signals only the end if the stream is empty, and
    refuses an object that is subscribed.
    """

    subscription_class: type[HonestSubscription] = HonestDraftSubscription

    def __init__(
        self, nursery: trio.Nursery, count: int, error: Exception | None = None, **more: Any
    ) -> None:
        super().__init__(nursery, count, error, **more)
        self.active: dict[int, HonestDraftSubscription] = {}

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            raise TypeError("subscribe() was called with None")
        if not self.count:
            self.answer_with_the_end(subscriber)
            return
        if self.is_active(subscriber):
            self.refuse_again(subscriber)
            return
        self.accept(subscriber)

    def is_active(self, subscriber: Any) -> bool:
        return id(subscriber) in self.active

    def accept(self, subscriber: Any) -> None:
        subscription = self.subscription_class(self, subscriber)
        assert isinstance(subscription, HonestDraftSubscription)
        self.active[id(subscriber)] = subscription
        subscription.begin()

    def answer_with_the_end(self, subscriber: Any) -> None:
        if self.error is not None:
            subscriber.on_error(self.error)
        else:
            subscriber.on_complete()

    def refuse_again(self, subscriber: Any) -> None:
        """Draft rule D1.7. The refusal ends the first subscription, too,
        because on_error is an end for the subscriber.
        """
        self.active[id(subscriber)].end(
            "on_error", InvalidStateError("this object is already subscribed (draft rule D1.7)")
        )


class RefusingDraftPublisher(DraftPublisher):
    """Refuses every subscriber."""

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_error(InvalidStateError("this publisher refuses every subscriber (D1.6)"))


class SlowDraftSubscription(HonestDraftSubscription):
    """Each element comes some seconds after it is requested."""

    publisher: "SlowDraftPublisher"

    async def run(self) -> None:
        while self.due():
            await trio.sleep(self.publisher.seconds)
            if self.due():
                self.step()
        self.busy = False
        self.finish()


class SlowDraftPublisher(DraftPublisher):
    """A publisher whose elements are not available when they are requested."""

    subscription_class = SlowDraftSubscription

    def __init__(self, nursery: trio.Nursery, count: int, *, seconds: float) -> None:
        super().__init__(nursery, count)
        self.seconds = seconds
