"""Calls the handler of a request that has one answer. The handler runs inline in the reader task,
and has a task only if it blocks.

Rules of this file:

* The handler is called once, and not before there is room for its answer.
  No iterator is pulled, and none is closed.
* The value and the completion are signalled together; nothing is signalled after a cancel.
* The place of the call is taken until the answer;
  if the subscriber cancels, until the handler has stopped.
"""

from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, Protocol

import trio

from penstock.api import (
    FIRST_BYTE,
    Model,
    PipePart,
    PublisherStopped,
    Request,
    Subscriber,
    Subscription,
    UsageError,
)
from penstock.core import Scope
from penstock.runtime.service._cannot_open import Forbidden, MayOpen
from penstock.runtime.service._handler import Handler
from penstock.runtime.service._service import Service
from penstock.runtime.service._stream_slot import StreamSlots
from penstock.spi import PeerIdentity

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_RESPONSE: Final = Model.RESPONSE


class RequestHandlers:
    """The handlers of a service for requests with one answer, as one peer may reach them."""

    __slots__ = ("_handlers", "_may_open", "_named", "_router")

    def __init__(self, service: Service, may_open: MayOpen | None = None) -> None:
        # The tables of the service and not the service:
        # a request is looked up here without a further call.
        self._handlers = service.handlers
        self._router = service.router
        self._named = service.named
        self._may_open = may_open

    def find(self, request: Request, peer: PeerIdentity) -> Handler | None:
        """Return the handler of all requests for one value, or None without one, or if the data may
        begin with a name.

        Raises Forbidden.
        """
        handler = self._handlers.get(_RESPONSE) if request.model is _RESPONSE else None
        if handler is None or request.name is not None:
            return None
        # Data that is a name belongs to its publisher. Most data is not, and cheap looks show that:
        # nothing is decoded.
        router = self._router
        if router.literal_names or router.patterns:
            path = request.data.partition(b"?")[0]
            if path in router.literal_names or path.count(b"/") + 1 in router.patterns:
                return None
        if self._named and request.data[:1] == FIRST_BYTE:
            return None
        if self._may_open is not None and not self._may_open(request, peer):
            raise Forbidden("may_open refused it")
        return handler.given(request) if handler.takes_request else handler


class TaskRunner(Protocol):
    """Runs the tasks of publishers and handlers, as a nursery does;
    it may run the first steps of a call inline.
    """

    def start_soon(
        self, function: Callable[..., Coroutine[Any, Any, None]], /, *args: Any, name: str
    ) -> None:
        """Run `function` soon. Raises RuntimeError if its nursery has closed."""

    def start_call(self, call: "HandlerCall", /) -> None:
        """Run `call` soon. Its `on_blocked` gets the cancel scope around it, at the latest when
        it blocks for the first time.
        """


class AnswerTaker(Protocol):
    """A subscriber that takes the value and the completion in one call."""

    def answer(self, element: Any, /) -> None:
        """Take the only element and the end."""


class HandlerCalls:
    """Shared by the handler calls of one peer, so that a request does not cost a scope."""

    __slots__ = ("places", "runner", "scope")

    def __init__(self, runner: TaskRunner, scope: Scope, places: StreamSlots) -> None:
        """`scope` reports failures; no task runs in it."""
        self.runner: TaskRunner = runner
        self.scope: Scope = scope
        self.places: StreamSlots = places


class HandlerCall(Subscription):
    """One request and the call of its handler.
    It is the subscription that the subscriber of the answer gets.

    Its place is taken already. It is freed with the answer;
    if the subscriber cancels, as soon as the handler does not run.
    """

    __slots__ = (
        "_calls",
        "_data",
        "_handler",
        "_has_begun",
        "_is_running",
        "_peer",
        "_place_kept",
        "_scope",
        "_subscriber",
        "_taker",
        "context",
        "task",
    )

    context: Context
    """The context variables in which the handler runs. A runner that runs it inline sets them."""

    def __init__(
        self,
        calls: HandlerCalls,
        handler: Handler,
        data: bytes,
        peer: PeerIdentity,
        subscriber: Subscriber[Any],
        taker: AnswerTaker | None = None,
    ) -> None:
        """`taker` is the subscriber, if it takes the value and the completion in one call. If
        not, it gets them one after the other.
        """
        self._calls = calls
        self._handler = handler
        self._data = data
        self._peer = peer
        self._subscriber: Subscriber[Any] | None = subscriber  # until the answer, or the cancel
        self._taker = taker  # until the cancel
        # The cancel scope around the handler, once it has blocked.
        self._scope: trio.CancelScope | None = None
        self.task: trio.lowlevel.Task | None = None
        """The task in which the handler waits, for those who look at the stream."""
        self._has_begun = self._is_running = self._place_kept = False

    def request(self, n: int, /) -> None:
        # Rule 3.4: later requests cost nothing, and the handler is called once.
        if not self._has_begun:
            self._has_begun = self._is_running = True
            self._calls.runner.start_call(self)

    def pipe_part(self) -> PipePart:
        """Return the part for those who look at the pipe."""
        return PipePart(f"request {self._handler.label}", task=self.task)

    def cancel(self, /) -> None:
        if self._subscriber is None:
            return  # after the answer, or a second cancel
        # From now on the value of the handler is dropped (rule 3.12).
        self._subscriber = self._taker = None
        if self._is_running:
            # Places are for handlers that run:
            # one that shields itself has its place until it has stopped.
            self._place_kept = True
            self._calls.places.keep(len(self._data))
        else:
            self._calls.places.free()
        if self._scope is not None:
            self._scope.cancel()

    # --- for the runner

    @property
    def name(self) -> str:
        """The name of the task, if the handler blocks."""
        return self._handler.label

    def on_blocked(self, scope: trio.CancelScope) -> None:
        """Note the cancel scope around the handler, and the task that called this."""
        self._scope = scope
        self.task = trio.lowlevel.current_task()
        if self._subscriber is None:
            # cancelled from inside the handler, before it blocked: `cancel` found no scope then.
            scope.cancel()

    async def run(self) -> None:
        """Call the handler, and answer."""
        try:
            # A call that was cancelled before its turn is not begun: its subscriber is gone.
            value = None
            if self._subscriber is not None:
                plain = self._handler.plain
                value = await (
                    self._handler(self._data, self._peer) if plain is None else plain(self._data)
                )
        except Exception as error:  # boundary: the user's handler; rule 1.4
            self._is_running = False
            self._fail(error)
        except BaseException as raised:
            # sifted: an interrupt and a cancellation from outside go on.
            self._calls.scope.report_and_reraise(raised)
        else:
            self._is_running = False
            taker = self._taker
            # One message, encoded in one step. A value and a completion would be two.
            if taker is not None and value is not None:
                # As `_answer` does.
                self._subscriber = None
                self._calls.places.free()
                taker.answer(value)
            else:
                self._answer(value)
        finally:
            # Nothing is left to do after a call that ran inline and was answered: the usual one.
            if self._subscriber is not None or self._place_kept or self._scope is not None:
                self._stopped()

    # --- inside

    def _answer(self, value: Any) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            return
        if value is None:
            label = self._handler.label
            self._fail(
                UsageError(
                    f"{label} returned None, which is never an answer (rule 2.13). For no value "
                    "return one that says so (b'', or a record with an optional field), or raise "
                    "PublicError with the reason"
                )
            )
            return
        # Taken out first: on_next may cancel, and then on_complete must still be the last signal.
        # The place is free before the subscriber has the answer: a peer may ask again at once.
        self._subscriber = None
        self._calls.places.free()
        subscriber.on_next(value)
        subscriber.on_complete()

    def _fail(self, error: Exception) -> None:
        """Signal `error`; report it instead if the subscriber has cancelled, as
        when the cleanup of the handler fails.
        """
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            self._calls.places.free()
            subscriber.on_error(error)
        else:
            self._calls.scope.report_failure(error)

    def _stopped(self) -> None:
        self._is_running = False
        # Still set: neither a value nor an error was signalled,
        # so a cancellation from outside has ended the handler.
        if self._subscriber is not None:
            label = self._handler.label
            self._fail(
                PublisherStopped(
                    f"{label} was stopped: the nursery that ran it was cancelled before it "
                    "returned a value"
                )
            )
        if self._place_kept:
            self._calls.places.free_kept(len(self._data))
        # Without a scope the handler ran inline:
        # then no task has ended, and the reader sends the answer.
        if self._scope is not None:
            self._calls.places.tasks_stopped()
