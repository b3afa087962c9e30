"""The exports of a connection: the publishers of a service, as its peer sees them.

Rules of this file:

* A name that leads nowhere and one that is forbidden get the same answer.
* What a publisher raises is told here, in full, to the `on_violation` hook; the peer gets its text only if it was a PublicError.
* A stream's place is free when its publisher has really stopped, not when the peer has cancelled it.
"""

from collections.abc import Callable
from typing import Any

import trio

from penstock.api import PublicError, Subscriber, Subscription
from penstock.core import Report, Scope, tell, waits_for_demand
from penstock.plugins import Peer, Registry, Serializer
from penstock.runtime._service import Publication, Service
from penstock.runtime._watch import Watch
from penstock.session import Outbound, Session

NO_SUCH = "no such publisher"
FAILED = "the publisher failed"


class Exports:
    """What one peer may subscribe to."""

    def __init__(self, service: Service, registry: Registry, *, on_violation: Report) -> None:
        self._service = service
        self._registry = registry
        self._on_violation = on_violation
        self._nursery: trio.Nursery | None = None
        self._session: Session | None = None
        self._watch: Watch | None = None
        self._made: dict[Outbound, tuple[Publication, Serializer | None]] = {}  # between accept and attach, which follows at once

    def open(self, nursery: trio.Nursery, session: Session, watch: Watch) -> None:
        """From now on publishers run in `nursery`, and `watch` is told of them."""
        self._nursery = nursery
        self._session = session
        self._watch = watch

    def serve(self, stream: Outbound, peer: Peer) -> None:
        """Answer a subscribe."""
        found = self._find(stream, peer)
        if found is None:
            return
        publication, _ = found
        idle = waits_for_demand(publication.source)
        if not idle:
            self._made[stream] = found  # what the user's function has made is not made twice
        if self._watch is not None:
            self._watch.serving(stream)
        stream.accept(element_size=publication.element_size, idle_until_demand=idle)

    def attach(self, stream: Outbound, peer: Peer) -> None:
        """Begin a stream that was accepted. One that was idle is looked up again: until now only its name was kept."""
        found = self._made.pop(stream, None) or self._find(stream, peer)
        nursery, session, watch = self._nursery, self._session, self._watch
        if found is None or nursery is None or session is None or watch is None:
            return
        publication, serializer = found
        tenant = _Tenant(session, stream.when_over)
        scope = tenant.scope = Scope(nursery, on_violation=self._on_violation, on_drained=tenant.drained)
        stream.when_over = tenant.over
        try:
            publication.source.attach(watch.counted(stream, stream if serializer is None else _Encoder(stream, serializer)), scope)
        except Exception as error:  # boundary: attach of a source that somebody else wrote
            stream.on_error(error)

    def _find(self, stream: Outbound, peer: Peer) -> tuple[Publication, Serializer | None] | None:
        """Return what a stream's target leads to; where that is nothing, refuse it."""
        try:
            publication = self._service.find(stream.target, peer)
            if publication is not None:
                return publication, self._serializer(publication)
        except Exception as error:  # boundary: the user's function, called to make a publisher
            tell(self._on_violation, error)
            stream.refuse(str(error) if isinstance(error, PublicError) else FAILED)
            return None
        stream.refuse(NO_SUCH)
        return None

    def _serializer(self, publication: Publication) -> Serializer | None:
        """The serializer of a publication; None for bytes, which go as they are."""
        return None if publication.serializer == "bytes" else self._registry.serializer(publication.serializer)


class _Tenant:
    """A stream's place in `max_subscriptions`: taken until its publisher has stopped."""

    __slots__ = ("_is_over", "_session", "_then", "scope")

    scope: Scope

    def __init__(self, session: Session, then: Callable[[], None] | None) -> None:
        self._session = session
        self._then = then
        self._is_over = False

    def over(self) -> None:
        """The stream has ended."""
        if self.scope.running:
            self._is_over = True
            self._session.stopping()
        if self._then is not None:
            self._then()

    def drained(self) -> None:
        """No task of the publisher is left."""
        if self._is_over:
            self._is_over = False
            self._session.stopped()


class _Encoder(Subscriber[Any], Subscription):
    """Turns elements into bytes on their way to the peer."""

    __slots__ = ("_serializer", "_stream", "_upstream")

    _upstream: Subscription

    def __init__(self, stream: Outbound, serializer: Serializer) -> None:
        self._stream = stream
        self._serializer = serializer

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        self._stream.on_subscribe(self)

    def on_next(self, element: Any, /) -> None:
        try:
            data = self._serializer.dumps(element)
        except Exception as error:  # boundary: a serializer, perhaps somebody's plugin
            self._upstream.cancel()
            self._stream.on_error(error)
            return
        self._stream.on_next(data)

    def on_error(self, error: BaseException, /) -> None:
        self._stream.on_error(error)

    def on_complete(self, /) -> None:
        self._stream.on_complete()

    def request(self, n: int, /) -> None:
        self._upstream.request(n)

    def cancel(self, /) -> None:
        self._upstream.cancel()
