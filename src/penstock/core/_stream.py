"""A stream is the consumer's end: a subscriber that one task of trio reads with `async for`, by
element or by batch.

`penstock.reader` decides what a stream holds, and when it requests more. Rules of this file:

* Reading checkpoints when it must wait, once a slice, and every `TURN_SECONDS`: a stream that is
  always full cannot starve other tasks.
* If the end arrived with the last slice, it is raised without a further checkpoint. Otherwise a
  stream of one element would pay for two. The slice is dropped with that, so the next read
  checkpoints. A reader that is cancelled gets no failure.
"""

from collections.abc import AsyncIterator, Callable
from operator import length_hint
from time import monotonic
from typing import Any, Final, TypeVar

import trio

from penstock.api import StreamState, UsageError
from penstock.core._in_trio import check_in_trio
from penstock.core._parked_task import WOKEN
from penstock.reader import NO_SLICE, StreamBuffer

T = TypeVar("T")
R = TypeVar("R")

_now = monotonic

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_OPEN: Final = StreamState.OPEN
_FAILED: Final = StreamState.FAILED


class Stream(StreamBuffer[T], AsyncIterator[T]):
    """The elements of one subscription, for one reading task.

    Iterate over it, or over `batches()`. A publisher's failure is raised from there, and completion
    ends the loop.
    """

    __slots__ = ()

    def __aiter__(self) -> "Stream[T]":
        return self

    async def __anext__(self) -> T:
        """Return the next element. Checkpoints when it must wait, once a slice, and every 5 ms.

        If the stream has ended when the last slice is read within its turn, the end is raised
        without a checkpoint, once; a failure only if the reader is not cancelled.
        """
        if _now() < self._turn_ends:
            # One step of the iterator: cheaper than next() and an exception.
            for element in self._slice:
                return element
            if self._state is not _OPEN and not self._arrived and self._slice is not NO_SLICE:
                if self._state is _FAILED:
                    # A scope around the connection that is cancelled closes it. The reader is to
                    # see its own cancellation, and not what follows from it.
                    await trio.lowlevel.checkpoint_if_cancelled()
                raise self._ending()
        await self._wait_readable()
        if not self._take_slice():
            raise self._ending()
        return next(self._slice)

    def batches(self) -> AsyncIterator[list[T]]:
        """Iterate over lists of all elements that have arrived, never empty. The fastest way to
        read. Checkpoints once a batch.

        Over a connection and with a serializer a list has up to 256 elements: they are loaded when
        they are taken.
        """
        return _Batches(self)

    @property
    def has_just_waited(self) -> bool:
        """True if the reader of this stream let other tasks run within the last 5 ms."""
        return self._turn_ends > _now()

    # --- inside

    async def _read(self, take: Callable[[], R]) -> R:
        """Return what `take` returns, which is not empty. Checkpoints. Raises the end."""
        await self._wait_readable()
        # There is no checkpoint from here to the return. So a cancelled read has taken nothing, and
        # no element is lost.
        taken = take()
        if not taken:
            raise self._ending()
        return taken

    async def _wait_readable(self) -> None:
        """Checkpoint, and return when there is an element to read.
        If there will be none, raise what ended the stream.
        """
        try:
            if not self._arrived and not length_hint(self._slice):
                self._renew()
            if self._arrived or self._state is not _OPEN or length_hint(self._slice):
                await trio.lowlevel.checkpoint()
            elif self._reader is not None:
                raise _second_reader()
            else:
                self._reader = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._give_up)
        # Of trio, outside of trio: a task of asyncio reads, and trio runs there as a guest.
        except RuntimeError:
            check_in_trio("reading a stream")
            raise
        # Asked again: cancel() may have dropped the elements during the checkpoint.
        if not self._arrived and not length_hint(self._slice):
            raise self._ending()

    def _wake_reader(self) -> None:
        """Let the task that waits go on in the next scheduler pass."""
        # First reschedule, then forget. From a foreign thread reschedule() raises, and then the
        # task must still be known here: otherwise no later call could wake it.
        trio.lowlevel.reschedule(self._reader, WOKEN)
        self._reader = None

    def _give_up(self, _: Any) -> trio.lowlevel.Abort:
        self._reader = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _ending(self) -> BaseException:
        """Return the exception that tells the reader why there is no element."""
        if self._state is _OPEN:
            return (
                _second_reader()
            )  # another reader has taken the element for which this one was woken
        failure = self._take_failure()
        return StopAsyncIteration() if failure is None else failure


class _Batches(AsyncIterator[list[T]]):
    """The same stream, read by batch.
    (Not an async generator: one that is left early would have to be closed.)
    """

    __slots__ = ("_stream",)

    def __init__(self, stream: Stream[T]) -> None:
        self._stream = stream

    async def __anext__(self) -> list[T]:
        return await self._stream._read(self._stream._take_batch)  # noqa: SLF001  # the two are one idea in one file


def _second_reader() -> UsageError:
    return UsageError(
        "two tasks read this stream at once; one subscription has one reader. "
        "Subscribe twice, or hand on the elements through a memory channel"
    )
