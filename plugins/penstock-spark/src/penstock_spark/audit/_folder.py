"""The files of a record: all of them are checked before the job begins, so a file that cannot be
judged costs no time and is named.
"""

import json
import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.api import UsageError
from penstock.recording import PACKED, SIGNALS, STREAM, SUBSCRIPTIONS, VERSION
from penstock_spark.audit._record_files import LocalFiles, RecordFiles, Source

WHAT_TO_DO: Final = "Remove it, or record again"
"""About a file that cannot be used."""

TWO_RECORDINGS: Final = (
    "these are two recordings with the same process number. Put each into a folder of its own, "
    "and audit one by one"
)
"""About files that contradict each other."""

SIGNAL: Final = dict.fromkeys((*STREAM, *PACKED), pa.int64()) | {
    "outbound": pa.bool_(),
    "kind": pa.int8(),
}
"""The columns of a file of signals."""

SUBSCRIPTION: Final = (
    dict.fromkeys((*STREAM, "began"), pa.int64())
    | {"outbound": pa.bool_()}
    | dict.fromkeys(("publisher", "pattern", "peer"), pa.string())
)
"""The columns of a file of subscriptions."""

_NUMBERS: Final = ("process", "pid", "began", "rows", "dropped", "streams_left_out")
_TEXTS: Final = ("host", "program")

LISTED: Final = 3
"""Processes that are named in a message."""


@attrs.frozen
class Folder:
    """The content of a folder."""

    files: RecordFiles
    signals: list[str]
    subscriptions: list[str]
    processes: list[dict[str, Any]]
    """The facts of each process."""


def folder_of(files: RecordFiles) -> Folder:
    """Return the checked files of a record. Raises UsageError if it has no file of signals, or a
    file that is not part of a record. Files that only Spark reads are checked when they are read.
    """
    paths = files.paths()
    signals, subscriptions = (
        [path for path in paths if fnmatch(_name(path), f"{name}-*.parquet")]
        for name in (SIGNALS, SUBSCRIPTIONS)
    )
    told = [path for path in paths if fnmatch(_name(path), "process-*.json")]
    processes = _processes(files.read(told))
    if not signals:
        parts = sum(path.endswith(".part") for path in paths)
        hint = _hint(files, parts, processes)
        raise UsageError(f"there are no recorded signals in {files.name}{hint}")
    if files.is_local:
        for each, types in ((signals, SIGNAL), (subscriptions, SUBSCRIPTION)):
            for path, source in files.read(each):
                check_file(path, source, types)
    return Folder(files, signals, subscriptions, processes)


def files_of(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the files of signals in `folder`, and check all files of the record. Raises
    UsageError as `audit` does; needs no session.
    """
    return [*map(Path, folder_of(LocalFiles(Path(folder))).signals)]


def _name(path: str) -> str:
    return path.rpartition("/" if "/" in path else os.sep)[2]


def unreadable(file: object, error: object) -> str:
    """Return the message about a file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return (
            f"{file} is not there: it was removed while the audit ran, or the workers of Spark "
            "cannot read the folder"
        )
    # The texts of pyarrow may end with a dot and a new line.
    return f"{file} cannot be read: {' '.join(str(error).split()).rstrip('.')}. {WHAT_TO_DO}"


def parquet_of(source: Source) -> pq.ParquetFile:
    """Return a file as pyarrow reads it. Raises what pyarrow raises for one that is damaged."""
    return pq.ParquetFile(source if isinstance(source, Path) else pa.BufferReader(source))


def read_whole(source: pq.ParquetFile, columns: Iterable[str], group: int) -> pa.Table:
    """Return columns of a row group.
    Raises ValueError if a value is missing, and what pyarrow raises for damaged data.
    """
    # One thread: Spark has a worker for each core.
    table = source.read_row_group(group, columns=list(columns), use_threads=False)
    for name in table.column_names:
        if table[name].null_count:
            raise ValueError(f"values of the column {name} are missing")
    return table


def named(facts: Mapping[str, Any]) -> str:
    """Return how a process is shown: its number is in the names of its files."""
    return f"{facts['process']:016x} ({facts['program']}, pid {facts['pid']} on {facts['host']})"


def check_file(path: str, source: Source, types: Mapping[str, pa.DataType]) -> None:
    """Raise UsageError if a file does not have these columns."""
    try:
        schema = parquet_of(source).schema_arrow
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UsageError(unreadable(path, error)) from None
    check_schema(path, schema, types)


def check_schema(path: str, schema: pa.Schema, types: Mapping[str, pa.DataType]) -> None:
    """Raise UsageError if the columns of a file are not these."""
    missing = sorted(types.keys() - set(schema.names))
    if missing:
        raise UsageError(
            f"{path} lacks the columns {', '.join(missing)}, so it is no part of a record. "
            f"{WHAT_TO_DO}"
        )
    for name, wanted in types.items():
        found = schema.field(name).type
        if found != wanted:
            raise UsageError(
                f"{path} is no part of a record: its column {name} is {found}, and a recorder "
                f"writes {wanted}. {WHAT_TO_DO}"
            )


def _processes(files: Iterable[tuple[str, Source]]) -> list[dict[str, Any]]:
    by_number: dict[int, list[tuple[str, dict[str, Any]]]] = {}
    for file, source in files:
        facts = _facts(file, source)
        by_number.setdefault(facts["process"], []).append((file, facts))
    found = []
    for told in by_number.values():
        for (file, facts), (other, others) in pairwise(told):
            if any(facts[name] != others[name] for name in ("pid", "host", "began")):
                raise UsageError(f"{file} and {other}: {TWO_RECORDINGS}")
        # Copies of one file, of different times: the last one has the most rows.
        found.append(
            max(
                (facts for _, facts in told),
                key=lambda facts: (facts["ended"] is not None, facts["rows"]),
            )
        )
    return found


def _facts(file: str, source: Source) -> dict[str, Any]:
    try:
        facts = json.loads(
            source.read_text(encoding="utf-8") if isinstance(source, Path) else source.to_pybytes()
        )
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(unreadable(file, error)) from None
    version = facts.get("version") if isinstance(facts, dict) else None
    if not isinstance(version, int) or not _is_number(version):
        raise UsageError(f"{file} is no part of a record: it has no version. {WHAT_TO_DO}")
    if version > VERSION:
        raise UsageError(
            f"{file} is of version {version}, and this penstock-spark knows {VERSION}; install a "
            "newer one"
        )
    wrong = [name for name in _NUMBERS if not _is_number(facts.get(name))]
    wrong += [name for name in _TEXTS if not isinstance(facts.get(name), str)]
    if "ended" not in facts or not (facts["ended"] is None or _is_number(facts["ended"])):
        wrong.append("ended")
    if wrong:
        raise UsageError(
            f"{file} is no part of a record: it lacks {', '.join(wrong)}, or holds something else "
            f"there. {WHAT_TO_DO}"
        )
    return dict(facts)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _hint(files: RecordFiles, parts: int, processes: list[dict[str, Any]]) -> str:
    """Return what is known about signals that are not there."""
    texts = [f"there are {parts} files of processes that still run or were killed"] if parts else []
    unended = [facts for facts in processes if facts["ended"] is None]
    if unended:
        names = ", ".join(named(facts) for facts in unended[:LISTED])
        noun = "process" if len(unended) == 1 else "processes"
        texts.append(
            f"{len(unended)} {noun} did not end: still running, or killed before the first file "
            "was whole, and then their rows are lost: "
            f"{names}{', …' if len(unended) > LISTED else ''}"
        )
    rows = sum(map(itemgetter("rows"), processes))
    if rows:
        texts.append(f"processes wrote {rows:,} rows here, and their files are gone")
    elif not texts:
        texts.append(
            f"record some with: penstock record {files.name} -- COMMAND"
            if files.is_local
            else "record into a folder of the machine, and copy its files here when they are whole"
        )
    return f". {'. '.join(text[0].upper() + text[1:] for text in texts)}"
