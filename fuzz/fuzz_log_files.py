"""Files of logs: the pages that a repair reads without SQLite, and the rows of groups."""

import struct
import tempfile
from itertools import islice
from pathlib import Path

from support import fuzz, instrumented

with instrumented():
    from penstock.logs._group_format import (
        Row,
        checksum_of,
        decode_row,
        encode_row,
        has_times,
        is_lost,
        is_whole,
        times_of,
    )
    from penstock.logs._page_cells import PageFile
    from penstock.logs._wal_commits import wal_sums

PAGE = 512
MOST_CELLS = 40
FOLDER = Path(tempfile.mkdtemp(prefix="penstock-fuzz-"))


def _pages(data: bytes, *, has_wal: bool) -> None:
    path = FOLDER / "a.log"
    wal = FOLDER / "a.log-wal"
    cut = int.from_bytes(data[:2]) if has_wal else len(data)
    path.write_bytes(data[2 : 2 + cut])
    wal.unlink(missing_ok=True)
    if has_wal:
        wal.write_bytes(_with_sums(data[2 + cut :]))
    with PageFile(path) as file:
        for place in islice(file.places(), MOST_CELLS):
            cell = file.cell(place)
            if cell is not None and len(cell.values) == 6:
                _row(Row(*cell.values))  # type: ignore[arg-type]  # nothing is known of the types
        for number in range(1, min(file.page_count, 4) + 1):
            for place in islice(file.places_of_groups(number), MOST_CELLS):
                file.cell(place)


def _with_sums(wal: bytes) -> bytes:
    """Return a file whose checksums are right: an attacker can calculate them, and no fuzzer."""
    if len(wal) < 32:
        return wal
    order = ">" if wal[3] & 1 else "<"
    sums = wal_sums(wal[:24], order, (0, 0))
    whole = wal[:24] + struct.pack(">2I", *sums)
    (size,) = struct.unpack_from(">I", wal, 8)
    at = 32
    if size % 8:
        return whole + wal[at:]
    while at + 24 + size <= len(wal):
        frame, page = wal[at : at + 8], wal[at + 24 : at + 24 + size]
        sums = wal_sums(frame + page, order, sums)
        whole += frame + wal[16:24] + struct.pack(">2I", *sums) + page
        at += 24 + size
    return whole + wal[at:]


def _row(row: Row) -> None:
    if not is_whole(row) or is_lost(row):
        return
    has_times(row.length, row.size, len(row.elements))


def _group(data: bytes) -> None:
    """Elements are read as they were written, and a changed bit is found."""
    sizes, rest = data[:8], data[8:]
    elements, at = list[bytes](), 0
    for size in sizes:
        elements.append(rest[at : at + size])
        at += size
    times = [(0, 1.0), (4, 2.0)] if data[-1:] > b"\x80" else []
    row = encode_row(5, elements, 1.5, times)
    assert is_whole(row)
    assert decode_row(row, 0, len(elements), row.size or 1) == elements
    assert times_of(row) == (times or [(0, 1.5)])
    changed = bytearray(row.elements)
    bit = checksum_of(data) % (8 * len(changed))
    changed[bit // 8] ^= 1 << bit % 8
    assert not is_whole(row._replace(elements=bytes(changed)))


def TestOneInput(data: bytes) -> None:
    """The first byte chooses what is read."""
    if len(data) < 10:
        return
    kind = data[0] % 3
    if kind == 2:
        _group(data[1:])
    else:
        _pages(data[1:], has_wal=bool(kind))


def _leaf(begin: int, *cells: bytes) -> bytes:
    """Return a page of rows with these cells."""
    page = bytearray(PAGE)
    page[begin] = 13
    page[begin + 3 : begin + 5] = struct.pack(">H", len(cells))
    at = PAGE
    for number, cell in enumerate(cells):
        at -= len(cell)
        page[at : at + len(cell)] = cell
        page[begin + 8 + 2 * number : begin + 10 + 2 * number] = struct.pack(">H", at)
    return bytes(page)


def _main() -> bytes:
    header = b"SQLite format 3\0" + struct.pack(">H", PAGE) + bytes(82)
    # A row of six values: NULL, four numbers, and bytes.
    row = bytes([7, 0, 1, 1, 7, 4, 18]) + bytes([2, 3]) + bytes(8) + bytes(4) + b"abc"
    cell = bytes([len(row), 9]) + row
    # A row that goes on in page 3.
    long = bytes([0x87, 0x68, 5]) + bytes(200) + struct.pack(">I", 3)
    first = _leaf(100, cell)
    return header + first[100:] + _leaf(0, cell, long) + struct.pack(">I", 2) + bytes(PAGE - 4)


def _wal(size: int) -> bytes:
    header = struct.pack(">6I", 0x377F0682, 3007000, size, 0, 1, 2) + bytes(8)
    frame = struct.pack(">2I", 2, 3) + bytes(16) + _leaf(0, b"\x03\x01\x02\x01x")
    return header + frame * 2


_BOTH = struct.pack(">H", 3 * PAGE) + _main()
SEEDS = (
    b"\0\0\0" + _main(),
    *(b"\1" + _BOTH + _wal(size) for size in (PAGE, 0, 4, 6, 1 << 31)),
    b"\2" + bytes([3, 3, 3, 3, 0, 0, 0, 0]) + b"abcdefghijkl",
    b"\2" + bytes([0, 1, 200, 3, 0, 9, 0, 0]) + b"abcdefghijkl\xff",
)

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
