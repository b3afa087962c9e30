"""An async iterable of asyncio as an iterator that a pump of trio pulls.

Rules of this file:

* One task of asyncio opens, pulls and closes the iterable, and does nothing else. It has a copy of
  the context variables of the stream that is pulled.
* It pulls what the pump has demand for, and no more: `take_ready` and `pull_ahead` tell how much.
* While it waits for demand, a call of the pump makes its next step at once (`Stepped`): a generator
  that need not wait costs no pass of either loop.
* After `TURN_SECONDS` other tasks get a turn, also if the iterable never waits.
* A stream that ends cancels the task once. That ends the iterable where it waits; one that is
  suspended at a `yield` is closed there, because the task waits for demand then. The pump waits for
  the end of the task, for at most the time for cleanup.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from time import monotonic
from typing import Any, Final, TypeVar

import trio

from penstock.api import BytesList, PublisherFailed, Subscriber, UsageError
from penstock.core import ParkedTask, Scope, SourceMemory
from penstock.guest._calls import explained, is_ending, runs_on
from penstock.guest._stepped import NEXT_STEP, Stepped
from penstock.reader import TURN_SECONDS
from penstock.streams import PulledSource, Source, Streamable, Wrap, as_source

T = TypeVar("T")

LONGEST_HELPING: Final = 32
"""Elements between two looks at the demand and at the clock, if they come fast. A look at the clock
for each takes 40 ns.
"""

TASK_BYTES: Final = 3 << 10
"""The price of a task of asyncio that waits in a generator, with its iterator in trio; that of the
task of trio is counted by its connection. Measured: 2,700 bytes of the process each, for 1,000.
"""


def from_asyncio(given: Streamable[T]) -> Source[T]:
    """Stream an async iterable of asyncio, or a function that returns an iterable, such as an
    async generator function: each stream has a task of asyncio.

    The source has all operators, and is for streams in a run of trio that is a guest of asyncio.
    Functions that are given to operators and are async run on trio. Other objects, such as sources,
    publishers, lists and channels of trio, are returned as `penstock.as_source` does.
    """
    source = as_source(given)
    is_pulled = (hasattr(given, "__aiter__") and not isinstance(given, Source)) or callable(given)
    if not is_pulled or isinstance(given, trio.MemoryReceiveChannel):
        return source
    return AsyncioSource(source) if isinstance(source, PulledSource) else source


class AsyncioSource(PulledSource[T]):
    """A source whose iterator runs in a task of asyncio."""

    __slots__ = ("_inner", "_wraps")

    def __init__(self, inner: PulledSource[Any], wraps: tuple[Wrap, ...] = ()) -> None:
        """`wraps` are for the iterator in trio."""
        self._inner = inner
        self._wraps = wraps

    @property
    def acts_at_once(self) -> bool:
        return self._inner.acts_at_once

    def wrapped(self, wrap: Wrap) -> PulledSource[Any]:
        return AsyncioSource(self._inner, (*self._wraps, wrap))

    def attach(self, subscriber: Subscriber[T], scope: Scope) -> None:
        # Only the scope knows for which peer a task is, and how long its cleanup may take.
        opened = partial(TaskIterator, cleanup_timeout=scope.cleanup_timeout, memory=scope.memory)
        source = self._inner.wrapped(opened)
        for wrap in self._wraps:
            source = source.wrapped(wrap)
        source.attach(subscriber, scope)

    def __repr__(self) -> str:
        return f"<source on asyncio of {self._inner!r}>"


class TaskIterator(AsyncIterator[T]):
    """Iterates, in a task of trio, over what a task of asyncio pulls."""

    __slots__ = (
        "_are_bytes",
        "_cleanup_timeout",
        "_error",
        "_has_ended_with_loop",
        "_is_closing",
        "_is_over",
        "_label",
        "_loop",
        "_memory",
        "_most",
        "_open",
        "_ready",
        "_task",
        "parked",
    )

    def __init__(
        self,
        open_iterator: Callable[[], AsyncIterator[T]],
        label: str,
        *,
        cleanup_timeout: float,
        memory: SourceMemory | None = None,
    ) -> None:
        """`memory` counts the task. Raises UsageError if no loop of asyncio runs."""
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError(
                f"{label} is a publisher for asyncio, and no loop of asyncio runs here; serve it "
                "with penstock.aio.serve, from a program on asyncio"
            ) from None
        self._open = open_iterator
        self._label = label
        self._cleanup_timeout = cleanup_timeout
        self._memory = memory
        self._ready: list[T] = []
        self._are_bytes = True  # all that are ready
        self._most = 0  # elements that may be ready; 0 at the end too
        self.parked: ParkedTask = ParkedTask()
        """Where the task of trio waits: for demand, for an element, or for the end."""
        self._is_closing = False
        self._is_over = False
        self._error: Exception | None = None
        self._has_ended_with_loop = False  # all tasks were cancelled at once
        self._task: Stepped | None = None

    # --- for the pump, in a task of trio

    def take_ready(self, most: int, /) -> Sequence[T]:
        """Return up to `most` elements that were pulled. As many as are missing may be pulled."""
        ready = self._ready
        if not ready:
            self._most = most
            return ()
        taken: Sequence[Any] = ready[:most]
        del ready[:most]
        if self._are_bytes:
            # The pump and the stream to the peer would examine the type of each element again.
            taken = BytesList(taken)
        elif not ready:
            self._are_bytes = True
        self._most = most - len(taken)
        return taken

    def pull_ahead(self, n: int, /) -> bool:
        """Pull `n` elements more, in a step of the task of asyncio. Return False if the pump has to
        be woken: elements wait already, or the task does not exist.
        """
        if self._task is None or self._ready or self._is_over or self._is_closing:
            return False
        self._most += n
        self._task.step()
        if self._ready and self.parked.task is not None:
            self.parked.wake()
        return True

    async def __anext__(self) -> T:
        while not self._ready:
            if not await self.wait_ready():
                raise StopAsyncIteration
        return self._ready.pop(0)

    async def wait_ready(self) -> bool:
        """Wait until there may be elements. Return False at the end; raises its failure."""
        if not self._ready and not self._is_over:
            self._most = max(1, self._most)
            if self._task is None:
                self._task = Stepped(
                    self._pull_all(), f"penstock publisher {self._label}", self._on_pause
                )
                self._task.task.add_done_callback(self._on_done)
                if self._memory is not None:
                    self._memory.change(TASK_BYTES)
            else:
                self._task.step()
            if not self._ready and not self._is_over:
                await self.parked.park()
        if self._ready or not self._is_over:
            return True
        error, self._error = self._error, None
        if error is not None:
            if self._has_ended_with_loop:
                # The server is about to be cancelled as well: the stream ends with it.
                await trio.sleep(self._cleanup_timeout)
            raise error
        return False

    async def aclose(self) -> None:
        """End the task, and return when it has ended. Raises what its cleanup raises, and
        CleanupTimeout if it does not end.
        """
        task = self._task
        if task is None or self._is_over:
            return
        self._is_closing = True
        self._ready.clear()
        self._most = 0
        # Where it waits for demand, it closes the iterable; where the iterable waits, that ends.
        task.task.cancel()
        # Shielded: nothing that this stream has begun may run on after it.
        with trio.move_on_after(self._cleanup_timeout, shield=True) as scope:
            while not self._is_over:
                await self.parked.park()
        if scope.cancelled_caught:
            self._is_over = True  # for this stream
            task.task.cancel()
            raise runs_on(self._label, self._cleanup_timeout)
        if self._error is not None:
            raise self._error

    # --- the task of asyncio

    async def _pull_all(self) -> None:
        iterator = self._open()
        try:
            await self._pull(iterator)
        finally:
            aclose: Any = getattr(iterator, "aclose", None)
            if aclose is not None:
                await _closed(aclose)

    async def _pull(self, iterator: AsyncIterator[T]) -> None:
        ready, ends, left = self._ready, monotonic() + TURN_SECONDS, 1
        helping = 1  # elements between two looks at the demand and at the clock
        # The path of each element.
        async for element in iterator:
            ready.append(element)
            if type(element) is not bytes:
                self._are_bytes = False
                if type(element) in _BUFFERS:
                    ready[-1] = _copied(element)
            left -= 1
            if left:
                continue
            is_slow = monotonic() >= ends
            helping = 1 if is_slow else min(2 * helping, LONGEST_HELPING)
            if is_slow or len(ready) >= self._most:
                if len(ready) < self._most:
                    await asyncio.sleep(0)
                # The way of each pull: one coroutine more takes as long as twenty elements.
                while len(ready) >= self._most:
                    if self._is_closing:
                        return
                    try:
                        await NEXT_STEP
                    except asyncio.CancelledError as cancelled:
                        try:
                            await self._throw(cancelled, iterator)
                        except StopAsyncIteration:
                            return
                ends = monotonic() + TURN_SECONDS
            left = min(helping, self._most - len(ready))

    async def _throw(self, cancelled: asyncio.CancelledError, iterator: AsyncIterator[T]) -> None:
        """Let the iterable handle a cancellation that has come at its `yield`. Raises
        StopAsyncIteration if it ends.
        """
        # A timeout or a group that the generator holds open over its `yield` cancels the task here:
        # the cancellation belongs to the generator.
        athrow: Any = getattr(iterator, "athrow", None)
        if athrow is None or self._is_closing:
            raise cancelled
        self._ready.append(await athrow(cancelled))
        self._are_bytes = False  # it may be anything

    def _on_pause(self) -> None:
        """Let the pump take what was pulled: the task waits."""
        if self._ready and self.parked.task is not None:
            self.parked.wake()

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._is_over = True
        if self._memory is not None:
            self._memory.change(-TASK_BYTES)
        if task.cancelled():
            if not self._is_closing:
                self._error = PublisherFailed(
                    f"{self._label} ended with CancelledError, and no one had cancelled it"
                )
                self._has_ended_with_loop = is_ending(self._loop)
        elif (error := task.exception()) is not None:
            self._error = explained(error, self._label)
        self.parked.wake()


_BUFFERS: Final[frozenset[Any]] = frozenset({bytearray, memoryview})


def _copied(buffer: Any) -> Any:
    """Return a copy: the generator may fill its buffer again for the next element, before the pump
    has signalled this one.
    """
    return bytearray(buffer) if isinstance(buffer, bytearray) else memoryview(bytes(buffer))


async def _closed(aclose: Callable[[], Awaitable[None]]) -> None:
    """Close a generator. A group around its `yield` puts even the GeneratorExit into a group."""
    try:
        await aclose()
    except BaseExceptionGroup as group:
        rest = group.split(GeneratorExit)[1]
        if rest is not None:
            raise rest from None
