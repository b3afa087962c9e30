"""The contract of a log: elements in partitions, each at a position, kept and replayed.

Rules of this file:

* In a partition, positions are dense:
  each element has the position of the element before it plus one. The first one is 0.
* The element at a position never changes, and a position is never given twice.
* `latest` is the position that the next element gets. So a partition has the positions from
  `earliest` up to, and not with, `latest`.
* An element counts as appended, and readers see it, when its `append` can return.
  A log on disk has then synced it.
* Each element has the time at which it was appended, by the clock of the log. In a partition the
  times never go back: while the clock is behind the newest element, elements get the time of that
  one.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, overload

from penstock.api import Time, partition_of
from penstock.logs._positions import DEFAULT_PARTITION, MOST_BYTES_AT_ONCE, MOST_STAGED, Position
from penstock.streams import Source


class Written(NamedTuple):
    """Elements of a partition that were appended at one time: those from `start` up to, and not
    with, `stop`. `Log.times` returns them.
    """

    start: int
    stop: int
    time: float
    """Seconds of the clock of the log."""


class Transaction(ABC):
    """Elements that are appended together, once. `Log.transaction` returns one."""

    @abstractmethod
    async def stage(self, elements: Sequence[bytes], *, partition: str = DEFAULT_PARTITION) -> None:
        """Add elements that `publish` shall append. No reader sees them before. Checkpoints.

        Raises LimitExceeded above the bounds of the transaction, and UsageError after `publish`.
        """

    @abstractmethod
    async def publish(self) -> bool:
        """Append all staged elements, in all partitions or in none, and return True. Checkpoints.

        If a transaction with this id has been published, in this run of the program or in an
        earlier one, do nothing and return False.
        """


class NamedReader(ABC):
    """A reader whose position the log keeps, also after a restart. `Log.reader` returns one."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the reader."""

    @abstractmethod
    def positions(self) -> dict[str, int]:
        """Return the position of the next element that was not acknowledged, of each partition that
        it reads.
        """

    @abstractmethod
    def dropped(self) -> tuple[str, ...]:
        """Return the partitions from which the reader was dropped because it held too much. It
        holds nothing of them, until it acknowledges a position that the log has.
        """

    @abstractmethod
    def source(
        self, partition: str = DEFAULT_PARTITION, stop: Position | None = None
    ) -> Source[bytes]:
        """Return the source of the elements that the reader has not acknowledged when a subscriber
        subscribes. Several subscribers may read with one name: each gets all elements.

        A stream fails with PositionNotRetained if the log has dropped elements that the reader has
        not acknowledged. The text says which were lost, and how to go on.
        """

    @abstractmethod
    async def acknowledge(self, positions: Mapping[str, int]) -> None:
        """Keep these positions: the elements before them are no longer needed by this reader.
        Checkpoints.

        A position that is not beyond the last one changes nothing.
        Raises PositionNotRetained for a position that was never appended.
        """

    @abstractmethod
    async def remove(self) -> None:
        """Let the log forget the reader. Elements that it alone held are dropped. Checkpoints."""


class Log(ABC):
    """Keeps elements and replays them. `RingLog` keeps them in memory, `DiskLog` in a file.

    `penstock.testing.check_log` checks any implementation of this contract.
    """

    @property
    @abstractmethod
    def partitions(self) -> tuple[str, ...]:
        """The names of the partitions."""

    @abstractmethod
    async def append(
        self,
        elements: Sequence[bytes],
        *,
        partition: str | None = None,
        key: bytes | str | None = None,
    ) -> range:
        """Append elements in one piece, and return their positions. Returns when they are kept: on
        disk, when they are synced. Checkpoints.

        They go to `partition`, which is "0" without a name, or to the partition of `key`
        (`partition_of`): the elements of one key stay in order.
        Waits while the log is full of elements that it must keep (`Retention.acknowledged`), and
        while too many elements wait for the disk. If it is cancelled while it waits for the disk,
        the elements may have been appended.
        Raises LimitExceeded for elements that never fit, and LogError if they could not be kept:
        then none of them was appended.
        """

    def partition_of(self, key: bytes | str) -> str:
        """Return the partition that `append` takes for a key."""
        return partition_of(key, self.partitions)

    @abstractmethod
    def earliest(self) -> dict[str, int]:
        """Return the position of the oldest element of each partition, or that of the next element
        if a partition is empty.
        """

    @overload
    def latest(self) -> dict[str, int]: ...

    @overload
    def latest(
        self, *, after: Mapping[str, int], timeout: float | None = None
    ) -> Awaitable[dict[str, int]]: ...

    @abstractmethod
    def latest(
        self, *, after: Mapping[str, int] | None = None, timeout: float | None = None
    ) -> dict[str, int] | Awaitable[dict[str, int]]:
        """Return the position of the next element of each partition.

        ``await latest(after=positions)`` first waits until one of the named partitions is beyond
        its position in `after`, or until `timeout` seconds have passed.
        """

    @abstractmethod
    def source(
        self,
        partition: str = DEFAULT_PARTITION,
        start: Position = "earliest",
        stop: Position | None = None,
    ) -> Source[bytes]:
        """Return the source of the elements from `start` up to, and not with, `stop`. It can be
        subscribed to any number of times.

        Without `stop` it follows the log: after the last element it waits for the next one. With
        ``stop="latest"`` it completes where the log ends when a subscriber subscribes. If `stop` is
        a higher number, it waits for the elements up to there.
        A stream fails with PositionNotRetained if it begins at a position that the log does not
        have, or if the log drops elements that its subscriber has not requested yet.
        Raises UsageError for an unknown partition and for values that are not positions.
        """

    @abstractmethod
    async def elements_at(self, positions: Mapping[str, int]) -> dict[str, bytes | None]:
        """Return one element of each of these partitions: the one at its position, or None if the
        log does not have it. Checkpoints. Raises UsageError for an unknown partition.
        """

    @abstractmethod
    async def position_at(
        self, time: Time, *, partitions: Iterable[str] | None = None
    ) -> dict[str, int]:
        """Return the position of the first element of each of `partitions`, or of all, that was
        appended at `time` or later: that of the oldest element if older ones were dropped, and that
        of the next element if none is as late. Checkpoints.

        `time` is a datetime with a time zone, its text, or seconds of the clock of the log, which
        are those since 1970 unless the log was given another clock. No element that was appended at
        `time` or later is before the position. Raises UsageError for an unknown partition and for a
        value that is not a time.
        """

    @abstractmethod
    async def times(
        self,
        partition: str = DEFAULT_PARTITION,
        start: Position = "earliest",
        stop: Position = "latest",
    ) -> list[Written]:
        """Return when the elements from `start` up to, and not with, `stop` were appended, in
        pieces of one time. Checkpoints.

        The first piece begins at `start`. It returns 10,000 pieces at most: go on from the `stop`
        of the last one. Raises PositionNotRetained for a range that the log does not have, and
        UsageError for an unknown partition and for values that are not positions.
        """

    @abstractmethod
    async def acknowledge(self, positions: Mapping[str, int]) -> None:
        """Tell the log that the elements before these positions are no longer needed. Checkpoints.

        A position that is not beyond the last acknowledged one changes nothing. The log keeps the
        last two acknowledged ranges, so a reader can repeat its last range after a failure.
        Raises PositionNotRetained for a position that was never appended, and UsageError without
        ``Retention(acknowledged=True)``, and for a log with named readers: each of them
        acknowledges for itself.
        """

    @abstractmethod
    async def add_reader(
        self,
        name: str,
        *,
        partitions: Iterable[str] | None = None,
        start: Literal["earliest", "latest"] = "earliest",
        max_count: int | None = None,
        max_bytes: int | None = None,
        max_age: float | None = None,
    ) -> NamedReader:
        """Add a reader of `partitions`, or of all, that begins at `start`, and return it. One that
        the log has keeps its positions, and gets these bounds and partitions; those that it has not
        read begin at `start`. Checkpoints.

        With ``Retention(acknowledged=True)`` the log keeps what its slowest reader has not
        acknowledged. The bounds say how much that may be, for each partition: elements, bytes, and
        seconds since the oldest of these elements was appended. A new reader of a log that has more
        begins where they allow. A reader that holds more later is dropped: the log of penstock says
        so, and its next stream fails. Without `max_age` each bound of the `Retention` needs one
        that is an eighth lower, so that a reader that never comes back does not make `append` wait
        without end. Raises UsageError for other bounds, for unknown partitions, and above 256
        readers.
        """

    @abstractmethod
    def reader(self, name: str) -> NamedReader:
        """Return a reader that was added, now or in an earlier run of the program.
        Raises UsageError for another name.
        """

    @property
    @abstractmethod
    def readers(self) -> tuple[str, ...]:
        """The names of the readers."""

    @abstractmethod
    def transaction(
        self,
        transaction_id: str,
        *,
        max_elements: int = MOST_STAGED,
        max_bytes: int = MOST_BYTES_AT_ONCE,
    ) -> Transaction:
        """Return a new transaction.
        Of several transactions with one id, the first one that is published counts.

        It stages 1,000,000 elements and 64 MiB, or `max_elements` and `max_bytes`:
        staged elements are in memory.
        A log remembers the last 65,536 published ids.
        Raises UsageError for bounds that are not positive integers.
        """

    @abstractmethod
    def is_published(self, transaction_id: str) -> bool:
        """Return whether a transaction with this id has been published, in this run of the program
        or in an earlier one, as far as the log remembers its ids.
        """
