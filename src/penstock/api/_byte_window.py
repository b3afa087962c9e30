"""How many elements a stream may ask a peer for, by the bytes of those that have come.

Demand counts elements, and their size is the peer's choice: 256 elements of 4 MiB are a GiB. So the
reader of a stream asks for a few elements first, and then for as many as fit into its window by
their size so far.

Rules of this file:

* The side that receives adds to `received`. The reader calls `demand` each time that it may ask for
  more, and asks for no more than that.
* The reader calls `demand` also when `received` has reached `due`. Elements may have become large
  when many were asked for, and those that it has read would count as unread until it may ask for
  more.
* The size grows with the largest average at once, and shrinks by a quarter of the difference:
  elements that become large matter at once.
* All windows of a connection share its budget.
  A window gets what the others leave, or an equal share if that is more.
"""

from typing import Any, Final

FIRST_DEMAND: Final = 8
"""Elements that a stream asks for while it knows no size: few if they are large, and a whole
short stream if they are small.
"""

CHECK_BYTES: Final = 1 << 20
"""Bytes of input between two looks at the windows of a connection."""


class SharedBytes:
    """The windows of one connection, and the bytes that all of them may hold."""

    __slots__ = ("fed", "most", "promised", "windows")

    def __init__(self, most: int) -> None:
        self.most: int = most
        self.fed: int = 0
        """Bytes of input since the last look."""
        self.promised: float = 0.0
        """Bytes that the streams have asked for, by the sizes that they have seen."""
        # Any: the streams lie above this layer.
        self.windows: dict[ByteWindow, Any] = {}
        """The window of each stream that counts its bytes, and the stream."""

    def add(self, window: "ByteWindow", stream: object) -> None:
        """Count what `window` holds from now on; `stream` is what ends if it is too much."""
        window.move_to(self)
        self.windows[window] = stream

    def remove(self, window: "ByteWindow", stream: object) -> None:
        """Stop counting `window`, unless another stream has it by now."""
        if self.windows.get(window) is stream:
            del self.windows[window]
            window.move_to(None)

    def largest(self) -> tuple[Any, int] | None:
        """Return the stream that holds most, and the bytes of all together, if
        that is more than all may hold.
        """
        self.fed = 0
        unread = sum(window.unread for window in self.windows)
        if unread <= self.most:
            return None
        return self.windows[max(self.windows, key=lambda window: window.unread)], unread


class ByteWindow:
    """The bytes of one subscription:
    counted where its elements are received, bounded where they are read.
    """

    __slots__ = (
        "_buffered",
        "_elements",
        "_known",
        "_promised",
        "_read",
        "_shared",
        "_size",
        "due",
        "first",
        "most",
        "received",
    )

    def __init__(self, most: int, largest: int) -> None:
        """`most` bytes may be asked for and unread at a time; an element may have `largest`."""
        self.most: int = most
        # 8 elements of 4 MiB are twice the default window: that is the price of one round trip for
        # short streams of small elements.
        self.first: int = max(1, min(FIRST_DEMAND, 2 * most // largest))
        """Elements to ask for while no size is known."""
        self.received: int = 0
        """Bytes of all elements that were received."""
        self.due: int = most
        """The number of received bytes at which the reader calls `demand`, also
        if it may not ask for more.
        """
        self._read = 0
        self._known = 0  # bytes of the elements that `_size` was computed from
        self._elements = 0  # the number of those elements
        self._buffered = 0  # elements that were unread then
        self._size = 0.0
        self._promised = 0.0
        self._shared: SharedBytes | None = None

    @property
    def unread(self) -> int:
        """Bytes that the reader held at its last call of `demand`, and those
        that were received since.
        """
        return self.received - self._read

    def demand(self, most: int, elements: int, unread: int) -> int:
        """Return how many elements, up to `most`, may be asked for and unread at a time.

        `elements` were received in all, of which the reader has not taken `unread`.
        """
        self._measure(elements, unread)
        if elements < self.first:
            return min(most, self.first)
        size = self._size
        if not size:
            return most
        room, shared = float(self.most), self._shared
        if shared is not None:
            others = shared.promised - self._promised
            room = min(room, max(shared.most - others, shared.most / (len(shared.windows) or 1)))
        limit = max(1, min(most, int(room / size)))
        self._promise(limit * size)
        return limit

    def move_to(self, shared: SharedBytes | None) -> None:
        """Belong to another connection from now on, or to none."""
        promised = self._promised
        self._promise(0.0)
        self._shared = shared
        self._promise(promised)

    def _measure(self, elements: int, unread: int) -> None:
        new, bytes_now = elements - self._elements, self.received
        if new:
            average = (bytes_now - self._known) / new
            self._size = average if average > self._size else (3 * self._size + average) / 4
        # The sizes of single elements are not kept. The unread elements have their share, by
        # number, of the bytes unread then or since.
        held = (bytes_now - self._read) * unread / (self._buffered + new) if unread else 0
        self._read = max(self._read, bytes_now - int(held))
        self._known, self._elements, self._buffered = bytes_now, elements, unread
        shared = self._shared
        # All windows together count no more than a quarter of the budget as unread
        # that their readers have read.
        self.due = bytes_now + min(
            self.most,
            self.most if shared is None else shared.most // (4 * (len(shared.windows) or 1)),
        )

    def _promise(self, promised: float) -> None:
        if self._shared is not None:
            self._shared.promised += promised - self._promised
        self._promised = promised
