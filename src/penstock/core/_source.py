"""A source is the blueprint of a stream: immutable, and started anew for each subscriber.

Rules of this file:

* `attach` is a plain call that never raises. It gives the subscriber `on_subscribe` before it returns.
* Neighbours inside a pipe trust each other: demand is a positive int, no element is None, and **after `cancel()` has returned, or after
  a terminal signal, no signal follows**. Where a pipe meets foreign code, a guard stands in between: `SubscriberGuard` in front of a
  user's subscriber, `PublisherGuard` behind a foreign publisher.
"""

from abc import ABC, abstractmethod
from functools import partial
from typing import Generic, TypeVar

import trio

from penstock.api import Publisher, Subscriber, UsageError, shown
from penstock.core._scope import CLEANUP_SECONDS, Report, Scope, check_cleanup_timeout, check_hook, log_violation
from penstock.core._stream import DEFAULT_DEMAND
from penstock.core._subscriber_guard import SubscriberGuard

T_co = TypeVar("T_co", covariant=True)


class Source(ABC, Generic[T_co]):
    """The blueprint of a stream. Give it to `subscribe`, `pipe` or a sink, or bind it to a nursery with `publisher`."""

    __slots__ = ("__weakref__",)  # subclasses have slots, too: a program may make a source for each request

    @abstractmethod
    def attach(self, subscriber: Subscriber[T_co], scope: Scope) -> None:
        """Begin a stream for `subscriber`. Its tasks belong to `scope`.

        For authors of sources and operators; the rules of this file bind both sides.
        """

    @property
    def prefetch(self) -> int:
        """How many elements `subscribe` requests before its reader asks for one, if the program gives no `demand`: 256 for most sources.

        0 means that each element is requested when the reader asks for it, so that the reader gets no element from an old buffer.
        `latest` and `drop` return 0. A source of your own may override it.
        """
        return DEFAULT_DEMAND

    def publisher(
        self, nursery: trio.Nursery, *, on_violation: Report = log_violation, cleanup_timeout: float = CLEANUP_SECONDS
    ) -> Publisher[T_co]:
        """Bind this blueprint to `nursery` and return a plain `Publisher` with one method, `subscribe`.

        Its tasks run in `nursery`. If the nursery is cancelled, every stream that has tasks there ends with `on_error`.
        `on_violation` is called when a subscriber raises in a signal (rule 2.13); by default that is logged.
        """
        # Checked here, where the program can see its mistake. The first task starts only with the first request.
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
        # A scope for each subscriber: its failures and its end concern no other one.
        scope = Scope(self._nursery, on_violation=self._on_violation, cleanup_timeout=self._cleanup_timeout)
        SubscriberGuard.insert_between(partial(self._source.attach, scope=scope), subscriber, self._on_violation)

    def __repr__(self) -> str:
        return f"<publisher of {self._source!r}>"
