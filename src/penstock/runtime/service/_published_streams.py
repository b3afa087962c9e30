"""The exports of a connection: the publishers of a service, as its peer sees them.

Rules of this file:

* A name that leads nowhere and one that is forbidden get the same answer.
* What a publisher raises is told here, in full, to the `on_violation` hook; the peer gets its text only if it was a PublicError.
* A stream's place is free when its publisher has really stopped, not when the peer has cancelled it.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any, TypeAlias

import trio

from penstock.api import Model, PublicError, Rejected, Request, Subscriber, Subscription
from penstock.core import CLEANUP_SECONDS, Report, Scope, tell, waits_for_demand
from penstock.plugins import PeerIdentity, Registry, Serializer
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._inline_tasks import InlineTaskRunner
from penstock.runtime.service._request_handlers import HandlerCall, HandlerCalls
from penstock.runtime.service._service import Handler, Publication, Service
from penstock.session import NO_SUCH, PRIVATE, REFUSED, SendingStream, Session

Found: TypeAlias = Handler | tuple[Publication, Serializer | None]
"""What a name or a request leads to: a handler that answers once, or a publisher and what makes bytes of its elements."""


class PublishedStreams:
    """What one peer may subscribe to."""

    def __init__(self, service: Service, registry: Registry, *, on_violation: Report) -> None:
        self._service = service
        self._registry = registry
        self._on_violation = on_violation
        self._crew: InlineTaskRunner | None = None
        self._session: Session | None = None
        self._watch: ConnectionEvents | None = None
        self._replies: HandlerCalls | None = None
        self._stopped: Callable[[], None] = _nothing
        self._examining: trio.CancelScope | None = None
        self._made: dict[SendingStream, Found] = {}  # between accept and attach, which follows at once

    def open(self, crew: InlineTaskRunner, session: Session, watch: ConnectionEvents, stopped: Callable[[], None]) -> None:
        """From now on `crew` runs publishers, `watch` is told of them, and `stopped` is called when one has really stopped."""
        self._crew = crew
        self._session = session
        self._watch = watch
        self._stopped = stopped
        self._replies = HandlerCalls(crew, session, stopped, on_violation=self._on_violation)

    def serve(self, stream: SendingStream, peer: PeerIdentity) -> None:
        """Answer a subscribe."""
        found = self._find(stream, peer)
        if found is None:
            return
        if self._watch is not None:
            self._watch.serving(stream)
        if isinstance(found, Handler):
            self._reply(stream, found, peer)
            return
        publication, _ = found
        idle = waits_for_demand(publication.source)
        if not idle or stream.available:
            self._made[stream] = found  # what the user's function has made is not made twice
        stream.accept(element_size=publication.element_size, idle_until_demand=idle)

    def attach(self, stream: SendingStream, peer: PeerIdentity) -> None:
        """Begin a stream that was accepted. One that was idle is looked up again: until now only its name was kept."""
        found = self._made.pop(stream, None) or self._find(stream, peer)
        crew, session, watch = self._crew, self._session, self._watch
        if found is None or isinstance(found, Handler) or crew is None or session is None or watch is None:
            return
        publication, serializer = found
        tenant = _StreamSlot(session, stream.when_over, self._stopped)
        scope = tenant.scope = Scope(
            crew,
            on_violation=self._on_violation,
            cleanup_timeout=_cleanup(session),
            on_drained=tenant.drained,
        )
        stream.when_over = tenant.over
        one = isinstance(stream.target, Request) and stream.target.model is Model.RESPONSE
        try:
            publication.source.attach(watch.counted(stream, _subscriber(stream, serializer, one=one)), scope)
        except Exception as error:  # boundary: attach of a source that somebody else wrote
            stream.on_error(error)

    def _reply(self, stream: SendingStream, handler: Handler, peer: PeerIdentity) -> None:
        """Let a handler answer at once: its answer was asked for with the request."""
        if self._replies is not None and self._watch is not None:
            stream.accept_at_once()
            subscriber = self._watch.counted(stream, stream)
            subscriber.on_subscribe(HandlerCall(self._replies, handler, stream, subscriber, peer))

    def introduced(self, data: bytes, peer: PeerIdentity) -> None:
        """Examine who connects."""
        try:
            verdict = self._service.examine(data, peer)
        except Exception as error:  # boundary: the user's setup function
            self._turn_away(error)
            return
        if isawaitable(verdict):
            if self._crew is not None:
                self._examining = trio.CancelScope()
                self._crew.start_soon(self._examine, verdict, self._examining, name="penstock setup")
        else:
            self._judge(verdict)

    def fired(self, target: Any, peer: PeerIdentity) -> None:
        """Take what needs no answer, in a task that counts as a stream does; without a handler it is dropped."""
        listener, crew, session = self._service.listener(), self._crew, self._session
        if listener is None or crew is None or session is None:
            return
        session.stopping()
        scope = Scope(crew, on_violation=self._on_violation, cleanup_timeout=_cleanup(session), on_drained=session.stopped)
        scope.spawn(partial(self._listen, listener, target.data, peer), name="penstock fire and forget")

    def close(self) -> None:
        """The connection is over."""
        if self._examining is not None:
            self._examining.cancel()

    async def _listen(self, listener: Any, data: bytes, peer: PeerIdentity) -> None:
        try:
            await listener(data, peer)
        except Exception as error:  # boundary: the user's function
            tell(self._on_violation, error)

    async def _examine(self, verdict: Awaitable[Any], scope: trio.CancelScope) -> None:
        with scope:
            try:
                said = await verdict
            except Exception as error:  # boundary: the user's setup function
                self._turn_away(error)
            else:
                self._judge(said)

    def _judge(self, verdict: object) -> None:
        if self._session is not None:
            if verdict is False:
                self._session.close(REFUSED)
            else:
                self._session.admit()

    def _turn_away(self, error: Exception) -> None:
        public = isinstance(error, PublicError | Rejected)
        if not public:
            tell(self._on_violation, error)
        if self._session is not None:
            self._session.close((public and str(error)) or REFUSED)

    def _find(self, stream: SendingStream, peer: PeerIdentity) -> Found | None:
        """Return what a stream's target leads to; where that is nothing, refuse it."""
        try:
            target = stream.target
            found = self._service.answer(target, peer) if isinstance(target, Request) else self._service.find(target, peer)
            if isinstance(found, Handler):
                return found
            if found is not None:
                return found, self._serializer(found)
        except Exception as error:  # boundary: the user's function, called to make a publisher
            tell(self._on_violation, located(error, stream))
            stream.refuse(str(error) if isinstance(error, PublicError) else PRIVATE)
            return None
        stream.refuse(NO_SUCH)
        return None

    def _serializer(self, publication: Publication) -> Serializer | None:
        """The serializer of a publication; None for bytes, which go as they are."""
        return None if publication.serializer == "bytes" else self._registry.serializer(publication.serializer)


def _nothing() -> None:
    """Nobody is told."""


def _cleanup(session: Session) -> float:
    """How long a publisher's cleanup may take: a shutdown waits no longer."""
    return min(CLEANUP_SECONDS, session.limits.drain)


def located(error: Exception, stream: SendingStream) -> Exception:
    """Add to an exception which publisher it was: a log without that is a riddle. Once: the same exception may be raised for many."""
    if not getattr(error, "__notes__", ()):
        error.add_note(f"This was raised while {str(stream.target)!a} was served to a peer.")
    return error


class _StreamSlot:
    """A stream's place in `max_subscriptions`: taken until its publisher has stopped."""

    __slots__ = ("_is_over", "_session", "_stopped", "_then", "scope")

    scope: Scope

    def __init__(self, session: Session, then: Callable[[], None] | None, stopped: Callable[[], None]) -> None:
        self._session = session
        self._then = then
        self._stopped = stopped
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
        self._stopped()


def _subscriber(stream: SendingStream, serializer: Serializer | None, *, one: bool) -> Subscriber[Any]:
    """Return what stands between a publisher and its stream to the peer."""
    subscriber: Subscriber[Any] = stream if serializer is None else _Serializing(stream, serializer)
    return _FirstElementOnly(subscriber, stream.element_size) if one else subscriber


class _FirstElementOnly(Subscriber[Any], Subscription):
    """Takes the first element as the whole answer, and lets the publisher go."""

    __slots__ = ("_size", "_subscriber", "_upstream")

    _upstream: Subscription

    def __init__(self, subscriber: Subscriber[Any], size: int) -> None:
        self._subscriber: Subscriber[Any] | None = subscriber
        self._size = size

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        if self._subscriber is not None:
            self._subscriber.on_subscribe(self)

    def on_next(self, element: Any, /) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            try:
                is_piece = self._size and isinstance(element, bytes | bytearray | memoryview)
                subscriber.on_next(element[: self._size] if is_piece else element)  # a piece may hold several of fixed size
            except Exception:
                self._subscriber = subscriber  # whoever has signalled will say so, with on_error
                raise
            subscriber.on_complete()
            self._upstream.cancel()

    def on_error(self, error: BaseException, /) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)

    def on_complete(self, /) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_complete()

    def request(self, n: int, /) -> None:
        self._upstream.request(1)

    def cancel(self, /) -> None:
        self._subscriber = None
        self._upstream.cancel()


class _Serializing(Subscriber[Any], Subscription):
    """Turns elements into bytes on their way to the peer."""

    __slots__ = ("_serializer", "_stream", "_upstream")

    _upstream: Subscription

    def __init__(self, stream: SendingStream, serializer: Serializer) -> None:
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
