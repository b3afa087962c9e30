"""The guard between a pipe and a foreign subscriber.
It makes true what the pipe takes for granted about its subscriber.

Rules of this file:

* The guard forgets the subscriber as soon as the stream ends (rules 1.6, 3.13).
* After the end, calls from either side do nothing (rules 1.7, 3.6, 3.7).
* If the subscriber raises in a signal, its stream is cancelled and the exception goes to the
  `on_violation` hook. It never reaches the publisher or another subscriber (rule 2.13).
"""

from collections.abc import Callable
from typing import Any, TypeVar

from penstock.api import (
    IllegalDemand,
    RuleViolation,
    Subscriber,
    Subscription,
    check_demand,
    shown,
)
from penstock.core._arguments import has_methods_of
from penstock.core._relay import ElementRelay
from penstock.core._scope import Report, report

T = TypeVar("T")


class SubscriberGuard(ElementRelay[T]):
    """The last relay before a foreign subscriber:
    its subscription, and the subscriber of the pipe.
    """

    __slots__ = ("_is_subscribed", "_on_violation")

    def __init__(self, subscriber: Subscriber[T], on_violation: Report) -> None:
        super().__init__(subscriber)
        self._on_violation = on_violation
        self._is_subscribed = False  # on_subscribe has been signalled

    @classmethod
    def insert_between(
        cls,
        attach: Callable[[Subscriber[T]], None],
        subscriber: Subscriber[T],
        on_violation: Report,
    ) -> None:
        """Call `attach` with a guard before `subscriber`, and return normally, as
        `Publisher.subscribe` must.

        Raises only TypeError, for an object that is not a subscriber.
        """
        if not has_methods_of(subscriber, Subscriber):
            # rule 1.9: on_error cannot be signalled to such an object
            raise TypeError(
                f"subscribe() was given {type(subscriber).__name__!r}, which is no subscriber: "
                "it needs on_subscribe, on_next, on_error and on_complete (rule 1.9)"
            )
        guard = cls(subscriber, on_violation)
        try:
            attach(guard)
        except Exception as error:
            # boundary: attach() of a foreign source (rule 1.9: subscribe returns normally).
            guard._fail(error)

    # --- the subscription: called by the foreign subscriber

    def request(self, n: int, /) -> None:
        if self._upstream is None:
            return  # rule 3.6
        try:
            demand = check_demand(n)
        except IllegalDemand as illegal:
            self._fail(illegal)  # rule 3.9
            return
        # A positive int of at most 2^63-1: stages behind this need not check again.
        self._upstream.request(demand)

    def _fail(self, error: Exception) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.cancel()
        self.on_error(error)

    # --- the subscriber: called by the pipe

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._subscriber is not None:  # else cancelled meanwhile: rule 1.7, silence
            self._upstream = subscription
            self._signal_on_subscribe()

    def on_next(self, element: T, /) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            return
        try:
            subscriber.on_next(element)
        except Exception as error:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self.cancel()
            self._report("on_next", error)

    def on_error(self, error: BaseException, /) -> None:
        self._signal_on_subscribe()
        subscriber = self._detach()
        if subscriber is None:
            return
        try:
            subscriber.on_error(error)
        except Exception as raised:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self._report("on_error", raised)

    def on_complete(self, /) -> None:
        self._signal_on_subscribe()
        subscriber = self._detach()
        if subscriber is None:
            return
        try:
            subscriber.on_complete()
        except Exception as raised:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self._report("on_complete", raised)

    def on_element_size(self, size: int, /) -> None:
        """Pass on the size of every element."""
        try:
            super().on_element_size(size)
        except Exception as error:  # boundary: a method of a foreign subscriber
            self.cancel()
            self._report("on_element_size", error)

    def on_content(self, serializer: str | None, schema: str, /) -> Subscriber[Any]:
        """Let the subscriber choose how its elements are read. Return this object."""
        try:
            super().on_content(serializer, schema)
        except Exception as error:  # boundary: a method of a foreign subscriber
            self.cancel()
            self._report("on_content", error)
        return self

    def on_fact(self, fact: object, /) -> None:
        """Pass on what an extension or a source knows of the stream."""
        try:
            super().on_fact(fact)
        except Exception as error:  # boundary: a method of a foreign subscriber
            self.cancel()
            self._report("on_fact", error)

    def held(self) -> int:
        """Return the bytes that the subscriber keeps, if it can tell."""
        try:
            return super().held()
        except Exception as error:  # boundary: a method of a foreign subscriber
            # Not cancelled: all streams of the connection are being counted,
            # and a cancel would change them.
            report(self._on_violation, error)
            return 0

    def _signal_on_subscribe(self) -> None:
        """Signal on_subscribe once, before any other signal (rules 1.9, 2.12)."""
        # A foreign source may fail in attach() before it calls on_subscribe.
        # So the ends call this method too.
        if self._is_subscribed or self._subscriber is None:
            return
        self._is_subscribed = True
        try:
            self._subscriber.on_subscribe(self)
        except Exception as error:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self.cancel()
            self._report("on_subscribe", error)

    def _report(self, signal: str, error: Exception) -> None:
        violation = RuleViolation(
            f"a subscriber raised {shown(error)} in {signal}; a signal method must return "
            "normally. Its subscription was cancelled; to stop on purpose, call "
            "subscription.cancel()",
            rule="2.13",
        )
        violation.__cause__ = error
        report(self._on_violation, violation)

    def __repr__(self) -> str:
        return f"<subscriber guard {'over' if self._subscriber is None else 'live'}>"
