"""A stream whose elements have positions."""

from typing import TypeVar

from penstock.api import Positions
from penstock.core._stream import Stream

T = TypeVar("T")


class PositionedStream(Stream[T]):
    """A stream that knows the position of its next element, if its publisher has positions."""

    # A separate class: most streams have no positions, and a server may hold 100,000 of them.
    # The slot is empty until a fact comes:
    # a constructor would cost each stream over a network a call.
    __slots__ = ("_first",)

    _first: int

    @property
    def position(self) -> int | None:
        """The position of the element that the reader gets next; None if the publisher has no
        positions, or they are not known yet.

        Store it with the results of the elements before,
        and subscribe with it as ``start`` to go on.
        """
        first: int | None = getattr(self, "_first", None)
        return None if first is None else first + self.statistics().taken

    def on_fact(self, fact: object, /) -> None:
        """Learn where the elements that follow begin."""
        if isinstance(fact, Positions):
            # Elements may have come before the fact, so this is counted back to the first element
            # of the stream.
            self._first = fact.first - self.statistics().received
