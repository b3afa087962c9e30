"""`check_log` catches each broken promise of a log: for each of its checks there is a log that
breaks it, and nothing else.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, get_args

import pytest
import trio

from penstock.api import UsageError
from penstock.logs import Ability, Log, NamedReader, Retention, RingLog, Transaction
from penstock.testing import check_log
from penstock.testing._check_log import CHECKS, LogContractBroken, OpenLog


class SkipsPositions(RingLog):
    async def append(self, elements: Any, **place: Any) -> range:
        positions = await super().append(elements, **place)
        return range(positions.start + 1, positions.stop + 1)


class ReadsLater(RingLog):
    """Has nothing at hand, so each element is read by `_read`."""

    def at_hand(self, index: int, position: int, stop: int | None, most: int) -> Sequence[bytes]:
        return ()


class ForgetsTheKey(RingLog):
    async def append(self, elements: Any, **place: Any) -> range:
        names = {"partition": "east"} if "key" in place and "partition" not in place else place
        return await super().append(elements, **names)


class ChangesElements(ReadsLater):
    async def _read(self, *where: Any) -> Sequence[bytes]:
        return [element.upper() for element in await super()._read(*where)]


class LooksUpTheNextOne(RingLog):
    async def elements_at(self, positions: Any) -> dict[str, bytes | None]:
        return await super().elements_at({name: each + 1 for name, each in positions.items()})


class SkipsElementsOfATime(RingLog):
    async def _positions_at(self, indexes: Sequence[int], time: float) -> Sequence[int]:
        return [position + 1 for position in await super()._positions_at(indexes, time)]


class LeadsToWhatWasDropped(RingLog):
    async def position_at(self, time: Any, **partitions: Any) -> dict[str, int]:
        found = await super().position_at(time, **partitions)
        return dict.fromkeys(found, 0) if time == 0 else found


class SharesOnePosition(ReadsLater):
    readers = 0

    async def _read(self, *where: Any) -> Sequence[bytes]:
        self.readers += 1
        await trio.lowlevel.checkpoint()
        elements = await super()._read(*where)
        self.readers -= 1
        return elements if not self.readers else elements[1:]


class StopsAtTheEnd(RingLog):
    def resolve(self, index: int, start: Any, stop: Any) -> tuple[int, int | None]:
        return super().resolve(index, start, "latest" if stop is None else stop)


class StopsEarly(RingLog):
    def resolve(self, index: int, start: Any, stop: Any) -> tuple[int, int | None]:
        first, end = super().resolve(index, start, stop)
        return first, end if end is None else min(end, max(first, self._states[index].latest))


class TakesAnything(RingLog):
    async def append(self, elements: Any, **place: Any) -> range:
        right = (
            [element for element in elements if type(element) is bytes]
            if isinstance(elements, list)
            else []
        )
        return await super().append(right, **place)


class StartsWhereItCan(RingLog):
    def resolve(self, index: int, start: Any, stop: Any) -> tuple[int, int | None]:
        return super().resolve(
            index, start if isinstance(start, str) else min(start, self._states[index].latest), stop
        )


class DropsNothing(RingLog):
    def __init__(self, *, retention: Retention, partitions: Sequence[str]) -> None:
        larger = Retention(max_count=10_000) if not retention.acknowledged else retention
        super().__init__(retention=larger, partitions=partitions)


class SkipsWhatItDropped(ReadsLater):
    async def read_next(self, index: int, position: int, *more: Any) -> Sequence[bytes]:
        return await super().read_next(index, max(position, self._states[index].earliest), *more)


class NeverWaitsForRoom(RingLog):
    def _has_room(self, appends: Any) -> bool:
        return True


class KeepsOneRange(RingLog):
    async def acknowledge(self, positions: Any) -> None:
        await super().acknowledge(positions)
        for name, position in positions.items():
            index = self._names.index(name)
            state = self._states[index]
            acknowledged = max(position, state.acknowledged[2])
            states = list(self._states)
            states[index] = self._rings[index].drop(
                state._replace(acknowledged=(acknowledged,) * 3), self._retention, 0.0
            )
            self._update(states)


class NeverWaitsForElements(RingLog):
    async def _wait_latest(self, after: Any, seconds: Any) -> dict[str, int]:
        await trio.lowlevel.checkpoint()
        return {name: state.latest for name, state in zip(self._names, self._states, strict=True)}


class ForgetsTransactions(RingLog):
    def is_published(self, transaction_id: str) -> bool:
        return False


class SkipsOneOfAReader(RingLog):
    def place_of(self, reader: str, index: int) -> int:
        return super().place_of(reader, index) + 1


class HidesWhatAReaderLost(RingLog):
    def place_of(self, reader: str, index: int) -> int:
        return max(self.reader_state(reader).position(index), self._states[index].earliest)


class BreaksWhenCancelled(RingLog):
    is_broken = False

    async def append(self, elements: Any, **place: Any) -> range:
        if self.is_broken:
            raise UsageError("broken by a cancel")
        try:
            return await super().append(elements, **place)
        except trio.Cancelled:
            self.is_broken = True
            raise


BROKEN = (
    SkipsPositions,
    ForgetsTheKey,
    ChangesElements,
    LooksUpTheNextOne,
    SharesOnePosition,
    StopsAtTheEnd,
    StopsEarly,
    TakesAnything,
    StartsWhereItCan,
    DropsNothing,
    SkipsWhatItDropped,
    NeverWaitsForRoom,
    KeepsOneRange,
    NeverWaitsForElements,
    ForgetsTransactions,
    SkipsOneOfAReader,
    HidesWhatAReaderLost,
    BreaksWhenCancelled,
    SkipsElementsOfATime,
    LeadsToWhatWasDropped,
)


def _opens(kind: type[RingLog]) -> OpenLog:
    @asynccontextmanager
    async def opened(names: Sequence[str], retention: Retention) -> AsyncIterator[Log]:
        yield kind(retention=retention, partitions=names)

    return opened


@pytest.mark.parametrize(
    ("kind", "check"),
    list(zip(BROKEN, CHECKS, strict=True)),
    ids=lambda value: value.__name__.strip("_"),
)
async def test_each_check_catches_a_log_that_breaks_it(kind: type[RingLog], check: Any) -> None:
    """The text of the error begins with the name of the check.
    A log that raises lets its own error through.
    """
    with pytest.raises((LogContractBroken, UsageError)) as caught:
        await check_log(_opens(kind))
    name = check.__name__.removeprefix("_")
    assert str(caught.value).startswith(
        "broken by a cancel" if kind is BreaksWhenCancelled else f"{name}: "
    )


class RefusesAll(RingLog):
    """Refuses all that a log may refuse."""

    def __init__(self, *, retention: Retention, partitions: Sequence[str]) -> None:
        if retention.acknowledged or retention.max_count is not None:
            raise UsageError("refused")
        super().__init__(retention=retention, partitions=partitions)

    async def add_reader(self, *args: Any, **options: Any) -> NamedReader:
        await trio.lowlevel.checkpoint()
        raise UsageError("refused")

    def transaction(self, *args: Any, **options: Any) -> Transaction:
        raise UsageError("refused")


ABILITIES: tuple[Ability, ...] = get_args(Ability)


async def test_a_log_may_refuse_what_the_contract_lets_it_refuse() -> None:
    """The other sentences are checked."""
    await check_log(_opens(RefusesAll), refuses=ABILITIES)


@pytest.mark.parametrize("ability", ABILITIES)
async def test_a_log_that_does_not_refuse_what_it_lacks_is_caught(ability: Ability) -> None:
    """A call that does nothing would look like a promise."""
    with pytest.raises(LogContractBroken, match=f"{ability}.*expected UsageError"):
        await check_log(_opens(RingLog), refuses=[ability])


async def test_a_log_that_keeps_its_contract_passes() -> None:
    """So the checks catch the faults that were planted, and nothing else."""
    await check_log(_opens(RingLog))
