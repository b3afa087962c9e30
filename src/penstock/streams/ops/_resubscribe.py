"""Operators that subscribe again: `retry` and `repeat` to the same source, `on_error_resume` to
another one.

Rules of this file:

* The next source is attached in its own task, never inside the signal that ended the one before. A
  source that ends at once, 10,000 times, then costs 10,000 scheduler passes and no stack depth;
  other tasks run in between, and a cancelled nursery ends the stream.
* Demand survives: elements requested and not received from one source are requested from the next
  source, and no others.
* The subscription of a source that has ended is never called again (rules 2.4, 4.2).
* An error that does not lead to recovery passes at once (rule 4.2). An error that is not an
  `Exception` always passes.
"""

import inspect
import random
from abc import abstractmethod
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from functools import partial
from math import inf, isfinite
from types import CoroutineType
from typing import Any, Generic, TypeAlias, TypeVar, cast

import attrs
import trio

from penstock.api import (
    AlreadySubscribed,
    Publisher,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
)
from penstock.core import Scope, check_seconds, name_of
from penstock.streams._source import Replacement, Source, Streamable
from penstock.streams._sources import as_source
from penstock.streams.ops._operator import OperatorBase, SameTypeOperator, UnionOperator
from penstock.streams.ops._stage import ENDED_UPSTREAM, Stage, stopped_error
from penstock.streams.ops._step import is_async

A = TypeVar("A")
B = TypeVar("B")

When: TypeAlias = (
    type[Exception]
    | tuple[type[Exception], ...]
    | Callable[[Exception], object]
    | Callable[[Exception], Awaitable[object]]
)
"""Which errors `retry` handles: an exception type, a tuple of them, or a function
that returns whether to try again.
"""


def is_retryable(error: Exception) -> bool:
    """Return True for every error but `UsageError`, which says that the program must be changed."""
    return not isinstance(error, UsageError)


@attrs.frozen(kw_only=True)
class RetryPolicy:
    """The arguments of one `retry`, after their checks."""

    attempts: float
    backoff: float
    factor: float
    max_backoff: float
    jitter: Callable[[], float] | None
    when: Callable[[Exception], Any]
    consecutive: bool

    @classmethod
    def create(
        cls,
        *,
        attempts: int | None,
        backoff: float,
        factor: float,
        max_backoff: float,
        jitter: Callable[[], float] | None,
        when: When | None,
        consecutive: bool,
    ) -> "RetryPolicy":
        """Check the arguments and return the policy.
        UsageError names the argument that cannot work.
        """
        return cls(
            attempts=_check_attempts(attempts),
            backoff=check_seconds(backoff, "retry(backoff=…)", zero=True),
            factor=_check_factor(factor),
            max_backoff=_check_longest(max_backoff, backoff),
            jitter=_check_jitter(jitter),
            when=_check_when(when),
            consecutive=consecutive,
        )

    def wait_after(self, wait: float) -> float:
        """Return the wait after `wait`: `factor` times as long, at most `max_backoff`."""
        return min(wait * self.factor, self.max_backoff)

    def jittered(self, wait: float) -> float:
        """Return `wait` multiplied by `jitter()`.
        Raise UsageError if `jitter` returns no number from 0 to 1.
        """
        if self.jitter is None or not wait:
            return wait
        share = self.jitter()
        if isinstance(share, int | float) and 0 <= share <= 1:  # type: ignore[redundant-expr]  # users return anything
            return wait * share
        raise UsageError(
            f"retry(jitter=…) returned {share!r}; it must return the share of the wait to use, a "
            "number from 0 to 1"
        )


def _check_attempts(attempts: int | None) -> float:
    if attempts is None:
        return inf
    if type(attempts) is int and attempts >= 0:
        return attempts
    raise UsageError(
        f"retry({attempts!r}): give the number of attempts after an error, an integer of at least "
        "0, or None for no limit"
    )


def _check_factor(factor: float) -> float:
    if (
        not isinstance(factor, bool)
        and isinstance(factor, int | float)  # type: ignore[redundant-expr]  # users give anything
        and isfinite(factor)
        and factor >= 1
    ):
        return float(factor)
    raise UsageError(
        f"retry(factor={factor!r}): give the factor from one wait to the next, a number of at "
        "least 1"
    )


def _check_longest(max_backoff: float, backoff: float) -> float:
    longest = check_seconds(max_backoff, "retry(max_backoff=…)", zero=True)
    if longest < backoff:
        raise UsageError(
            f"retry(backoff={backoff!r}, max_backoff={max_backoff!r}): the longest wait would be "
            "shorter than the first; raise max_backoff"
        )
    return longest


def _check_jitter(jitter: Callable[[], float] | None) -> Callable[[], float] | None:
    if jitter is None or (callable(jitter) and not is_async(jitter)):  # type: ignore[redundant-expr]  # users give anything
        return jitter
    raise UsageError(
        f"retry(jitter={jitter!r}): give a plain function that returns a number from 0 to 1, or "
        "None for the whole wait"
    )


def _check_when(when: When | None) -> Callable[[Exception], Any]:
    if when is None:
        return is_retryable
    kinds: tuple[Any, ...] = when if isinstance(when, tuple) else (when,)
    if kinds and all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        return lambda error: isinstance(error, kinds)
    if callable(when) and not isinstance(when, type):
        return when
    raise UsageError(
        f"retry(when={when!r}): give an exception type, a tuple of them, or a function, plain or "
        "async, that takes the error and returns whether to try again"
    )


class ReattachingStage(Stage[A, A], Generic[A]):
    """A stage that may attach further sources.
    A subclass decides when, and starts the task that does it.
    """

    __slots__ = ("_demand", "_has_subscribed", "_label", "_scope", "_task_scope")

    def __init__(self, downstream: Subscriber[A], scope: Scope, label: str) -> None:
        super().__init__(downstream)
        self._scope = scope
        self._label = label
        self._demand = 0  # requested by downstream and not yet passed on
        self._has_subscribed = False
        self._task_scope: trio.CancelScope | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if not self._has_subscribed:
            self._has_subscribed = True
            # rule 2.12: downstream gets one on_subscribe, even with several sources.
            super().on_subscribe(subscription)
        elif self._is_over:
            subscription.cancel()  # rule 2.6: the stream ended while the source was being attached
        else:
            self._upstream = subscription
            if self._demand:
                subscription.request(self._demand)

    def request(self, n: int, /) -> None:
        self._demand = add_demand(self._demand, n)
        self._upstream.request(n)

    def on_next(self, element: A, /) -> None:
        # Also of unbounded demand: the next source then gets 2^63-1 less the elements that arrived.
        self._demand -= 1
        self._downstream.on_next(element)

    # --- for subclasses

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        """Start the task that attaches the next source.
        Raises UsageError if the nursery has closed.
        """
        self._task_scope = self._scope.spawn(work, name=f"penstock {self._label}")

    def _attach(self, source: Source[A]) -> None:
        """Attach the next source. If `attach` raises, fail the stream with that error."""
        try:
            source.attach(self, self._scope)
        except Exception as raised:
            # boundary: the source may be user code, and this task has no caller
            # that could handle it.
            self._fail(raised)

    def _release(self) -> None:
        if self._task_scope is not None:
            self._task_scope.cancel()


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


def repeat(count: int | None, *, pause: float = 0.0) -> SameTypeOperator:
    """Pass on the elements of the source `count` times in all (None: without end). Each run
    subscribes to the source again.

    A run begins `pause` seconds after the one before has completed, and
    when elements are requested.
    A source without elements is repeated too, one scheduler pass after the other:
    give a `pause` if that is possible.
    To subscribe again after an error, use `retry`.

    >>> await collect(pipe([1, 2], ops.repeat(2)))
    [1, 2, 1, 2]

    Upstream demand: 1 per downstream demand; demand that one run left goes to the next. Buffer:
    none.
    Completes with the last run. Errors and cancellation pass straight through;
    a cancel also ends the pause.
    """
    if count is not None and (type(count) is not int or count < 1):
        raise UsageError(
            f"repeat({count!r}): give how many times in all, an integer of at least 1, or None for "
            "no end"
        )
    return _Repeat(count, check_seconds(pause, "repeat(pause=…)", zero=True))


class _Repeat(OperatorBase[Any, Any]):
    __slots__ = ("_count", "_pause")

    def __init__(self, count: int | None, pause: float) -> None:
        self._count = count
        self._pause = pause

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        source.attach(_RepeatStage(subscriber, scope, source, self._count, self._pause), scope)

    def __repr__(self) -> str:
        return f"<operator repeat({self._count})>"


class _RepeatStage(ReattachingStage[A]):
    __slots__ = ("_pause", "_runs_left", "_source")

    def __init__(
        self,
        downstream: Subscriber[A],
        scope: Scope,
        source: Source[A],
        count: int | None,
        pause: float,
    ) -> None:
        super().__init__(downstream, scope, f"repeat({count})")
        self._source = source
        self._runs_left = count  # runs that have not completed; None: no end
        self._pause = pause

    def request(self, n: int, /) -> None:
        # Between two runs upstream has ended.
        # If no task attaches the next run yet, the run before left no demand.
        if self._upstream is not ENDED_UPSTREAM or self._task_scope is not None:
            super().request(n)
        elif not self._is_over:
            self._demand = add_demand(self._demand, n)
            self._start_run()

    def on_complete(self, /) -> None:
        if self._runs_left is not None:
            self._runs_left -= 1
        if self._runs_left == 0:
            super().on_complete()
            return
        self._upstream = ENDED_UPSTREAM
        if self._demand:
            self._start_run()

    def _start_run(self) -> None:
        try:
            self._spawn(self._run_again)
        except UsageError as closed:
            self._fail(closed)

    async def _run_again(self) -> None:
        try:
            await trio.sleep(self._pause)  # also a checkpoint without a pause
        except BaseException:
            # No effect if the end of the stream was what cancelled this task.
            self._fail(stopped_error(self._label))
            raise
        if not self._is_over:
            # Set before attach: the source may complete inside it, and so start the next task.
            self._task_scope = None
            self._attach(self._source)
