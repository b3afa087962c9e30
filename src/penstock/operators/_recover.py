"""Operators that go on after an error: `retry` with the same source, `on_error_resume` with another one.

Rules of this file:

* What comes after an error is begun from a task of its own, never from inside the signal that failed: so a source that fails at once,
  ten thousand times, takes ten thousand turns and no stack, its neighbours get theirs, and a cancelled nursery ends the stream.
* Demand survives: what was requested and not answered by one source is requested of the next, and nothing else.
* A source that has failed is never called again (rule 4.2: it counts as cancelled); between two sources there is nobody to call.
* An error that is not gone on from passes at once (rule 4.2). What is no `Exception` always does.
"""

import inspect
import random
from abc import abstractmethod
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from functools import partial
from types import CoroutineType
from typing import Any, Generic, TypeVar, cast

import trio

from penstock.api import Publisher, Subscriber, Subscription, UsageError, add_demand
from penstock.core import Scope, Source, Streamable, as_source, name_of
from penstock.operators._retry_policy import RetryPolicy, When, is_retryable
from penstock.operators._stage import ENDED_UPSTREAM, Operator, Stage, stopped_error
from penstock.operators._step import is_async

A = TypeVar("A")


def retry(
    attempts: int | None,
    *,
    backoff: float = 0.0,
    factor: float = 2.0,
    max_backoff: float = 30.0,
    jitter: Callable[[], float] | None = random.random,
    when: When = is_retryable,
    consecutive: bool = False,
) -> Operator[A, A]:
    """Begin the source anew after an error, up to `attempts` times (None: without end); the error after the last attempt passes on.

    What was passed on before an error is not taken back: a source that begins from its start repeats itself.

    All errors of the stream count; with ``consecutive=True`` only those in a row: each element that arrives begins the count, and the
    backoff, anew.
    Before the first attempt it waits `backoff` seconds, then `factor` times as long each time, never longer than `max_backoff`,
    and of that the share that `jitter()` says, from 0 to 1: by default a random one, so that many subscribers who failed together do
    not come back together. With ``jitter=None`` it waits the whole time.
    `when` is a type of exceptions, a tuple of them, or a function of the error, plain or async; other errors pass on at once.
    By default that is every error but `UsageError`, which trying again cannot cure.

    Upstream demand: 1 per downstream demand; what an attempt left unanswered is asked of the next. Buffer: none.
    What a function raises ends the stream with that error. Completion passes straight through. A cancel ends the waiting too.
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


def on_error_resume(
    source: Streamable[A] | Callable[[Exception], Streamable[A]] | Callable[[Exception], Awaitable[Streamable[A]]], /
) -> Operator[A, A]:
    """After an error go on with another source, or with the one that ``source(error)`` returns; its own errors pass on.

    A function, plain or async, that takes an argument is called with the error; to let some errors pass, raise them from it.
    One that takes none (an async generator function, say) is a source like any other.

    Upstream demand: 1 per downstream demand; what the first source left unanswered is asked of the other. Buffer: none.
    What the function raises ends the stream with that error. Completion and cancellation pass straight through.
    """
    if _takes_error(source):
        return _Resume(cast("Callable[[Exception], Any]", source), f"on_error_resume({name_of(source)})")
    replacement = as_source(cast("Streamable[A]", source))
    return _Resume(lambda _: replacement, f"on_error_resume({replacement!r})")


class _Retry(Operator[A, A]):
    __slots__ = ("_label", "_policy")

    def __init__(self, policy: RetryPolicy, label: str) -> None:
        self._policy = policy
        self._label = label

    def attach(self, source: Source[A], subscriber: Subscriber[A], scope: Scope) -> None:
        source.attach(_RetryStage(subscriber, scope, source, self._policy, self._label), scope)

    def __repr__(self) -> str:
        return f"<operator {self._label}>"


class _Resume(Operator[A, A]):
    __slots__ = ("_function", "_label")

    def __init__(self, function: Callable[[Exception], Any], label: str) -> None:
        self._function = function
        self._label = label

    def attach(self, source: Source[A], subscriber: Subscriber[A], scope: Scope) -> None:
        source.attach(_ResumeStage(subscriber, scope, self._function, self._label), scope)

    def __repr__(self) -> str:
        return f"<operator {self._label}>"


class _RecoveringStage(Stage[A, A], Generic[A]):
    """A stage that may get one source after another. Subclasses say when (`_is_final`) and which (`_next_source`)."""

    __slots__ = ("_demand", "_has_subscribed", "_label", "_scope", "_task_scope")

    def __init__(self, downstream: Subscriber[A], scope: Scope, label: str) -> None:
        super().__init__(downstream)
        self._scope = scope
        self._label = label
        self._demand = 0  # requested from below and not yet passed on
        self._has_subscribed = False
        self._task_scope: trio.CancelScope | None = None

    @abstractmethod
    def _is_final(self, error: Exception) -> bool:
        """Tell whether `error` is known to be passed on. What this raises ends the stream."""

    @abstractmethod
    async def _next_source(self, error: Exception) -> Source[A] | None:
        """Return what to go on with, when it is time to; or None to pass `error` on. What this raises ends the stream."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if not self._has_subscribed:
            self._has_subscribed = True
            super().on_subscribe(subscription)  # rule 2.12: once, however many sources follow
        elif self._is_over:
            subscription.cancel()  # rule 2.6
        else:
            self._upstream = subscription
            if self._demand:
                subscription.request(self._demand)

    def request(self, n: int, /) -> None:
        self._demand = add_demand(self._demand, n)
        self._upstream.request(n)

    def on_next(self, element: A, /) -> None:
        self._demand -= 1
        self._downstream.on_next(element)

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
            return False  # the user's function has cancelled the very stream that it was asked about
        try:
            self._task_scope = self._scope.spawn(partial(self._recover, error), name=f"penstock {self._label}")
        except UsageError:
            return False  # the nursery has closed, and nothing can be begun in it: the error itself tells most
        return True

    # --- the task

    async def _recover(self, error: Exception) -> None:
        try:
            await trio.lowlevel.checkpoint()
            source = await self._next_source(error)
        except Exception as raised:  # boundary: the user's functions
            if self._is_over:
                self._scope.fail(raised)  # it raised while it was being cancelled: nobody listens any more
            self._fail(_after(error, raised))
        except BaseException:
            self._fail(stopped_error(self._label))  # nothing, unless this task was cancelled while the stream was live
            raise
        else:
            self._attach_next(source, error)

    def _attach_next(self, source: Source[A] | None, error: Exception) -> None:
        if self._is_over:
            return
        if source is None:
            super().on_error(error)
            return
        try:
            source.attach(self, self._scope)
        except Exception as raised:  # boundary: attach of a source that somebody else wrote; there is no caller to raise to
            self._fail(raised)

    def _release(self) -> None:
        if self._task_scope is not None:
            self._task_scope.cancel()


class _RetryStage(_RecoveringStage[A]):
    __slots__ = ("_attempts_left", "_next_wait", "_policy", "_source")

    def __init__(self, downstream: Subscriber[A], scope: Scope, source: Source[A], policy: RetryPolicy, label: str) -> None:
        super().__init__(downstream, scope, label)
        self._policy = policy
        self._source = source
        self._reset_attempts()

    def _reset_attempts(self) -> None:
        self._attempts_left = self._policy.attempts
        self._next_wait = self._policy.backoff

    def on_next(self, element: A, /) -> None:
        if self._policy.consecutive:
            self._reset_attempts()
        super().on_next(element)

    def _is_final(self, error: Exception) -> bool:
        return self._attempts_left <= 0 or (not is_async(self._policy.when) and not _not_coroutine(self._policy.when(error), self._label))

    async def _next_source(self, error: Exception) -> Source[A] | None:
        policy = self._policy
        if is_async(policy.when) and not await policy.when(error):
            return None
        wait, self._next_wait = self._next_wait, policy.wait_after(self._next_wait)
        self._attempts_left -= 1
        await trio.sleep(policy.jittered(wait))
        return self._source


class _ResumeStage(_RecoveringStage[A]):
    __slots__ = ("_function", "_resumed")

    def __init__(self, downstream: Subscriber[A], scope: Scope, function: Callable[[Exception], Any], label: str) -> None:
        super().__init__(downstream, scope, label)
        self._function = function
        self._resumed = False

    def _is_final(self, error: Exception) -> bool:
        return self._resumed

    async def _next_source(self, error: Exception) -> Source[A]:
        self._resumed = True
        answer = self._function(error)
        return as_source(await answer if is_async(self._function) else _not_coroutine(answer, self._label))


def _takes_error(source: object) -> bool:
    """Tell whether `source` is a function of the error, and not a source."""
    if not callable(source) or isinstance(source, Source | Publisher | Iterable | AsyncIterable):
        return False
    try:
        signature = inspect.signature(source)
    except (TypeError, ValueError):
        return True  # some functions written in C do not tell; calling is how to find out
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def _after(error: Exception, raised: Exception) -> Exception:
    """Return `raised`, with the error that was being answered as its context, as an `except` clause would have it."""
    if raised is not error and raised.__context__ is None:
        raised.__context__ = error
    return raised


def _not_coroutine(answer: Any, label: str) -> Any:
    """Return what a plain function returned; raise UsageError where that would have to be awaited."""
    if type(answer) is CoroutineType:
        answer.close()
        raise UsageError(
            f"the function of {label} returned a coroutine: it is async in disguise. "
            "Give the `async def` function itself, not a lambda around it"
        )
    return answer
