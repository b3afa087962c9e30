"""Iterators that may have several elements at hand: those of collections, of memory channels and of
lists that a generator yields. A pump hands these elements over with one call (`ReadyElements`).

Rules of this file:

* `take_ready` never waits, and returns no more elements than were requested.
* A lazy iterable has no elements at hand: to take them ahead would run its code for elements that a
  cancel makes superfluous.
* Subscribers of one memory channel share its elements. Each takes its share of those that wait, and
  then lets the others run.
* A `BatchIterator` holds one list at a time. The next one is pulled when its elements have all been
  taken, so a generator that waits at a `yield` goes on when there is demand for more than it has
  handed over. Elements are taken as copies of parts of the list: the generator may fill the same
  list again.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any, Final, TypeVar, cast

import trio

from penstock.api import BytesList, UsageError, shown

T = TypeVar("T")

COLLECTIONS: Final = frozenset({list, tuple, range})
"""The types whose slices are elements at hand.
Their subclasses may compute elements, so they are walked one by one.
"""


class CollectionIterator(AsyncIterator[T]):
    """Iterates over a list, a tuple or a range; either with `take_ready`, or one by one."""

    __slots__ = ("_collection", "_position", "_single")

    def __init__(self, collection: Sequence[T]) -> None:
        self._collection = collection
        self._position = 0
        self._single: AsyncGenerator[T, None] | None = None

    def take_ready(self, most: int, /) -> Sequence[T]:
        """Return the next elements."""
        taken = self._collection[self._position : self._position + most]
        self._position += len(taken)
        return taken

    def __aiter__(self) -> AsyncIterator[T]:  # noqa: PYI034  # the generator below
        # A generator: to step through one costs half as much as a coroutine for each element. Made
        # once, as each burst comes here.
        if self._single is None:
            self._single = self._walk()
        return self._single

    async def __anext__(self) -> T:
        return await anext(aiter(self))

    async def aclose(self) -> None:
        """Close the generator."""
        if self._single is not None:
            await self._single.aclose()

    async def _walk(self) -> AsyncGenerator[T, None]:
        # From the same position as `take_ready`: a pump uses both in turn on one collection.
        while taken := self.take_ready(1):
            yield taken[0]


class ChannelIterator(AsyncIterator[T]):
    """Receives from a memory channel that it owns: `aclose` closes it."""

    __slots__ = ("_channel", "_has_waited")

    def __init__(self, channel: "trio.MemoryReceiveChannel[T]") -> None:
        self._channel = channel
        self._has_waited = False  # other receivers could run since the last `take_ready`

    def take_ready(self, most: int, /) -> Sequence[T]:
        """Return this receiver's share of the elements that wait;
        none if it was the last one that received.
        """
        taken: list[T] = []
        if self._has_waited:
            self._has_waited = False
            now = self._channel.statistics()
            # With the elements of tasks that wait to send: `receive_nowait` takes these as well,
            # and lets such a task go on.
            share = (now.current_buffer_used + now.tasks_waiting_send) // now.open_receive_channels
            try:
                while len(taken) < min(most, share):
                    taken.append(self._channel.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                pass  # a task that waited to send was cancelled meanwhile
        return taken

    async def __anext__(self) -> T:
        self._has_waited = True
        return await self._channel.__anext__()

    async def aclose(self) -> None:
        """Close the channel."""
        await self._channel.aclose()


class BatchIterator(AsyncIterator[T]):
    """Iterates over the elements of the lists of another iterator."""

    __slots__ = ("_batch", "_batches", "_label", "_position")

    def __init__(self, open_batches: Callable[[], AsyncIterator[Any]], label: str) -> None:
        self._batches: Any = open_batches()
        self._label = label
        self._batch: Sequence[T] = ()
        self._position = 0  # of the next element in the batch

    def take_ready(self, most: int, /) -> Sequence[T]:
        """Return up to `most` of the elements that are left of the present batch."""
        taken = self._batch[self._position : self._position + most]
        self._position += len(taken)
        # The slice of a subclass of list is a list.
        return (
            cast("Sequence[T]", BytesList(cast("list[bytes]", taken)))
            if type(self._batch) is BytesList
            else taken
        )

    async def __anext__(self) -> T:
        while self._position >= len(self._batch):
            self._begin(await anext(self._batches))
            if not self._batch:
                # A generator of empty lists alone must not starve other tasks.
                await trio.lowlevel.checkpoint()
        self._position += 1
        return self._batch[self._position - 1]

    # --- for the pump, which treats this as the iterator inside

    @property
    def ag_running(self) -> bool:
        """Whether the generator of the batches runs or waits, and is not suspended at a `yield`."""
        return bool(getattr(self._batches, "ag_running", False))

    async def athrow(self, error: BaseException) -> T:
        """Throw `error` into the generator, and return the first element of the list
        that it yields in answer.
        """
        athrow = getattr(self._batches, "athrow", None)
        # Only a generator could handle it. The stream fails with it.
        if athrow is None:
            raise error
        self._begin(await athrow(error))
        return await anext(self)

    async def aclose(self) -> None:
        """Close the iterator of the batches."""
        # The program may keep the iterator, and that must not keep the elements.
        self._batch = ()
        aclose = getattr(self._batches, "aclose", None)
        if aclose is not None:
            await aclose()

    def _begin(self, batch: Any) -> None:
        # A text or bytes are also sequences. To stream their characters or numbers is not what the
        # program means.
        if not isinstance(batch, Sequence) or isinstance(
            batch, str | bytes | bytearray | memoryview
        ):
            raise UsageError(
                f"{self._label} yielded {shown(batch)}, and from_batches() streams the elements of "
                "lists: yield a list or a tuple"
            )
        # The slices of other sequences may be of any type.
        self._batch = cast(
            "Sequence[T]", batch if isinstance(batch, list | tuple | range) else tuple(batch)
        )
        self._position = 0
