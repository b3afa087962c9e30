"""The memory of the sources and operators of one peer: bytes that were read for it, and were not
signalled yet.

A source asks its scope for this object, because the scope is what all parts of a pipe share. So the
bytes count for the right peer, with any operators between the source and the peer.
"""

import sys
from collections.abc import Callable, Hashable, Iterable


class SourceMemory:
    """The account of one peer."""

    __slots__ = ("_note_bytes", "held", "owner")

    def __init__(self, owner: Hashable, note_bytes: Callable[[int], None] | None) -> None:
        """`note_bytes` tells the memory budget, if there is one, of bytes that were read."""
        self.owner: Hashable = owner
        """Equal for all streams of one peer. Peers take turns where sources have to wait."""
        self.held: int = 0
        """Bytes that the sources hold now."""
        self._note_bytes = note_bytes

    def change(self, size: int) -> None:
        """Count `size` bytes more, or fewer if it is negative."""
        self.held += size
        # Last: the budget may close the connection, which closes the sources.
        if size > 0 and self._note_bytes is not None:
            self._note_bytes(size)


def bytes_of(element: object) -> int:
    """Return the bytes of an element. Of an object that is not bytes only its own: to follow what
    it refers to would cost more than to pass it on.
    """
    return len(element) if isinstance(element, bytes) else sys.getsizeof(element)


class HeldBytes:
    """The bytes that one operator holds, as a part of the memory of a peer."""

    __slots__ = ("_counted", "_memory")

    def __init__(self, memory: SourceMemory) -> None:
        self._memory = memory
        self._counted = 0

    def add(self, element: object) -> None:
        """Count an element that is held now. The last step of a signal: the budget may close the
        connection, which cancels the operator.
        """
        size = bytes_of(element)
        self._counted += size
        self._memory.change(size)

    def take(self, elements: Iterable[object]) -> None:
        """Count elements no more. One may have changed its size meanwhile."""
        self._forget(min(sum(map(bytes_of, elements)), self._counted))

    def clear(self) -> None:
        """Count nothing any more."""
        self._forget(self._counted)

    def _forget(self, size: int) -> None:
        if size:
            self._counted -= size
            self._memory.change(-size)


def held_bytes(memory: SourceMemory | None) -> HeldBytes | None:
    """Return a new count in the memory of a peer; None without one."""
    return None if memory is None else HeldBytes(memory)
