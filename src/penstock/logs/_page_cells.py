"""Rows of tables in the pages of a SQLite file, read without the index that leads to them.

A page of rows has the offset of each of its cells. A cell has the length of a row, its key, and the
row, or the begin of the row and the number of the first of the pages that have the rest.

Rules of this file:

* Nothing in the file is trusted. Bytes that do not look like a row are passed over, and are never
  an error. The caller knows its rows by their checksums.
* PATH-wal counts up to its last whole commit, as it does for SQLite.
"""

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeAlias

from penstock.logs._wal_commits import is_page_size, wal_commits

Value: TypeAlias = int | float | bytes | str | None

PAGE_SIZE: Final = 4_096
"""Bytes of a page, if the file does not tell it: the default of SQLite."""

MOST_ROW_BYTES: Final = 16_777_216
"""Bytes of a row. The largest group of a log has 4 MiB of elements and 80,000 bytes of lengths."""

_LEAF: Final = 13
"""The type of a page with rows of a table."""

_MAGIC: Final = b"SQLite format 3\0"

# The begin of a row of six values: a NULL in the place of the key, four numbers, and bytes. A match
# is empty, because what precedes a row may look like the begin of one.
_ROW_OF_A_GROUP: Final = re.compile(rb"(?=[\x07-\x0c]\x00[\x01-\x09][\x00-\x09]{3})")

_NUMBER_BYTES: Final = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""Bytes of the values of the types 0 to 9."""


class CellPlace(NamedTuple):
    """Where a cell is: its page in one of the two files, and its offset in the page."""

    in_wal: bool
    page_at: int
    offset: int


class Cell(NamedTuple):
    """A row: its key, its values, and the other pages that it needed."""

    key: int
    values: tuple[Value, ...]
    pages: tuple[int, ...]


class PageFile:
    """The pages of a database of SQLite, the newest version of each."""

    def __init__(self, path: Path) -> None:
        self._main = path.open("rb")
        self._wal = None
        wal = path.with_name(path.name + "-wal")
        if wal.exists():
            self._wal = wal.open("rb")
        header = os.pread(self._main.fileno(), 100, 0)
        self.page_size = _page_size_of(header)
        self.page_count = -(-os.fstat(self._main.fileno()).st_size // self.page_size)
        self._frames: dict[int, int] = {}
        for commit in () if self._wal is None else wal_commits(self._wal):
            self.page_size = commit.page_size
            self._frames |= commit.pages

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._main.close()
        if self._wal is not None:
            self._wal.close()

    def places(self) -> Iterator[CellPlace]:
        """Yield each cell of each page of rows, also of pages that are not in use any more."""
        for page_at in range(0, self.page_count * self.page_size, self.page_size):
            yield from self._cells_of(in_wal=False, page_at=page_at, begin=0 if page_at else 100)
        for number, page_at in self._frames.items():
            yield from self._cells_of(in_wal=True, page_at=page_at, begin=100 * (number == 1))

    def _cells_of(self, *, in_wal: bool, page_at: int, begin: int) -> Iterator[CellPlace]:
        page = self._page_at(in_wal=in_wal, page_at=page_at)
        if len(page) < begin + 8 or page[begin] != _LEAF:
            return
        (count,) = struct.unpack_from(">H", page, begin + 3)
        offsets = struct.unpack_from(
            f">{min(count, (len(page) - begin - 8) // 2)}H", page, begin + 8
        )
        for offset in offsets:
            yield CellPlace(in_wal, page_at, offset)

    def places_of_groups(self, number: int) -> Iterator[CellPlace]:
        """Yield what looks like a cell of a group in a page whose list of cells was damaged."""
        page_at = (number - 1) * self.page_size
        page = self._page_at(in_wal=False, page_at=page_at)
        for match in _ROW_OF_A_GROUP.finditer(page):
            size = _payload_size(page, match.start())
            if size is None:
                continue
            length = _varint_of(size)
            for key_bytes in range(1, 10):
                offset = match.start() - key_bytes - len(length)
                if offset >= 0 and page[offset : offset + len(length)] == length:
                    yield CellPlace(in_wal=False, page_at=page_at, offset=offset)

    def cell(self, place: CellPlace) -> Cell | None:
        """Return the row at a place, or None if there is none."""
        page = self._page_at(in_wal=place.in_wal, page_at=place.page_at)
        size, at = _varint(page, place.offset)
        key, at = _varint(page, at)
        if not 0 < size <= MOST_ROW_BYTES:
            return None
        local = _local_bytes(size, self.page_size)
        payload = page[at : at + local]
        pages: tuple[int, ...] = ()
        if local < size:
            (following,) = struct.unpack(">I", page[at + local : at + local + 4].ljust(4, b"\0"))
            payload, pages = self._with_rest(payload, size, following)
        if len(payload) < size:
            return None
        values = _values(payload)
        return None if values is None else Cell(key, values, pages)

    def _with_rest(self, begin: bytes, size: int, following: int) -> tuple[bytes, tuple[int, ...]]:
        parts, left, pages = [begin], size - len(begin), []
        while left > 0 and following > 0:
            page = self._page(following)
            if len(page) < self.page_size:
                break
            pages.append(following)
            (following,) = struct.unpack_from(">I", page)
            parts.append(page[4 : 4 + left])
            left -= len(parts[-1])
        return b"".join(parts), tuple(pages)

    def _page(self, number: int) -> bytes:
        frame = self._frames.get(number)
        if frame is not None:
            return self._page_at(in_wal=True, page_at=frame)
        return self._page_at(in_wal=False, page_at=(number - 1) * self.page_size)

    def _page_at(self, *, in_wal: bool, page_at: int) -> bytes:
        file = self._wal if in_wal else self._main
        return b"" if file is None else os.pread(file.fileno(), self.page_size, page_at)


def _page_size_of(header: bytes) -> int:
    if not header.startswith(_MAGIC):
        return PAGE_SIZE
    size = int.from_bytes(header[16:18], "big")
    size = 65_536 if size == 1 else size
    return size if is_page_size(size) else PAGE_SIZE


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends; (-1, at) where the data end."""
    value = 0
    for index, byte in enumerate(data[at : at + 9]):
        if index == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return -1, at


def _varint_of(value: int) -> bytes:
    parts = [value & 0x7F]
    while value := value >> 7:
        parts.append(value & 0x7F | 0x80)
    return bytes(reversed(parts))


def _local_bytes(size: int, page_size: int) -> int:
    """Return how many bytes of a row are in the page of its cell."""
    if size <= page_size - 35:
        return size
    least = (page_size - 12) * 32 // 255 - 23
    local = least + (size - least) % (page_size - 4)
    return local if local <= page_size - 35 else least


def _types(data: bytes, at: int) -> tuple[list[int], int] | None:
    """Return the types of the values of a row that begins at `at`, and where its header ends."""
    length, begin = _varint(data, at)
    end = at + length
    if not begin <= end <= len(data):
        return None
    types = []
    while begin < end:
        kind, begin = _varint(data, begin)
        if kind < 0 or kind in (10, 11):
            return None
        types.append(kind)
    return (types, end) if begin == end else None


def _bytes_of(kind: int) -> int:
    return _NUMBER_BYTES[kind] if kind < 10 else (kind - 12) // 2


def _payload_size(page: bytes, at: int) -> int | None:
    """Return the bytes of the row whose header begins at `at`."""
    found = _types(page, at)
    if found is None:
        return None
    types, end = found
    size = end - at + sum(map(_bytes_of, types))
    return size if size <= MOST_ROW_BYTES else None


def _values(payload: bytes) -> tuple[Value, ...] | None:
    found = _types(payload, 0)
    if found is None:
        return None
    types, at = found
    values: list[Value] = []
    for kind in types:
        part = payload[at : at + _bytes_of(kind)]
        at += len(part)
        values.append(_value(kind, part))
    return tuple(values) if at == len(payload) else None


def _value(kind: int, part: bytes) -> Value:
    if kind == 0:
        return None
    if kind in (8, 9):
        return kind - 8
    if kind == 7:
        return float(struct.unpack(">d", part.rjust(8, b"\0"))[0])
    if kind < 7:
        return int.from_bytes(part, "big", signed=True)
    return part.decode("utf-8", "surrogateescape") if kind % 2 else part
