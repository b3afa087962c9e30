"""How large one element may be, judged by its bytes before they are read.

A few bytes of a peer can stand for many objects of Python: an empty list takes one or two bytes on
the wire and 56 in memory. Each serializer counts in its own way; that an element is neither sent
nor read, and what both sides are told, is the same for all.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Final

import attrs

from penstock.api import ProtocolError, UsageError, shown

MAX_VALUES: Final = 100_000
"""Values in one element. Python needs some 10 ms for 100,000 empty lists, and 0.3 to 2.5 s for
those that fit into 4 MiB.
"""


@attrs.frozen
class ElementBounds(ABC):
    """The bounds of the elements of a serializer. A subclass counts what `data` has, and may have
    more bounds, each a positive integer.
    """

    serializer: ClassVar[str]
    """The name of the serializer: ``json``."""

    more: ClassVar[str]
    """How a program allows more: ``JsonSerializer(max_values=…)``."""

    max_values: int = MAX_VALUES
    """The most values of one element."""

    def __attrs_post_init__(self) -> None:
        for name in attrs.asdict(self, filter=lambda field, _: field.type is int):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                called = self.more.partition("(")[0]
                raise UsageError(f"{called}({name}={shown(value)}); give a positive integer")

    @property
    def short(self) -> int:
        """The bytes up to which an element cannot be too large, and need not be judged."""
        return self.max_values

    @abstractmethod
    def why_too_large(self, data: bytes) -> str:
        """Return why an element may not be read, or an empty text. The time that this takes is
        bounded by the bounds, and by the length of `data` where a search in C is enough.
        """

    @property
    def too_many(self) -> str:
        """The words for an element with too many values."""
        return f"it has more than {self.max_values:,} values"

    def check_written(self, data: bytes) -> None:
        """Raise UsageError for an element that the peer would refuse."""
        if len(data) > self.short and (reason := self.why_too_large(data)):
            raise UsageError(
                f"the serializer {self.serializer!r} does not send this element: {reason}; send it "
                f"in parts, or give serializer={self.more} on both sides"
            )

    def check_received(self, data: bytes) -> None:
        """Raise ProtocolError for an element that would take too long to read."""
        if len(data) > self.short and (reason := self.why_too_large(data)):
            raise ProtocolError(
                f"the element was not read: {reason}; to allow more give serializer={self.more}"
            )
