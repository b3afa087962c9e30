"""The commits in the file PATH-wal of SQLite.

A commit is a row of frames, each with a version of a page. The last frame of a commit has the size
of the database. A frame counts if its checksum, which includes all frames before it, is right.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

WAL_HEADER: Final = 32
"""Bytes of the begin of the file. With fewer it has nothing."""

_FRAME: Final = 24


class WalCommit(NamedTuple):
    """A commit: where the file has the newest version of each of its pages."""

    page_size: int
    pages: dict[int, int]


def wal_commits(file: BinaryIO) -> Iterator[WalCommit]:
    """Yield each whole commit. Nothing in the file is trusted."""
    header = _read_at(file, WAL_HEADER, 0)
    if len(header) < WAL_HEADER:
        return
    magic, _, page_size = struct.unpack_from(">3I", header)
    order = ">" if magic & 1 else "<"
    sums = wal_sums(header[:24], order, (0, 0))
    # A page of another size, or of four bytes, would be read without an end.
    if sums != struct.unpack_from(">2I", header, 24) or not is_page_size(page_size):
        return
    pages: dict[int, int] = {}
    at = WAL_HEADER
    while True:
        frame = _read_at(file, _FRAME + page_size, at)
        if len(frame) < _FRAME + page_size or frame[8:16] != header[16:24]:
            return
        sums = wal_sums(frame[:8] + frame[_FRAME:], order, sums)
        number, size, _, _, *stored = struct.unpack_from(">6I", frame)
        if sums != tuple(stored):
            return
        pages[number] = at + _FRAME
        if size:
            yield WalCommit(page_size, pages)
            pages = {}
        at += _FRAME + page_size


def has_commit(path: Path) -> bool:
    """Return whether the file at `path` has a commit. SQLite tells what is wrong with one that
    cannot be read.
    """
    with suppress(OSError), path.open("rb") as file:
        return next(wal_commits(file), None) is not None
    return True


def is_page_size(size: int) -> bool:
    """Return whether SQLite can have pages of this size: a power of 2."""
    return 512 <= size <= 65_536 and not size & (size - 1)


def _read_at(file: BinaryIO, size: int, at: int) -> bytes:
    file.seek(at)
    return file.read(size)


def wal_sums(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """Return the checksum after `data`."""
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for one, other in zip(islice(words, 0, None, 2), islice(words, 1, None, 2), strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second
