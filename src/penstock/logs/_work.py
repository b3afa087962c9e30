"""The changes of a log as values: elements to append, an acknowledgement, a transaction. A log
applies one after the other.
"""

from typing import Final, NamedTuple, TypeAlias

MOST_TRANSACTIONS: Final = 65_536
"""Ids of published transactions that a log remembers. At one a second they last for 18 hours."""


class Append(NamedTuple):
    """Elements for one partition; `size` is the sum of their lengths."""

    partition: int
    elements: tuple[bytes, ...]
    size: int


class Publish(NamedTuple):
    """Elements for several partitions, unless a transaction with this id has been published."""

    transaction_id: str
    appends: tuple[Append, ...]


class Acknowledge(NamedTuple):
    """The new acknowledged position of each named partition."""

    positions: dict[int, int]


Work: TypeAlias = Append | Publish | Acknowledge

Result: TypeAlias = range | bool | None
"""The positions of an Append; for a Publish whether it was the first one;
None for an Acknowledge.
"""


class PartitionState(NamedTuple):
    """One partition at one moment.
    `acknowledged` has the bounds of the last two acknowledged ranges.
    """

    earliest: int = 0
    latest: int = 0
    size: int = 0
    acknowledged: tuple[int, int, int] = (0, 0, 0)

    @property
    def floor(self) -> int:
        """The position where the last two acknowledged ranges begin."""
        return self.acknowledged[0]

    @property
    def kept(self) -> tuple[int, tuple[int, int, int]]:
        """The part of the state that a log on disk has to store,
        because it cannot be computed from the groups.
        """
        return self.earliest, self.acknowledged

    def appended(self, count: int, size: int) -> "PartitionState":
        """Return the state with `count` elements more."""
        return self._replace(latest=self.latest + count, size=self.size + size)

    def dropped(self, end: int, size: int) -> "PartitionState":
        """Return the state without the elements before `end`, which have `size` bytes."""
        return self._replace(earliest=end, size=self.size - size)

    def with_acknowledged(self, position: int) -> "PartitionState":
        """Return the state after `position` was acknowledged.
        One that is not beyond the last one changes nothing.
        """
        if position <= self.acknowledged[2]:
            return self
        return self._replace(acknowledged=(*self.acknowledged[1:], position))


def works_appends(work: Work) -> tuple[Append, ...]:
    """Return the elements that a piece of work brings."""
    if isinstance(work, Append):
        return (work,)
    return work.appends if isinstance(work, Publish) else ()
