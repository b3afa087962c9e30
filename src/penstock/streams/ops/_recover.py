"""Operators that go on after an error:
`retry` with the same source, `on_error_resume` with another source.

Rules of this file, beside those of `_reattaching_stage.py`:

* The subscription of a source that has failed is never called again (rule 4.2:
  it counts as cancelled).
* An error that does not lead to recovery passes at once (rule 4.2).
  An error that is not an `Exception` always passes.
"""

import inspect
import random
from abc import abstractmethod
from collections.abc import AsyncIterable, Callable, Iterable
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar, cast

import trio

from penstock.api import AlreadySubscribed, Publisher, Subscriber, UsageError
from penstock.core import Scope, name_of
from penstock.streams._source import Replacement, Source, Streamable
from penstock.streams._sources import as_source
from penstock.streams.ops._operator import OperatorBase, SameTypeOperator, UnionOperator
from penstock.streams.ops._reattaching_stage import ReattachingStage
from penstock.streams.ops._retry_policy import RetryPolicy, When
from penstock.streams.ops._stage import ENDED_UPSTREAM, stopped_error
from penstock.streams.ops._step import is_async

A = TypeVar("A")
B = TypeVar("B")


def retry(
    attempts: int | None,
    *,
    backoff: float = 0.0,
    factor: float = 2.0,
    max_backoff: float = 30.0,
    jitter: Callable[[], float] | None = random.random,
    when: When | None = None,
    consecutive: bool = False,
) -> SameTypeOperator:
    """After an error subscribe to the source again, up to `attempts` times (None: no limit). The
    error after the last attempt passes on.

    Elements passed on before an error stay passed on:
    a source that begins from its start repeats them.

    All errors of the stream count. With ``consecutive=True`` each element
    that arrives resets the count and the backoff.
    The first attempt waits `backoff` seconds, and each further one `factor` times as long,
    at most `max_backoff`.
    The wait is multiplied by ``jitter()``, a number from 0 to 1; by default a random one, so that
    subscribers that failed together do not return together. With ``jitter=None`` the whole wait
    passes.
    `when` is an exception type, a tuple of them, or a function of the error, plain or async.
    Other errors pass on at once.
    The default is every error but `UsageError`, because a new attempt cannot cure that.

    Upstream demand: 1 per downstream demand; demand that an attempt left goes to the next. Buffer:
    none.
    If a function raises, the stream ends with that error. Completion passes straight through.
    A cancel also ends the wait.
    """
    policy = RetryPolicy.create(
        attempts=attempts,
        backoff=backoff,
        factor=factor,
        max_backoff=max_backoff,
        jitter=jitter,
        when=when,
        consecutive=consecutive,
    )
    return _Retry(policy, f"retry({attempts})")


def on_error_resume(source: Replacement[B], /) -> UnionOperator[B]:
    """After an error go on with another source, or with the source that ``source(error)`` returns.
    An error of that one passes on.

    A function (plain or async) with an argument is called with the error. To let an error pass,
    raise it from the function.
    A function without an argument, for example an async generator function,
    is a source like any other.

    Upstream demand: 1 per downstream demand; demand that the first source left goes to the other.
    Buffer: none.
    If the function raises, the stream ends with that error.
    Completion and cancellation pass straight through.
    """
    if _takes_error(source):
        return _Resume(
            cast("Callable[[Exception], Any]", source), f"on_error_resume({name_of(source)})"
        )
    replacement = as_source(cast("Streamable[B]", source))
    return _Resume(lambda _: replacement, f"on_error_resume({replacement!r})")


class _Retry(OperatorBase[Any, Any]):
    __slots__ = ("_label", "_policy")

    def __init__(self, policy: RetryPolicy, label: str) -> None:
        self._policy = policy
        self._label = label

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        source.attach(_RetryStage(subscriber, scope, source, self._policy, self._label), scope)

    def __repr__(self) -> str:
        return f"<operator {self._label}>"


class _Resume(OperatorBase[Any, Any]):
    __slots__ = ("_function", "_label")

    def __init__(self, function: Callable[[Exception], Any], label: str) -> None:
        self._function = function
        self._label = label

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        source.attach(_ResumeStage(subscriber, scope, self._function, self._label), scope)

    def __repr__(self) -> str:
        return f"<operator {self._label}>"


class _RecoveringStage(ReattachingStage[A]):
    """A stage that may attach further sources.
    A subclass decides when (`_is_final`) and which (`_next_source`).
    """

    __slots__ = ()

    @abstractmethod
    def _is_final(self, error: Exception) -> bool:
        """Return True if `error` must pass on. An exception fails the stream."""

    @abstractmethod
    async def _next_source(self, error: Exception) -> Source[A] | None:
        """Wait if needed, then return the next source, or None to pass `error` on.
        An exception fails the stream.
        """

    def on_error(self, error: BaseException, /) -> None:
        if self._is_over:
            return
        self._upstream = ENDED_UPSTREAM
        if not isinstance(error, Exception):
            super().on_error(error)
            return
        try:
            final = self._is_final(error)
        except Exception as raised:  # boundary: the user's function
            super().on_error(_after(error, raised))
            return
        if final or not self._start_recovery(error):
            super().on_error(error)

    def _start_recovery(self, error: Exception) -> bool:
        if self._is_over:
            return False  # the user's function has cancelled its own stream
        try:
            self._spawn(partial(self._recover, error))
        except UsageError:
            # The nursery is closed and can run no task;
            # the error of the source says more than a UsageError.
            return False
        return True

    # --- the task

    async def _recover(self, error: Exception) -> None:
        try:
            # One scheduler pass between two sources, even without a wait.
            await trio.lowlevel.checkpoint()
            source = await self._next_source(error)
        except Exception as raised:  # boundary: the user's functions
            if self._is_over:
                # raised during cancellation: no subscriber is left to signal it to.
                self._scope.report_failure(raised)
            self._fail(_after(error, raised))
        except BaseException:
            # No effect if the end of the stream was what cancelled this task.
            self._fail(stopped_error(self._label))
            raise
        else:
            self._attach_next(source, error)

    def _attach_next(self, source: Source[A] | None, error: Exception) -> None:
        if self._is_over:
            return
        if source is None:
            super().on_error(error)
        else:
            self._attach(source)


class _RetryStage(_RecoveringStage[A]):
    __slots__ = ("_attempts_left", "_failure", "_next_wait", "_policy", "_source")

    def __init__(
        self,
        downstream: Subscriber[A],
        scope: Scope,
        source: Source[A],
        policy: RetryPolicy,
        label: str,
    ) -> None:
        super().__init__(downstream, scope, label)
        self._policy = policy
        self._source = source
        self._failure: Exception | None = None  # of the attempt before this one
        self._reset_attempts()

    def _reset_attempts(self) -> None:
        self._attempts_left = self._policy.attempts
        self._next_wait = self._policy.backoff

    def on_next(self, element: A, /) -> None:
        if self._policy.consecutive:
            self._reset_attempts()
        super().on_next(element)

    def _is_final(self, error: Exception) -> bool:
        if isinstance(error, AlreadySubscribed) and self._failure is not None:
            # It came from subscribing again, and would hide why that was tried.
            error.__cause__ = self._failure
        # An async `when` is awaited in _next_source, where it can wait.
        return self._attempts_left <= 0 or (
            not is_async(self._policy.when)
            and not _not_coroutine(self._policy.when(error), self._label)
        )

    async def _next_source(self, error: Exception) -> Source[A] | None:
        policy, self._failure = self._policy, error
        if is_async(policy.when) and not await policy.when(error):
            return None
        wait, self._next_wait = self._next_wait, policy.wait_after(self._next_wait)
        self._attempts_left -= 1
        await trio.sleep(policy.jittered(wait))
        return self._source

    def _release(self) -> None:
        self._failure = None  # an error refers to its frames, and these to elements
        super()._release()


class _ResumeStage(_RecoveringStage[A]):
    __slots__ = ("_function", "_resumed")

    def __init__(
        self,
        downstream: Subscriber[A],
        scope: Scope,
        function: Callable[[Exception], Any],
        label: str,
    ) -> None:
        super().__init__(downstream, scope, label)
        self._function = function
        self._resumed = False

    def _is_final(self, error: Exception) -> bool:
        return self._resumed

    async def _next_source(self, error: Exception) -> Source[A]:
        self._resumed = True
        answer = self._function(error)
        return as_source(
            await answer if is_async(self._function) else _not_coroutine(answer, self._label)
        )


def _takes_error(source: object) -> bool:
    """Return whether `source` is a function of the error. Otherwise it is a source itself."""
    if not callable(source) or isinstance(source, Source | Publisher | Iterable | AsyncIterable):
        return False
    try:
        signature = inspect.signature(source)
    except (TypeError, ValueError):
        return True  # some functions written in C have no signature; only a call can tell
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def _after(error: Exception, raised: Exception) -> Exception:
    """Return `raised` with `error` as its context, as
    if it had been raised in an `except` clause for `error`.
    """
    if raised is not error and raised.__context__ is None:
        raised.__context__ = error
    return raised


def _not_coroutine(answer: Any, label: str) -> Any:
    """Return the result of a plain function.
    Raise UsageError if it is a coroutine, which would have to be awaited.
    """
    if type(answer) is CoroutineType:
        answer.close()
        raise UsageError(
            f"the function of {label} returned a coroutine, so it is async. Give the `async def` "
            "function itself, not a lambda around it"
        )
    return answer
