"""A run is elements of a stream that have one length and go out together, one header being repeated before each.

The stream's publisher puts them there itself, if it is a pump: so they are counted when the run is looked at, not when they come.
"""


class ElementRun:
    """Elements of one length."""

    __slots__ = ("counted", "elements", "length")

    def __init__(self, first: bytes) -> None:
        self.elements: list[bytes] = [first]
        self.length: int = len(first)
        """The length of each; -1 once no more may be put here."""
        self.counted: int = 0
        """How many of them have been taken from what their stream has reserved."""
