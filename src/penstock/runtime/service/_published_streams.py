"""The publishers of a service, opened for one peer:
look-up, authorisation, places and serialising in one call, `open`.

Rules of this file:

* Each way in which a stream cannot be opened has its exception class. The caller decides what its
  peer is told: a protocol may answer a missing and a forbidden name in the same words, so that
  names cannot be probed.
* The full exception of a user's function is reported here, to `on_violation`.
* A stream keeps its place until its publisher has stopped (`_stream_slot`).
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

import trio

from penstock.api import (
    Model,
    NotAvailable,
    PositionNotRetained,
    PublisherFailed,
    PublisherStopped,
    Request,
    Subscriber,
    public_code,
    public_text,
    text_of,
)
from penstock.core import ChildScope, EndedSubscription, Relay, Report, Scope, SourceMemory, report
from penstock.runtime.service._authorisation import Authorisation
from penstock.runtime.service._cannot_open import (
    CannotOpen,
    FactoryFailed,
    Forbidden,
    MayOpen,
    NoSlot,
    UnreadablePayload,
)
from penstock.runtime.service._handler import Handler
from penstock.runtime.service._named_requests import NamedCall
from penstock.runtime.service._pieces import ElementsOfPieces
from penstock.runtime.service._request_handlers import HandlerCall, HandlerCalls, RequestHandlers
from penstock.runtime.service._serializing import FirstElementOnly, Serializing
from penstock.runtime.service._service import Publication, Service
from penstock.runtime.service._stream_slot import StreamSlot, StreamSlots
from penstock.spi import Outcome, PeerIdentity, Registry, Serializer
from penstock.streams import waits_for_demand

OnEnd: TypeAlias = Callable[[Outcome, BaseException | None], None]
"""Called once when a stream has ended, with the failure of its publisher if that is how."""

Observe: TypeAlias = Callable[[str], OnEnd | None]
"""Called for each stream that is opened, with the name or pattern of its publisher; returns what is
called when it has ended, or None if no plugin wants to know.
"""


class FoundStream:
    """A publisher that a target led to, ready to be attached. Not frozen: one is made for each
    stream, and freezing doubles its cost.
    """

    __slots__ = ("is_single", "pattern", "publication", "serializer")

    def __init__(
        self, publication: Publication, serializer: Serializer | None, *, is_single: bool
    ) -> None:
        self.publication: Publication = publication
        self.serializer: Serializer | None = serializer
        """None for bytes, which are sent unchanged."""
        self.pattern: str = publication.pattern
        """Its name or pattern; empty for a request whose data is not a name."""
        self.is_single: bool = is_single
        """True if the first element is the whole answer."""

    @property
    def waits_for_demand(self) -> bool:
        """True if nothing needs to be kept for the stream before the first request(n) arrives."""
        return waits_for_demand(self.publication.source)

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        """Attach the publisher to `subscriber`, which takes bytes."""
        if self.serializer is not None:
            subscriber = Serializing(subscriber, self.serializer, self.publication.type_place)
        # Before the serializer: elements after the first one are dropped before they are
        # serialized.
        if self.is_single:
            subscriber = FirstElementOnly(subscriber, self.publication.element_size)
        try:
            self.publication.source.attach(subscriber, scope)
        except Exception as error:  # boundary: the attach of a source that a user wrote
            subscriber.on_error(error)


class PublishedStreams:
    """What one peer may open."""

    def __init__(
        self,
        service: Service,
        registry: Registry,
        *,
        places: StreamSlots,
        on_violation: Report,
        may_open: MayOpen | None = None,
        observe: Observe | None = None,
        authorized: bool = False,
        memory: SourceMemory | None = None,
    ) -> None:
        """`may_open` takes the place of the service's own. `authorized` says that `authorize` of
        the service has let the peer in. `memory` counts what sources hold for streams that `open`
        opens.
        """
        may_open = may_open or service.may_open
        self._service = service
        self._registry = registry
        self._places = places
        self._on_violation = on_violation
        self._may_open = (
            None if may_open is None else Authorisation(service, may_open, on_violation)
        )
        self._observe = observe
        self._memory = memory
        self._is_authorized = authorized or service.authorize is None
        self.handlers: RequestHandlers = RequestHandlers(service, self._may_open)
        """The shorter look-up of a request:
        ask here first, and call `find` if the answer is None.
        """

    def find(self, target: str | Request, peer: PeerIdentity) -> Handler | FoundStream:
        """Return what `target` leads to for `peer`.
        Raises NoSuchPublisher, Forbidden, UnfitPayload or FactoryFailed.

        This is the first half of `open`. A session answers the peer between the halves, and keeps
        only the name of an idle stream.
        """
        # Before the look-up: a user's function must not run for a peer that may not open the name.
        self.check_may_open(target, peer)
        try:
            # Request data may be a publisher's name: `answer` looks there first.
            if isinstance(target, Request):
                found: Publication | Handler = self._service.answer(target, peer, self._registry)
                is_single = target.model is Model.RESPONSE
            else:
                found = self._service.look_up(target, peer, registry=self._registry)
                is_single = False
            # Here and not in the service, which knows no registry.
            if isinstance(found, NamedCall):
                found.use(self._registry)
            if isinstance(found, Handler):
                return found
            types = target.types if isinstance(target, Request) else None
            return FoundStream(
                found, found.find_serializer(self._registry, types), is_single=is_single
            )
        # These are answers to the peer, and no faults of the user: they are not reported.
        except CannotOpen:
            raise
        except NotAvailable as denied:
            raise Forbidden(denial(denied)) from None
        except Exception as error:  # boundary: the user's function, called to make a publisher
            report(self._on_violation, add_target_note(error, target))
            raise FactoryFailed(error) from error

    def check_may_open(self, target: str | Request, peer: PeerIdentity) -> None:
        """Raise Forbidden if `may_open` refuses `target` to `peer`. `find` calls it."""
        if self._may_open is not None:
            self._may_open(target, peer)

    def open(
        self, target: str | Request, peer: PeerIdentity, subscriber: Subscriber[Any], scope: Scope
    ) -> None:
        """Subscribe `subscriber` to what `target` leads to; `scope` runs the tasks.

        `target` is a publisher's name, or a request that a handler may answer. `subscriber` gets
        bytes. If the publisher fails, it gets a PublisherFailed with a text that may be sent to a
        peer; the exception itself goes to `on_violation`.
        Raises NoSuchPublisher, Forbidden, UnfitPayload, NoSlot or FactoryFailed; then nothing was
        signalled, and no place is taken.
        A service with `authorize` is served in this way only if it was asked before:
        else Forbidden is raised.
        """
        # `authorize` may be async, and this call cannot wait. Without this check a peer would be
        # served that the function refuses.
        if not self._is_authorized:
            raise Forbidden("the service has authorize=, which this protocol does not ask")
        # The look-up before the place: a name that does not exist must not cost one.
        found = self.find(target, peer)
        if not self._places.take():
            raise NoSlot(str(target))
        on_end = None if self._observe is None else self._observe(found.pattern)
        on_failure = partial(report_publisher_failure, self._on_violation, target=target)
        if isinstance(found, Handler):
            calls = HandlerCalls(_ScopeRunner(scope), scope, self._places)
            data = target.data if isinstance(target, Request) else b""
            end = _StreamEnd(_ForPeer(subscriber), on_failure)
            # Set before on_subscribe: the subscriber may cancel inside it.
            end.on_end = _do_nothing if on_end is None else on_end
            end.on_subscribe(HandlerCall(calls, found, data, peer, end))
            return
        # The slot frees the place when both have happened:
        # the stream has ended, and the tasks have stopped.
        slot = StreamSlot(self._places, on_end)
        slot.scope = ChildScope(
            scope,
            on_violation=self._on_violation,
            on_drained=slot.on_tasks_stopped,
            memory=self._memory,
        )
        size = found.publication.element_size
        end = _StreamEnd(_ForPeer(subscriber), on_failure)
        # Set before the attach, which may signal at once.
        end.on_end = slot.on_stream_end
        found.attach(ElementsOfPieces(end, size) if size else end, slot.scope)


def denial(error: NotAvailable) -> str:
    """Return the reason for the log of a stream that was denied by its own function."""
    text = text_of(error)
    return f"it raised NotAvailable{f': {text}' if text else ''}"


def add_target_note(error: Exception, target: object) -> Exception:
    """Add to `error` which target was being served, so that a log says where to look.

    Only if it has no note yet: the same exception object may be raised for many streams,
    and notes would pile up on it.
    """
    if not getattr(error, "__notes__", ()):
        note = f"This was raised while {str(target)!a} was served to a peer."
        # The words of asyncio for a call from another loop.
        if isinstance(error, RuntimeError) and "no running event loop" in str(error):
            note += (
                " It needs a loop of asyncio, and trio runs the functions of this service: give it "
                "to a penstock.aio.Service."
            )
        error.add_note(note)
    return error


def is_shutdown(error: BaseException) -> bool:
    """Return True if a publisher was stopped because the program is being cancelled:
    it has not failed.
    """
    return isinstance(error, PublisherStopped) and trio.current_effective_deadline() == float(
        "-inf"
    )


def report_publisher_failure(on_violation: Report, error: BaseException, target: object) -> None:
    """Report the full error of a publisher; the peer gets less of it."""
    # The mistake of a peer is told to that peer alone: it must not be able to fill a log. And a
    # denied name is not a failure. A reader of a log that is so slow that the log drops elements
    # that it has not read is such a mistake.
    if (
        isinstance(error, Exception)
        and not is_shutdown(error)
        and not isinstance(error, UnreadablePayload | NotAvailable | PositionNotRetained)
    ):
        report(on_violation, add_target_note(error, target))


def _do_nothing(_outcome: Outcome, _error: BaseException | None) -> None:
    """Do nothing at the end of a stream that is not counted."""


class _ScopeRunner:
    """Starts tasks in a scope, for calls that expect the `start_soon` of a nursery.
    A `TaskRunner`.
    """

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def start_soon(
        self, function: Callable[..., Coroutine[Any, Any, None]], /, *args: Any, name: str
    ) -> None:
        self._scope.spawn(partial(function, *args), name=name)

    def start_call(self, call: HandlerCall, /) -> None:
        # In a task from the beginning: without a connection no reader task could run the first
        # steps.
        call.on_blocked(self._scope.spawn(partial(self._run, call), name=call.name))

    async def _run(self, call: HandlerCall) -> None:
        # `on_blocked` was called in the task of the subscriber.
        call.task = trio.lowlevel.current_task()
        await call.run()


class _ForPeer(Relay[Any]):
    """Stands before a subscriber that sends its signals to a peer. The observers after it see the
    whole error.
    """

    __slots__ = ()

    def on_error(self, error: BaseException, /) -> None:
        # A new error: one that is chained or noted would carry the private text along.
        super().on_error(PublisherFailed(public_text(error), code=public_code(error)))


class _StreamEnd(Relay[Any]):
    """Passes everything on, and calls `on_end` once: at the terminal signal, or at the cancel.
    `on_failure` gets a failure.
    """

    __slots__ = ("_on_failure", "on_end")

    on_end: OnEnd

    def __init__(
        self, subscriber: Subscriber[Any], on_failure: Callable[[BaseException], None]
    ) -> None:
        super().__init__(subscriber)
        self._on_failure = on_failure

    def on_error(self, error: BaseException, /) -> None:
        # Forgotten first: a second terminal signal finds no subscriber,
        # and the place is freed once.
        was_subscribed, subscriber = self._upstream is not None, self._detach()
        if subscriber is not None:
            # The attach of the source raised; rule 1.9: on_subscribe comes first.
            if not was_subscribed:
                subscriber.on_subscribe(EndedSubscription())
            # Before the signal: the failure is reported also if the subscriber raises.
            self._on_failure(error)
            try:
                subscriber.on_error(error)
            finally:
                self.on_end(
                    Outcome.FAILED, error
                )  # also if the subscriber raises: its place would be lost for good

    def on_complete(self, /) -> None:
        subscriber = self._detach()
        if subscriber is not None:
            try:
                # Like in on_error, the place is freed also if the subscriber raises.
                subscriber.on_complete()
            finally:
                self.on_end(Outcome.COMPLETED, None)

    def cancel(self, /) -> None:
        if self._subscriber is not None and self._upstream is not None:
            super().cancel()
            # Last: tasks that the cancel stops at once have stopped by then,
            # so the place is freed, and not kept.
            self.on_end(Outcome.CANCELLED, None)
