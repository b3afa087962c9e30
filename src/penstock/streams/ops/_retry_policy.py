"""`RetryPolicy`: the arguments of `retry`, checked once, when the pipe is built."""

from collections.abc import Awaitable, Callable
from math import inf, isfinite
from typing import Any, TypeAlias

import attrs

from penstock.api import UsageError
from penstock.core import check_seconds
from penstock.streams.ops._step import is_async

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
