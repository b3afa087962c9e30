"""Elements of one length that go out together, the same header before each.

The publisher's pump appends elements to the run itself, without a call. So the stream counts them when it looks at the run.
"""


class ElementRun:
    """Elements of one length of one stream."""

    __slots__ = ("counted", "elements", "length")

    def __init__(self, first: bytes) -> None:
        # A list and not a deque or bytearray: the pump appends without a call of this class, and join() takes the list at once.
        self.elements: list[bytes] = [first]
        self.length: int = len(first)
        """The length of each. -1 closes the run: nothing more may be appended."""
        self.counted: int = 0
        """How many of the elements the stream has committed in its ledger."""

    @property
    def size(self) -> int:
        """Bytes of the elements."""
        return sum(map(len, self.elements))
