"""The meter: a producer that counts, a reader that stops, and what the difference says.

Rules of this file:

* The time is that of the loop. A stream may cross sockets and programs, so the meter waits until
  the producer has made nothing for `quiet` seconds.
* The producer ends at `most` elements: a stream without a bound ends the measurement, and not the
  machine.
* Two sizes of elements tell what bounds the lead: a bound in elements is the same number for both,
  and one in bytes is fewer of the larger ones.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Final, Literal, TypeAlias

import attrs
import sniffio

from penstock.api import UsageError

SIZES: Final = (16, 16 << 10)
"""Bytes of the elements of the two measurements."""

SAME: Final = 1.5
"""A lead in elements may differ by this factor between two sizes: a bound that counts elements also
lets some bytes of a socket be on their way.
"""

Bound: TypeAlias = Literal["elements", "bytes", "nothing"]
"""What holds a producer up."""

_STEP: Final = 0.01


class Produced(AsyncIterator[bytes]):
    """The elements that go into the stream. Each is made when it is asked for, and counted."""

    def __init__(self, size: int, most: int) -> None:
        self.made: int = 0
        """Elements that were asked for so far."""
        self.is_closed: bool = False
        """Its reader has closed it, with `aclose`, or has read it to its end."""
        self._size = size
        self._most = most

    async def __anext__(self) -> bytes:
        await _sleep(0)  # a producer that never waits would stop every other task
        if self.made >= self._most or self.is_closed:
            self.is_closed = True
            raise StopAsyncIteration
        self.made += 1
        return self.made.to_bytes(8, "big").ljust(self._size, b".")

    async def aclose(self) -> None:
        """End it, as the `aclose` of an async generator does."""
        self.is_closed = True


Stream: TypeAlias = AsyncIterator[Any] | AbstractAsyncContextManager[AsyncIterator[Any]]
MakeStream: TypeAlias = Callable[[Produced], Stream | Awaitable[Stream]]
"""Makes the stream that is measured, of the elements that go into it."""


@attrs.frozen(kw_only=True)
class Lead:
    """What was measured."""

    taken: int
    """Elements that the reader took before it stopped."""

    made: int
    """Elements of 16 bytes that the producer had made when nothing moved any more."""

    made_large: int
    """The same for elements of 16 KiB."""

    bound: Bound
    """What held the producer up: a number of elements, a number of bytes, or nothing, for as many
    elements as the meter makes.
    """

    goes_on: bool
    """The producer was asked for elements after the reader had left."""

    is_closed: bool
    """The producer was closed when the reader had left."""

    left_running: tuple[str, ...] = ()
    """The names of the tasks that the stream has started, and that still run when the reader has
    left.
    """

    @property
    def ahead(self) -> int:
        """The lead: elements that were made and not taken."""
        return self.made - self.taken

    @property
    def bytes_ahead(self) -> int:
        """The lead in bytes, with the large elements."""
        return (self.made_large - self.taken) * SIZES[1]

    def __str__(self) -> str:
        held = {
            "elements": f"held up by a number of elements: {self.ahead} elements ahead",
            "bytes": f"held up by bytes: {self.ahead} elements ahead, {self.bytes_ahead:,} bytes",
            "nothing": f"held up by nothing: {self.ahead} elements ahead, all that there were",
        }[self.bound]
        left = "" if self.is_closed else ", and was not closed when the reader had left"
        more = ", and went on after the reader had left" if self.goes_on else ""
        tasks = f"; these tasks run on: {', '.join(self.left_running)}" if self.left_running else ""
        return f"the producer was {held}{more or left}{tasks}"


async def lead_of(
    make_stream: MakeStream, *, taken: int = 10, most: int = 20_000, quiet: float = 0.25
) -> Lead:
    """Measure how far the producer of a stream runs ahead of a reader that takes `taken` elements
    and stops.

    `make_stream` is called twice, with elements of two sizes. `most` elements are made at most.
    Nothing moves any more when the producer has made no element for `quiet` seconds; give more for
    a stream that waits in between. Raises UsageError for a stream that ends before the reader has
    taken its elements, and for an object that is no stream. Checkpoints.
    """
    if type(taken) is not int or not 0 < taken < most:
        raise UsageError(
            f"taken={taken!r}: give a number from 1 to most - 1, which is {most - 1:,}"
        )
    small = await _measured(make_stream, Produced(SIZES[0], most), taken, quiet)
    # A tenth of them: without a bound they are in memory, and 32 MiB tell a bound in bytes.
    most_large = max(taken + 1, most // 10)
    large = await _measured(make_stream, Produced(SIZES[1], most_large), taken, quiet)
    return Lead(
        taken=taken,
        made=small.made,
        made_large=large.made,
        bound=bound_of(small.made - taken, large.made - taken, most=most_large - taken),
        goes_on=small.goes_on or large.goes_on,
        is_closed=small.is_closed and large.is_closed,
        left_running=small.left_running,
    )


def run_lead_of(
    make_stream: MakeStream, *, on: Literal["trio", "asyncio"] = "trio", **options: Any
) -> Lead:
    """Call `lead_of` in a loop of its own, with its options: for a program that runs none. The
    fixture `measure_lead` of pytest is this function.
    """
    if on == "asyncio":
        import asyncio  # noqa: PLC0415 (a program on trio need not import it)

        return asyncio.run(lead_of(make_stream, **options))
    if on == "trio":
        import trio  # noqa: PLC0415 (a program on asyncio need not import it)

        return trio.run(lambda: lead_of(make_stream, **options))
    raise UsageError(f"on={on!r}: give 'trio' or 'asyncio'")


@attrs.frozen
class _Measured:
    made: int
    goes_on: bool
    is_closed: bool
    left_running: tuple[str, ...]


def bound_of(small: int, large: int, *, most: int) -> Bound:
    """Tell what held a producer up, from its lead with small elements and its lead with large ones.

    `most` is the lead with large elements of a producer that made all that there were.
    """
    # Many small elements may be less than a buffer that is bounded in bytes: the large ones tell.
    if large >= most:
        return "nothing"
    # One element more or less is no difference: it may be on its way.
    return "elements" if small <= max(large * SAME, large + 2) else "bytes"


async def _measured(
    make_stream: MakeStream, produced: Produced, taken: int, quiet: float
) -> _Measured:
    before = _tasks()
    async with AsyncExitStack() as left:
        elements = await _opened(make_stream, produced, left)
        for number in range(taken):
            try:
                await anext(elements)
            except StopAsyncIteration:
                raise UsageError(
                    f"the stream ended after {number} elements, and the reader takes {taken}; it "
                    "must pass on what it is given"
                ) from None
        await _wait_quiet(produced, quiet)
        made = produced.made
        close = getattr(elements, "aclose", None)
        if close is not None:
            await close()
    # What is on its way when the reader leaves may still be asked for.
    await _sleep(quiet)
    after = produced.made
    await _sleep(quiet)
    goes_on = produced.made > after
    running = tuple(name for task, name in _tasks().items() if task not in before)
    return _Measured(made, goes_on, produced.is_closed, running)


async def _opened(
    make_stream: MakeStream, produced: Produced, left: AsyncExitStack
) -> AsyncIterator[Any]:
    stream: Any = make_stream(produced)
    if hasattr(stream, "__await__"):
        stream = await stream
    if hasattr(type(stream), "__aenter__"):
        stream = await left.enter_async_context(stream)
    if not hasattr(stream, "__aiter__"):
        raise UsageError(
            f"{stream!r} is no stream: return an async iterator, or an async context manager that "
            "gives one"
        )
    elements: AsyncIterator[Any] = aiter(stream)
    return elements


async def _wait_quiet(produced: Produced, quiet: float) -> None:
    made, still = produced.made, 0.0
    while still < quiet and not produced.is_closed:
        await _sleep(_STEP)
        still = still + _STEP if produced.made == made else 0.0
        made = produced.made


def _tasks() -> dict[Any, str]:
    """Return all tasks of the loop by name, without those of the loop itself."""
    if sniffio.current_async_library() == "trio":
        import trio  # noqa: PLC0415 (a program on asyncio need not import it)

        # The root task has two: the main one, and one whose children are system tasks.
        root = trio.lowlevel.current_root_task()
        waiting = [] if root is None else [root]
        found = {}
        while waiting:
            task = waiting.pop()
            found[task] = task.name
            waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        return found
    import asyncio  # noqa: PLC0415 (the same)

    return {
        task: getattr(task.get_coro(), "__qualname__", task.get_name())
        for task in asyncio.all_tasks()
    }


async def _sleep(seconds: float) -> None:
    if sniffio.current_async_library() == "trio":
        import trio  # noqa: PLC0415 (a program on asyncio need not import it)

        await trio.sleep(seconds)
    else:
        import asyncio  # noqa: PLC0415 (the same)

        await asyncio.sleep(seconds)
