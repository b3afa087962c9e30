"""A subscriber that keeps what it gets and requests what it is told to."""

from typing import Any

from penstock.api import Subscriber, Subscription


class PlainSubscriber(Subscriber[Any]):
    """Keeps every signal."""

    def __init__(self) -> None:
        self.subscription: Subscription | None = None
        self.elements: list[Any] = []
        self.error: BaseException | None = None
        self.is_completed = False

    def on_subscribe(self, subscription: Subscription, /) -> None:
        assert self.subscription is None, "on_subscribe twice"
        self.subscription = subscription

    def on_next(self, element: Any, /) -> None:
        self.elements.append(element)

    def on_error(self, error: BaseException, /) -> None:
        assert self.subscription is not None, "on_error without on_subscribe (rule 1.9)"
        assert not self.is_completed, "on_error after on_complete (rule 1.7)"
        assert self.error is None, "on_error twice (rule 1.7)"
        self.error = error

    def on_complete(self, /) -> None:
        assert not self.is_completed, "on_complete twice (rule 1.7)"
        assert self.error is None, "on_complete after on_error (rule 1.7)"
        self.is_completed = True

    def request(self, n: int) -> None:
        assert self.subscription is not None
        self.subscription.request(n)

    def cancel(self) -> None:
        assert self.subscription is not None
        self.subscription.cancel()
