"""Elements in the memory in which they arrived. An element becomes an object when it is asked for.

To cut 1,024 elements of 32 bytes out as objects takes 100 ns for each, and to free them 20. A
reader that makes columns of them needs none.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import itemgetter
from struct import iter_unpack
from typing import Any, Final

_FIRST: Final = itemgetter(0)


class EqualRun(Sequence[bytes]):
    """Elements of one length, each after a header. The headers also have one length.

    Element `n` has the bytes from ``n * stride + head`` up to, and not with,
    ``(n + 1) * stride`` of `data`.
    """

    __slots__ = ("data", "head", "stride")

    def __init__(self, data: bytes, head: int, stride: int) -> None:
        self.data: bytes = data
        """The elements and their headers, and nothing else."""
        self.head: int = head
        """Bytes of a header."""
        self.stride: int = stride
        """Bytes of a header and an element; at least 1."""

    @property
    def size(self) -> int:
        """Bytes of the elements."""
        return len(self) * (self.stride - self.head)

    def __len__(self) -> int:
        return len(self.data) // self.stride

    def __getitem__(self, index: Any) -> Any:
        places = range(0, len(self.data), self.stride)[index]
        if isinstance(places, range):
            return [self.data[place + self.head : place + self.stride] for place in places]
        return self.data[places + self.head : places + self.stride]

    def __iter__(self) -> Iterator[bytes]:
        # `{head}x` skips the header in C. A list of slices takes twice as long.
        return map(_FIRST, iter_unpack(f"{self.head}x{self.stride - self.head}s", self.data))

    def __repr__(self) -> str:
        return f"<run of {len(self):,} elements of {self.stride - self.head} bytes>"


class ShortRun(Sequence[bytes]):
    """Elements of at most 127 bytes, each after one byte with its length."""

    __slots__ = ("data", "lengths")

    def __init__(self, data: bytes, lengths: bytes) -> None:
        self.data: bytes = data
        """The elements, each after a byte, and nothing else."""
        self.lengths: bytes = lengths
        """A byte for each element: the length of the element, and 1 for the byte before it."""

    @property
    def size(self) -> int:
        """Bytes of the elements."""
        return len(self.data) - len(self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [*self][index]
        place = range(len(self.lengths))[index]
        # In C. A run has up to 1,024 elements, and a list of them all would take a hundred times as
        # long.
        begin = (
            sum(self.lengths[:place])
            if 2 * place < len(self.lengths)
            else len(self.data) - sum(self.lengths[place:])
        )
        return self.data[begin + 1 : begin + self.lengths[place]]

    def __iter__(self) -> Iterator[bytes]:
        data, begin = self.data, 0
        for end in accumulate(self.lengths):
            yield data[begin + 1 : end]
            begin = end

    def __reversed__(self) -> Iterator[bytes]:
        return iter([*self][::-1])

    def __repr__(self) -> str:
        return f"<run of {len(self):,} elements>"
