"""The sinks: ways to consume a stream besides `async for`. Each is one async call that opens the
stream, reads it, and closes it.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, overload

import trio

from penstock.api import LimitExceeded, NoElement, UsageError, shown
from penstock.core import check_count, check_in_trio
from penstock.streams._open import subscribe
from penstock.streams._source import Streamable

T = TypeVar("T")
D = TypeVar("D")

COLLECT_LIMIT: Final = 100_000
"""Elements that `collect` holds by default.
A list of a stream is a buffer, and every buffer has a bound.
"""

_REQUIRED: Final[Any] = object()


async def collect(
    source: Streamable[T], *, limit: int | None = COLLECT_LIMIT, demand: int | None = None
) -> list[T]:
    """Return all elements of `source` as a list. Checkpoints.

    Raises the publisher's error, and LimitExceeded for more than `limit` elements;
    ``limit=None`` is without bound.
    """
    if limit is not None:
        check_count(limit, "limit")
    elements: list[T] = []
    # By batch: measured, an element takes 202 ns, and 351 ns with a loop by element.
    async with subscribe(source, demand=_automatic(demand)) as stream:
        async for batch in stream.batches():
            # checked after each batch: `demand` bounds how far the list can exceed the limit.
            elements += batch
            if limit is not None and len(elements) > limit:
                raise LimitExceeded(
                    f"collect() was given more than {limit} elements. Raise limit=, shorten the "
                    "stream with take(), or use the elements as they come: `async for` needs no "
                    "list",
                    limit="collect",
                    value=limit,
                )
    return elements


@overload
async def first(source: Streamable[T]) -> T: ...
@overload
async def first(source: Streamable[T], *, default: D) -> T | D: ...
async def first(source: Streamable[T], *, default: Any = _REQUIRED) -> Any:
    """Return the first element of `source`, and cancel the rest. Checkpoints.

    A stream without elements gives `default`, or raises NoElement. Raises the publisher's error.
    """
    # 1: the publisher shall not make elements that are then dropped.
    async with subscribe(source, demand=1) as stream:
        async for element in stream:
            # leaves the block, which cancels the stream and waits until its generator is closed.
            return element
    if default is not _REQUIRED:
        return default
    raise NoElement(
        "the stream ended before its first element; give first(…, default=…) what to return in "
        "that case"
    )


async def for_each(
    source: Streamable[T],
    function: Callable[[T], Any] | Callable[[T], Awaitable[Any]],
    *,
    demand: int | None = None,
) -> int:
    """Call `function`, plain or async, with each element in turn; return the number of elements.
    Checkpoints.

    Raises the error of the publisher or of the function; either way the stream is cancelled.
    """
    if not callable(function):
        raise UsageError(
            f"for_each() was given {shown(function)}; it takes a function, plain or async, of one "
            "element"
        )
    count = 0
    async with subscribe(source, demand=_automatic(demand)) as stream:
        async for element in stream:
            count += 1
            result = function(element)
            # The result decides, not the function: a plain function may return a coroutine, and a
            # partial hides what it wraps.
            if inspect.isawaitable(result):
                await result
    return count


async def to_channel(
    source: Streamable[T], channel: "trio.MemorySendChannel[T]", *, demand: int | None = None
) -> int:
    """Send each element into a trio memory channel, and close `channel` at the end; return the
    number of elements. Checkpoints.

    Raises the publisher's error, and trio.BrokenResourceError if the receiving end has been closed.
    """
    check_in_trio("to_channel()")
    count = 0
    # The channel is entered first, so it is closed in every case:
    # its receiver must not wait forever.
    async with channel, subscribe(source, demand=_automatic(demand)) as stream:
        # An element is sent before the next one is taken:
        # the capacity of the channel bounds what waits, and not this task.
        async for element in stream:
            await channel.send(element)
            count += 1
    return count


def _automatic(demand: int | None) -> int | None:
    # With 0 the sink would wait forever, because nothing can call request() on its stream.
    if demand == 0:
        raise UsageError(
            "demand=0 means that you call request() yourself, and a sink has nowhere to do it; "
            "give at least 1"
        )
    return demand
