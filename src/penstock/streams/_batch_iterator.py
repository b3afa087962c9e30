"""`BatchIterator`: the elements of an iterator of lists.
The elements of the present list are at hand.

Rules of this file:

* One list is held at a time. The next one is pulled when its elements have all been taken, so a
  generator that waits at a `yield` goes on when there is demand for more than it has handed over.
* Elements are taken as copies of parts of the list: the generator may fill the same list again.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar, cast

import trio

from penstock.api import BytesList, UsageError, shown

T = TypeVar("T")


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
        # A text or bytes are sequences, too.
        # To stream their characters or numbers is not what the program means.
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
