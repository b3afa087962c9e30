"""A log in memory. It lives as long as its program."""

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from time import time as wall_clock
from typing import Final

import attrs
import trio

from penstock.logs._log import Written
from penstock.logs._log_base import LogBase
from penstock.logs._positions import DEFAULT_PARTITION, MOST_POSITIONS, MOST_TIMES
from penstock.logs._readers import Hold, Readers, touched
from penstock.logs._retention import GroupFacts, Retention, split
from penstock.logs._work import (
    MOST_TRANSACTIONS,
    Acknowledge,
    Append,
    MakeRoom,
    PartitionState,
    Publish,
    Result,
    Work,
    works_appends,
)

MOST_AHEAD: Final = 256
"""Elements that a stream may hold ready. Elements that the log drops would live on in the hands of
a slow reader, and to read them later costs little.
"""

MERGED: Final = 64
"""Elements of a group that later ones are merged into, so that elements that are appended one by
one do not cost a record each.
"""

COMPACT_AT: Final = 1_024
"""Dropped places at the front of the list before they are removed. To remove them with each
append would move all elements each time.
"""


@attrs.define
class Ring:
    """The elements of one partition. The element at `elements[0]` has the position `offset`;
    dropped ones are empty.
    """

    elements: list[bytes] = attrs.Factory(list)
    offset: int = 0
    groups: deque[GroupFacts] = attrs.Factory(deque)
    firsts: "array[int]" = attrs.Factory(partial(array, "q"))
    """The first positions of each time, and below the times, in milliseconds: 16 bytes for each
    millisecond in which elements came. The times of groups would not do: a group has one only.
    """
    times: "array[int]" = attrs.Factory(partial(array, "q"))
    newest: int | None = None
    """The last one of `times`."""

    def add(self, append: Append, latest: int, now: float, time: int, retention: Retention) -> None:
        """Add elements at the position `latest`, in groups that `retention` allows."""
        if time != self.newest and append.elements:
            self.firsts.append(latest)
            self.times.append(time)
            self.newest = time
        self.elements.extend(append.elements)
        for part in split(append.elements, retention):
            latest += len(part)
            self._add_group(GroupFacts(latest, sum(map(len, part)), now), retention)

    def _add_group(self, group: GroupFacts, retention: Retention) -> None:
        if self._can_merge(group, retention):
            # With the later time: no element is dropped before its age.
            self.groups[-1] = group._replace(size=self.groups[-1].size + group.size)
        else:
            self.groups.append(group)

    def _can_merge(self, group: GroupFacts, retention: Retention) -> bool:
        # The oldest group is left alone, because its begin is not recorded.
        if len(self.groups) < 2:
            return False
        before, last = self.groups[-2], self.groups[-1]
        if (
            group.end - before.end > min(MERGED, retention.group_count)
            or last.size + group.size > retention.group_bytes
        ):
            return False
        # At most MERGED merges: the times in a group differ by an eighth of the age at most.
        return retention.max_age is None or group.written - last.written < retention.max_age / (
            8 * MERGED
        )

    def drop(self, state: PartitionState, retention: Retention, now: float) -> PartitionState:
        """Drop the groups that `retention` does not keep, and return the state without them."""
        while self.groups:
            oldest = self.groups[0]
            if not retention.drops(oldest, state, now):
                break
            self.groups.popleft()
            begin, end = state.earliest - self.offset, oldest.end - self.offset
            # Emptied now, so that the elements are freed; their places go below.
            self.elements[begin:end] = [b""] * (end - begin)
            state = state.dropped(oldest.end, oldest.size)
        dead = state.earliest - self.offset
        # Half of the list or more: no more elements are moved than places removed.
        if dead >= COMPACT_AT and 2 * dead >= len(self.elements):
            del self.elements[:dead]
            self.offset = state.earliest
            known = bisect_right(self.firsts, state.earliest) - 1
            del self.firsts[: max(0, known)], self.times[: max(0, known)]
        return state


class RingLog(LogBase):
    """A log in memory, for replays within one run of the program.

    ::

        log = RingLog(retention=Retention(max_count=100_000))
        await log.append([b"first", b"second"])

    `partitions` are the names of its partitions. Each partition has the bounds of `retention`.
    `clock` returns the seconds that the times of elements are counted in (`Log.times`), to
    milliseconds.
    Raises UsageError for arguments that are not possible.
    """

    most_ahead: int = MOST_AHEAD

    def __init__(
        self,
        *,
        retention: Retention,
        partitions: Iterable[str] = (DEFAULT_PARTITION,),
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        super().__init__(partitions, retention)
        self._clock = clock
        self._newest = -(2**63)  # the time of the newest element
        self._rings = [Ring() for _ in self._names]
        self._all_readers = Readers()
        # A dictionary, because it keeps the order; bounded by MOST_TRANSACTIONS.
        self._published: dict[str, None] = {}

    async def _submit(self, work: Work) -> Result:
        # The checkpoint is shielded: a cancel after the elements were kept would let the program
        # append them again.
        result = self._apply(work)
        await trio.lowlevel.cancel_shielded_checkpoint()
        return result

    def is_published(self, transaction_id: str) -> bool:
        return transaction_id in self._published

    async def _read(
        self, index: int, position: int, stop: int, step: int, owner: Hashable
    ) -> Sequence[bytes]:
        ring = self._rings[index]
        return ring.elements[position - ring.offset : stop - ring.offset]

    def at_hand(self, index: int, position: int, stop: int | None, most: int) -> Sequence[bytes]:
        state, ring = self._states[index], self._rings[index]
        if position < state.earliest:
            return ()  # `read_next` raises
        end = position + most if stop is None else min(position + most, stop)
        return ring.elements[position - ring.offset : end - ring.offset]

    async def _positions_at(self, indexes: Sequence[int], time: float) -> Sequence[int]:
        wanted = _milliseconds(time)
        found = []
        for index in indexes:
            ring = self._rings[index]
            at = bisect_left(ring.times, wanted)
            found.append(ring.firsts[at] if at < len(ring.firsts) else MOST_POSITIONS)
        return found

    async def _times(self, index: int, start: int, stop: int) -> list[Written]:
        ring = self._rings[index]
        found: list[Written] = []
        at = bisect_right(ring.firsts, start) - 1
        while start < stop and len(found) < MOST_TIMES:
            end = min(stop, ring.firsts[at + 1]) if at + 1 < len(ring.firsts) else stop
            found.append(Written(start, end, ring.times[at] / 1_000))
            start, at = end, at + 1
        return found

    def _apply(self, work: Work) -> Result:
        if isinstance(work, Publish):
            if self.is_published(work.transaction_id):
                return False
            self._published[work.transaction_id] = None
            if len(self._published) > MOST_TRANSACTIONS:
                del self._published[next(iter(self._published))]
        # A ring lives in one run of trio, so its ages can use the clock of the run.
        states, now = list(self._states), trio.current_time()
        if isinstance(work, Acknowledge) and work.reader is None:
            for index, position in work.positions.items():
                states[index] = states[index].with_acknowledged(position)
        elif not isinstance(work, Append | Publish):
            self._all_readers.apply(work, states, lambda index: self._rings[index].groups, now)
        first = states[work.partition].latest if isinstance(work, Append) else 0
        appends = works_appends(work)
        if appends:
            moment = int(self._clock() * 1_000 + 0.001)  # as in `_milliseconds`
            # A clock that was set back does not count.
            self._newest = max(self._newest, moment)
        for append in appends:
            self._rings[append.partition].add(
                append, states[append.partition].latest, now, self._newest, self._retention
            )
            states[append.partition] = states[append.partition].appended(
                len(append.elements), append.size
            )
        for index in touched(work, len(states)):
            states[index] = self._rings[index].drop(states[index], self._retention, now)
            self._drop_readers(states, index, work, now)
        self._update(states, tuple(self._all_readers.known.values()))
        return (
            range(first, first + len(work.elements))
            if isinstance(work, Append)
            else isinstance(work, Publish) or None
        )

    def _drop_readers(
        self, states: list[PartitionState], index: int, work: Work, now: float
    ) -> None:
        """Drop readers that hold too much of a partition. Drop elements that no reader needs."""
        ring, waiting = self._rings[index], (0, 0)
        for load in work.loads if isinstance(work, MakeRoom) else ():
            if load.partition == index:
                waiting = load.length, load.size
        while self._retention.acknowledged and self._all_readers.known and ring.groups:
            state, oldest = states[index], ring.groups[0]
            size = state.size - (oldest.size if state.earliest < state.held else 0)
            length = state.latest - max(state.held, state.earliest)
            hold = Hold(length + waiting[0], size + waiting[1], now - oldest.written)
            if not self._all_readers.drop(states, index, hold):
                return
            states[index] = ring.drop(states[index], self._retention, now)

    def __repr__(self) -> str:
        return (
            f"<RingLog: {len(self._names)} partitions, "
            f"{sum(state.size for state in self._states):,} bytes>"
        )


def _milliseconds(seconds: float) -> int:
    """Return whole milliseconds, without their fraction. The small part keeps those of a float that
    was made of whole milliseconds.
    """
    return int(seconds * 1_000 + 0.001)
