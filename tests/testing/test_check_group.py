"""`check_group` passes for a group that keeps its contract, and catches each broken promise of a
member: for each of its checks there is a member that breaks it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from penstock.brokers import BrokerGroup, GroupRecord
from penstock.testing import GroupBench, check_group
from penstock.testing._check_group import GroupContractBroken, OpenGroup
from tests.brokers._memory_member import MemoryBroker, MemoryMember


def _opener(kind: type[MemoryMember]) -> OpenGroup:
    @asynccontextmanager
    async def open_group(partitions: Sequence[str]) -> AsyncIterator[GroupBench]:
        broker = MemoryBroker(partitions)
        yield GroupBench(
            broker.append,
            lambda acknowledge: BrokerGroup(kind(broker), acknowledge=acknowledge),
        )

    return open_group


async def test_the_reference_keeps_the_contract() -> None:
    """A broker in memory passes each check."""
    await check_group(_opener(MemoryMember))


class TurnsTheOrder(MemoryMember):
    async def fetch(self, most: int) -> Sequence[GroupRecord]:
        return (await super().fetch(most))[::-1]


class BringsMore(MemoryMember):
    async def fetch(self, most: int) -> Sequence[GroupRecord]:
        return await super().fetch(most + 1)


class ForgetsWhatIsDone(MemoryMember):
    async def acknowledge(self, records: Sequence[GroupRecord]) -> None:
        return


class DoneWhenFetched(MemoryMember):
    async def fetch(self, most: int) -> Sequence[GroupRecord]:
        found = await super().fetch(most)
        await self.acknowledge(found)
        return found


class KeepsWhatItLeaves(MemoryMember):
    async def give_back(self, records: Sequence[GroupRecord]) -> None:
        return


class ReturnsTheLastFirst(MemoryMember):
    async def give_back(self, records: Sequence[GroupRecord]) -> None:
        await super().give_back(records)
        for again in self._broker.again.values():
            again.reverse()


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (TurnsTheOrder, "elements_come_in_order"),
        (BringsMore, "no_more_are_handed_over"),
        (ForgetsWhatIsDone, "what_was_taken_does_not_come_again"),
        (DoneWhenFetched, "what_was_taken_does_not_come_again"),
        (KeepsWhatItLeaves, "what_a_subscriber_leaves"),
        (ReturnsTheLastFirst, "what_a_subscriber_leaves"),
    ],
)
async def test_a_broken_member_is_caught(
    kind: type[MemoryMember], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text names the sentence that it breaks."""
    monkeypatch.setattr("penstock.testing._check_group.WITHIN", 2.0)
    with pytest.raises(GroupContractBroken, match=sentence):
        await check_group(_opener(kind))
