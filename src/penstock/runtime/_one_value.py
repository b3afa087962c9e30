"""One value as a stream: the source of what a handler returns, for requests that have one answer.

Rules of this file:

* The handler is called once, with the first request for an element, in a task of its own: no iterator is pulled, and none is closed.
* Its value and the end are signalled together, and nothing after a cancel.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from penstock.api import PublisherStopped, Subscriber, Subscription, UsageError
from penstock.core import Scope, Source


class OneValue(Source[Any]):
    """The blueprint of a stream of what `call` returns, once it was awaited."""

    __slots__ = ("_call", "_label")

    def __init__(self, call: Callable[[], Awaitable[Any]], *, label: str) -> None:
        self._call = call
        self._label = label

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        subscriber.on_subscribe(_Awaited(self._call, self._label, subscriber, scope))

    def __repr__(self) -> str:
        return f"<source {self._label}>"


class _Awaited(Subscription):
    """One subscription, and the task that awaits the value."""

    __slots__ = ("_call", "_label", "_scope", "_subscriber", "_task")

    def __init__(self, call: Callable[[], Awaitable[Any]], label: str, subscriber: Subscriber[Any], scope: Scope) -> None:
        self._call = call
        self._label = label
        self._subscriber: Subscriber[Any] | None = subscriber
        self._scope = scope
        self._task: trio.CancelScope | None = None

    def request(self, n: int, /) -> None:
        if self._task is None and self._subscriber is not None:
            try:
                self._task = self._scope.spawn(self._run, name=self._label)
            except UsageError as closed:
                # rule 3.16: request() returns normally, the subscriber hears of it
                self._fail(closed)

    def cancel(self, /) -> None:
        self._subscriber = None
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            value = await self._call()
        except Exception as error:  # boundary: the user's handler; rule 1.4
            self._fail(error)
        else:
            self._answer(value)
        finally:
            if self._subscriber is not None:
                self._fail(PublisherStopped(f"{self._label} was stopped: the nursery that ran it was cancelled before it returned a value"))

    def _answer(self, value: Any) -> None:
        if value is None:
            self._fail(
                UsageError(f"{self._label} returned None, which is never an element (rule 2.13); return a value, be it an empty one")
            )
            return
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_next(value)
            subscriber.on_complete()

    def _fail(self, error: Exception) -> None:
        """Tell the subscriber; where it is gone, as when cleanup fails, the scope."""
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)
        else:
            self._scope.fail(error)
