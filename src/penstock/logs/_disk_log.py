"""A log on disk: a file of SQLite, synced before `append` returns."""

import sqlite3
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self, TypeVar, overload

import trio

from penstock.api import (
    InternalError,
    LogDamaged,
    LogError,
    LogLocked,
    PositionNotRetained,
    UsageError,
)
from penstock.core import check_in_trio, check_seconds
from penstock.logs._backup import back_up
from penstock.logs._disk_errors import FAULTS, explain
from penstock.logs._disk_files import (
    check_kind,
    check_presence,
    mark_made,
    note_closed,
    note_open,
    open_file,
    real_path,
    take_lock,
    was_made,
)
from penstock.logs._disk_reader import DiskReader
from penstock.logs._disk_reserve import Reserve
from penstock.logs._disk_store import DiskStore
from penstock.logs._disk_writer import DiskWriter, Ticket
from penstock.logs._log import Written
from penstock.logs._log_base import LOOKS, LogBase
from penstock.logs._positions import DEFAULT_PARTITION
from penstock.logs._read_only import Follower, ReadOnlyFiles
from penstock.logs._read_turns import ReadTurns
from penstock.logs._readers import ReaderState
from penstock.logs._retention import DROPS_NOTHING, Retention
from penstock.logs._staged_elements import StagedElements
from penstock.logs._work import (
    MOST_TRANSACTIONS,
    PartitionState,
    Publish,
    Result,
    Unstage,
    Work,
)

T = TypeVar("T")

LOOKS_FOR_LOCK: Final = 0.1
"""Seconds between two looks whether another writer has closed the log."""

MOST_AHEAD: Final = 8_192
"""Elements that a stream may hold ready. Fewer make the change to a thread and back the larger part
of the cost.
"""


class _Opened(NamedTuple):
    """The resources of a log that is open for writing: the tables, the connection that reads, and
    the connection with the lock.
    """

    store: DiskStore
    reader: DiskReader
    reserve: Reserve
    lock: sqlite3.Connection

    @property
    def names(self) -> Sequence[str]:
        return self.store.names

    @property
    def states(self) -> Sequence[PartitionState]:
        return self.store.states

    def read(self, number: int, name: str, position: int, stop: int, most: int) -> Sequence[bytes]:
        return self.reader.read(number, name, position, stop, most)

    def positions_at(self, numbers: Sequence[int], time: float) -> Sequence[int]:
        return [self.reader.position_at(number, time) for number in numbers]

    def times(self, number: int, start: int, stop: int) -> list[Written]:
        return self.reader.times(number, start, stop)

    def close(self) -> None:
        try:
            self.reserve.use(partial(self.store.mark, is_open=False))
        except sqlite3.Error:
            # The disk is full or gone. All that was appended is in PATH-wal, and the next opening
            # finds it there: see `DiskStore.close`.
            self.store.close()
            self.reader.close()
        else:
            self.reader.close()
            self.store.close()
        # Last: until here no other writer may open the files.
        self.lock.close()


class DiskLog(LogBase):
    """A log in a file: elements that were appended are there after a crash of the program,
    or of the machine.

    ::

        async with DiskLog("orders.log", retention=Retention(max_bytes=1_000_000_000)) as log:
            await log.append([b"first", b"second"])

    Beside the file PATH stand PATH-wal, PATH-shm and PATH-lock: move, copy and delete them
    together, while the log is closed. PATH-reserve is room for a repair on a full disk, at most
    4.4 MiB; it needs no copy.
    `partitions` are added to those that the file has.
    `clock` returns the seconds that ages are counted in, and the times of elements (`Log.times`);
    it must go on while the program does not run.
    ``accept_loss=True`` opens a log whose PATH-wal is missing, without the elements in it.
    `wait` is how many seconds opening waits for another writer to close the log: a rolling restart
    starts the next program before the old one has ended.

    ``DiskLog(path, read_only=True)`` opens a log for reading, and writes nothing: also on a full
    disk, on a read-only file system, and in many processes beside the one that writes. It has the
    partitions of the file, and new elements come within 0.2 seconds. Appending raises UsageError.

    Opening raises LogLocked if the log is open for writing already, LogDamaged if its files are not
    as the log left them, and LogError if they cannot be opened. Reading raises LogDamaged for
    elements that were changed; a source that starts after them is not affected.
    """

    most_ahead: int = MOST_AHEAD

    @overload
    def __init__(
        self,
        path: str | PathLike[str],
        *,
        retention: Retention,
        partitions: Iterable[str] = ...,
        clock: Callable[[], float] = ...,
        accept_loss: bool = ...,
        wait: float = ...,
    ) -> None: ...

    @overload
    def __init__(
        self,
        path: str | PathLike[str],
        *,
        read_only: Literal[True],
        accept_loss: bool = ...,
    ) -> None: ...

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        retention: Retention | None = None,
        partitions: Iterable[str] = (DEFAULT_PARTITION,),
        clock: Callable[[], float] = time.time,
        accept_loss: bool = False,
        read_only: bool = False,
        wait: float = 0.0,
    ) -> None:
        if read_only and retention is not None:
            raise UsageError(
                "a log that is open for reading only drops nothing: leave retention out, or leave "
                "read_only=True out to append"
            )
        super().__init__(partitions, DROPS_NOTHING if read_only else retention)
        self._path = Path(path)
        self._clock = clock
        self._accept_loss = accept_loss
        self._read_only = read_only
        self._wait = check_seconds(wait, "wait", zero=True)
        self._thread: DiskWriter | Follower | None = None
        self._opened: _Opened | ReadOnlyFiles | None = None
        # The ids whose commit has come back.
        # The store has an id before its commit, which may still fail.
        self._published: dict[str, None] = {}
        self.staged: StagedElements = StagedElements(self._submit, self._put, clock)
        """What `penstock.receive` has staged in the file."""
        # One connection reads, so one thread at a time does.
        self._turns_to_read = ReadTurns()
        # Of its own: the threads of the program must not wait for those that read, nor these for
        # them.
        self._reading = trio.CapacityLimiter(1)

    async def __aenter__(self) -> Self:
        check_in_trio("opening a DiskLog")
        if self._opened is not None:
            raise UsageError(
                f"{self!r} is open already; open it once, and give the open log to all tasks"
            )
        opened = self._opened = await self._open_in_turn()
        readers: tuple[ReaderState, ...] = ()
        if isinstance(opened, _Opened):
            readers = tuple(opened.store.readers.known.values())
        self._begin(tuple(opened.names), opened.states, readers)
        if isinstance(opened, ReadOnlyFiles):
            self._thread = Follower(opened, self._update)
        else:
            self._published = dict(opened.store.published)
            self._thread = DiskWriter(opened.store, opened.reserve, self._deliver)
            self.staged.opened(opened.store.attempts, opened.store.last_attempt)
        self._thread.start()
        return self

    async def _open_in_turn(self) -> _Opened | ReadOnlyFiles:
        """Open the files, and wait for their writer. Raises as the class says."""
        deadline = trio.current_time() + self._wait
        while True:
            try:
                # In a thread: loading goes through the rows of all groups, and waits for the disk.
                return await trio.to_thread.run_sync(self._open)
            except LogLocked:
                if trio.current_time() >= deadline:
                    raise
            await trio.sleep(LOOKS_FOR_LOCK)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Commit what waits, and close the files. Streams of this log and tasks that wait for it
        fail with UsageError. Checkpoints.
        """
        # From here on `_check_open` refuses work, so no work is put after `stop`.
        thread, self._thread = self._thread, None
        if thread is None:
            await trio.lowlevel.checkpoint()
            return
        # Tasks that wait for room or for elements find the log closed.
        self._changed.unpark_all()
        thread.stop()
        # Bounded by the disk: at most MOST_AT_ONCE elements wait.
        # A shield, because a log that is not closed stays locked.
        with trio.CancelScope(shield=True):
            await thread.ended.wait()
            # In a turn: a read that is under way has the connection until it ends.
            await self._turns_to_read.take(self)
            try:
                await trio.to_thread.run_sync(self._close, limiter=self._reading)
            finally:
                self._turns_to_read.pass_on()

    async def backup(self, path: str | PathLike[str]) -> None:
        """Copy the log, as it is at one moment of the call, to a new file. Appends, reads and drops
        go on. Checkpoints.

        The copy is a closed log: one file, which `DiskLog` opens. Each element of it has been
        checked. While the copy is made, PATH-wal keeps what is appended.
        Raises LogError if the file exists or cannot be written, and LogDamaged if the log is
        damaged; then there is no copy.
        """
        check_in_trio("DiskLog.backup()")
        self._check_open()
        stopped = threading.Event()
        try:
            await trio.to_thread.run_sync(
                back_up, self._path, real_path(path), stopped, abandon_on_cancel=True
            )
        finally:
            stopped.set()

    # --- in threads

    def _open(self) -> _Opened | ReadOnlyFiles:
        # The program may change its folder while the log is open.
        self._path = real_path(self._path.absolute())
        if self._read_only:
            try:
                return ReadOnlyFiles(self._path, accept_loss=self._accept_loss)
            except FAULTS as error:
                raise explain(error, self._path, read_only=True) from error
        check_kind(self._path, may_begin=True)
        reserve = Reserve(self._path, self._retention)
        try:
            return reserve.use(lambda: self._open_to_write(reserve))
        except FAULTS as error:
            raise explain(error, self._path) from error

    def _open_to_write(self, reserve: Reserve) -> _Opened:
        lock = take_lock(self._path)
        note_open(self._path)
        try:
            check_presence(self._path, had_log=was_made(lock))
            connection, reader = open_file(self._path, accept_loss=self._accept_loss)
            try:
                store = DiskStore(connection, self._path, self._retention, self._clock)
                store.load(self._names)
                store.mark(is_open=True)
                if reserve.is_spent:
                    with suppress(sqlite3.Error):  # the room is used again, at least
                        store.give_room()
                mark_made(lock)
            except BaseException:
                # In this order, as in `_Opened.close`.
                connection.close()
                reader.close()
                raise
        except BaseException:
            # Else the log could not be opened again after a repair, before this process ends.
            note_closed(self._path)
            lock.close()
            raise
        note_open(self._path)  # it may be a new file
        reserve.restore()
        return _Opened(store, reader, reserve, lock)

    def _close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is None:
            return
        opened.close()
        if isinstance(opened, _Opened):
            note_closed(self._path)

    # --- for the base class

    def _check_open(self) -> None:
        if self._thread is None:
            raise self._not_open()

    def _check_writable(self) -> None:
        self._check_open()
        if self._read_only:
            raise UsageError(
                f"{self!r} is open for reading only: leave read_only=True out, and give retention, "
                "to append to it"
            )

    def _look(self) -> None:
        # In the run loop: a client that comes from another worker begins behind what the thread has
        # seen, and must not be refused.
        if isinstance(self._opened, ReadOnlyFiles):
            # Damage is told to the streams that read it.
            with suppress(LogError, *FAULTS):
                states = self._opened.look()
                if states != self._states:
                    self._update(states)

    def is_published(self, transaction_id: str) -> bool:
        self._check_writable()
        return transaction_id in self._published

    async def _submit(self, work: Work) -> Result:
        self._check_writable()
        self._check_run()
        assert isinstance(self._thread, DiskWriter)  # noqa: S101 (for the type checker: it is open)
        ticket = Ticket(work)
        # Nothing has waited since `_admit`: from here on other appends see that this room is taken.
        self._count(work, 1)
        self._thread.put(ticket)
        # A cancel does not take the work back:
        # the thread commits it, as the docstring of `Log.append` says.
        await ticket.done.wait()
        if ticket.error is not None:
            raise self._error_of(ticket.error)
        return ticket.result

    def _put(self, work: Unstage) -> None:
        """Give work to the thread, if the log is open, and wait for nothing."""
        if isinstance(self._thread, DiskWriter):
            self._thread.put(Ticket(work))

    async def _read(
        self, index: int, position: int, stop: int, step: int, owner: Hashable
    ) -> Sequence[bytes]:
        return await self._in_thread(
            owner, partial(self._read_in_thread, index, position, stop, step)
        )

    async def _read_each(self, places: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """Read all places in one call of the thread: a thousand calls took three times as long."""
        return await self._in_thread(LOOKS, partial(self._read_each_in_thread, places))

    async def _positions_at(self, indexes: Sequence[int], time: float) -> Sequence[int]:
        return await self._in_thread(
            LOOKS, partial(self._with_files, lambda files: files.positions_at(indexes, time))
        )

    async def _times(self, index: int, start: int, stop: int) -> list[Written]:
        return await self._in_thread(
            LOOKS, partial(self._with_files, lambda files: files.times(index, start, stop))
        )

    async def _in_thread(self, owner: Hashable, read: Callable[[], T]) -> T:
        """Return what `read` returns in the thread, in the turn of `owner`."""
        self._check_run()
        await self._turns_to_read.take(owner)
        try:
            return await trio.to_thread.run_sync(read, limiter=self._reading)
        finally:
            self._turns_to_read.pass_on()

    def _read_each_in_thread(self, places: Sequence[tuple[int, int]]) -> list[bytes | None]:
        found: list[bytes | None] = []
        for index, position in places:
            try:
                [element] = self._read_in_thread(index, position, position + 1, 1)
            except PositionNotRetained:
                element = None
            found.append(element)
        return found

    def _read_in_thread(self, index: int, position: int, stop: int, step: int) -> Sequence[bytes]:
        name = self._names[index]
        return self._with_files(lambda files: files.read(index, name, position, stop, step))

    def _with_files(self, read: Callable[[_Opened | ReadOnlyFiles], T]) -> T:
        """Return what `read` returns. Raises LogError."""
        if self._opened is None:  # closed while this read waited for its turn
            raise UsageError(f"{self!r} was closed while a stream read from it")
        try:
            return read(self._opened)
        except FAULTS as error:
            raise explain(error, self._path, read_only=self._read_only) from error

    def _deliver(
        self,
        tickets: Sequence[Ticket],
        results: Sequence[Result],
        states: Sequence[PartitionState],
        readers: Sequence[ReaderState],
        error: Exception | None,
    ) -> None:
        for number, ticket in enumerate(tickets):
            # Also after a failure these elements wait no longer.
            self._count(ticket.work, -1)
            result = None if error is not None else results[number]
            ticket.error = result if isinstance(result, LogDamaged) else error
            ticket.result = result
            if isinstance(ticket.work, Publish) and result is True:
                self._published[ticket.work.transaction_id] = None
            elif isinstance(ticket.work, Unstage):
                self.staged.unstaged(ticket.work, is_done=error is None)
            ticket.done.set()
        while len(self._published) > MOST_TRANSACTIONS:
            del self._published[next(iter(self._published))]
        self._update(states, readers)

    def _error_of(self, error: Exception) -> Exception:
        """Return a new error for each task:
        one that is raised twice would collect the frames of both.
        """
        if isinstance(error, FAULTS):
            return explain(error, self._path)
        if isinstance(error, LogDamaged):
            return LogDamaged(str(error))
        return InternalError(
            f"the thread that writes {self._path} failed with {type(error).__name__}: {error}; "
            "please report it"
        )

    def __repr__(self) -> str:
        state = "closed" if self._opened is None else f"{len(self._names)} partitions"
        return f"<DiskLog {str(self._path)!r}: {state}>"
