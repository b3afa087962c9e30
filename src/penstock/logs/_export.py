"""The elements of the file of a log with their positions, for a program that copies them elsewhere.

A damaged log gives each element that can be read, and a `Loss` in the place of the others.
"""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Final, NamedTuple

from penstock.api import LogDamaged, LogError, UsageError
from penstock.logs._disk_errors import FAULTS, explain
from penstock.logs._disk_files import is_written, lacks_mark, real_path
from penstock.logs._group_format import decode_row
from penstock.logs._positions import Position, not_retained, unknown_partition
from penstock.logs._read_only import ReadOnlyFiles
from penstock.logs._salvage import Loss, Wreck
from penstock.logs._work import PartitionState

_MOST_BYTES: Final = 1_048_576
"""Bytes that are read at once, unless one element has more."""


class Exported(NamedTuple):
    """Elements of a partition. `position` is that of the first one."""

    partition: str
    position: int
    elements: Sequence[bytes]


def exported(
    path: str | PathLike[str],
    *,
    partition: str | None = None,
    start: Position = "earliest",
    stop: Position = "latest",
) -> Iterator[Exported | Loss]:
    """Yield the elements of all partitions, or of one of them, from `start` up to, and not with,
    `stop`. Blocks.

    Raises PositionNotRetained for a start that the log does not have, and LogDamaged if the log is
    damaged while another program writes it.
    """
    file = real_path(path)
    try:
        files = ReadOnlyFiles(file, accept_loss=False)
    except (LogError, *FAULTS) as error:
        explained = explain(error, file, read_only=True) if isinstance(error, FAULTS) else error
        # A log whose first page was destroyed is no database either. Wreck raises for a file in
        # which no part of a log is found.
        may_be_log = isinstance(explained, LogDamaged) or lacks_mark(file)
        if not may_be_log or is_written(file):
            raise explained from error
        with Wreck(file) as wreck:
            for number in _chosen(wreck.names, partition, start, stop):
                first, end = _bounds(wreck.names[number], wreck.state(number), start, stop)
                yield from _salvaged(wreck, number, first, end)
        return
    try:
        for number in _chosen(files.names, partition, start, stop):
            first, end = _bounds(files.names[number], files.states[number], start, stop)
            yield from _read(files, number, first, end)
    finally:
        files.close()


def _read(files: ReadOnlyFiles, number: int, first: int, end: int) -> Iterator[Exported | Loss]:
    name = files.names[number]
    while first < end:
        try:
            elements = files.read(number, name, first, end, _MOST_BYTES)
        except (LogDamaged, *FAULTS) as error:
            if is_written(files.path):
                if isinstance(error, LogDamaged):
                    raise
                raise explain(error, files.path, read_only=True) from error
            with Wreck(files.path) as wreck:
                yield from _salvaged(wreck, number, first, end)
            return
        yield Exported(name, first, elements)
        first += len(elements)


def _salvaged(wreck: Wreck, number: int, first: int, end: int) -> Iterator[Exported | Loss]:
    name = wreck.names[number]
    for piece in wreck.pieces(number):
        start, stop = max(piece.start, first), min(piece.stop, end)
        if start >= stop:
            continue
        if piece.row is None:
            yield Loss(name, start, stop)
            continue
        row, begin = piece.row, piece.stop - piece.row.length
        yield Exported(name, start, decode_row(row, start - begin, stop - begin, row.size))


def _chosen(
    names: Sequence[str], partition: str | None, start: Position, stop: Position
) -> Sequence[int]:
    """Return the numbers of the partitions to export."""
    if partition is not None:
        if partition not in names:
            raise unknown_partition(partition, names)
        return (names.index(partition),)
    if len(names) > 1 and not (isinstance(start, str) and isinstance(stop, str)):
        raise UsageError(
            f"the log has the partitions {list(names)}, and a position is one of one partition: "
            "name the partition"
        )
    return range(len(names))


def _bounds(name: str, state: PartitionState, start: Position, stop: Position) -> tuple[int, int]:
    words = {"earliest": state.earliest, "latest": state.latest}
    first = words[start] if isinstance(start, str) else start
    end = words[stop] if isinstance(stop, str) else min(stop, state.latest)
    if not state.earliest <= first <= state.latest:
        raise not_retained(name, first, state.earliest, state.latest)
    return first, end
