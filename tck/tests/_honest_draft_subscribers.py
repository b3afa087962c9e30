"""A subscriber and a processor that keep the early draft's rules: signals only schedule work.
Saboteurs override one method.

Rules of this file

* A signal posts its work to a mailbox; a task of the kit's nursery does it, in order.
  A signal makes no call itself.
* The end of a subscription drops it at once, so that work that was scheduled earlier cannot use it.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import trio

from penstock.api import UNBOUNDED, InvalidStateError


class Mailbox:
    """Scheduled calls, made in order by a task that exists while there are any."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        # Bounded by the demand, and one end.
        self.waiting: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self.working = False

    def post(self, act: Callable[..., object], *arguments: Any) -> None:
        self.waiting.append((act, arguments))
        if not self.working:
            self.working = True
            self.nursery.start_soon(self.work)

    async def work(self) -> None:
        while self.waiting:
            await trio.lowlevel.checkpoint()
            act, arguments = self.waiting.popleft()
            act(*arguments)
        self.working = False


def refuse_none(value: Any) -> None:
    if value is None:
        raise TypeError("None is never a signal's value")


class HonestDraftSubscriber(Mailbox):
    """Requests in batches and hands elements to handlers, from its own task."""

    def __init__(
        self,
        nursery: trio.Nursery,
        on_element: Callable[[Any], object],
        on_failure: Callable[[Any], object],
        on_end: Callable[[], object],
        *,
        batch: int = 2,
    ) -> None:
        super().__init__(nursery)
        self.on_element = on_element
        self.on_failure = on_failure
        self.on_end = on_end
        self.batch = batch
        self.subscription: Any = None
        self.shut = False

    # ------------------------------------------------------------------ signals

    def on_subscribe(self, subscription: Any, /) -> None:
        refuse_none(subscription)
        if self.subscription is not None or self.shut:
            self.on_second_subscription(subscription)
            return
        self.subscription = subscription
        self.post(self.request, self.batch)

    def on_next(self, element: Any, /) -> None:
        refuse_none(element)
        self.post(self.handle, element)

    def on_error(self, error: Any, /) -> None:
        refuse_none(error)
        self.forget_subscription()
        self.post(self.on_failure, error)

    def on_complete(self) -> None:
        self.forget_subscription()
        self.post(self.on_end)

    # ------------------------------------------------------------------ duties

    def on_second_subscription(self, subscription: Any) -> None:
        raise InvalidStateError("this subscriber has a subscription (D7.1)")

    def forget_subscription(self) -> None:
        """D6.3: from here the subscription counts as cancelled."""
        self.subscription = None

    def handle(self, element: Any) -> None:
        if not self.shut:
            self.on_element(element)
            self.request(1)

    # --------------------------------------------------------------- from outside, or from the task

    def request(self, n: int) -> None:
        if self.subscription is not None:
            self.subscription.request_more(n)

    def cancel(self) -> None:
        """D7.4: cancel a subscription that is still there, once."""
        subscription, self.subscription = self.subscription, None
        self.shut = True
        if subscription is not None:
            subscription.cancel()

    def shut_down(self) -> None:
        """D7.2."""
        self.cancel()


class DraftBranch:
    """One subscriber of a processor of the draft."""

    def __init__(self, processor: "HonestDraftProcessor", subscriber: Any) -> None:
        self.processor = processor
        self.subscriber: Any = subscriber
        self.demand = 0
        self.position = processor.first

    def request_more(self, n: int, /) -> None:
        self.refuse_when_over("request_more")
        if n <= 0:
            raise ValueError(f"request_more({n}): demand is a positive integer (D2.4)")
        if self.demand + n > UNBOUNDED:
            self.end("on_error", InvalidStateError("the total demand is above 2^63-1 (D2.3)"))
            self.processor.on_subscriber_cancelled()
            return
        self.demand += n
        self.processor.post(self.processor.deliver)

    def cancel(self) -> None:
        self.refuse_when_over("cancel")
        self.forget()
        self.processor.on_subscriber_cancelled()

    def refuse_when_over(self, method: str) -> None:
        if self.subscriber is None:
            raise InvalidStateError(f"{method} on a subscription that has ended (D2.1, D3.1)")

    def forget(self) -> Any:
        subscriber, self.subscriber = self.subscriber, None
        del self.processor.branches[id(subscriber)]
        return subscriber

    def end(self, signal: str, *arguments: Any) -> None:
        getattr(self.forget(), signal)(*arguments)

    def deliver(self) -> None:
        """Signal elements that are requested and available, and the end if no more will come."""
        processor = self.processor
        while self.subscriber is not None and self.demand and self.position < processor.last:
            self.demand -= 1
            self.position += 1
            self.subscriber.on_next(processor.kept[self.position - 1 - processor.first])
        if (
            self.subscriber is not None
            and processor.end is not None
            and self.position == processor.last
        ):
            self.end(*processor.end)


class HonestDraftProcessor(Mailbox):
    """Passes all signals on to its subscribers, from its own task. It reads a few elements ahead
    and keeps them until all have got them.
    """

    branch: type[DraftBranch] = DraftBranch
    window = 4

    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__(nursery)
        self.upstream: Any = None
        self.branches: dict[int, DraftBranch] = {}
        # Bounded by `window`: no more is requested upstream.
        self.kept: deque[Any] = deque()
        self.first = 0
        self.under_way = 0
        self.end: tuple[Any, ...] | None = None
        self.subscribed = False
        self.is_shut_down = False

    @property
    def last(self) -> int:
        """The position after the newest element."""
        return self.first + len(self.kept)

    # ------------------------------------------------------------------ as a publisher

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            raise TypeError("subscribe() was called with None")
        if id(subscriber) in self.branches:
            self.branches[id(subscriber)].end(
                "on_error", InvalidStateError("this object is already subscribed (D1.7)")
            )
            self.on_subscriber_cancelled()
        elif self.is_shut_down:
            subscriber.on_error(
                InvalidStateError("all subscribers of this processor have cancelled")
            )
        elif self.end is not None and not self.kept:
            getattr(subscriber, self.end[0])(*self.end[1:])
        else:
            branch = self.branches[id(subscriber)] = self.branch(self, subscriber)
            subscriber.on_subscribe(branch)
            self.post(self.deliver)

    # ------------------------------------------------------------------ as a subscriber

    def on_subscribe(self, subscription: Any, /) -> None:
        refuse_none(subscription)
        if self.subscribed:
            self.on_second_subscription(subscription)
            return
        self.subscribed = True
        self.upstream = subscription
        self.post(self.fill)

    def on_next(self, element: Any, /) -> None:
        refuse_none(element)
        self.post(self.keep, element)

    def on_error(self, error: Any, /) -> None:
        refuse_none(error)
        self.forget_subscription()
        self.post(self.fail, error)

    def on_complete(self) -> None:
        self.forget_subscription()
        self.post(self.complete)

    # ------------------------------------------------------------------ duties, in the task

    def on_second_subscription(self, subscription: Any) -> None:
        raise InvalidStateError("this processor has a subscription (D7.1)")

    def forget_subscription(self) -> None:
        """D6.3: from here the subscription counts as cancelled."""
        self.subscribed = True
        self.upstream = None

    def keep(self, element: Any) -> None:
        self.under_way -= 1
        if not self.is_shut_down:  # D8.5
            self.kept.append(element)
            self.deliver()

    def deliver(self) -> None:
        for branch in tuple(self.branches.values()):
            branch.deliver()
        self.trim()
        self.fill()

    def trim(self) -> None:
        """Drop the elements that all subscribers have got."""
        slowest = min((branch.position for branch in self.branches.values()), default=self.first)
        while self.first < slowest:
            self.kept.popleft()
            self.first += 1

    def fill(self) -> None:
        """Request as many elements upstream as there is room for."""
        room = self.window - len(self.kept) - self.under_way
        if self.upstream is not None and room > 0:
            self.under_way += room
            self.upstream.request_more(room)

    def fail(self, error: Any) -> None:
        """D8.4: an error does not wait behind elements."""
        self.kept.clear()
        self.end = ("on_error", error)
        for branch in tuple(self.branches.values()):
            branch.end("on_error", error)

    def complete(self) -> None:
        self.end = ("on_complete",)
        self.deliver()

    def on_subscriber_cancelled(self) -> None:
        """Cancel upstream after the last subscriber (D8.3); otherwise serve the others, which
        may have waited for this one.
        """
        if self.branches:
            self.post(self.deliver)
            return
        self.is_shut_down = True
        self.kept.clear()
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.cancel()
