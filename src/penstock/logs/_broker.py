"""The program that keeps the elements of a log, as the log needs it: a broker, a database.

Rules of this file:

* A `Broker` speaks to the program, and knows nothing of streams, demand or waiting. `BrokerLog`
  does the rest.
* Positions are those of `Log`: dense, from 0 on, for each partition. A broker that numbers
  otherwise converts its numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import trio

from penstock.api import LogDamaged, UsageError
from penstock.logs._log import Written


class Ends(NamedTuple):
    """The ends of a partition: the position of its oldest element, and that of the next one."""

    earliest: int
    latest: int


class BrokerNews(ABC):
    """The calls of a broker to its log. None of them waits."""

    @abstractmethod
    def moved(self, ends: Mapping[str, Ends]) -> None:
        """Tell the ends of some partitions: other programs have appended, or elements were dropped.
        An end that is before the known one changes nothing, nor does that of a partition that the
        broker has got since it was opened.
        """

    @abstractmethod
    def published(self, transaction_ids: Iterable[str]) -> None:
        """Tell ids of transactions that were published, by this program or by another one."""

    @abstractmethod
    def lost(self, reason: str | LogDamaged) -> None:
        """Tell that the broker cannot be reached, and who must act; or that it has lost elements.
        Streams and tasks that wait for elements fail with a LogError of this text, or a LogDamaged,
        until `moved` is called.
        """


class Broker(ABC):
    """A program that keeps the elements of a log. `BrokerLog` calls it, in tasks of trio.

    Each call may be cancelled, and the broker can be used after that. A call that fails raises
    LogError, and its text says who must act. While the broker cannot be reached, a call waits for a
    bounded time.
    """

    @abstractmethod
    async def open(
        self, partitions: Sequence[str], news: BrokerNews, nursery: trio.Nursery
    ) -> Mapping[str, Ends]:
        """Connect, and return the ends of all partitions: those that are asked for, and those that
        the broker has beside them.

        `nursery` is for tasks that run while the log is open; they are cancelled after `aclose`.
        Raises LogError if the broker cannot be reached, and UsageError if it is not as the program
        says: without the partitions, or with weaker settings.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections. It runs in a shield, for at most five seconds. It is called once
        for each call of `open`, also for one that failed.
        """

    @abstractmethod
    async def append(self, partition: str, elements: Sequence[bytes]) -> int:
        """Append elements in one piece, and return the position of the first one when they are
        kept. Without elements return the position of the next one, after all appends of this
        program that were cancelled.

        A LogError says whether they were appended. If that cannot be known, the text says so.
        """

    async def publish(
        self, transaction_id: str, elements: Mapping[str, Sequence[bytes]]
    ) -> Mapping[str, int] | None:
        """Append elements to several partitions, all or none, and return the position of the first
        one in each; None if the id was published before. A broker whose log refuses transactions
        does not need it.
        """
        raise UsageError(
            f"{type(self).__name__} has no publish(): give BrokerLog(refuses=['transactions'])"
        )

    @abstractmethod
    async def read(
        self, partition: str, position: int, stop: int, max_bytes: int
    ) -> Sequence[bytes]:
        """Return the elements of a partition from `position` on: at least one, none from `stop` on,
        and about `max_bytes` at most. Return none if the element at `position` was dropped, after a
        call of `moved`.
        """

    @abstractmethod
    async def position_at(self, partition: str, time: float) -> int | None:
        """Return the position of the first element that was appended at `time` or later, in seconds
        of the clock of the broker; None if none was.
        """

    @abstractmethod
    async def times(self, partition: str, start: int, stop: int) -> list[Written]:
        """Return when elements were appended, in pieces of one time. Of many, the first ones
        suffice. Return none if the element at `start` was dropped, after a call of `moved`.
        """
