"""The changes of a log as values: elements to append, an acknowledgement, a transaction, elements
that are staged for one. A log applies one after the other.
"""

from typing import Final, NamedTuple, TypeAlias

from penstock.api import LogDamaged

NO_READERS: Final = -1
"""`PartitionState.held` of a log without readers."""

NOBODY: Final = 2**62
"""`PartitionState.held` of a partition from which all readers were dropped: above each position."""

MOST_TRANSACTIONS: Final = 65_536
"""Ids of published transactions that a log remembers. At one a second they last for 18 hours."""


class Append(NamedTuple):
    """Elements for one partition; `size` is the sum of their lengths."""

    partition: int
    elements: tuple[bytes, ...]
    size: int


class Staged(NamedTuple):
    """Elements that a log has staged under a number, and the partition that they go to."""

    number: int
    partition: int
    length: int
    size: int


class Publish(NamedTuple):
    """Elements for several partitions, unless a transaction with this id has been published.
    `staged` come before `appends`.
    """

    transaction_id: str
    appends: tuple[Append, ...]
    staged: tuple[Staged, ...] = ()


class Attempt(NamedTuple):
    """Facts about staged elements that are whole. Only `owner` knows what `facts` mean."""

    number: int
    owner: str
    facts: str
    length: int
    size: int
    expires: float
    """The time at which a log that is opened drops them."""


class Stage(NamedTuple):
    """Elements to keep, under a number, for a transaction. `attempt` comes with the last of them:
    without it they are a part, which a log that is opened drops.
    """

    number: int
    elements: tuple[bytes, ...]
    attempt: Attempt | None = None


class Unstage(NamedTuple):
    """The numbers of staged elements that no transaction will publish."""

    numbers: tuple[int, ...]


class Acknowledge(NamedTuple):
    """The new acknowledged position of each named partition: that of a reader, or the only one of a
    log without readers.
    """

    positions: dict[int, int]
    reader: str | None = None


class AddReader(NamedTuple):
    """A reader of these partitions, or of all. One that the log has keeps its positions."""

    name: str
    reads: tuple[int, ...] | None
    bounds: tuple[int | None, int | None, float | None]
    is_at_the_end: bool


class RemoveReader(NamedTuple):
    """The name of a reader that the log shall forget."""

    name: str


class MakeRoom(NamedTuple):
    """Elements that wait for room: a reader that would hold too much with them is dropped."""

    loads: tuple["Load", ...]


OfReaders: TypeAlias = AddReader | RemoveReader | MakeRoom

Work: TypeAlias = Append | Publish | Acknowledge | Stage | Unstage | OfReaders

Result: TypeAlias = range | bool | LogDamaged | None
"""The positions of an Append; for a Publish whether it was the first one, or that what it should
publish cannot be read; None for other work.
"""


class Load(NamedTuple):
    """The elements that a piece of work brings to a partition."""

    partition: int
    length: int
    size: int


class PartitionState(NamedTuple):
    """One partition at one moment.
    `acknowledged` has the bounds of the last two acknowledged ranges.
    """

    earliest: int = 0
    latest: int = 0
    size: int = 0
    acknowledged: tuple[int, int, int] = (0, 0, 0)
    held: int = NO_READERS
    """The position of the slowest reader: computed, and not stored."""

    @property
    def floor(self) -> int:
        """The position up to which elements are not needed: that of the slowest reader, or that
        where the last two acknowledged ranges begin.
        """
        return self.acknowledged[0] if self.held == NO_READERS else self.held

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


def loads_of(work: Work) -> tuple[Load, ...]:
    """Return how many elements a piece of work brings: one load for each partition."""
    if isinstance(work, Append):
        return (Load(work.partition, len(work.elements), work.size),)
    if not isinstance(work, Publish):
        return ()
    loads: dict[int, Load] = {}
    brought = [Load(each.partition, len(each.elements), each.size) for each in work.appends]
    for partition, length, size in (*brought, *(each[1:] for each in work.staged)):
        before = loads.get(partition, Load(partition, 0, 0))
        loads[partition] = Load(partition, before.length + length, before.size + size)
    return tuple(loads.values())
