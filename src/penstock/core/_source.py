"""A source is a blueprint of a stream: immutable, owned by nobody, and started anew for each subscriber.

Rules of this file:

* `attach` is a plain call that never raises and gives the subscriber `on_subscribe` before it returns.
* What is attached inside a pipe is trusted: demand is a positive int, no element is None, and **after `cancel()` has returned, or after
  a terminal signal, there is silence**. Whoever meets the world (a user's subscriber, a foreign publisher) puts a guard in between:
  `Edge` below, `Intake` above.
"""

from abc import ABC, abstractmethod
from functools import partial
from typing import Generic, TypeVar

import trio

from penstock.api import Publisher, Subscriber, UsageError, shown
from penstock.core._scope import CLEANUP_SECONDS, Report, Scope, check_cleanup_timeout, check_hook, log_violation
from penstock.core._subscriber_guard import SubscriberGuard

T_co = TypeVar("T_co", covariant=True)


class Source(ABC, Generic[T_co]):
    """The blueprint of a stream. Hand it to `subscribe`, `pipe`, or any sink; or bind it to a nursery with `publisher`."""

    __slots__ = ("__weakref__",)

    @abstractmethod
    def attach(self, subscriber: Subscriber[T_co], scope: Scope) -> None:
        """Begin a stream for `subscriber`, whose tasks `scope` owns.

        For those who write sources and operators; the rules of this file bind both sides.
        """

    def publisher(
        self, nursery: trio.Nursery, *, on_violation: Report = log_violation, cleanup_timeout: float = CLEANUP_SECONDS
    ) -> Publisher[T_co]:
        """Bind this blueprint to `nursery` and return a `Publisher`: the plain four-interface object, for callback users.

        Its tasks run in `nursery`, visibly; cancelling the nursery ends every stream that has tasks there with `on_error`.
        `on_violation` is told when a subscriber raises in a signal (rule 2.13); by default that is logged.
        """
        if not isinstance(nursery, trio.Nursery):
            raise UsageError(f"publisher() was given {shown(nursery)}; give the nursery that shall run this stream's tasks")
        return _BoundPublisher(self, nursery, check_hook(on_violation), check_cleanup_timeout(cleanup_timeout))


class _BoundPublisher(Publisher[T_co]):
    """A blueprint and the nursery that runs it."""

    __slots__ = ("__weakref__", "_cleanup_timeout", "_nursery", "_on_violation", "_source")

    def __init__(self, source: Source[T_co], nursery: trio.Nursery, on_violation: Report, cleanup_timeout: float) -> None:
        self._source = source
        self._nursery = nursery
        self._on_violation = on_violation
        self._cleanup_timeout = cleanup_timeout

    def subscribe(self, subscriber: Subscriber[T_co], /) -> None:
        scope = Scope(self._nursery, on_violation=self._on_violation, cleanup_timeout=self._cleanup_timeout)
        SubscriberGuard.between(partial(self._source.attach, scope=scope), subscriber, self._on_violation)

    def __repr__(self) -> str:
        return f"<publisher of {self._source!r}>"
