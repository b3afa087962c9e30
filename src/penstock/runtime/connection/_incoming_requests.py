"""Answers what the peer asks for: between the session, which knows messages, and the service,
which knows publishers.

Rules of this file:

* A missing name and a forbidden one are refused in the same words, so
  that a peer cannot probe for names.
* The peer gets the text of a PublicError only;
  `on_violation` gets every exception of a user's function.
* An idle stream keeps only its name. When the first demand arrives, the name is looked up again.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any, Final

import attrs
import trio

from penstock.api import NO_SUCH, Model, NotAvailable, PublicError, Rejected, Request, text_of
from penstock.core import CLEANUP_SECONDS, Report, Scope, SourceMemory, report
from penstock.runtime.connection._access_log import failure_reason
from penstock.runtime.connection._authorize import Authorizer
from penstock.runtime.connection._channel_elements import (
    ArrivingElements,
    OwnElements,
    SubscribeToPeer,
)
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._inline_tasks import InlineTaskRunner
from penstock.runtime.connection._publisher_counts import PublisherTable
from penstock.runtime.connection._requests import SendBatcher
from penstock.runtime.service import (
    CannotOpen,
    FactoryFailed,
    FoundStream,
    Handler,
    HandlerCall,
    HandlerCalls,
    NoSlot,
    PublishedStreams,
    Service,
    StreamSlot,
    StreamSlots,
    UnfitPayload,
    UnfitPosition,
)
from penstock.session import (
    DRAINING,
    HANDLED,
    REFUSED,
    Fault,
    SendingStream,
    Session,
    size_of_request,
)
from penstock.spi import PeerIdentity, Registry

_NO_WAITS: Final[frozenset[trio.CancelScope]] = frozenset()
"""One object for all connections: an empty set has 216 bytes."""


class SessionSlots(StreamSlots):
    """The places of `Limits.max_subscriptions`. The session counts the streams that it serves,
    and this tells it of those that linger.
    """

    __slots__ = ("_batcher", "_streams")

    def __init__(self, session: Session, batcher: SendBatcher) -> None:
        self._streams = session.streams
        self._batcher = batcher

    def take(self) -> bool:
        """Do nothing: without a place the session has refused the stream already."""
        return True

    def free(self) -> None:
        """Do nothing: the session has forgotten the stream, and with it its place."""

    def keep(self, size: int, /) -> None:
        # The session counts a stream no more when it has ended.
        # Its tasks would be unbounded without this count.
        self._streams.stopping_publishers += 1
        self._streams.stopping_bytes += HANDLED * size

    def free_kept(self, size: int, /) -> None:
        self._streams.stopping_publishers -= 1
        self._streams.stopping_bytes -= HANDLED * size

    def tasks_stopped(self) -> None:
        # If the peer reads no other stream, no later message could take along what this one has
        # queued last.
        if not self._streams.serving:
            self._batcher.writer.flush()


class IncomingRequests:
    """Serves one peer."""

    def __init__(  # noqa: PLR0913  # made in one place, with keywords
        self,
        service: Service,
        registry: Registry,
        session: Session,
        runner: InlineTaskRunner,
        batcher: SendBatcher,
        *,
        subscribe: SubscribeToPeer,
        events: ConnectionEvents,
        publishers: PublisherTable | None,
        on_violation: Report,
        note_bytes: Callable[[int], None] | None,
    ) -> None:
        """`subscribe` opens a stream to the peer. `publishers` counts the streams of each
        publisher; None if no plugin reads that.
        `note_bytes` tells the memory budget of bytes that sources have read.
        """
        places = SessionSlots(session, batcher)
        self._service = service
        self._session = session
        self._subscribe = subscribe
        self._runner = runner
        self._events = events
        self._publishers = publishers
        self._on_violation = on_violation
        self._places = places
        self.memory: SourceMemory = SourceMemory(object(), note_bytes)
        """The memory of the sources of all streams."""
        self._published = PublishedStreams(
            service, registry, places=places, on_violation=on_violation
        )
        # One scope for the failures of all handlers: it runs no task, it only reports.
        self._calls = HandlerCalls(runner, Scope(runner, on_violation=on_violation), places)
        # Bounded by the streams that are accepted at this moment: one.
        # between accept and attach, which follows at once: factories are called once.
        self._found: dict[SendingStream, FoundStream] = {}
        # around an async setup function, and around what extensions wait for.
        self._waits: frozenset[trio.CancelScope] = _NO_WAITS
        # A shutdown waits no longer than `drain`.
        self._cleanup_timeout = min(CLEANUP_SECONDS, session.channel.limits.drain)
        self.peer: PeerIdentity
        """Who the other side is, for publishers and handlers that want to know. Set before the
        first message, and with each link.
        """
        self._principal: Any = None
        self._find_peer: Callable[[], Any] | None = None
        authorize = service.authorize
        self._authorizer = (
            None if authorize is None else Authorizer(service, authorize, on_violation)
        )

    @property
    def calls(self) -> tuple[Callable[[SendingStream], None], Callable[[Any], None]]:
        """The calls for a stream and for a message without an answer. A service without
        `authorize` pays nothing for it.
        """
        authorizer = self._authorizer
        if authorizer is None:
            return self.serve, self.fire
        return partial(self._serve_if_authorized, authorizer), partial(
            self._fire_if_authorized, authorizer
        )

    def use(self, peer: PeerIdentity) -> None:
        """Note the peer of a new link. The principal stays:
        it was recognised on the logical connection, or its first transport knew it.
        """
        if self._principal is None:
            self._principal = peer.principal
        if self._principal is None and self._find_peer is None:
            self.peer = peer
        else:
            self.peer = attrs.evolve(peer, principal=self._principal, find_peer=self._find_peer)

    def introduce(self, find_peer: Callable[[], Any]) -> None:
        """Note how handlers find the peer, to subscribe to it."""
        self._find_peer = find_peer
        self.use(self.peer)

    def recognise(self, principal: Any) -> None:
        """Add the principal to the identity of the peer."""
        self._principal = principal
        self.use(self.peer)

    # --- streams

    def serve(self, stream: SendingStream) -> None:
        """Accept a stream, or refuse it."""
        target = stream.target
        try:
            # A request by name may also come as a subscribe to that name:
            # then no data came with it.
            found: Handler | FoundStream | None = None
            data = b""
            if isinstance(target, Request):
                found, data = self._published.handlers.find(target, self.peer), target.data
            if found is None:
                found = self._look_up(stream)
        except CannotOpen as error:
            _refuse(stream, error)
            return
        # Before the accept: an accepted stream may begin, and end, inside that call.
        publishers = self._publishers
        if publishers is not None:
            # As `PublisherTable.begin` does, without its call.
            counts, when_over = publishers.by_label.get(found.pattern) or publishers.add(
                found.pattern
            )
            counts.opened += 1
            stream.when_over = when_over
        is_watched = self._events.wants_streams
        if is_watched:
            self._events.serve(stream, found.pattern)
        if isinstance(found, Handler):
            # The demand for the one answer usually came with the request, so the handler starts as
            # soon as there is room for its answer.
            watched = self._events.watch(stream) if is_watched else stream
            if watched is stream:
                stream.accept_call(HandlerCall(self._calls, found, data, self.peer, stream, stream))
            else:
                call = HandlerCall(self._calls, found, data, self.peer, watched)
                stream.accept_call(self._events.watch_call(stream, call))
            return
        # Only a source that does nothing before its first request can be looked up again then;
        # others may signal earlier.
        is_idle = found.waits_for_demand
        if not is_idle or stream.available:
            self._found[stream] = found
        stream.accept(element_size=found.publication.element_size, idle_until_demand=is_idle)
        # Without room the publisher is attached later, and looked up again.
        self._found.pop(stream, None)

    def _look_up(self, stream: SendingStream) -> Handler | FoundStream:
        target = stream.target
        if isinstance(target, Request) and target.model is Model.CHANNEL:
            if isinstance(target.elements, OwnElements):
                return target.elements.found
            if target.elements is None:
                target.elements = ArrivingElements(
                    self._subscribe, stream.id, self._session.channel.limits
                )
        return self._published.find(target, self.peer)

    def source_of(self, stream: SendingStream) -> Any:
        """Return the source that was found for a stream that is being accepted, or None."""
        found = self._found.get(stream)
        return None if found is None else found.publication.source

    def _serve_if_authorized(self, authorizer: Authorizer, stream: SendingStream) -> None:
        target = stream.target
        if isinstance(target, Request) and isinstance(target.elements, OwnElements):
            self.serve(stream)  # this side sends them, and has asked for the channel
            return

        def then(reason: str) -> None:
            # The peer may have cancelled, or the connection may have ended,
            # while the function decided.
            if stream.is_ended:
                return
            if reason:
                # In the words for a missing name: a peer must not be able to probe for names.
                stream.refuse(NO_SUCH, reason, fault=Fault.UNTOUCHED)
            elif self._session.streams.drain.until is not None:
                # It drains since the function was called.
                stream.refuse(DRAINING, fault=Fault.UNTOUCHED)
            else:
                self.serve(stream)

        authorizer.decide(stream.target, self.peer, self.await_result, then)

    def _fire_if_authorized(self, authorizer: Authorizer, target: Any) -> None:
        # A place, for as long as the function decides: messages are counted as streams.
        size = size_of_request(target)
        self._places.keep(size)

        def then(reason: str) -> None:
            self._places.free_kept(size)
            if not reason:
                self.fire(target)
            elif self._events.access is not None:
                self._events.access.write_dropped(target, self.peer, reason)

        authorizer.decide(target, self.peer, self.await_result, then)

    def attach(self, stream: SendingStream) -> None:
        """Attach the publisher of a stream that was accepted."""
        try:
            found = self._found.pop(stream, None) or self._look_up(stream)
        except CannotOpen as error:
            _refuse(stream, error)
            return
        if not isinstance(found, FoundStream):
            return  # a handler that was added meanwhile: only publishers wait for demand
        size = size_of_request(stream.target) if isinstance(stream.target, Request) else 0
        slot = StreamSlot(self._places, stream.when_over, size)
        slot.scope = Scope(
            self._runner,
            on_violation=self._on_violation,
            cleanup_timeout=self._cleanup_timeout,
            on_drained=slot.on_tasks_stopped,
            max_hold_up=self._session.channel.limits.max_hold_up,
            memory=self.memory,
        )
        # In front of the observer's callback, which the slot calls: the place is dealt with first.
        stream.when_over = slot.on_stream_end
        found.attach(
            self._events.watch(stream) if self._events.wants_streams else stream, slot.scope
        )

    def fire(self, target: Any) -> None:
        """Run the handler of messages without an answer, in a task that takes the place of a
        stream. Without a handler, drop it.
        """
        # Looked up for each message: a handler may be added while the service runs.
        try:
            if target.name is None:
                handler: Any = self._service.listener(target.model)
                if handler is None:
                    return
                self._published.check_may_open(target, self.peer)
                if handler.takes_request:
                    handler = handler.given(target)
            else:
                # A name leads to the handler of its requests. Nobody waits for the answer.
                handler = self._published.find(target, self.peer)
        except CannotOpen as error:
            if self._events.access is not None:
                self._events.access.write_dropped(target, self.peer, str(error))
            return
        if isinstance(handler, FoundStream):
            return  # a publisher, and there is no subscriber
        size = size_of_request(target)
        self._places.keep(size)
        on_drained = partial(self._places.free_kept, size)
        # The task may outlive the connection: a client that has sent its message need not stay.
        scope = Scope(
            self._runner,
            on_violation=self._on_violation,
            cleanup_timeout=self._cleanup_timeout,
            on_drained=on_drained,
        )
        # A task, and not inline: the message was counted as a stream,
        # and its scope frees the place.
        scope.spawn(
            partial(self._run_listener, handler, target.data), name="penstock fire and forget"
        )

    # --- the setup function

    def check_setup(self, data: bytes) -> None:
        """Let the setup function accept or refuse the client."""
        try:
            verdict = self._service.examine(data, self.peer)
        except Exception as error:  # boundary: the user's setup function
            self._refuse_client(error)
            return
        # A plain function decides at once:
        # then the client's next messages are not read ahead at all.
        if isawaitable(verdict):
            self.await_result(verdict, self._apply_outcome)
        else:
            self._apply_verdict(verdict)

    def await_result(
        self, awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None]
    ) -> None:
        """Await in a task, and call `then` with the result or the exception."""
        scope = trio.CancelScope()
        self._waits |= {scope}
        self._runner.start_soon(self._await, awaitable, then, scope, name="penstock examination")

    def close(self) -> None:
        """Cancel the setup function and what extensions wait for: the connection is over."""
        for scope in self._waits:
            scope.cancel()

    # --- inside

    async def _run_listener(self, handler: Any, data: bytes) -> None:
        try:
            await handler(data, self.peer)
        except Exception as error:  # boundary: the user's function
            report(self._on_violation, error)

    async def _await(
        self,
        awaitable: Awaitable[Any],
        then: Callable[[Any, Exception | None], None],
        scope: trio.CancelScope,
    ) -> None:
        try:
            with scope:
                result, failure = None, None
                try:
                    result = await awaitable
                except Exception as error:  # boundary: the user's function
                    failure = error
                then(result, failure)
        finally:
            self._waits = (self._waits - {scope}) or _NO_WAITS

    def _apply_outcome(self, verdict: object, error: Exception | None) -> None:
        if error is None:
            self._apply_verdict(verdict)
        else:
            self._refuse_client(error)

    def _apply_verdict(self, verdict: object) -> None:
        if verdict is False:
            # A fixed text: the function has given none.
            self._session.close(REFUSED)
            return
        # True and None accept, and say nothing about the client.
        if verdict is not None and verdict is not True:
            self.recognise(verdict)
        self._session.admit()

    def _refuse_client(self, error: Exception) -> None:
        is_public = isinstance(error, PublicError | Rejected)
        if not is_public and not isinstance(error, NotAvailable):
            report(self._on_violation, error)
        # A text of '' would look like a goodbye without a reason.
        self._session.close((is_public and text_of(error)) or REFUSED)


def _refuse(stream: SendingStream, error: CannotOpen) -> None:
    # The text of these is for the peer.
    if isinstance(error, FactoryFailed | UnfitPayload | UnfitPosition):
        stream.refuse(str(error), _reason(error), getattr(error, "code", None))
    else:
        text = REFUSED if isinstance(error, NoSlot) else NO_SUCH
        stream.refuse(text, _reason(error), fault=Fault.UNTOUCHED)


def _reason(error: CannotOpen) -> str:
    """Return the reason for the log of this side: for a missing and a forbidden name it differs,
    and the peer must not see that.
    """
    return (
        f"its function raised {failure_reason(error.error)}"
        if isinstance(error, FactoryFailed)
        else str(error)
    )
