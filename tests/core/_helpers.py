"""Parts shared by the tests of this layer: elements for weak references, a scope that records
its reports, and counts of tasks.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from penstock.core import Scope
from penstock.testing import live_tasks


class Token:
    """An element that can be referred to weakly."""

    def __init__(self, number: int = 0) -> None:
        self.number = number


class Reports:
    """A scope in a nursery, and the errors that its two hooks got."""

    def __init__(self, nursery: trio.Nursery, **options: Any) -> None:
        self.violations: list[Exception] = []
        self.failures: list[Exception] = []
        self.scope = Scope(
            nursery, on_violation=self.violations.append, on_failure=self.failures.append, **options
        )


class Unprintable(Exception):
    """An exception whose repr raises. Code that puts it into a message must survive that."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr today")

    __str__ = __repr__


async def numbers(count: int = 2**62) -> AsyncIterator[int]:
    """Yield 0, 1, 2, … without ever waiting."""
    number = 0
    while number < count:
        yield number
        number += 1


def our_tasks() -> list[str]:
    """Return the names of the tasks that penstock runs now."""
    return sorted(task.name for task in live_tasks() if task.name.startswith("penstock"))


async def raised_by(async_fn: Callable[[], Awaitable[object]]) -> BaseException:
    """Return the exception that `async_fn()` raises."""
    try:
        await async_fn()
    except BaseException as error:  # the test asserts which one it is
        return error
    raise AssertionError("nothing was raised")


async def quiet() -> None:
    """Wait until every other task is blocked."""
    await wait_all_tasks_blocked()
