"""Subscribers of several kinds, and a processor, that keep the rules.
Saboteurs override one method.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import trio

from penstock.api import IllegalDemand, add_demand, check_demand


class HonestSubscriber:
    """Requests in batches and hands elements to handlers;
    a handler that raises cancels the subscription (rule 2.13).
    """

    def __init__(
        self,
        on_element: Callable[[Any], object] = lambda _: None,
        on_failure: Callable[[Any], object] = lambda _: None,
        on_end: Callable[[], object] = lambda: None,
        *,
        batch: int = 2,
    ) -> None:
        self.on_element = on_element
        self.on_failure = on_failure
        self.on_end = on_end
        self.batch = batch
        self.subscription: Any = None
        self.over = False

    # ------------------------------------------------------------------ signals

    def on_subscribe(self, subscription: Any, /) -> None:
        self.refuse_none(subscription)
        if self.subscription is not None or self.over:
            self.on_second_subscription(subscription)
            return
        self.subscription = subscription
        self.first_request()

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        if self.subscription is None:
            return
        try:
            self.on_element(element)
        except Exception:
            self.shut_down()
            return
        self.next_request()

    def on_error(self, error: Any, /) -> None:
        self.refuse_none(error)
        self.refuse_non_exception(error)
        self.forget_subscription()
        self.on_failure(error)

    def on_complete(self) -> None:
        self.forget_subscription()
        self.on_end()

    # ------------------------------------------------------------------ duties

    def refuse_none(self, value: Any) -> None:
        if value is None:
            raise TypeError("None is never a signal's value (rule 2.13)")

    def refuse_non_exception(self, error: Any) -> None:
        if not isinstance(error, BaseException):
            raise TypeError("on_error wants an exception (rule 2.13)")

    def on_second_subscription(self, subscription: Any) -> None:
        subscription.cancel()

    def first_request(self) -> None:
        self.subscription.request(self.batch)

    def next_request(self) -> None:
        if self.subscription is not None:
            self.subscription.request(1)

    def forget_subscription(self) -> None:
        """Rule 2.4: from here the subscription counts as cancelled."""
        self.subscription = None
        self.over = True

    # ------------------------------------------------------------------ from outside

    def request(self, n: int) -> None:
        if self.subscription is not None:
            self.subscription.request(n)

    def shut_down(self) -> None:
        """Rule 2.6: cancel a subscription that is no longer needed, once."""
        subscription, self.subscription = self.subscription, None
        self.over = True
        if subscription is not None:
            subscription.cancel()


class ManualHonestSubscriber(HonestSubscriber):
    """Requests only when it is told to."""

    def first_request(self) -> None:
        """Request nothing."""

    def next_request(self) -> None:
        """Request nothing."""


class OneAtATimeSubscriber(ManualHonestSubscriber):
    """Requests one element at a time: the next one when it has got the one before."""

    wanted = 0
    waits = False

    def request(self, n: int) -> None:
        self.wanted += n
        self.next_request()

    def on_next(self, element: Any, /) -> None:
        self.waits = element is None and self.waits
        super().on_next(element)

    def next_request(self) -> None:
        if self.wanted and not self.waits and self.subscription is not None:
            self.wanted -= 1
            self.waits = True
            self.subscription.request(1)


class DispatchingSubscriber(HonestSubscriber):
    """Hands every signal to a task, which exists while calls are scheduled (rule 2.2)."""

    def __init__(self, nursery: trio.Nursery, *handlers: Any) -> None:
        super().__init__(*handlers)
        self.nursery = nursery
        # Bounded by the demand, and one end.
        self.mail: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self.running = False
        self.stopped = False

    def post(self, call: Callable[..., object], *arguments: Any) -> None:
        self.mail.append((call, arguments))
        if not self.running:
            self.running = True
            self.nursery.start_soon(self.run)

    async def run(self) -> None:
        while self.mail:
            await trio.lowlevel.checkpoint()
            call, arguments = self.mail.popleft()
            call(*arguments)
        self.running = False

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        self.post(self.handle, element)

    def on_error(self, error: Any, /) -> None:
        self.refuse_none(error)
        self.refuse_non_exception(error)
        self.forget_subscription()
        self.post(self.on_failure, error)

    def on_complete(self) -> None:
        self.forget_subscription()
        self.post(self.on_end)

    def handle(self, element: Any) -> None:
        if self.stopped:
            return
        try:
            self.on_element(element)
        except Exception:
            self.shut_down()
            return
        self.next_request()

    def shut_down(self) -> None:
        self.stopped = True
        super().shut_down()


class HonestProcessor:
    """Passes all signals on between one publisher and one subscriber. It requests upstream
    exactly what is requested downstream.
    """

    def __init__(self) -> None:
        self.upstream: Any = None
        self.downstream: Any = None
        self.ready = False
        self.demand = 0
        self.end: tuple[Any, ...] | None = None
        self.over = False

    # ------------------------------------------------------------------ as a publisher

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            raise TypeError("subscribe() was called with None (rule 1.9)")
        if self.downstream is not None or self.over:
            self.refuse_subscriber(subscriber)
            return
        self.downstream = subscriber
        self.deliver("on_subscribe", self)
        self.ready = True
        self.pass_end()
        self.pass_demand()

    def refuse_subscriber(self, subscriber: Any) -> None:
        """Rule 1.9: a refusal is an on_error after on_subscribe."""
        subscriber.on_subscribe(_EndedSubscription())
        subscriber.on_error(RuntimeError("this processor serves one subscriber"))

    def request(self, n: int, /) -> None:
        if self.downstream is None or self.over:
            return
        try:
            self.demand = add_demand(self.demand, check_demand(n))
        except IllegalDemand as error:
            self.stop_upstream()
            self.end = ("on_error", error)
            self.pass_end()
            return
        self.pass_demand()

    def cancel(self) -> None:
        self.over = True
        self.downstream = None
        self.stop_upstream()

    # ------------------------------------------------------------------ as a subscriber

    def on_subscribe(self, subscription: Any, /) -> None:
        self.refuse_none(subscription)
        if self.upstream is not None or self.over or self.end is not None:
            subscription.cancel()
            return
        self.upstream = subscription
        self.pass_demand()

    def on_next(self, element: Any, /) -> None:
        self.refuse_none(element)
        if self.downstream is not None:
            self.deliver("on_next", element)

    def on_error(self, error: Any, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError("on_error wants an exception (rule 2.13)")
        self.upstream = None
        self.end = ("on_error", error)
        self.pass_end()

    def on_complete(self) -> None:
        self.upstream = None
        self.end = ("on_complete",)
        self.pass_end()

    # ------------------------------------------------------------------ duties

    def refuse_none(self, value: Any) -> None:
        if value is None:
            raise TypeError("None is never a signal's value (rule 2.13)")

    def pass_demand(self) -> None:
        if self.ready and self.demand and self.upstream is not None:
            demand, self.demand = self.demand, 0
            self.upstream.request(demand)

    def pass_end(self) -> None:
        if self.end is None or not self.ready or self.over:
            return
        self.over = True
        end, self.end = self.end, None
        self.deliver(*end)
        self.downstream = None

    def deliver(self, signal: str, *arguments: Any) -> None:
        try:
            getattr(self.downstream, signal)(*arguments)
        except Exception:  # rule 2.13: a subscriber that raises counts as cancelled
            self.cancel()

    def stop_upstream(self) -> None:
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.cancel()


class HonestRecovery(HonestProcessor):
    """Completes if the publisher upstream fails (rule 4.2)."""

    def on_error(self, error: Any, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError("on_error wants an exception (rule 2.13)")
        self.on_complete()


class _EndedSubscription:
    """The subscription of a subscriber that was refused."""

    def request(self, n: int, /) -> None:
        """Do nothing: the stream has ended."""

    def cancel(self) -> None:
        """Do nothing: the stream has ended."""
