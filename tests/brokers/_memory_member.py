"""A broker in memory with groups: the reference of the contract."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from itertools import count

import trio

from penstock.api import LogError
from penstock.brokers import BrokerGroup, GroupRecord, Member, Place, share_of

NUMBERS = count()


class MemoryBroker:
    """Keeps elements, and what a group of them knows."""

    def __init__(self, partitions: Sequence[str]) -> None:
        self.rows: dict[str, list[bytes]] = {name: [] for name in partitions}
        self.members: dict[str, MemoryMember] = {}
        self.owners: dict[str, str] = {}
        # By partition: the next position, what comes again, and what is held, with its deliveries.
        self.nexts: dict[str, int] = dict.fromkeys(partitions, 0)
        self.again: dict[str, list[int]] = {name: [] for name in partitions}
        self.held: dict[str, dict[int, int]] = {name: {} for name in partitions}
        self.deliveries: dict[tuple[str, int], int] = {}
        self.failure: LogError | None = None
        self.changed = trio.Event()

    async def append(self, partition: str, elements: Sequence[bytes]) -> None:
        """Append elements, and tell the members."""
        await trio.lowlevel.checkpoint()
        self.rows[partition] += elements
        self.change()

    def change(self) -> None:
        """Let members that wait look again."""
        changed, self.changed = self.changed, trio.Event()
        changed.set()

    def divide(self) -> None:
        """Divide the partitions anew."""
        for name in self.rows:
            for who in self.members:
                if name in share_of([*self.rows], self.members, who):
                    self._give(name, who)
        self.change()

    def _give(self, partition: str, who: str) -> None:
        before = self.owners.get(partition)
        if before == who:
            return
        self.owners[partition] = who
        if before in self.members:
            self.members[before].gone([("memory", partition)])
        self.return_all(partition)

    def return_all(self, partition: str) -> None:
        """Let all that is held come again."""
        self.again[partition] = sorted({*self.again[partition], *self.held[partition]})
        self.held[partition].clear()


class MemoryMember(Member[GroupRecord]):
    """A member of the only group of a broker."""

    beat: float = 0.05

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._name = f"{next(NUMBERS):06}"
        self.gone: Callable[[Collection[Place]], None] = lambda _: None

    async def open(self, gone: Callable[[Collection[Place]], None], nursery: trio.Nursery) -> None:
        await trio.lowlevel.checkpoint()
        self.gone = gone
        self._broker.members[self._name] = self
        self._broker.divide()
        self.divisions += 1

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self._broker.members.pop(self._name, None)
        self._broker.divide()

    async def fetch(self, most: int) -> Sequence[GroupRecord]:
        broker = self._broker
        await trio.lowlevel.checkpoint()
        changed = broker.changed
        found: list[GroupRecord] = []
        for name, owner in broker.owners.items():
            while owner == self._name and len(found) < most:
                position = self._next(name)
                if position is None:
                    break
                times = broker.deliveries[name, position] = 1 + broker.deliveries.get(
                    (name, position), 0
                )
                broker.held[name][position] = times
                value = broker.rows[name][position]
                found.append(
                    GroupRecord(value, None, (), "memory", name, position, float(position), times)
                )
        if not found:
            await changed.wait()
        return found

    def _next(self, partition: str) -> int | None:
        broker = self._broker
        if broker.again[partition]:
            return broker.again[partition].pop(0)
        position = broker.nexts[partition]
        if position == len(broker.rows[partition]):
            return None
        broker.nexts[partition] += 1
        return position

    async def acknowledge(self, records: Sequence[GroupRecord]) -> None:
        await self._answer()
        for record in records:
            with suppress(KeyError):
                del self._broker.held[record.partition][record.position]

    async def give_back(self, records: Sequence[GroupRecord]) -> None:
        await self._answer()
        for record in records:
            if self._broker.held[record.partition].pop(record.position, None) is not None:
                self._broker.again[record.partition].append(record.position)
                self._broker.again[record.partition].sort()
        self._broker.change()

    async def keep(self, held: Sequence[GroupRecord]) -> None:
        await self._answer()
        self._broker.change()  # a fetch ends after a while

    async def _answer(self) -> None:
        await trio.lowlevel.checkpoint()
        if self._broker.failure is not None:
            raise self._broker.failure


class MemoryGroup(BrokerGroup[GroupRecord]):
    """A member of the group of a broker in memory."""

    def __init__(self, broker: MemoryBroker, **options: str) -> None:
        super().__init__(MemoryMember(broker), **options)  # type: ignore[arg-type]  # a literal

    def __repr__(self) -> str:
        return "<MemoryGroup>"
