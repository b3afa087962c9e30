"""Iterators that may have several elements at hand: collections and memory channels.
A pump hands these over with one call.

Rules of this file:

* `take_ready` never waits, and returns no more elements than were requested.
* A lazy iterable has no elements at hand:
  to take them ahead would run its code for elements that a cancel makes superfluous.
* Subscribers of one memory channel share its elements.
  Each takes its share of those that wait, and then lets the others run.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from itertools import takewhile
from typing import Final, Protocol, TypeVar

import trio

from penstock.api import BytesList

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

COLLECTIONS: Final = frozenset({list, tuple, range})
"""The types whose slices are elements at hand.
Their subclasses may compute elements, so they are walked one by one.
"""


_NONE: Final = type(None)


def before_none(elements: Sequence[T]) -> Sequence[T]:
    """Return the elements in front of the first None; all of them if None is not there."""
    kind: type = type(elements)  # by itself, so that the type of the result does not change
    if kind is BytesList:
        return elements
    # By type and in C. `None in elements` would call `__eq__` of each,
    # which some objects answer with an array.
    if _NONE not in set(map(type, elements)):
        return elements
    return list(takewhile(lambda element: element is not None, elements))


class ReadyElements(Protocol[T_co]):
    """An async iterator that may have several elements at hand."""

    def take_ready(self, most: int, /) -> Sequence[T_co]:
        """Return up to `most` elements that are there now; none if the next element must be
        awaited, or the end has come.
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
