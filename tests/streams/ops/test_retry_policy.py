"""`RetryPolicy`: its checks, its defaults, and the waits that it computes."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from penstock import ops
from penstock.api import UsageError
from penstock.streams.ops._resubscribe import RetryPolicy

USUAL: dict[str, Any] = {
    "attempts": 3,
    "backoff": 1.0,
    "factor": 2.0,
    "max_backoff": 30.0,
    "jitter": None,
    "when": Exception,
    "consecutive": False,
}


def policy(**arguments: Any) -> RetryPolicy:
    return RetryPolicy.create(**{**USUAL, **arguments})


async def an_async_function() -> float:
    return 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(
            ({"attempts": bad}, r"retry\(.*\): give the number of attempts.*at least 0, or None")
            for bad in (-1, 1.0, True, "3")
        ),
        *(
            ({"backoff": bad}, r"retry\(backoff=…\) is .* 0 or more")
            for bad in (-1, float("inf"), "1", True)
        ),
        *(
            (
                {"factor": bad},
                r"retry\(factor=.*\): give the factor from one wait to the next.*at least 1",
            )
            for bad in (0.5, 0, float("nan"), float("inf"))
        ),
        *(({"factor": bad}, r"retry\(factor=.*\)") for bad in ("2", True, None)),
        *(
            ({"max_backoff": bad}, r"retry\(max_backoff=…\) is .* 0 or more")
            for bad in (-1, float("nan"), None)
        ),
        ({"backoff": 31.0}, r"retry\(backoff=31.0, max_backoff=30.0\): .*raise max_backoff"),
        *(
            ({"jitter": bad}, r"retry\(jitter=.*\): give a plain function.*or None")
            for bad in (0.5, an_async_function)
        ),
        *(
            ({"when": bad}, r"retry\(when=.*\): give an exception type, a tuple")
            for bad in ((), 3, int, BaseException, (int,))
        ),
        (
            {"when": (ValueError, lambda _: True)},
            r"retry\(when=.*\): give an exception type, a tuple",
        ),
    ],
)
def test_a_wrong_argument_is_refused_by_name(arguments: dict[str, Any], message: str) -> None:
    """The error names the argument and its allowed values. It is raised when the pipe is built."""
    with pytest.raises(UsageError, match=message):
        ops.retry(**{"attempts": 3, **arguments})


@pytest.mark.parametrize(
    "arguments",
    [{"attempts": 0}, {"attempts": None}, {"factor": 1}, {"backoff": 30.0}, {"max_backoff": 0}],
)
def test_limits_of_the_arguments_are_accepted(arguments: dict[str, Any]) -> None:
    """No attempts, unlimited attempts, a factor of 1, a first wait that is the longest,
    and a longest wait of 0.
    """
    assert (
        repr(ops.retry(**{"attempts": 3, **arguments}))
        == f"<operator retry({arguments.get('attempts', 3)})>"
    )


def test_waits_grow_by_the_factor_up_to_the_longest() -> None:
    """With factor 3 and 20 s at most: 1, 3, 9, 20, 20.
    After 10,000 steps there is still no overflow.
    """
    arguments = policy(factor=3, max_backoff=20)
    waits = [arguments.backoff]
    for _ in range(10_000):
        waits.append(arguments.wait_after(waits[-1]))
    assert waits[:5] == [1, 3, 9, 20, 20]
    assert waits[-1] == 20


def test_a_backoff_of_zero_stays_zero() -> None:
    """0 s times the factor is 0 s."""
    assert policy(backoff=0.0).wait_after(0.0) == 0


def test_jitter_multiplies_the_wait() -> None:
    """The wait is multiplied by the result of `jitter`.
    None keeps the whole wait, and a random jitter never exceeds it.
    """
    assert policy(jitter=lambda: 0.25).jittered(8.0) == 2.0
    assert policy(jitter=None).jittered(8.0) == 8.0
    shares = [policy(jitter=random.Random(7).random).jittered(8.0) for _ in range(100)]
    assert all(0 <= share <= 8 for share in shares)


def test_jitter_is_not_called_without_a_wait() -> None:
    """A wait of 0 s needs no random number."""
    calls: list[int] = []

    def jitter() -> float:
        calls.append(1)
        return 0.5

    assert policy(jitter=jitter).jittered(0.0) == 0
    assert calls == []


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "half", None])
def test_a_jitter_outside_0_to_1_is_refused(share: Any) -> None:
    """The error names the value that would lengthen the wait or make it negative."""
    with pytest.raises(UsageError, match=r"retry\(jitter=…\) returned .*from 0 to 1"):
        policy(jitter=lambda: share).jittered(1.0)


@pytest.mark.parametrize(
    ("when", "error", "again"),
    [
        (ValueError, ValueError(), True),
        (ValueError, KeyError(), False),
        ((ValueError, KeyError), KeyError(), True),
        ((ValueError, KeyError), OSError(), False),
        (lambda error: error.args == ("yes",), ValueError("yes"), True),
        (lambda error: error.args == ("yes",), ValueError("no"), False),
        (None, ValueError(), True),
        (None, UsageError(), False),
    ],
)
def test_when_selects_the_errors_to_retry(when: Any, error: Exception, again: bool) -> None:
    """A type, a tuple of types, a function; and by default every error but UsageError."""
    chosen: Callable[[Exception], Any] = policy(when=when).when
    assert bool(chosen(error)) is again
