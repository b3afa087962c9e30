"""Members that divide the partitions of a log among themselves, over a board in memory."""

from collections.abc import Callable, Collection, Sequence
from math import inf
from random import Random
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from penstock.api import LogError, UsageError
from penstock.brokers import GroupRecord, GroupSettings, Place, Present, SharingMember
from penstock.spi import Record

HOLD = 4.0
PARTITIONS = [f"p{number}" for number in range(7)]


class Board:
    """What a broker knows: who lives, and who has which partition."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}
        self.owners: dict[str, str] = {}
        self.released: list[tuple[str, int]] = []
        self.elements: dict[str, list[GroupRecord]] = {}
        self.failures: dict[str, LogError] = {}

    def living(self) -> list[str]:
        """Return those that have given a sign of life."""
        now = trio.current_time()
        return [who for who, at in self.seen.items() if now - at < HOLD]


class BoardMember(SharingMember):
    """A member of the group on a board."""

    def __init__(self, board: Board, *, records: bool = False) -> None:
        super().__init__(settings(hold=HOLD, records=records))
        self._board = board
        self.told: list[Place] = []
        self.held: list[GroupRecord] = []
        self.asked: list[tuple[str, int]] = []
        self.begin(self.told.extend)

    async def open(self, gone: Callable[[Collection[Place]], None], nursery: trio.Nursery) -> None:
        raise AssertionError

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self._board.seen.pop(self.id)
        for name in self.owned:
            del self._board.owners[name]

    async def show_life(self, held: Sequence[GroupRecord]) -> Present:
        await trio.lowlevel.checkpoint()
        self._board.seen[self.id] = trio.current_time()
        lost = [name for name in self.owned if self._board.owners.get(name) != self.id]
        return Present(PARTITIONS, self._board.living(), lost)

    async def take(self, partition: str) -> bool:
        await trio.lowlevel.checkpoint()
        owner = self._board.owners.get(partition)
        if owner is not None and owner in self._board.living():
            return False
        self._board.owners[partition] = self.id
        return True

    async def release(self, partition: str, held: Sequence[GroupRecord]) -> None:
        await trio.lowlevel.checkpoint()
        self._board.released.append((partition, len(held)))
        del self._board.owners[partition]

    async def fetch_of(self, partition: str, most: int) -> Sequence[GroupRecord]:
        await trio.lowlevel.checkpoint()
        self.asked.append((partition, most))
        if partition in self._board.failures:
            raise self._board.failures[partition]
        there = self._board.elements.get(partition, [])
        found, self._board.elements[partition] = there[:most], there[most:]
        return found

    async def wait_for_elements(self, partitions: Sequence[str]) -> Sequence[GroupRecord]:
        await trio.sleep(1)
        return ()

    async def acknowledge(self, records: Sequence[GroupRecord]) -> None:
        raise AssertionError

    async def give_back(self, records: Sequence[GroupRecord]) -> None:
        raise AssertionError


def held(partition: str) -> GroupRecord:
    """An element that a member has, and is not done with."""
    return GroupRecord(b"", None, (), "orders", partition, 0, 0.0, 1)


async def beat(members: Sequence[BoardMember], times: int = 1) -> None:
    """Let all members give signs of life."""
    for _ in range(times):
        for member in members:
            await member.keep(member.held)
        await trio.sleep(HOLD / 4)


@pytest.mark.parametrize("seed", range(20))
async def test_each_partition_has_one_owner_again_soon_after_any_change(
    seed: int, autojump_clock: MockClock
) -> None:
    """Members join, leave and die. At each moment a partition has one living owner at most; after
    two times of `hold` each has one, and the shares are equal. Each loss is told.
    """
    random, board = Random(seed), Board()
    members = [BoardMember(board)]
    for _ in range(30):
        change = random.choice(("join", "join", "leave", "die", "beat"))
        if change == "join" and len(members) < 9:
            members.append(BoardMember(board))
        elif change == "leave" and len(members) > 1:
            await members.pop(random.randrange(len(members))).aclose()
        elif change == "die" and len(members) > 1:
            members.pop(random.randrange(len(members)))
        await beat(members, random.randint(1, 3))
        owned = [name for member in members for name in member.owned]
        assert len(owned) == len(set(owned))
    await beat(members, 12)
    shares = [len(member.owned) for member in members]
    assert sum(shares) == len(PARTITIONS)
    assert max(shares) - min(shares) <= 1
    for member in members:
        assert sorted(member.next_turn()) == sorted(member.owned)
        assert all(place == "orders" for place, _ in member.told)
        assert member.divisions >= len(member.told) > 0 or not member.told


@pytest.mark.parametrize("is_done", [True, False])
async def test_a_partition_is_given_away_when_what_is_held_is_done(
    autojump_clock: MockClock, is_done: bool
) -> None:
    """Or after `hold` seconds: then its elements come again at the next owner."""
    board = Board()
    first = BoardMember(board)
    await beat([first], 2)
    first.held = [held(name) for name in PARTITIONS]
    second = BoardMember(board)
    await beat([second, first], 3)
    leaving = {*first.owned} - {*first.next_turn()}
    assert len(leaving) == len(PARTITIONS) // 2
    assert not second.owned
    assert all(first.has(name) for name in leaving)
    if is_done:
        first.held = []
    began = trio.current_time()
    while not second.owned:
        await beat([first, second])
    assert (trio.current_time() - began <= HOLD / 4) == is_done
    assert {*board.released} == {(name, int(not is_done)) for name in leaving}
    assert {*first.told} == {("orders", name) for name in leaving}
    assert {*second.owned} == leaving


async def test_a_share_that_comes_back_before_it_was_given_away_stays(
    autojump_clock: MockClock,
) -> None:
    """The member that would have got it has left."""
    board = Board()
    first, second = BoardMember(board), BoardMember(board)
    await beat([first], 2)
    first.held = [held(name) for name in PARTITIONS]
    await beat([second, first])
    await second.aclose()
    await beat([first], 6)
    assert sorted(first.owned) == sorted(first.next_turn()) == PARTITIONS
    assert not board.released
    assert not first.told


async def test_turns_begin_with_another_partition_each_time(autojump_clock: MockClock) -> None:
    """So none waits for the others. A change of the share wakes who waits for it."""
    member = BoardMember(Board())
    assert member.next_turn() == []
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(member.wait_changed)
            await wait_all_tasks_blocked()
            await beat([member])
    turns = [member.next_turn() for _ in PARTITIONS]
    assert {turn[0] for turn in turns} == {*PARTITIONS}
    assert all(sorted(turn) == PARTITIONS for turn in turns)


def settings(**given: Any) -> GroupSettings:
    return GroupSettings(**{"what": "X", "name": "orders", "group": "billing", **given})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("group", ["", "a b", "a.b", "ü", "x" * 101, None, 5]),
        ("start", ["first", 0, None, inf]),
        ("hold", [0, 0.5, 3_601, float("nan"), True, "10"]),
    ],
)
def test_settings_of_a_group_that_are_not_possible_are_refused(
    name: str, values: list[object]
) -> None:
    """With what is possible."""
    for value in values:
        with pytest.raises(UsageError, match=rf"X\({name}=.*\); give "):
            settings(**{name: value})
    assert settings(group="billing-2_x", start="latest", hold=3_600).hold == 3_600


def test_an_element_that_is_no_record_is_a_value() -> None:
    """A function that cannot take it makes it a dead letter, and others are not held up."""
    member = BoardMember(Board(), records=True)
    record = Record(b"value", b"key", (("name", b"text"),))
    assert member.record_of(record.pack()) == record
    assert member.record_of(b"\xc1 no record") == Record(b"\xc1 no record")
    assert BoardMember(Board()).record_of(record.pack()) == Record(record.pack())


async def test_what_came_of_one_partition_is_handed_over_when_the_next_one_fails(
    autojump_clock: MockClock,
) -> None:
    """The next call tells the failure. Otherwise the member would hold what no subscriber got."""
    board = Board()
    member = BoardMember(board)
    await beat([member])
    board.elements["p1"] = [held("p1")] * 2  # asked first
    board.failures["p2"] = LogError("the broker is away")
    assert [each.partition for each in await member.fetch(3)] == ["p1", "p1"]
    with pytest.raises(LogError, match="is away"):
        await member.fetch(3)


async def test_partitions_are_asked_in_turn_for_what_is_left(autojump_clock: MockClock) -> None:
    """For no more than the call wants, and than the member takes at once."""
    board = Board()
    member = BoardMember(board)
    await beat([member])
    for name in PARTITIONS:
        board.elements[name] = [held(name)] * 2
    assert len(await member.fetch(5)) == 5
    assert [most for _, most in member.asked] == [5, 3, 1]
    first = member.asked[0][0]
    member.asked.clear()
    member.most_at_once = 3
    assert len(await member.fetch(5)) == 3
    assert member.asked[0][1] == 3
    assert member.asked[0][0] != first
