"""Elements of one stream that go out together, each after its own header.
The headers are made when the run is sent.

The publisher's pump appends elements to the run itself, without a call. So the stream counts and
weighs them when it looks at the run.

A run accepts elements that are not much longer than those before. The publisher was asked for as
many elements as fill the outbox's room if they have the expected length. Longer ones would fill it
several times before the stream looks at the run; so they are signalled with a call, and the stream
weighs them at once.
"""

from collections.abc import Sequence
from typing import Final

from penstock.session._prices import OBJECT_BYTES

CLOSED: Final = -1
"""The longest element that a closed run accepts: no element is that short."""


class ElementRun:
    """Elements of one stream, of any lengths."""

    __slots__ = ("counted", "elements", "longest", "weighed")

    def __init__(self, first: bytes, longest: int) -> None:
        # A list and not a deque or bytearray: the pump appends without a call of this class, and
        # join() takes the list at once.
        self.elements: list[bytes] = [first]
        self.longest: int = longest
        """The length of the longest element that may be appended; `CLOSED` if none may."""
        self.counted: int = 0
        """How many of the elements the stream has counted."""
        self.weighed: int = 0
        """Bytes of the counted elements."""

    def count(self) -> int:
        """Count and weigh the elements that were appended since the last call.
        Return how many they are.
        """
        new = len(self.elements) - self.counted
        if new:
            # The first count of a run needs no slice.
            self.weighed += sum(
                map(len, self.elements[self.counted :] if self.counted else self.elements)
            )
            self.counted += new
        return new

    def add(self, elements: Sequence[bytes], weight: int) -> None:
        """Append elements of `weight` bytes, counted and weighed.
        All those before them are counted.
        """
        self.elements += elements
        self.counted += len(elements)
        self.weighed += weight

    @property
    def size(self) -> int:
        """Bytes of the elements and of their objects."""
        return sum(map(len, self.elements)) + len(self.elements) * OBJECT_BYTES
