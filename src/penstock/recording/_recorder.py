"""`Recorder`: gives each stream a tap, and writes the rows of all taps into files, from a separate
thread.

Rules of this file:

* A stream never waits for the recorder.
  Rows that find no room, and rows that the disk refuses, are dropped and counted.
* The thread starts with the first stream that is recorded, so a recorder
  that records nothing costs nothing.
* A process that is forked has no thread, and must not touch the files of its parent. So its
  recorders begin anew, as another process.
"""

import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from secrets import randbits
from time import time_ns
from types import TracebackType
from typing import Any, Final, Literal, Self

from penstock.api import SignalTap, UsageError
from penstock.core import LimitedLog
from penstock.recording._tap import Intake, RowTap, StreamFacts
from penstock.recording._writer_thread import LOG, WriterThread
from penstock.spi import ConnectionClosed, ConnectionOpened, StreamOpened, hookimpl

_INSTALL: Final = (
    "recording needs pyarrow and numpy; install them with: pip install 'penstock[record]'"
)

_FORKED: Final = (
    "this process was forked from one that recorded. Streams that were open then are not recorded "
    "here: their rows are counted as dropped"
)

Sample = float | Callable[[StreamOpened], bool]


class Recorder:
    """Records the signals of streams into a folder.

    It is a plugin: ``build_registry([recorder])`` records every stream of the connections that use
    the registry, in both directions, and ``serve(service, url, record=recorder)`` those of a
    server. `tap` records streams inside the process, with the operator ``record``.

    `sample` is the share of streams that are recorded, or a function that decides about each. With
    ``detail="signals"`` each call of `on_next` gets a row; else neighbouring elements share one. A
    file ends after `rotate_seconds` or `rotate_bytes`. At most `max_rows` rows wait for the thread,
    56 bytes each; the others are dropped and counted. Use it as a context manager, or call `close`:
    the last rows are written then. If the process is killed, the rows of the file
    that was being written are lost.

    After `os.fork` the child records as another process, with its own number and files. The streams
    that were open at the fork go on in the parent: if the child uses one, its rows there are
    dropped and counted.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        sample: Sample = 1.0,
        detail: Literal["runs", "signals"] = "runs",
        rotate_seconds: float = 60.0,
        rotate_bytes: int = 64 * 1024 * 1024,
        max_rows: int = 262_144,
    ) -> None:
        """Raises UsageError for values that cannot be meant, and if pyarrow or numpy is missing."""
        if not callable(sample) and not 0.0 <= sample <= 1.0:
            raise UsageError(
                f"Recorder(sample={sample!r}): give a share from 0 to 1, or a function that gets a "
                "StreamOpened"
            )
        if detail not in ("runs", "signals"):
            raise UsageError(f"Recorder(detail={detail!r}): give 'runs' or 'signals'")
        if rotate_seconds <= 0 or rotate_bytes <= 0 or max_rows <= 0:
            raise UsageError(
                "Recorder(): rotate_seconds, rotate_bytes and max_rows must be positive"
            )
        self.folder: Path = Path(folder)
        self.process: int = randbits(62)
        """The number of this process in the files."""
        try:
            # Here: programs that record nothing must not import these libraries.
            from penstock.recording._files import RecordFiles  # noqa: PLC0415  # it takes 0.2 s, and may fail
        except ImportError as error:
            raise UsageError(f"{_INSTALL} ({error})") from None
        self._files = RecordFiles(self.folder, self.process)
        self._sample = sample
        self._each_signal = detail == "signals"
        self._intake = Intake(max_rows)
        self._count = 0  # of the streams that were recorded
        self._asked = 0
        self._peers: dict[int, str] = {}  # bounded by the connections that are open
        self._thread: WriterThread | None = None
        self._stop_at_end: weakref.finalize[[], Any] | None = None
        self._rotate = rotate_seconds, rotate_bytes
        self._lock = threading.Lock()  # around the start and the end of the thread
        self._is_closed = False
        self._was_told = False  # that rows of the parent's streams are dropped
        _recorders.add(self)

    # --- for users

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def dropped(self) -> int:
        """How many rows were dropped, because too many waited or the disk refused them."""
        thread = self._thread
        return self._intake.dropped + (0 if thread is None else thread.refused)

    @property
    def rows(self) -> int:
        """How many rows are in files, those of the unfinished file included."""
        thread = self._thread
        return 0 if thread is None else thread.rows

    @property
    def streams_left_out(self) -> int:
        """How many streams were not recorded, because the list of new streams was full."""
        return self._intake.streams_left_out

    def tap(self, name: str, /) -> SignalTap | None:
        """Return the tap of a new stream inside this process, for the operator ``record``;
        None if `sample` leaves it out.
        """
        return self._tap(
            StreamOpened(connection=0, stream=0, publisher=name, outbound=True, pattern=name)
        )

    def close(self) -> None:
        """Write what waits, and end the files. Streams that still run are not recorded any more.
        Waits for the disk, not for a stream.
        """
        with self._lock:
            self._is_closed = True
            thread = self._thread
        if thread is not None:
            thread.stop()

    def __repr__(self) -> str:
        return (
            f"<Recorder {str(self.folder)!r}: {self._count} streams, {self.rows} rows, "
            f"{self.dropped} dropped>"
        )

    # --- hooks

    @hookimpl
    def penstock_connection_opened(self, event: ConnectionOpened) -> None:
        """Remember who the peer is."""
        self._peers[event.connection] = event.peer.address

    @hookimpl
    def penstock_connection_closed(self, event: ConnectionClosed) -> None:
        """Forget the peer."""
        self._peers.pop(event.connection, None)

    @hookimpl
    def penstock_signals(self, event: StreamOpened) -> SignalTap | None:
        """Return the tap of a stream of a connection."""
        return self._tap(event)

    # --- inside

    def _tap(self, event: StreamOpened) -> SignalTap | None:
        if self._is_closed or not self._is_wanted(event):
            return None
        intake = self._intake
        if len(intake.begun) >= intake.max_rows:
            intake.streams_left_out += 1
            return None
        if self._thread is None:
            self._start()
        self._count += 1
        recorded = StreamFacts(
            subscription=self._count,
            connection=event.connection,
            stream=event.stream,
            outbound=event.outbound,
            publisher=event.publisher,
            pattern=event.pattern,
            peer=self._peers.get(event.connection, ""),
            began=time_ns(),
        )
        intake.begun.append(recorded)
        return RowTap(recorded, intake, each_signal=self._each_signal)

    def _is_wanted(self, event: StreamOpened) -> bool:
        if callable(self._sample):
            return bool(self._sample(event))
        # Evenly and without chance: every tenth stream for 0.1.
        self._asked += 1
        return int(self._asked * self._sample) > int((self._asked - 1) * self._sample)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._is_closed:
                seconds, size = self._rotate
                self._thread = WriterThread(
                    self._files, self._intake, rotate_seconds=seconds, rotate_bytes=size
                )
                self._thread.start()
                # Also at the end of the program:
                # the last rows of a recorder that was not closed are written then.
                self._stop_at_end = weakref.finalize(self, self._thread.stop)
                # A process of multiprocessing ends without that,
                # and calls only what is registered there.
                if (multiprocessing := sys.modules.get("multiprocessing.util")) is not None:
                    multiprocessing.Finalize(self, self._thread.stop, exitpriority=0)

    def begin_anew(self) -> None:
        """Become the recorder of a process that was forked right now. The rows that wait are the
        parent's, and so are its files.
        """
        if self._stop_at_end is not None:
            # Not to be called here: the thread does not exist, and a lock that it waits for may
            # never be released.
            self._stop_at_end.detach()
            self._stop_at_end = None
        self._files.leave_to_parent()
        self.process = randbits(62)
        self._files = type(self._files)(self.folder, self.process)
        # The taps of the parent's streams keep the old one, in which nothing finds room.
        left, self._intake = self._intake, Intake(self._intake.max_rows)
        left.room = 0
        left.when_dropped = self._drop_of_parent
        self._count = 0
        self._thread = None
        self._lock = threading.Lock()
        self._was_told = False

    def _drop_of_parent(self) -> None:
        self._intake.drop()
        if not self._was_told:
            self._was_told = True
            LimitedLog(logging.getLogger(LOG)).write(logging.WARNING, "fork", _FORKED)
            # Else the number would be in no file.
            self._start()


_recorders: Final[weakref.WeakSet[Recorder]] = weakref.WeakSet()


def _after_fork() -> None:
    for recorder in list(_recorders):
        recorder.begin_anew()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
