"""Room on the disk that a log keeps for a repair.

Rules of this file:

* The room is one more file, PATH-reserve. On a full disk it is deleted: then the log can be opened
  for writing, and can drop elements. Without room SQLite can do neither.
* No element gets this room: the rest that the repair has not needed is taken back at once.
* A log makes the file when the disk has twice its room.
"""

import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from penstock.logs._disk_files import CHECKPOINT_PAGES, beside, size_of
from penstock.logs._retention import Retention

PAGE: Final = 4_096

FOR_REPAIR: Final = 512 << 10
"""Bytes for PATH-shm, and for the pages that change when a log is opened and drops elements: one of
about 450 that become free.
"""

FOR_GROWTH: Final = CHECKPOINT_PAGES * PAGE
"""Bytes by which the main file may have to grow before PATH-wal is empty."""

RETRY: Final = 10.0
"""Seconds between two tries to make the file again."""

FULL: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE}
"""The codes of SQLite for a disk without room."""

T = TypeVar("T")


def is_full(error: BaseException) -> bool:
    """Return whether an error of SQLite says that the disk has no room."""
    return getattr(error, "sqlite_errorcode", None) in FULL


class Reserve:
    """The file PATH-reserve of one log."""

    def __init__(self, path: Path, retention: Retention) -> None:
        self._path = beside(path, "-reserve")
        growth = FOR_GROWTH
        if retention.max_bytes is not None:
            growth = min(growth, 2 * retention.max_bytes)
        self._size = FOR_REPAIR + growth
        self._tried = float("-inf")
        self.is_spent: bool = False
        """The log has the room now."""

    def spend(self) -> bool:
        """Give the room to the log. Return whether there was some."""
        if size_of(self._path) == 0:
            return False
        with suppress(OSError):
            self._path.unlink()
            self.is_spent = True
        return self.is_spent

    def use(self, function: Callable[[], T]) -> T:
        """Call `function`; on a full disk again, with the room."""
        try:
            return function()
        except sqlite3.Error as error:
            if not (is_full(error) and self.spend()):
                raise
        try:
            return function()
        finally:
            self.take_back()

    def restore(self) -> None:
        """Make the file again if it is missing, and the disk has room for it and for others."""
        now = time.monotonic()
        if now - self._tried < RETRY or size_of(self._path) >= self._size:
            return
        self._tried = now
        if self._free() >= 2 * self._size:
            self._make(self._size)

    def take_back(self) -> None:
        """Make the file again after it was spent, as large as the disk allows."""
        self.is_spent = False
        size = min(self._size, self._free())
        if size > size_of(self._path):
            self._make(size)

    def _free(self) -> int:
        try:
            return shutil.disk_usage(self._path.parent).free
        except OSError:
            return 0

    def _make(self, size: int) -> None:
        try:
            with self._path.open("wb") as file:
                _allocate(file.fileno(), size)
        except OSError:
            # The room went meanwhile, or the user may have no more.
            self._path.unlink(missing_ok=True)


def _allocate(file: int, size: int) -> None:
    if sys.platform == "linux":
        os.posix_fallocate(file, 0, size)
    else:
        os.write(file, bytes(size))
