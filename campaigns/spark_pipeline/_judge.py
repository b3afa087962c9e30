"""What must be in the logs at the end of a pipeline, and what is there: plain functions over records."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.spi import Record

KEYS = 40
"""Keys of the elements."""

WINDOW = 5
"""Seconds of a window."""

TIME = "time"
"""The header with the time of the log, in microseconds, that the copy adds."""


def key_of(number: int) -> bytes:
    """Return the key of the element with a number. Some keys have ten times as many elements."""
    mixed = number * 2_654_435_761 % 2**32
    return b"key-%d" % (mixed % KEYS if mixed % 3 else mixed % 4)


class Copied(NamedTuple):
    """The copy, compared with what was published."""

    rows: int
    lost: int
    repeated: int
    out_of_order: int


def judge_copy(records: Mapping[str, Sequence[Record]], count: int) -> Copied:
    """Compare the partitions of the copy with the elements 0 up to, and not with, `count`."""
    found: defaultdict[bytes | None, list[int]] = defaultdict(list)
    for partition in records.values():
        for record in partition:
            found[record.key].append(int(record.value))
    expected: defaultdict[bytes | None, list[int]] = defaultdict(list)
    for number in range(count):
        expected[key_of(number)].append(number)
    lost = repeated = out_of_order = 0
    for key in found.keys() | expected.keys():
        times = Counter(found[key])
        lost += sum(number not in times for number in expected[key])
        repeated += times.total() - len(times) + len(times.keys() - set(expected[key]))
        out_of_order += sum(
            before > after for before, after in zip(found[key], found[key][1:], strict=False)
        )
    return Copied(sum(map(len, found.values())), lost, repeated, out_of_order)


class Windows(NamedTuple):
    """The counts of windows, compared with the copied rows."""

    windows: int
    wrong: int
    """Windows whose last count is not the number of their rows."""
    went_back: int
    """Counts of a window that are not larger than the one before."""


def judge_windows(counts: Iterable[Record], copied: Iterable[Record]) -> Windows:
    """Compare the last count of each key and window with the rows of the copy."""
    expected = Counter((record.key, _window_of(record)) for record in copied)
    last: dict[tuple[bytes | None, int], int] = {}
    went_back = 0
    for record in counts:
        start, count = map(int, record.value.split(b":"))
        place = (record.key, start)
        went_back += count <= last.get(place, 0)
        last[place] = count
    wrong = sum(expected[place] != last.get(place, 0) for place in expected.keys() | last.keys())
    return Windows(len(last), wrong, went_back)


def _window_of(record: Record) -> int:
    [time] = [value for name, value in record.headers if name == TIME]
    return int(time or b"0") // 1_000_000 // WINDOW * WINDOW
