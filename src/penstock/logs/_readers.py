"""The named readers of a log: how far each of them has acknowledged, and how far it may hold the
log.

Rules of this file:

* A log with `Retention(acknowledged=True)` keeps what its slowest reader has not acknowledged. The
  other readers hold nothing, because the slowest one holds it.
* A slowest reader that holds more than one of its bounds is dropped: it holds nothing from then on,
  until it acknowledges a position that the log still has.
* A reader that is added to a log that holds more than that begins where its bounds allow. So does
  a partition that is added to a reader.
* If no reader holds a partition, the log drops its oldest elements, and does not wait.
* Names are given by the program that has the log. A peer can use them, and cannot make one.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from penstock.api import PositionNotRetained, UsageError, shown
from penstock.logs._positions import check_name
from penstock.logs._retention import PARTS, GroupFacts, Retention
from penstock.logs._work import (
    NO_READERS,
    NOBODY,
    Acknowledge,
    AddReader,
    MakeRoom,
    PartitionState,
    RemoveReader,
    Work,
    loads_of,
)

MOST_READERS: Final = 256
"""Readers of a log. Each commit looks at all of them."""


MOST_BOUND: Final = 2**63
"""Above what the file of a log can keep as a number."""


class Hold(NamedTuple):
    """The holdings of the slowest reader of a partition: elements, their bytes, and the seconds
    since the oldest of them was appended.
    """

    length: int
    size: int
    age: float


class ReaderState(NamedTuple):
    """One reader. `positions` and `dropped` go by the number of a partition: the position after the
    acknowledged elements, and whether the reader was dropped there. `reads` are the numbers of the
    partitions that it reads; None for all, also for those that are added later.
    """

    name: str
    max_count: int | None = None
    max_bytes: int | None = None
    max_age: float | None = None
    positions: tuple[int, ...] = ()
    dropped: tuple[bool, ...] = ()
    reads: tuple[int, ...] | None = None

    def reads_in(self, index: int) -> bool:
        """Return whether it reads a partition."""
        return self.reads is None or index in self.reads

    def holds(self, index: int) -> bool:
        """Return whether it reads a partition, and was not dropped from it."""
        return self.reads_in(index) and not self.is_dropped(index)

    def position(self, index: int) -> int:
        """Return its position in a partition. A reader of all partitions reads one that the log
        gets later from 0.
        """
        return self.positions[index] if index < len(self.positions) else 0

    def is_dropped(self, index: int) -> bool:
        """Return whether it was dropped from a partition."""
        return index < len(self.dropped) and self.dropped[index]

    def has(self, positions: Mapping[int, int]) -> bool:
        """Return whether an acknowledgement of these positions would change nothing."""
        return all(
            place <= self.position(index) and not self.is_dropped(index)
            for index, place in positions.items()
        )

    def exceeded_by(self, hold: Hold) -> str | None:
        """Return the name of the bound that is exceeded, or None."""
        for name, bound, value in (
            ("max_count", self.max_count, hold.length),
            ("max_bytes", self.max_bytes, hold.size),
            ("max_age", self.max_age, hold.age),
        ):
            if bound is not None and value > bound:
                return name
        return None

    def acknowledged(
        self, positions: Mapping[int, int], states: Sequence[PartitionState]
    ) -> "ReaderState":
        """Return the state after these positions were acknowledged.
        One that is not beyond the last one changes nothing.
        """
        places = [self.position(index) for index in range(len(states))]
        dropped = [self.is_dropped(index) for index in range(len(states))]
        for index, position in positions.items():
            places[index] = max(places[index], position)
            # It is back, if the log has what it needs.
            dropped[index] &= places[index] < states[index].earliest
        return self._replace(positions=tuple(places), dropped=tuple(dropped))

    def with_partitions(
        self, reads: tuple[int, ...] | None, begins: Sequence[Callable[[], int]]
    ) -> "ReaderState":
        """Return the state with these partitions. Those that it has not read yet begin at what
        `begins` returns.
        """
        after = self._replace(reads=reads)
        new = [after.reads_in(each) and not self.reads_in(each) for each in range(len(begins))]
        places = [
            begin() if new[index] else self.position(index) for index, begin in enumerate(begins)
        ]
        dropped = [self.is_dropped(each) and not new[each] for each in range(len(begins))]
        return after._replace(positions=tuple(places), dropped=tuple(dropped))

    def begin(self, state: PartitionState, groups: Iterable[GroupFacts], now: float) -> int:
        """Return the first position of a partition from which on it holds no more than it may.
        `groups` are all groups of the partition.
        """
        begin = state.earliest
        if self.max_count is not None:
            begin = max(begin, state.latest - self.max_count)
        start, size = state.earliest, state.size
        for group in groups:
            size -= group.size
            if begin < group.end:
                # The bytes of a group that it reads in part do not count.
                whole = group.size if begin <= start else 0
                hold = Hold(state.latest - begin, size + whole, now - group.written)
                if self.exceeded_by(hold) is None:
                    break
                begin = group.end
            start = group.end
        return begin

    def without(self, index: int, count: int) -> "ReaderState":
        """Return the state after the reader was dropped from one of `count` partitions."""
        dropped = [self.is_dropped(each) or each == index for each in range(count)]
        return self._replace(dropped=tuple(dropped))

    def bounds_text(self) -> str:
        """Return its bounds, for a message."""
        bounds = zip(("max_count", "max_bytes", "max_age"), self[1:4], strict=True)
        return ", ".join(f"{name}={bound:,}" for name, bound in bounds if bound is not None)

    def to_text(self) -> str:
        """Return its positions as the file has them."""
        return json.dumps([self.positions, [*map(int, self.dropped)], self.reads])

    @classmethod
    def of_text(cls, name: str, bounds: Sequence[Any], text: str) -> "ReaderState":
        """Return the reader that has these columns in the file."""
        positions, dropped, reads = json.loads(text)
        count, size, age = bounds
        return cls(
            name,
            count,
            size,
            age,
            tuple(positions),
            tuple(map(bool, dropped)),
            None if reads is None else tuple(reads),
        )


def held(readers: Iterable[ReaderState], index: int) -> int:
    """Return the position from which on the readers of a log hold a partition."""
    known = list(readers)
    if not known:
        return NO_READERS
    return min((each.position(index) for each in known if each.holds(index)), default=NOBODY)


def slowest(readers: Iterable[ReaderState], state: PartitionState, index: int) -> list[ReaderState]:
    """Return the readers that hold a partition: those with the lowest position."""
    return [each for each in readers if each.holds(index) and each.position(index) == state.held]


def lost_to_reader(
    name: str, partition: str, position: int, earliest: int, latest: int
) -> PositionNotRetained:
    """Return the error about elements that a reader has not acknowledged and the log has not."""
    return PositionNotRetained(
        f"the reader {name!r} has acknowledged partition {partition!r} up to {position:,}, and the "
        f"log begins at {earliest:,}: the elements between are lost to it. It was dropped, "
        "because it held more than its bounds allow, or the Retention of the log dropped them. "
        f"Acknowledge {earliest:,} to go on without them; read more often, or give "
        "add_reader() or Retention higher bounds",
        partition=partition,
        position=position,
        earliest=earliest,
        latest=latest,
    )


def check_reader(
    name: str, start: str, bounds: Mapping[str, int | float | None], retention: Retention
) -> ReaderState:
    """Return a new reader. Raises UsageError for a name or bounds that it cannot have."""
    check_name(name, "the name of a reader")
    if start not in ("earliest", "latest"):
        raise UsageError(
            f"add_reader(start={shown(start)}); give 'earliest' or 'latest': where a new reader "
            "begins"
        )
    for bound, value in bounds.items():
        kinds = (int, float) if bound == "max_age" else (int,)
        # `not 0 < value`, because `value <= 0` is false for a NaN.
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < MOST_BOUND
        ):
            raise UsageError(f"add_reader({bound}=...) takes a positive number, not {shown(value)}")
    if retention.acknowledged:
        _check_it_ends(bounds, retention)
    elif any(value is not None for value in bounds.values()):
        raise UsageError(
            "add_reader() was given a bound, and this log keeps elements by count, bytes or age, "
            "whoever reads them: leave the bound out, or open the log with "
            "Retention(acknowledged=True)"
        )
    return ReaderState(name, **bounds)  # type: ignore[arg-type]  # checked above


def _check_it_ends(bounds: Mapping[str, int | float | None], retention: Retention) -> None:
    """Raise if a reader that never comes back could hold the log without end."""
    if bounds["max_age"] is not None:
        return
    for name in ("max_count", "max_bytes"):
        whole, bound = getattr(retention, name), bounds[name]
        if whole is None:
            continue
        # The log keeps whole groups, and a group has at most an eighth.
        most = whole - -(-whole // PARTS)
        if bound is None or bound > most:
            raise UsageError(
                f"add_reader({name}={shown(bound)}): a reader that never comes back would fill the "
                f"log up to Retention({name}={whole:,}), and append would wait for ever. Give "
                f"{name}= of at most {most:,}, which drops the reader before that; or max_age="
            )


class Readers:
    """All readers of a log. `states` are those of its partitions: `held` follows the readers."""

    def __init__(self, readers: Iterable[ReaderState] = ()) -> None:
        self.known: dict[str, ReaderState] = {each.name: each for each in readers}
        self.changed: set[str] = set()
        """Names of readers that were added, changed or removed."""

    def copy(self) -> "Readers":
        """Return the same readers, without the note of their changes."""
        return Readers(self.known.values())

    def hold(self, states: list[PartitionState]) -> None:
        """Note in all `states` what the readers hold."""
        for index, state in enumerate(states):
            states[index] = state._replace(held=held(self.known.values(), index))

    def apply(
        self,
        work: Work,
        states: list[PartitionState],
        groups_of: Callable[[int], Iterable[GroupFacts]],
        now: float,
    ) -> None:
        """Add, remove or change a reader. `groups_of` returns all groups of a partition."""
        if isinstance(work, Acknowledge) and work.reader in self.known:
            self._set(self.known[work.reader].acknowledged(work.positions, states))
            for index in work.positions:
                states[index] = states[index]._replace(held=held(self.known.values(), index))
        elif isinstance(work, AddReader):
            known = self.known.get(work.name, ReaderState(work.name, reads=()))
            count, size, age = work.bounds
            known = known._replace(max_count=count, max_bytes=size, max_age=age)

            def begin(index: int) -> int:
                state = states[index]
                if work.is_at_the_end:
                    return state.latest
                return known.begin(state, groups_of(index), now)

            begins = [partial(begin, index) for index in range(len(states))]
            self._set(known.with_partitions(work.reads, begins))
            self.hold(states)
        elif isinstance(work, RemoveReader) and work.name in self.known:
            del self.known[work.name]
            self.changed.add(work.name)
            self.hold(states)

    def drop(self, states: list[PartitionState], index: int, hold: Hold) -> bool:
        """Drop the slowest readers of a partition whose bounds `hold` exceeds. Return whether there
        was one, so that the next one may hold too much.
        """
        late = [
            each
            for each in slowest(self.known.values(), states[index], index)
            if each.exceeded_by(hold) is not None
        ]
        for each in late:
            self._set(each.without(index, len(states)))
        states[index] = states[index]._replace(held=held(self.known.values(), index))
        return bool(late)

    def _set(self, reader: ReaderState) -> None:
        self.known[reader.name] = reader
        self.changed.add(reader.name)


def touched(work: Work, count: int) -> Iterable[int]:
    """Return the partitions of `count` in which work may make elements unnecessary."""
    if isinstance(work, Acknowledge):
        return work.positions
    if isinstance(work, AddReader | RemoveReader):
        return range(count)
    if isinstance(work, MakeRoom):
        return (load.partition for load in work.loads)
    return (load.partition for load in loads_of(work))
