"""A member of a group whose broker leaves the division of the partitions to the members.

Rules of this file:

* Each member tells the broker that it lives, and gets the names of those that do. All of them
  divide the partitions by the same rule, so they need no leader.
* A partition is taken only when the broker says that it is free: two members may know different
  members for a moment.
* A member that shall give a partition away fetches nothing more of it, and waits for what it holds,
  for at most `hold` seconds. So a division repeats nothing, if elements are done in that time.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from time import time_ns
from typing import Final, Literal, NamedTuple, TypeAlias
from uuid import uuid4

import attrs
import trio

from penstock.api import UNBOUNDED, PenstockError, UsageError, shown
from penstock.brokers._member import GroupRecord, Member, Place, share_of
from penstock.spi import Record

Start: TypeAlias = Literal["earliest", "latest"]
"""Where a group that is new begins."""

_NAME: Final = re.compile(r"[\w-]{1,100}", re.ASCII)

BEAT: Final = 1.0
"""Seconds between two signs of life, at most."""


class Present(NamedTuple):
    """What a member learns with a sign of life."""

    partitions: Sequence[str]
    """Those of the log."""
    members: Collection[str]
    """Those that have given a sign of life within `hold` seconds."""
    lost: Collection[str]
    """Partitions that this member had, and that have another owner."""


@attrs.frozen(kw_only=True)
class GroupSettings:
    """What the program says of a group. Raises UsageError for what is not possible."""

    what: str
    """The class of the group, for the UsageError."""
    name: str
    """The name of the log, which the plugin checks."""
    group: str
    start: Start = "earliest"
    records: bool = False
    """Elements are records, as `send` appends them."""
    hold: float = 10.0

    def __attrs_post_init__(self) -> None:
        if type(self.group) is not str or not _NAME.fullmatch(self.group):
            raise UsageError(
                f"{self.what}(group={shown(self.group)}); give a name of 1 to 100 of the "
                "characters a-z, A-Z, 0-9, '_' and '-'"
            )
        if self.start not in ("earliest", "latest"):
            raise UsageError(f"{self.what}(start={shown(self.start)}); give 'earliest' or 'latest'")
        if type(self.hold) not in (int, float) or not 1 <= self.hold <= 3_600:
            raise UsageError(f"{self.what}(hold={shown(self.hold)}); give seconds, from 1 to 3,600")


class SharingMember(Member[GroupRecord]):
    """A member that divides the partitions of a log with the others."""

    def __init__(self, settings: GroupSettings) -> None:
        self.name: str = settings.name
        """The name of the log."""
        self.group: str = settings.group
        """The name of the group."""
        self.start: Start = settings.start
        """Where the group begins, if it is new."""
        self.hold: float = settings.hold
        """Seconds after which a member that gives no sign of life has lost its partitions."""
        self.record_of: Callable[[bytes], Record] = _unpacked if settings.records else Record
        """Makes the record of an element."""
        self.beat: float = min(BEAT, settings.hold / 4)
        self.most_at_once: int = UNBOUNDED
        """Elements of one `fetch`, at most. Where their size is known, it bounds bytes."""

    def begin(self, gone: Callable[[Collection[Place]], None]) -> None:
        """Forget what was before. Called by `open`."""
        self._gone = gone
        # In the order of their names members get their shares: those that came first stay first.
        self.id: str = f"{time_ns():020}-{uuid4().hex[:12]}"
        self.divisions: int = 0
        # When each partition goes to another member, at the latest; None for one that stays.
        self._owned: dict[str, float | None] = {}
        self._has_changed = trio.Event()
        self._turn = 0

    # --- what the broker does

    @abstractmethod
    async def show_life(self, held: Sequence[GroupRecord]) -> Present:
        """Tell the broker that this member lives, and holds these elements."""

    @abstractmethod
    async def take(self, partition: str) -> bool:
        """Become the owner of a partition. Return whether it was free."""

    @abstractmethod
    async def release(self, partition: str, held: Sequence[GroupRecord]) -> None:
        """Let another member have a partition. The elements come again there."""

    @abstractmethod
    async def fetch_of(self, partition: str, most: int) -> Sequence[GroupRecord]:
        """Return up to `most` elements of a partition that are there now, as `fetch` does."""

    @abstractmethod
    async def wait_for_elements(self, partitions: Sequence[str]) -> Sequence[GroupRecord]:
        """Wait for elements of these partitions, or until `wait_changed` returns, for about a
        second. Return those that came, if the broker has handed them over.
        """

    # --- the contract

    async def fetch(self, most: int) -> Sequence[GroupRecord]:
        names, most = self.next_turn(), min(most, self.most_at_once)
        found: list[GroupRecord] = []
        for name in names:
            if len(found) == most:
                break
            try:
                found += await self.fetch_of(name, most - len(found))
            except PenstockError:
                if not found:
                    raise
                break  # those that came are handed over, and the next call tells it
        return found or await self.wait_for_elements(names)

    async def keep(self, held: Sequence[GroupRecord]) -> None:
        present = await self.show_life(held)
        self.lose(present.lost)
        wanted = share_of(present.partitions, present.members, self.id)
        now = trio.current_time()
        for name in [*self._owned]:
            if name in wanted:
                self._owned[name] = None
                continue
            release_at = self._owned[name]
            if release_at is None:
                # From now on nothing is fetched of it, so `held` is all of it at the next call.
                self._owned[name] = now + self.hold
                continue
            mine = [record for record in held if record.partition == name]
            if not mine or now >= release_at:
                await self.release(name, mine)
                self.lose([name])
        for name in sorted(wanted - set(self._owned)):
            if await self.take(name):
                self._owned[name] = None
                self._change()

    # --- for the broker's own part

    def lose(self, names: Iterable[str]) -> None:
        """Note that partitions have another owner."""
        lost = [name for name in names if self._owned.pop(name, self) is not self]
        if lost:
            self._change()
            self._gone([(self.name, name) for name in lost])

    def _change(self) -> None:
        self.divisions += 1
        changed, self._has_changed = self._has_changed, trio.Event()
        changed.set()

    @property
    def owned(self) -> list[str]:
        """The partitions of this member."""
        return [*self._owned]

    def has(self, name: str) -> bool:
        """Return whether this member owns a partition."""
        return name in self._owned

    def next_turn(self) -> list[str]:
        """Return the partitions to fetch from, each time with another one first."""
        names = sorted(name for name, release_at in self._owned.items() if release_at is None)
        self._turn += 1
        at = self._turn % max(1, len(names))
        return names[at:] + names[:at]

    async def wait_changed(self) -> None:
        """Wait until this member has other partitions."""
        await self._has_changed.wait()


def _unpacked(value: bytes) -> Record:
    """Return the record that an element is, as `send` appends it. One that is none is the value of
    a record, whole: a function that cannot take it makes it a dead letter.
    """
    try:
        return Record.unpack(value)
    except UsageError:
        return Record(value)
