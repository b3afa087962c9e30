"""A reply is a handler at work on a request that has one answer: from the moment it may begin to the value, and no task unless it waits.

Rules of this file:

* The handler is called once, and not before there is room for its answer: no iterator is pulled, and none is closed.
* Its value and the end are signalled together, and nothing after a cancel.
* A reply's place among the peer's streams is taken until its handler has stopped, not only until the peer has cancelled it.
"""

from collections.abc import Callable
from typing import Any

import trio

from penstock.api import PublisherStopped, Subscriber, Subscription, UsageError
from penstock.core import Report, Scope
from penstock.plugins import PeerIdentity
from penstock.runtime.connection._inline_tasks import InlineTaskRunner
from penstock.runtime.service._service import Handler
from penstock.session import SendingStream, Session


class HandlerCalls:
    """What the replies of one connection share."""

    __slots__ = ("crew", "scope", "session", "stopped")

    def __init__(self, crew: InlineTaskRunner, session: Session, stopped: Callable[[], None], *, on_violation: Report) -> None:
        self.crew: InlineTaskRunner = crew
        self.session: Session = session
        self.stopped: Callable[[], None] = stopped
        self.scope: Scope = Scope(crew, on_violation=on_violation)


class HandlerCall(Subscription):
    """One request, and the handler that answers it."""

    __slots__ = ("_data", "_handler", "_has_begun", "_is_over", "_peer", "_replies", "_runs", "_subscriber", "_task", "_then")

    def __init__(
        self, replies: HandlerCalls, handler: Handler, stream: SendingStream, subscriber: Subscriber[Any], peer: PeerIdentity
    ) -> None:
        """`subscriber` is `stream`, or what stands before it."""
        self._replies = replies
        self._handler = handler
        self._data: bytes = stream.target.data
        self._peer = peer
        self._subscriber: Subscriber[Any] | None = subscriber
        self._task: trio.CancelScope | None = None  # around the handler, once it waits
        self._has_begun = self._runs = self._is_over = False
        self._then, stream.when_over = stream.when_over, self._over

    def request(self, n: int, /) -> None:
        if not self._has_begun:
            self._has_begun = self._runs = True
            self._replies.crew.start_cancellable(self._run, self._waits, name=self._handler.label)

    def cancel(self, /) -> None:
        self._subscriber = None
        if self._task is not None:
            self._task.cancel()

    # --- inside

    async def _run(self) -> None:
        try:
            value = await self._handler(self._data, self._peer) if self._subscriber is not None else None
        except Exception as error:  # boundary: the user's handler; rule 1.4
            self._runs = False
            self._fail(error)
        except BaseException as raised:  # sifted: an interrupt and a cancellation from outside go on
            self._replies.scope.pass_on(raised)
        else:
            self._runs = False
            self._answer(value)
        finally:
            self._stopped()

    def _waits(self, task: trio.CancelScope) -> None:
        """The handler has to wait, in a task of its own from now on."""
        self._task = task
        if self._subscriber is None:
            task.cancel()

    def _answer(self, value: Any) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            return
        if value is None:
            label = self._handler.label
            self._fail(UsageError(f"{label} returned None, which is never an element (rule 2.13); return a value, be it an empty one"))
            return
        self._subscriber = None
        subscriber.on_next(value)
        subscriber.on_complete()

    def _fail(self, error: Exception) -> None:
        """Tell the subscriber; where it is gone, as when cleanup fails, the connection's owner."""
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)
        else:
            self._replies.scope.fail(error)

    def _over(self) -> None:
        """The stream has ended."""
        if self._runs:
            self._is_over = True
            self._replies.session.stopping()
        if self._then is not None:
            self._then()

    def _stopped(self) -> None:
        """The handler has."""
        if self._subscriber is not None:
            label = self._handler.label
            self._fail(PublisherStopped(f"{label} was stopped: the nursery that ran it was cancelled before it returned a value"))
        self._runs = False
        if self._is_over:
            self._replies.session.stopped()
        self._replies.stopped()
