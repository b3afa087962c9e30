"""`BoundPublisher`: the blueprint of a stream and the nursery that runs it,
as a `Publisher` of the standard.
"""

from functools import partial
from typing import Protocol, TypeVar

import trio

from penstock.api import Publisher, Subscriber
from penstock.core import Report, Scope, SubscriberGuard
from penstock.streams._hold_up import hold_up_bound_of

T_co = TypeVar("T_co", covariant=True)


class Blueprint(Protocol[T_co]):
    """An object that can begin a stream in a scope; every `Source` is one."""

    # A protocol, because a source makes its bound publisher itself: its module imports this one.
    def attach(self, subscriber: Subscriber[T_co], scope: Scope) -> None:
        """Begin a stream for `subscriber`."""


class BoundPublisher(Publisher[T_co]):
    """A blueprint and its nursery."""

    __slots__ = ("__weakref__", "_cleanup_timeout", "_nursery", "_on_violation", "_source")

    def __init__(
        self,
        source: Blueprint[T_co],
        nursery: trio.Nursery,
        on_violation: Report,
        cleanup_timeout: float,
    ) -> None:
        self._source = source
        self._nursery = nursery
        self._on_violation = on_violation
        self._cleanup_timeout = cleanup_timeout

    def subscribe(self, subscriber: Subscriber[T_co], /) -> None:
        # A scope for each subscriber: its failures and its end concern no other one.
        scope = Scope(
            self._nursery,
            on_violation=self._on_violation,
            cleanup_timeout=self._cleanup_timeout,
            max_hold_up=hold_up_bound_of(subscriber),
        )
        SubscriberGuard.insert_between(
            partial(self._source.attach, scope=scope), subscriber, self._on_violation
        )

    def __repr__(self) -> str:
        return f"<publisher of {self._source!r}>"
