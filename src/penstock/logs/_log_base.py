"""What all logs of penstock share: arguments, room for elements, waiting for elements, sources.

Rules of this file:

* All of it runs in the tasks of the program. `_submit` applies a piece of work and updates the
  states; `_read` returns elements.
* Elements are admitted in the order of their calls, per partition: a large append that waits for
  room is not overtaken by small ones.
* Between the check for room and `_submit` nothing waits,
  so the room cannot be taken by another task.
"""

import logging
from abc import abstractmethod
from collections.abc import Awaitable, Hashable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from math import inf
from typing import Final, Literal, overload

import trio

from penstock.api import (
    LimitExceeded,
    LogError,
    PlaceInStream,
    PositionNotRetained,
    Positions,
    Subscriber,
    Time,
    UsageError,
    on_fact_of,
    seconds_of,
    shown,
)
from penstock.core import LOG, Scope, check_in_trio, check_seconds, limited_log
from penstock.logs._log import Log, NamedReader, Transaction, Written
from penstock.logs._log_reader import LogReader, ReadyElements
from penstock.logs._positions import (
    DEFAULT_PARTITION,
    MOST_AT_ONCE,
    MOST_BYTES_AT_ONCE,
    MOST_STAGED,
    Position,
    check_elements,
    check_map,
    check_partitions,
    check_range,
    chosen_partition,
    not_retained,
    unknown_partition,
)
from penstock.logs._readers import MOST_READERS, ReaderState, check_reader, lost_to_reader
from penstock.logs._retention import PARTS, Retention
from penstock.logs._transaction import StagedTransaction
from penstock.logs._work import (
    Acknowledge,
    AddReader,
    Append,
    Load,
    MakeRoom,
    PartitionState,
    Publish,
    RemoveReader,
    Result,
    Work,
    loads_of,
)
from penstock.streams import IteratorSource, Source, empty, failed

LOOKS: Final = "elements_at"
"""The owner of the reads of `elements_at`: all of them together take turns with the streams."""

LONGEST_LOOK: Final = 60.0
"""Seconds after which an append that waits for room looks at the readers again, at most."""

SHORTEST_LOOK: Final = 0.05
"""The same, at least."""


class LogBase(Log):
    """A log whose elements are kept by a subclass."""

    most_ahead: int
    """Elements that a stream of this log may hold ready."""

    def __init__(self, partitions: Iterable[str], retention: Retention | None) -> None:
        if not isinstance(retention, Retention):
            raise UsageError(
                "a log needs retention=Retention(...), the bounds of what it keeps, as in "
                "Retention(max_bytes=1_000_000_000)"
            )
        self._name_all(check_partitions(partitions))
        self._retention = retention
        self._states = [PartitionState() for _ in self._names]
        self._readers: dict[str, ReaderState] = {}
        # elements and bytes that wait for the disk.
        self._waiting = dict.fromkeys(range(len(self._names)), (0, 0))
        self._turns = [trio.Lock() for _ in self._names]
        # tasks that wait for elements, and tasks that wait for room.
        self._changed = trio.lowlevel.ParkingLot()
        self._lines = limited_log(LOG)
        self._run: trio.lowlevel.TrioToken | None = None  # the run that has opened the log
        self.ready: ReadyElements = ReadyElements()
        """The elements that streams of this log hold ready."""

    # --- for subclasses

    def _name_all(self, names: tuple[str, ...]) -> None:
        """Take the names of the partitions."""
        self._names = names
        self._places = {name: index for index, name in enumerate(names)}

    @abstractmethod
    async def _submit(self, work: Work) -> Result:
        """Apply `work`, and return its result when it is kept. Nothing may wait before the
        elements are counted in `_waiting`.
        """

    @abstractmethod
    async def _read(
        self, index: int, position: int, stop: int, step: int, owner: Hashable
    ) -> Sequence[bytes]:
        """Return the elements of a partition from `position` on: at least one, none from `stop`
        on, and about `step` bytes at most. Both positions are retained.

        `owner` is the peer that reads, if the log lets its readers take turns.
        """

    async def _read_each(self, places: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """Return the element at each place, a partition and a position that was retained; None if
        it is no more.
        """
        found: list[bytes | None] = []
        for index, position in places:
            try:
                [element] = await self._read(index, position, position + 1, 1, LOOKS)
            except PositionNotRetained:
                element = None
            found.append(element)
        return found

    @abstractmethod
    async def _positions_at(self, indexes: Sequence[int], time: float) -> Sequence[int]:
        """Return, for each of these partitions, the position of the first element that was appended
        at `time` or later; a position beyond the end if none was.
        """

    @abstractmethod
    async def _times(self, index: int, start: int, stop: int) -> list[Written]:
        """Return when elements were appended that are retained. Of many, the first ones suffice."""

    def _check_open(self) -> None:
        """Raise if the log cannot be used now."""

    def _check_writable(self) -> None:
        """Raise if the log cannot be changed now."""
        self._check_open()

    def _check_may_change(self) -> None:
        """Raise if no change can come now. Asked before each wait for one."""
        self._check_open()

    def _check_run(self) -> None:
        """Raise if another run of trio has opened the log: the log wakes tasks in that run only."""
        if trio.lowlevel.current_trio_token() is not self._run:
            raise UsageError(
                f"{self!r} was opened in another run of trio, and is used in that one only: open "
                "it inside of this trio.run, or call it from the other thread with "
                "trio.from_thread.run(log.append, elements, trio_token=token)"
            )

    def _not_open(self) -> UsageError:
        """Return the error about a log that is not open."""
        return UsageError(
            f"{self!r} is not open: use it inside of `async with {type(self).__name__}(...) as "
            "log`, or give it to the service that publishes it: Service(lifespan=lambda: log)"
        )

    def _begin(
        self,
        names: tuple[str, ...],
        states: Sequence[PartitionState],
        readers: Sequence[ReaderState] = (),
    ) -> None:
        """Take over what a log has that is opened: it may have more partitions than the arguments
        name, so all that goes by partition is made anew.
        """
        self._run = trio.lowlevel.current_trio_token()
        self._name_all(names)
        self._states = list(states)
        self._waiting = dict.fromkeys(range(len(names)), (0, 0))
        self._turns = [trio.Lock() for _ in names]
        self._update_readers(readers)

    def _count(self, work: Work, sign: int) -> None:
        """Note that the elements of `work` wait, or wait no longer."""
        for load in loads_of(work):
            count, size = self._waiting[load.partition]
            self._waiting[load.partition] = count + sign * load.length, size + sign * load.size

    def _look(self) -> None:
        """Take over what another process has appended. Only a log on disk has one."""

    def _update(
        self, states: Sequence[PartitionState], readers: Sequence[ReaderState] = ()
    ) -> None:
        """Take over the states after some work, and wake the tasks that wait for a change."""
        # In place: the lists of a log that is opened again may be longer,
        # and sources hold indexes only.
        self._states[:] = states
        if readers or self._readers:
            self._update_readers(readers)
        self._changed.unpark_all()

    def _update_readers(self, readers: Sequence[ReaderState]) -> None:
        """Take over the readers, and tell of those that were dropped."""
        before, self._readers = self._readers, {each.name: each for each in readers}
        for reader in readers:
            known = before.get(reader.name)
            for index, name in enumerate(self._names):
                if reader.is_dropped(index) and not (known and known.is_dropped(index)):
                    self._lines.write(
                        logging.WARNING,
                        "dropped reader",
                        "the reader %r of %r was dropped from partition %r, because it held more "
                        "than %s allow: nothing is kept for it from position %d on. Start its "
                        "program, or remove the reader",
                        reader.name,
                        self,
                        name,
                        reader.bounds_text(),
                        reader.position(index),
                    )

    # --- the contract

    @property
    def partitions(self) -> tuple[str, ...]:
        return self._names

    async def append(
        self,
        elements: Sequence[bytes],
        *,
        partition: str | None = None,
        key: bytes | str | None = None,
    ) -> range:
        check_in_trio("Log.append()")
        self._check_writable()
        index = self._index(chosen_partition(partition, key, self._names))
        work = Append(index, *check_elements(elements))
        # A cancel counts here, before anything is kept. `_submit` lets other tasks run.
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._admit(loads_of(work))
        positions = await self._submit(work)
        assert isinstance(positions, range)  # noqa: S101 (for the type checker: the result of an Append)
        return positions

    def earliest(self) -> dict[str, int]:
        self._check_open()
        return {name: state.earliest for name, state in zip(self._names, self._states, strict=True)}

    @overload
    def latest(self) -> dict[str, int]: ...

    @overload
    def latest(
        self, *, after: Mapping[str, int], timeout: float | None = None
    ) -> Awaitable[dict[str, int]]: ...

    def latest(
        self, *, after: Mapping[str, int] | None = None, timeout: float | None = None
    ) -> dict[str, int] | Awaitable[dict[str, int]]:
        self._check_open()
        if after is not None:
            seconds = None if timeout is None else check_seconds(timeout, "the timeout", zero=True)
            return self._wait_latest(
                dict(check_map(after, self._places, "latest(after=...)")), seconds
            )
        if timeout is not None:
            raise UsageError(
                "latest(timeout=...) waits for elements only with after=, the positions to wait "
                "behind"
            )
        self._look()
        return {name: state.latest for name, state in zip(self._names, self._states, strict=True)}

    def source(
        self,
        partition: str = DEFAULT_PARTITION,
        start: Position = "earliest",
        stop: Position | None = None,
    ) -> Source[bytes]:
        self._check_open()
        return LogSource(self, self._index(partition), *check_range(start, stop))

    async def elements_at(self, positions: Mapping[str, int]) -> dict[str, bytes | None]:
        self._check_open()
        await trio.lowlevel.checkpoint()
        wanted = check_map(positions, self._places, "elements_at()")
        found: dict[str, bytes | None] = dict.fromkeys(wanted)
        places = {}
        for name, position in wanted.items():
            state = self._states[self._index(name)]
            if state.earliest <= position < state.latest:
                places[name] = (self._index(name), position)
        found.update(zip(places, await self._read_each([*places.values()]), strict=True))
        return found

    async def position_at(
        self, time: Time, *, partitions: Iterable[str] | None = None
    ) -> dict[str, int]:
        self._check_open()
        await trio.lowlevel.checkpoint()
        seconds = seconds_of(time)
        names = self._names if partitions is None else check_partitions(partitions)
        indexes = [self._index(name) for name in names]
        self._look()
        found = {}
        for index, name, position in zip(
            indexes, names, await self._positions_at(indexes, seconds), strict=True
        ):
            # Asked after the look: elements that were appended or dropped meanwhile count.
            state = self._states[index]
            found[name] = min(max(position, state.earliest), state.latest)
        return found

    async def times(
        self,
        partition: str = DEFAULT_PARTITION,
        start: Position = "earliest",
        stop: Position = "latest",
    ) -> list[Written]:
        self._check_open()
        await trio.lowlevel.checkpoint()
        index = self._index(partition)
        first, end = self.resolve(index, *check_range(start, stop))
        latest = self._states[index].latest
        if end is None or end > latest:
            raise not_retained(partition, latest, self._states[index].earliest, latest)
        if first == end:
            return []
        found = await self._times(index, first, end)
        if not found or found[0].start != first:
            # Dropped meanwhile.
            raise not_retained(partition, first, self._states[index].earliest, latest)
        return found

    def source_of(self, reader: str, partition: str, stop: Position | None) -> Source[bytes]:
        """Return the source of the elements that a reader has not acknowledged."""
        self._check_open()
        index = self._index(partition)
        self._check_reads(reader, index)
        return LogSource(self, index, *check_range("earliest", stop), reader)

    def _check_reads(self, reader: str, index: int) -> None:
        """Raise UsageError if the log has no such reader, or it does not read a partition."""
        reads = self.reader_state(reader).reads
        if reads is not None and index not in reads:
            raise UsageError(
                f"the reader {shown(reader)} does not read partition {shown(self._names[index])}, "
                f"it reads {shown([self._names[each] for each in reads])}: give "
                "add_reader(partitions=[...]) more"
            )

    async def acknowledge(self, positions: Mapping[str, int]) -> None:
        self._check_writable()
        if not self._retention.acknowledged:
            raise UsageError(
                "this log keeps elements by count, bytes or age, and not until they are "
                "acknowledged; open it with Retention(acknowledged=True)"
            )
        if self._readers:
            raise UsageError(
                f"this log has the readers {shown(list(self._readers))}, and each acknowledges for "
                "itself: use log.reader(name).acknowledge()"
            )
        await self.acknowledge_as(None, positions)

    async def acknowledge_as(self, reader: str | None, positions: Mapping[str, int]) -> None:
        """Acknowledge positions for one reader, or for a log without readers."""
        check_in_trio("acknowledging positions of a log")
        self._check_writable()
        checked = check_map(positions, self._places, "acknowledge()")
        await trio.lowlevel.checkpoint_if_cancelled()
        for name, position in checked.items():
            state = self._states[self._index(name)]
            if position > state.latest:
                raise not_retained(name, position, state.earliest, state.latest)
        places = {self._index(name): place for name, place in checked.items()}
        if reader is not None:
            for index in places:
                self._check_reads(reader, index)
            if self.reader_state(reader).has(places):
                # A peer that repeats an acknowledgement costs no sync of the disk.
                await trio.lowlevel.checkpoint()
                return
        await self._submit(Acknowledge(places, reader))

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
        check_in_trio("Log.add_reader()")
        self._check_writable()
        bounds = {"max_count": max_count, "max_bytes": max_bytes, "max_age": max_age}
        check_reader(name, start, bounds, self._retention)
        if name not in self._readers and len(self._readers) >= MOST_READERS:
            raise UsageError(
                f"the log has {MOST_READERS} readers, and no room for another one: remove those "
                f"that are not used, as in log.reader({shown(next(iter(self._readers)))}).remove()"
            )
        reads = None
        if partitions is not None:
            reads = tuple(sorted(map(self._index, check_partitions(partitions))))
        await trio.lowlevel.checkpoint_if_cancelled()
        # A float, as the file has it.
        age = None if max_age is None else float(max_age)
        await self._submit(
            AddReader(name, reads, (max_count, max_bytes, age), is_at_the_end=start == "latest")
        )
        return self.reader(name)

    async def remove_reader(self, name: str) -> None:
        """Forget a reader."""
        check_in_trio("removing a reader of a log")
        self._check_writable()
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._submit(RemoveReader(name))

    def reader(self, name: str) -> NamedReader:
        self._check_writable()
        self.reader_state(name)
        return StoredReader(self, name)

    @property
    def readers(self) -> tuple[str, ...]:
        return tuple(sorted(self._readers))

    def reader_state(self, name: str) -> ReaderState:
        """Return what is known of a reader. Raises UsageError for another name."""
        if name not in self._readers:
            raise UsageError(
                f"the log has no reader {shown(name)}, it has {shown(list(self.readers))}: the "
                "program that has the log adds readers, with log.add_reader(name)"
            )
        return self._readers[name]

    def transaction(
        self,
        transaction_id: str,
        *,
        max_elements: int = MOST_STAGED,
        max_bytes: int = MOST_BYTES_AT_ONCE,
    ) -> Transaction:
        self._check_writable()
        return StagedTransaction(
            transaction_id,
            self._index,
            self._publish,
            max_elements=max_elements,
            max_bytes=max_bytes,
        )

    # --- room

    async def _publish(self, work: Publish) -> bool:
        check_in_trio("publishing a transaction")
        self._check_open()
        # Before the wait for room: a second publish brings no elements,
        # and must not wait for a reader.
        if self.is_published(work.transaction_id):
            await trio.lowlevel.checkpoint()
            return False
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._admit(loads_of(work), work.transaction_id)
        # If the first publish of the id was on its way to the disk until now,
        # this one comes after it and brings nothing.
        return bool(await self._submit(work))

    async def _admit(self, loads: Sequence[Load], transaction_id: str | None = None) -> None:
        """Wait until there is room for these elements,
        or the transaction is published by another task.
        """
        self._check_open()
        # Before the wait: elements that exceed a bound by themselves would wait without end.
        for each in loads:
            self._refuse_if_it_never_fits(each)
        # A locked turn means that an earlier append waits for room:
        # this one waits for it, although it would fit.
        if self._has_room(loads) and not any(
            self._turns[each.partition].locked() for each in loads
        ):
            return
        async with AsyncExitStack() as turns:
            look_at = trio.current_time() if self._readers else inf
            # In the order of the partitions:
            # two transactions that wait for each other's turn would wait without end.
            for index in sorted(each.partition for each in loads):
                await turns.enter_async_context(self._turns[index])
            while not (
                self._has_room(loads)
                or (transaction_id is not None and self.is_published(transaction_id))
            ):
                # Before the wait: a log that was closed meanwhile wakes no task.
                self._check_open()
                if look_at <= trio.current_time():
                    # A reader that holds too much with these elements makes room. Not with each
                    # change: each of these looks is a change itself.
                    look_at = trio.current_time() + self._seconds_to_next_look()
                    await self._submit(MakeRoom(tuple(loads)))
                    continue
                with trio.move_on_at(look_at):
                    await self._changed.park()

    def _seconds_to_next_look(self) -> float:
        """Return how long an append waits until the ages that readers hold are looked at again."""
        ages = [each.max_age for each in self._readers.values() if each.max_age is not None]
        return max(SHORTEST_LOOK, min([LONGEST_LOOK, *(age / PARTS for age in ages)]))

    def _has_room(self, loads: Sequence[Load]) -> bool:
        waiting, size = (sum(column) for column in zip(*self._waiting.values(), strict=True))
        # Only if other work waits: a transaction may have more than MOST_AT_ONCE elements,
        # and goes alone.
        if waiting and (waiting + sum(each.length for each in loads) > MOST_AT_ONCE):
            return False
        if waiting and (size + sum(each.size for each in loads) > MOST_BYTES_AT_ONCE):
            return False
        return not self._retention.acknowledged or all(map(self._is_within_bounds, loads))

    def _is_within_bounds(self, load: Load) -> bool:
        state, (waiting, size) = self._states[load.partition], self._waiting[load.partition]
        if not self._retention.waits(state):
            return True
        count = state.latest - state.earliest + waiting + load.length
        return self._retention.exceeded_by(count, state.size + size + load.size) is None

    def _refuse_if_it_never_fits(self, load: Load) -> None:
        bound = self._retention.exceeded_by(load.length, load.size)
        if bound is not None:
            value = getattr(self._retention, bound)
            raise LimitExceeded(
                f"{load.length:,} elements of {load.size:,} bytes together exceed "
                f"Retention({bound}={value:,}), so the log would never have room for them: append "
                "fewer at once, or open the log with a higher bound",
                limit=bound,
                value=value,
            )

    # --- reading

    async def _wait_latest(self, after: dict[str, int], seconds: float | None) -> dict[str, int]:
        check_in_trio("Log.latest(after=...)")
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(inf if seconds is None else seconds):
            while not any(
                self._states[self._index(name)].latest > position
                for name, position in after.items()
            ):
                # Before the wait: a log that was closed meanwhile wakes no task.
                self._check_may_change()
                await self._changed.park()
        self._check_open()
        return {name: state.latest for name, state in zip(self._names, self._states, strict=True)}

    def _index(self, partition: str) -> int:
        try:
            return self._places[partition]
        # An unhashable one is refused as well.
        except (KeyError, TypeError):
            raise unknown_partition(partition, self._names) from None

    def at_hand(self, index: int, position: int, stop: int | None, most: int) -> Sequence[bytes]:
        """Do as `ReadLog` says: here all elements are waited for."""
        return ()

    def end_of(self, index: int) -> int | None:
        """Do as `ReadLog` says."""
        return self._states[index].latest

    def place_of(self, reader: str, index: int) -> int:
        """Return the position where a reader goes on. Raises PositionNotRetained if the log lacks
        elements that it has not acknowledged.
        """
        self._check_open()
        state, position = self._states[index], self.reader_state(reader).position(index)
        if position < state.earliest:
            raise lost_to_reader(reader, self._names[index], position, state.earliest, state.latest)
        return position

    def resolve(self, index: int, start: Position, stop: Position | None) -> tuple[int, int | None]:
        """Return the positions that a stream that begins now has to hand over.
        Raises PositionNotRetained.
        """
        self._check_open()
        if not isinstance(start, str) and start > self._states[index].latest:
            self._look()
        state = self._states[index]
        words = {"earliest": state.earliest, "latest": state.latest}
        first = words[start] if isinstance(start, str) else start
        end = words[stop] if isinstance(stop, str) else stop
        if not state.earliest <= first <= state.latest:
            raise not_retained(self._names[index], first, state.earliest, state.latest)
        if end is not None and end < first:
            raise UsageError(f"the source starts at {first:,} now, behind its stop at {end:,}")
        return first, end

    async def read_next(
        self, index: int, position: int, stop: int | None, most: int, step: int, owner: Hashable
    ) -> Sequence[bytes]:
        """Do as `ReadLog` says."""
        while stop is None or position < stop:
            # Before the wait as well: a log that was closed during a read wakes no task.
            self._check_open()
            # Anew for each step: elements may have been dropped since the last one.
            state = self._states[index]
            if position < state.earliest:
                raise not_retained(self._names[index], position, state.earliest, state.latest)
            if position < state.latest:
                end = min(position + most, state.latest if stop is None else stop, state.latest)
                return await self._read(index, position, end, step, owner)
            self._check_may_change()
            await self._changed.park()
        return ()


class LogSource(Source[bytes]):
    """The elements of a partition between two places. `"earliest"` and `"latest"` become
    positions when a subscriber subscribes.
    """

    __slots__ = ("_index", "_log", "_reader", "_start", "_stop")

    def __init__(
        self,
        log: LogBase,
        index: int,
        start: Position,
        stop: Position | None,
        reader: str | None = None,
    ) -> None:
        """With a `reader` its place counts, and not `start`."""
        self._log = log
        self._index = index
        self._start = start
        self._stop = stop
        self._reader = reader

    def starting_at(self, start: PlaceInStream) -> "LogSource":
        """Return the same elements from another place on."""
        return LogSource(self._log, self._index, *check_range(start, self._stop))

    def attach(self, subscriber: Subscriber[bytes], scope: Scope) -> None:
        try:
            # A failure of the stream: the places are looked up for each subscriber,
            # and the call of `source` is over by then.
            start = self._start
            if self._reader is not None:
                start = self._log.place_of(self._reader, self._index)
            first, end = self._log.resolve(self._index, start, self._stop)
        except (LogError, UsageError) as error:
            failed(error).attach(subscriber, scope)
            return
        tell = on_fact_of(subscriber)
        if tell is not None:
            # Before the first element: a subscriber that counts from it has to know its position.
            name = self._log.partitions[self._index]
            tell(Positions(first, self._log.earliest()[name], self._log.latest()[name]))
        if first == end:
            # rule 1.5: the end is known, so no demand is needed for it.
            empty().attach(subscriber, scope)
            return
        opens = partial(LogReader, self._log, self._index, first, end, scope.memory)
        IteratorSource(opens, label=repr(self)).attach(subscriber, scope)

    def __repr__(self) -> str:
        stop = "on" if self._stop is None else f"to {self._stop}"
        return (
            f"<source of partition {self._log.partitions[self._index]!r} from {self._start} {stop}>"
        )


class StoredReader(NamedReader):
    """A reader of one log."""

    def __init__(self, log: LogBase, name: str) -> None:
        self._log = log
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def positions(self) -> dict[str, int]:
        state, names = self._log.reader_state(self._name), self._log.partitions
        reads = range(len(names)) if state.reads is None else state.reads
        return {names[index]: state.position(index) for index in reads}

    def dropped(self) -> tuple[str, ...]:
        state = self._log.reader_state(self._name)
        names = enumerate(self._log.partitions)
        return tuple(name for index, name in names if state.is_dropped(index))

    def source(
        self, partition: str = DEFAULT_PARTITION, stop: Position | None = None
    ) -> Source[bytes]:
        return self._log.source_of(self._name, partition, stop)

    async def acknowledge(self, positions: Mapping[str, int]) -> None:
        await self._log.acknowledge_as(self._name, positions)

    async def remove(self) -> None:
        await self._log.remove_reader(self._name)

    def __repr__(self) -> str:
        return f"<reader {self._name!r} of {self._log!r}>"
