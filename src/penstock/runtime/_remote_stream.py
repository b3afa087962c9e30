"""A remote stream: the consumer's end of a stream that comes over a connection; it also knows elements of fixed size as packed memory.

Rules of this file:

* Packed elements stay packed until somebody reads them one by one: read as `buffers()`, they are never taken apart.
"""

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from penstock.api import UsageError
from penstock.core import Stream

T = TypeVar("T")


class RemoteStream(Stream[T]):
    """The elements of one subscription to a peer's publisher."""

    __slots__ = ("_element_size", "_loads", "_packed", "_packed_bytes")

    def __init__(self, *, demand: int) -> None:
        super().__init__(demand=demand)
        self._element_size = 0
        self._packed: list[bytes] | None = None
        self._packed_bytes = 0

    @property
    def element_size(self) -> int:
        """The size of every element in bytes, or 0 where it differs; known with the first element."""
        return self._element_size

    def buffers(self) -> AsyncIterator[bytes]:
        """Iterate over packed elements as memory: each time all that is there now, a whole number of elements, and never empty.

        Only a publisher with a fixed ``element_size`` sends packed elements; others raise UsageError. Checkpoints once a piece.
        """
        return _Buffers(self)
