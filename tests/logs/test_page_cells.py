"""Rows that are read without an index are those that SQLite reads with it."""

import random
import shutil
import sqlite3
import struct
from pathlib import Path

import pytest

from penstock.logs._page_cells import PageFile
from penstock.logs._wal_commits import wal_sums

SIZES = (0, 1, 127, 128, 400, 2_000, 4_040, 4_061, 4_062, 8_200, 16_384, 70_000)


def _written(path: Path, page_size: int, *, wal: bool = False) -> tuple[sqlite3.Connection, list]:
    chance = random.Random(page_size)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {page_size}")
    if wal:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(
        "CREATE TABLE groups (key INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c REAL, d INTEGER, e BLOB)"
    )
    for number in range(60):
        row = (
            number * chance.choice((1, 200, 2**40)) + 2**50 * number,
            chance.choice((0, 1, 200, -3, 70_000, 2**31, 2**47)),
            2 ** chance.randrange(62),
            chance.choice((0.0, 2.0, 1.5, -1e300)),
            chance.randrange(2**32),
            chance.randbytes(chance.choice(SIZES)),
        )
        connection.execute("INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?)", row)
    return connection, connection.execute("SELECT * FROM groups").fetchall()


def _rows(file: PageFile) -> list:
    cells = [cell for place in file.places() if (cell := file.cell(place)) is not None]
    return [(cell.key, *cell.values[1:]) for cell in cells if cell.values[0] is None]


@pytest.mark.parametrize("page_size", [512, 1_024, 4_096, 65_536])
def test_each_row_is_read(tmp_path: Path, page_size: int) -> None:
    """Of each size: in one page, and over many. Also where only the row itself shows that it is
    one, because the list of cells of its page was lost.
    """
    connection, rows = _written(tmp_path / "a.db", page_size)
    connection.close()
    with PageFile(tmp_path / "a.db") as file:
        assert sorted(_rows(file)) == rows
        found = {
            file.cell(place).key
            for number in range(1, file.page_count + 1)
            for place in file.places_of_groups(number)
            if file.cell(place) is not None
        }
        assert found >= {row[0] for row in rows if row[1] >= 1}


def test_what_was_committed_counts(tmp_path: Path) -> None:
    """Of PATH-wal, up to a frame that was changed: the same rows as SQLite finds."""
    connection, rows = _written(tmp_path / "a.db", 4_096, wal=True)
    wal = tmp_path / "a.db-wal"
    bytes_before = wal.stat().st_size
    connection.execute("UPDATE groups SET a = 77")
    changed = connection.execute("SELECT * FROM groups").fetchall()
    whole = wal.read_bytes()
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    for length, expected in ((len(whole), changed), (len(whole) - 1, rows), (bytes_before, rows)):
        (tmp_path / "b.db-wal").write_bytes(whole[:length])
        with PageFile(tmp_path / "b.db") as file:
            found = {row[0]: row for row in _rows(file)}
            assert [found[row[0]] for row in expected] == expected
    (tmp_path / "b.db-wal").write_bytes(whole[:24] + b"\0" + whole[25:])
    with PageFile(tmp_path / "b.db") as file:
        assert _rows(file) == []
    connection.close()


@pytest.mark.parametrize("page_size", [0, 4, 6, 500, 768, 131_072, 2**31])
def test_a_size_that_no_page_has_makes_no_pages(tmp_path: Path, page_size: int) -> None:
    """PATH-wal tells it, with a checksum that fits. Pages of four bytes have no room for a row, and
    a row that goes on in them never ends.
    """
    connection, _ = _written(tmp_path / "a.db", 512)
    connection.close()
    header = struct.pack(">6I", 0x377F0682, 3_007_000, page_size, 0, 1, 2)
    header += struct.pack(">2I", *wal_sums(header, "<", (0, 0)))
    with PageFile(tmp_path / "a.db") as file:
        expected = list(file.places())
    (tmp_path / "a.db-wal").write_bytes(header + bytes(100))
    with PageFile(tmp_path / "a.db") as file:
        assert list(file.places()) == expected


def test_any_bytes_are_read_without_an_error(tmp_path: Path) -> None:
    """Pages of chance, of 512 seeds: nothing raises, and nothing runs without end."""
    path = tmp_path / "a.db"
    connection, _ = _written(path, 512)
    connection.close()
    whole = bytearray(path.read_bytes())
    for seed in range(512):
        chance = random.Random(seed)
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 40)):
            at = chance.randrange(len(damaged))
            damaged[at : at + 4] = chance.choice((b"\0\0\0\1", b"\xff\xff\xff\xff", b"\x0d\0\0\1"))
        path.write_bytes(damaged[: chance.choice((len(damaged), len(damaged) // 2, 700))])
        with PageFile(path) as file:
            places = list(file.places())
            for number in range(1, min(file.page_count, 20) + 1):
                places += file.places_of_groups(number)
            for place in places:
                file.cell(place)
