"""The memory of the sources of one peer: bytes that were read for it and not signalled yet.

A source asks its scope for this object, because the scope is what all parts of a pipe share. So the
bytes count for the right peer, with any operators between the source and the peer.
"""

from collections.abc import Callable, Hashable


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
