"""Opening a stream: `subscribe` is an ``async with`` block. When the block has been left, no task
behind the stream runs any more.

Rules of this file:

* Leaving the block cancels the stream, and then waits until every task of it has ended.
* An exception from the body leaves the block unchanged: not wrapped in a group, and a group of the
  body is not taken apart. Only an interrupt (KeyboardInterrupt) in one of the stream's tasks is
  raised instead of it.
* A failure of cleanup is raised if the body raised nothing. Otherwise it goes to `on_violation`.
"""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

import trio

from penstock.api import UsageError
from penstock.core import (
    CLEANUP_SECONDS,
    Report,
    Scope,
    Stream,
    check_cleanup_timeout,
    check_hook,
    check_in_trio,
    log_violation,
    report,
)
from penstock.streams._source import Source, Streamable
from penstock.streams._sources import as_source

T = TypeVar("T")
S = TypeVar("S", bound=Stream[Any])

MAX_KEPT_FAILURES: Final = 16
"""Failures of cleanup that a block keeps, to raise them when it is left. More of them usually
have one cause; these go to the hook.
"""


def subscribe(
    source: Streamable[T],
    *,
    demand: int | None = None,
    on_violation: Report = log_violation,
    cleanup_timeout: float = CLEANUP_SECONDS,
) -> AbstractAsyncContextManager[Stream[T]]:
    """Open `source` as a stream for the length of an ``async with`` block.

    `source` is a publisher, a source or pipe, an async iterable, an iterable, or a function that
    returns one, such as an async generator function.

    With ``demand=n`` at most n elements are under way or buffered, renewed in halves while the loop
    takes them. With ``demand=0`` you call `Stream.request` yourself. Without `demand` it is
    `Source.prefetch`: 256, and behind `latest` or `drop` each element is requested when the loop
    asks for it, so that the loop gets the newest and not one that waited in the stream's own
    buffer.

    When the block has been left, everything behind the stream has stopped:
    its tasks have ended and its generators are closed.
    A generator that is suspended at a `yield` gets `cleanup_timeout` seconds for its own cleanup.
    Then the cleanup is cancelled, and if that cut it short, `CleanupTimeout` is raised. A generator
    that waits somewhere else is cancelled there, as trio cancels, so its cleanup must shield itself
    if it has to wait. The block waits for a shield without a deadline as long as that takes.
    Raises UsageError if `source` cannot be streamed. Entering and leaving checkpoint.
    """
    source = as_source(source)
    return open_into(
        _stream_of(source, demand),
        source,
        on_violation=on_violation,
        cleanup_timeout=cleanup_timeout,
    )


def _stream_of(source: Source[T], demand: int | None) -> Stream[T]:
    """Return a new stream with this demand, or with the preferred one of `source`."""
    if demand is not None:
        return Stream(demand=demand)
    prefetch = source.prefetch
    # Not demand=0, which would leave it to the program to call request().
    return Stream(demand=max(1, prefetch), prefetch=prefetch)


def open_into(
    stream: S,
    source: Streamable[Any],
    *,
    on_violation: Report = log_violation,
    cleanup_timeout: float = CLEANUP_SECONDS,
) -> AbstractAsyncContextManager[S]:
    """Return the block of `subscribe` around `stream`,
    for callers with their own kind of `Stream`.
    """
    check_hook(on_violation)
    return _SubscribeBlock(
        as_source(source), stream, on_violation, check_cleanup_timeout(cleanup_timeout)
    )


# A class and not @asynccontextmanager: a program may hold 100,000 idle streams open, and this has
# neither a generator frame nor a dict.
class _SubscribeBlock(AbstractAsyncContextManager[S], Generic[S]):
    """The block around one stream."""

    __slots__ = (
        "_cleanup_timeout",
        "_failures",
        "_nursery",
        "_on_violation",
        "_scope",
        "_source",
        "_stream",
    )

    def __init__(
        self, source: Source[Any], stream: S, on_violation: Report, cleanup_timeout: float
    ) -> None:
        self._source: Source[Any] | None = source
        self._stream = stream
        self._on_violation = on_violation
        self._cleanup_timeout = cleanup_timeout
        self._failures: list[Exception] = []

    async def __aenter__(self) -> S:
        check_in_trio("subscribe()")
        # The checkpoint comes first: a cancelled entry has opened nothing, and can be tried again.
        await trio.lowlevel.checkpoint()
        source, self._source = self._source, None
        if source is None:
            raise UsageError(
                "this subscription was opened before; call subscribe() again for another one"
            )
        # Strict also in a run that is not:
        # _wait_stopped expects the exceptions of tasks in a group.
        self._nursery = trio.open_nursery(strict_exception_groups=True)
        nursery = await self._nursery.__aenter__()
        stream = self._stream
        self._scope = Scope(
            nursery,
            on_violation=self._on_violation,
            on_failure=self._keep_failure,
            cleanup_timeout=self._cleanup_timeout,
        )
        self._scope.reader = stream
        stream.opener = trio.lowlevel.current_task()
        try:
            source.attach(stream, self._scope)
        except Exception as error:  # boundary: attach() of a foreign source
            # rule 1.9: a failure to subscribe is a signal. The loop over the stream raises it,
            # after elements that came before.
            self._scope.cancel()
            stream.on_error(error)
        except BaseException as interrupt:
            # boundary: attach() of a foreign source, for an interrupt (KeyboardInterrupt,
            # SystemExit). It is raised again; but first the nursery must be exited, because Python
            # does not call __aexit__ if __aenter__ raises.
            # attach() is a plain call, so no cancellation is raised in it. One that is delivered
            # while the nursery is exited gives way to the interrupt. It is not lost: trio delivers
            # it again at the next checkpoint inside the cancelled scope.
            await self.__aexit__(type(interrupt), interrupt, interrupt.__traceback__)
            raise
        return stream

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Before the scope: else a pump would signal PublisherStopped to the stream.
        self._stream.cancel()
        # The stream may be kept, and must not keep the task.
        self._scope.reader = self._stream.opener = None
        # A foreign publisher may keep the scope, which keeps this block, and
        # that must not keep the elements.
        del self._stream
        self._scope.cancel()
        crash = await self._wait_stopped()
        # If the body raised, a Cancelled of the tasks adds nothing. An interrupt does:
        # it must end the program.
        if crash is not None and (error is None or not isinstance(crash, trio.Cancelled)):
            self._raise_failures(beside=crash)
            raise crash
        self._raise_failures(beside=error)

    async def _wait_stopped(self) -> BaseException | None:
        """Wait until every task has ended. Return the exception that must go on:
        an interrupt, or a cancellation from outside.

        The nursery does not get the body's exception:
        it would wrap it, and take apart a group that the body itself raised.
        """
        try:
            await self._nursery.__aexit__(None, None, None)
            # To exit a nursery without tasks is not a checkpoint.
            await trio.lowlevel.checkpoint_if_cancelled()
        except BaseExceptionGroup as group:
            _, interrupts = group.split(trio.Cancelled)
            return _first_of(group if interrupts is None else interrupts)
        except trio.Cancelled as cancelled:
            return cancelled
        return None

    def _keep_failure(self, failure: Exception) -> None:
        if len(self._failures) < MAX_KEPT_FAILURES:
            self._failures.append(failure)
        else:
            report(self._on_violation, failure)

    def _raise_failures(self, *, beside: BaseException | None) -> None:
        """Raise the failures of cleanup;
        if another exception is raised `beside` them, report them instead.
        """
        failures, self._failures = self._failures, []
        if beside is not None:
            for failure in failures:
                report(self._on_violation, failure)
        elif len(failures) == 1:
            raise failures[0]  # not in a group: `except CleanupTimeout` must catch it
        elif failures:
            raise ExceptionGroup(
                "cleaning up after a subscription failed in several places", failures
            )


def _first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception in nested groups. All of them are interrupts, or all
    cancellations, so one is as good as another.
    """
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    return inner
