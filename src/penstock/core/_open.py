"""Opening a stream: `subscribe` is a block, and when the block has been left, nothing behind it runs any more.

Rules of this file:

* Leaving cancels first and then waits until every task behind the subscription has ended.
* An exception from the body leaves the block as it is, never wrapped in a group; so does a single failure of ours.
* A failure of cleanup is raised where nothing else is; beside an exception from the body it goes to `on_violation`.
"""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, Generic, TypeVar

import trio

from penstock.api import UsageError
from penstock.core._scope import CLEANUP_SECONDS, Report, Scope, log_violation
from penstock.core._source import Source
from penstock.core._sources import Streamable, as_source
from penstock.core._stream import DEFAULT_DEMAND, Stream

T = TypeVar("T")

MOST_FAILURES: Final = 16
"""Failures of cleanup that a block keeps to raise when it is left. More than a few have one cause; the rest goes to the hook."""


def subscribe(
    source: Streamable[T],
    *,
    demand: int = DEFAULT_DEMAND,
    on_violation: Report = log_violation,
    cleanup_timeout: float = CLEANUP_SECONDS,
) -> AbstractAsyncContextManager[Stream[T]]:
    """Open `source` as a stream for the length of an ``async with`` block.

    `source` is a publisher, a source or pipe, an async iterable, an iterable, or a function that returns one (an async generator
    function, say).

    With ``demand=n`` at most n elements are under way or buffered, renewed in halves as they are taken; with ``demand=0`` you call
    `Stream.request` yourself.

    When the block has been left, everything behind the stream has stopped: tasks are gone, generators are closed.
    A generator's own cleanup gets `cleanup_timeout` seconds, then a `CleanupTimeout` is raised.
    Raises UsageError for what cannot be streamed. Entering and leaving checkpoint.
    """
    return _Opening(as_source(source), Stream(demand=demand), on_violation, cleanup_timeout)


class _Opening(AbstractAsyncContextManager[Stream[T]], Generic[T]):
    """The block around one stream."""

    __slots__ = ("_cleanup_timeout", "_failures", "_nursery", "_on_violation", "_scope", "_source", "_stream")

    def __init__(self, source: Source[T], stream: Stream[T], on_violation: Report, cleanup_timeout: float) -> None:
        self._source: Source[T] | None = source
        self._stream = stream
        self._on_violation = on_violation
        self._cleanup_timeout = cleanup_timeout
        self._failures: list[Exception] = []
        self._nursery = trio.open_nursery()

    async def __aenter__(self) -> Stream[T]:
        await trio.lowlevel.checkpoint()
        source, self._source = self._source, None
        if source is None:
            raise UsageError("this subscription was opened before; call subscribe() again for another one")
        nursery = await self._nursery.__aenter__()
        self._scope = Scope(nursery, on_violation=self._on_violation, on_failure=self._keep, cleanup_timeout=self._cleanup_timeout)
        source.attach(self._stream, self._scope)
        return self._stream

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool | None:
        self._stream.cancel()
        self._scope.cancel()
        try:
            swallowed = await self._nursery.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            sole = _sole(group)
            if sole is not error:
                raise sole from None
            swallowed = False
        self._settle(None if swallowed else error)
        return swallowed

    def _keep(self, failure: Exception) -> None:
        if len(self._failures) < MOST_FAILURES:
            self._failures.append(failure)
        else:
            self._on_violation(failure)

    def _settle(self, error: BaseException | None) -> None:
        failures, self._failures = self._failures, []
        if error is not None:
            # The body's exception goes first; what cleanup had to say is told, not lost.
            for failure in failures:
                self._on_violation(failure)
        elif len(failures) == 1:
            raise failures[0]
        elif failures:
            raise ExceptionGroup("cleaning up after a subscription failed in several places", failures)


def _sole(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one exception that a nest of groups holds, or the group itself where there are several."""
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    return inner if not isinstance(inner, BaseExceptionGroup) else group
