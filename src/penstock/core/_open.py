"""Opening a stream: `subscribe` is a block, and when the block has been left, nothing behind it runs any more.

Rules of this file:

* Leaving cancels first and then waits until every task behind the subscription has ended.
* An exception from the body leaves the block as it is, never wrapped in a group, and never unwrapped; so does a single failure of ours.
  Only an interrupt (KeyboardInterrupt) that struck one of our tasks goes before it.
* A failure of cleanup is raised where nothing else is; beside an exception from the body it goes to `on_violation`.
"""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, Generic, TypeVar

import trio

from penstock.api import UsageError
from penstock.core._scope import CLEANUP_SECONDS, Report, Scope, check_cleanup_timeout, check_hook, log_violation, tell
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
    A generator that rests at a `yield` gets `cleanup_timeout` seconds for its own cleanup, then a `CleanupTimeout` is raised; one that
    waits somewhere else is cancelled there, as trio cancels, so its cleanup must shield itself if it has to wait.
    Raises UsageError for what cannot be streamed. Entering and leaving checkpoint.
    """
    check_hook(on_violation)
    return _Opening(as_source(source), Stream(demand=demand), on_violation, check_cleanup_timeout(cleanup_timeout))


class _Opening(AbstractAsyncContextManager[Stream[T]], Generic[T]):
    """The block around one stream."""

    __slots__ = ("_cleanup_timeout", "_failures", "_nursery", "_on_violation", "_scope", "_source", "_stream")

    def __init__(self, source: Source[T], stream: Stream[T], on_violation: Report, cleanup_timeout: float) -> None:
        self._source: Source[T] | None = source
        self._stream = stream
        self._on_violation = on_violation
        self._cleanup_timeout = cleanup_timeout
        self._failures: list[Exception] = []

    async def __aenter__(self) -> Stream[T]:
        await trio.lowlevel.checkpoint()
        source, self._source = self._source, None
        if source is None:
            raise UsageError("this subscription was opened before; call subscribe() again for another one")
        self._nursery = trio.open_nursery(strict_exception_groups=True)
        nursery = await self._nursery.__aenter__()
        stream = self._stream
        self._scope = Scope(nursery, on_violation=self._on_violation, on_failure=self._keep, cleanup_timeout=self._cleanup_timeout)
        try:
            source.attach(stream, self._scope)
        except Exception as error:  # boundary: attach of a source that somebody else wrote
            self._scope.cancel()
            stream.on_error(error)
        except BaseException as interrupt:
            # From here on the nursery must be left in due form, whatever happens.
            await self.__aexit__(type(interrupt), interrupt, interrupt.__traceback__)
            raise
        return stream

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.cancel()
        del self._stream  # no reference is kept: a foreign publisher may keep our scope, and that keeps this block
        self._scope.cancel()
        crash = await self._wait_stopped()
        if crash is not None and (error is None or not isinstance(crash, trio.Cancelled)):
            self._settle(crash)
            raise crash
        self._settle(error)

    async def _wait_stopped(self) -> BaseException | None:
        """Wait until every task has ended; return what of them must go on: an interrupt, or a cancellation from outside.

        The nursery never sees the exception from the body: it would wrap it, and take apart a group that the body itself has raised.
        """
        try:
            await self._nursery.__aexit__(None, None, None)
            await trio.lowlevel.checkpoint_if_cancelled()  # which the end of a nursery without tasks is not
        except BaseExceptionGroup as group:
            _, interrupts = group.split(trio.Cancelled)
            return _sole(group if interrupts is None else interrupts)
        except trio.Cancelled as cancelled:
            return cancelled
        return None

    def _keep(self, failure: Exception) -> None:
        if len(self._failures) < MOST_FAILURES:
            self._failures.append(failure)
        else:
            tell(self._on_violation, failure)

    def _settle(self, error: BaseException | None) -> None:
        failures, self._failures = self._failures, []
        if error is not None:
            # The body's exception goes first; what cleanup had to say is told, not lost.
            for failure in failures:
                tell(self._on_violation, failure)
        elif len(failures) == 1:
            raise failures[0]
        elif failures:
            raise ExceptionGroup("cleaning up after a subscription failed in several places", failures)


def _sole(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception in a nest of groups: all say the same, that this program, or this part of it, is to end."""
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    return inner
