"""What extensions wait for on a connection without tasks:
the outcomes of the program's functions, such as `authenticate`.

Rules of this file:

* Code of the program never runs while received bytes are acted on. So a function is wrapped into a
  coroutine, which its owner runs later.
* Without tasks a coroutine can do anything but wait.
  One that waits is closed, and its outcome is an error.
"""

from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutine
from typing import Any, TypeAlias

from penstock.api import UsageError

Then: TypeAlias = Callable[[Any, Exception | None], None]
"""Gets the result of an awaitable, or what it has raised."""

AwaitWith: TypeAlias = Callable[[Awaitable[Any], Then], None]
"""Lets an awaitable run, and hands on its outcome."""


def deferred(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return a function that calls `function`, plain or async, when its result is awaited,
    and not before.
    """

    async def later(*arguments: Any) -> Any:
        result = function(*arguments)
        return await result if isawaitable(result) else result

    return later


class Outcomes:
    """Awaitables that are run by the next call of `run`."""

    def __init__(self) -> None:
        self._queue: list[tuple[Awaitable[Any], Then]] = []

    def __bool__(self) -> bool:
        return bool(self._queue)

    def add(self, awaitable: Awaitable[Any], then: Then) -> None:
        """Let the next `run` find out the result of `awaitable`, and call `then` with it."""
        self._queue.append((awaitable, then))

    def run(self) -> None:
        """Run each awaitable, and hand on its outcome."""
        queue, self._queue = self._queue, []
        for awaitable, then in queue:
            then(*_outcome(awaitable))

    def close(self) -> None:
        """Run none of them."""
        queue, self._queue = self._queue, []
        # Python warns of a coroutine that is neither awaited nor closed.
        for awaitable, _ in queue:
            if iscoroutine(awaitable):
                awaitable.close()


def _outcome(awaitable: Awaitable[Any]) -> tuple[Any, Exception | None]:
    try:
        steps = awaitable.__await__()
        next(steps)
    except StopIteration as done:
        return done.value, None
    except Exception as error:  # boundary: the program's function
        return None, error
    return None, _stopped(steps)


def _stopped(steps: Any) -> Exception:
    """End an awaitable that waits. Return the error."""
    close = getattr(steps, "close", None)
    try:
        if close is not None:
            close()
    except Exception as error:  # boundary: the program's function, which is told to stop
        return error
    return UsageError(
        "this client has no task in which a function could wait; give one that does not wait, or "
        "use penstock.aio.connect()"
    )
