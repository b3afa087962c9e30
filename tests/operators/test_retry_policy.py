"""What `retry` may be told, what it answers to nonsense, and what it makes of the rest."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from penstock import ops
from penstock.api import UsageError
from penstock.operators._retry_policy import RetryPolicy, is_retryable

USUAL: dict[str, Any] = {
    "attempts": 3,
    "backoff": 1.0,
    "factor": 2.0,
    "max_backoff": 30.0,
    "jitter": None,
    "when": Exception,
    "consecutive": False,
}


def policy(**told: Any) -> RetryPolicy:
    return RetryPolicy.create(**{**USUAL, **told})


async def an_async_function() -> float:
    return 1.0


@pytest.mark.parametrize(
    ("told", "message"),
    [
        *(({"attempts": bad}, r"retry\(.*\): give the number of attempts.*at least 0, or None") for bad in (-1, 1.0, True, "3")),
        *(({"backoff": bad}, r"retry\(backoff=…\) is .* 0 or more") for bad in (-1, float("inf"), "1", True)),
        *(
            ({"factor": bad}, r"retry\(factor=.*\): give the factor from one wait to the next.*at least 1")
            for bad in (0.5, 0, float("nan"), float("inf"))
        ),
        *(({"factor": bad}, r"retry\(factor=.*\)") for bad in ("2", True, None)),
        *(({"max_backoff": bad}, r"retry\(max_backoff=…\) is .* 0 or more") for bad in (-1, float("nan"), None)),
        ({"backoff": 31.0}, r"retry\(backoff=31.0, max_backoff=30.0\): .*raise max_backoff"),
        *(({"jitter": bad}, r"retry\(jitter=.*\): give a plain function.*or None") for bad in (0.5, an_async_function)),
        *(({"when": bad}, r"retry\(when=.*\): give an exception type, a tuple") for bad in (None, (), 3, int, BaseException, (int,))),
        ({"when": (ValueError, lambda _: True)}, r"retry\(when=.*\): give an exception type, a tuple"),
    ],
)
def test_nonsense_is_refused_by_name(told: dict[str, Any], message: str) -> None:
    """Each argument that cannot work is named, with what would work, when the pipe is built."""
    with pytest.raises(UsageError, match=message):
        ops.retry(**{"attempts": 3, **told})


@pytest.mark.parametrize("told", [{"attempts": 0}, {"attempts": None}, {"factor": 1}, {"backoff": 30.0}, {"max_backoff": 0}])
def test_the_edges_are_allowed(told: dict[str, Any]) -> None:
    """No attempt, attempts without end, a wait that stays the same, one that is the longest at once, and none."""
    assert repr(ops.retry(**{"attempts": 3, **told})) == f"<operator retry({told.get('attempts', 3)})>"


def test_waits_grow_by_the_factor_up_to_the_longest() -> None:
    """1, 3, 9, 20, 20: and so on for ever, without an overflow."""
    told = policy(factor=3, max_backoff=20)
    waits = [told.backoff]
    for _ in range(10_000):
        waits.append(told.wait_after(waits[-1]))
    assert waits[:5] == [1, 3, 9, 20, 20]
    assert waits[-1] == 20


def test_no_backoff_stays_none() -> None:
    """Nothing times two is nothing."""
    assert policy(backoff=0.0).wait_after(0.0) == 0


def test_jitter_takes_a_share_of_the_wait() -> None:
    """What `jitter` returns is multiplied; with None the whole wait is waited; a random one stays within."""
    assert policy(jitter=lambda: 0.25).jittered(8.0) == 2.0
    assert policy(jitter=None).jittered(8.0) == 8.0
    shares = [policy(jitter=random.Random(7).random).jittered(8.0) for _ in range(100)]
    assert all(0 <= share <= 8 for share in shares)


def test_without_a_wait_jitter_is_not_called() -> None:
    """Nothing is drawn where nothing is waited for."""
    calls: list[int] = []

    def jitter() -> float:
        calls.append(1)
        return 0.5

    assert policy(jitter=jitter).jittered(0.0) == 0
    assert calls == []


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "half", None])
def test_a_share_outside_0_to_1_is_refused(share: Any) -> None:
    """A jitter that would lengthen the wait, or turn it back, is named."""
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
        (is_retryable, ValueError(), True),
        (is_retryable, UsageError(), False),
    ],
)
def test_when_says_which_errors(when: Any, error: Exception, again: bool) -> None:
    """A type, several, a function; and by default every error but one that says that the program must be changed."""
    chosen: Callable[[Exception], Any] = policy(when=when).when
    assert bool(chosen(error)) is again
