"""The work of a broker for one member of a group: the contract that a plugin implements.

Rules of this file:

* A `Member` speaks to the broker, and knows nothing of subscribers or demand. `BrokerGroup` does
  the rest.
* A partition is read by one member at a time, so its elements stay in order.
* An element that is not acknowledged comes again: at least once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeAlias, TypeVar

import msgspec
import trio

Place: TypeAlias = tuple[str, str]
"""The name of a log or a topic, and that of a partition."""


class GroupRecord(msgspec.Struct, frozen=True, gc=False):
    """An element that a member of a group got, and the facts that the broker has of it."""

    value: bytes
    """The element."""
    key: bytes | None
    """Records with one key are in one partition."""
    headers: tuple[tuple[str, bytes | None], ...]
    """Names and values. A name may come twice."""
    name: str
    """The name of its log or its topic."""
    partition: str
    """The name of its partition."""
    position: int
    """Its position in the partition."""
    time: float
    """When it was appended, in seconds since 1970."""
    deliveries: int = 1
    """How often members got it, with this time. Kafka does not count: it is 1 there."""
    receipt: bytes = b""
    """The broker needs it for an acknowledgement."""

    @property
    def place(self) -> Place:
        """The name of its log, and that of its partition."""
        return self.name, self.partition


R = TypeVar("R", bound=GroupRecord)


class Member(ABC, Generic[R]):
    """A member of a group at a broker. `BrokerGroup` calls it, in tasks of trio.

    Each call may be cancelled, and the member can be used after that. A call that fails raises
    LogError or UsageError, and its text says who must act. While the broker cannot be reached, a
    call waits for a bounded time.
    """

    beat: float = 1.0
    """Seconds between two calls of `keep`."""

    in_order: bool = False
    """The broker knows how far a partition is done, and no more. Then `acknowledge` gets an element
    when all elements of its partition before it are done.
    """

    divisions: int = 0
    """How often this member has got other partitions than before."""

    missing: int = 0
    """Elements that the broker had dropped before this member came to them, if it tells."""

    @abstractmethod
    async def open(self, gone: Callable[[Collection[Place]], None], nursery: trio.Nursery) -> None:
        """Join the group. `gone` is called with partitions that go to other members, `nursery` is
        for tasks that run while the member is open; they are cancelled after `aclose`.

        Raises LogError if the broker cannot be reached, and UsageError if it is not as the program
        says: without the log, or without the rights.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Leave the group, so that other members get its partitions at once. It runs in a shield,
        for at most five seconds. It is called once for each call of `open`, also for one that
        failed.
        """

    @abstractmethod
    async def fetch(self, most: int) -> Sequence[R]:
        """Return up to `most` elements, in the order of their partitions. They are held by this
        member until they are acknowledged or given back. Return none after about a second without
        elements.
        """

    @abstractmethod
    async def acknowledge(self, records: Sequence[R]) -> None:
        """Let the broker know that elements are done: no member gets them again."""

    @abstractmethod
    async def give_back(self, records: Sequence[R]) -> None:
        """Hold elements no more. A member gets them again, maybe this one, and before those that
        follow them in their partition. It is not called while `fetch` runs.
        """

    @abstractmethod
    async def keep(self, held: Sequence[R]) -> None:
        """Let the broker know that this member lives, and holds these elements. Called every `beat`
        seconds. It takes partitions that are its own now, and calls `gone` with those that are not.

        Raises LogError if the broker has not answered for its time.
        """


def share_of(partitions: Sequence[str], members: Collection[str], member: str) -> frozenset[str]:
    """Return the partitions that go to one of the `members`: all of them divide them evenly, and
    each divides the same. It has none if it is not one of the members.
    """
    if member not in members:
        return frozenset()
    mine = sorted(members).index(member)
    return frozenset(each for at, each in enumerate(partitions) if at % len(members) == mine)
