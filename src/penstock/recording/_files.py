"""The files of one process: signals and subscriptions as Parquet,
and a small JSON file about the process.

Programs that record nothing must not import this file:
numpy and pyarrow take 0.2 s, and may be missing.
A file has the name `….part` while it is written, and gets its own name when it is whole. So a
reader never meets half a file.
"""

import ctypes
import json
import os
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from time import time_ns
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.recording._columns import (
    PACKED,
    PROCESSES,
    ROW_BYTES,
    SIGNALS,
    STREAM,
    SUBSCRIPTIONS,
    VERSION,
)
from penstock.recording._tap import StreamFacts

COMPRESSION: Final = "zstd"


class RecordFiles:
    """Writes the files of one process. All methods are called by one thread;
    each raises OSError if the disk refuses.
    """

    def __init__(self, folder: Path, process: int) -> None:
        self.folder: Path = folder
        self._process = process
        self._number = 0
        self._writer: Any = None
        self._path: Path | None = None
        self.began: int = time_ns()

    @property
    def size(self) -> int:
        """Bytes of the file of signals that is being written; 0 without such a file."""
        if self._path is None:
            return 0
        with suppress(OSError):
            return self._path.stat().st_size
        return 0

    def write_signals(self, blocks: "Iterable[tuple[StreamFacts, bytes | bytearray]]") -> int:
        """Write the packed rows of some subscriptions as one row group, those of a subscription
        together. Return the number of rows.
        """
        tables = [self._table(recorded, rows) for recorded, rows in blocks]
        table = pa.concat_tables(tables)
        if self._writer is None:
            self._number += 1
            self.folder.mkdir(parents=True, exist_ok=True)
            self._path = (
                self.folder / f"{SIGNALS}-{self._process:016x}-{self._number:06d}.parquet.part"
            )
            self._writer = pq.ParquetWriter(self._path, self._schema(), compression=COMPRESSION)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        return int(table.num_rows)

    def finish(self) -> None:
        """End the file of signals."""
        writer, self._writer, path, self._path = self._writer, None, self._path, None
        if writer is not None and path is not None:
            writer.close()
            path.rename(path.with_suffix(""))

    def write_subscriptions(self, rows: list[StreamFacts]) -> None:
        """Write what these subscriptions were."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = (
            self.folder
            / f"{SUBSCRIPTIONS}-{self._process:016x}-{rows[0].subscription:012d}.parquet.part"
        )
        pq.write_table(self._subscriptions(rows), part, compression=COMPRESSION)
        part.rename(part.with_suffix(""))

    def give_up(self) -> None:
        """Drop the file of signals that is being written: the disk has refused a part of it."""
        writer, self._writer, path, self._path = self._writer, None, self._path, None
        # Closing writes the end of the file, and the disk may refuse that as well.
        with suppress(OSError):
            if writer is not None:
                writer.close()
        with suppress(OSError):
            if path is not None:
                path.unlink()

    def leave_to_parent(self) -> None:
        """After a fork, in the child: leave the file of signals alone.
        The parent still writes it, and both have it open.
        """
        if self._writer is not None:
            # When the object is destroyed, it writes the end of the file, here between the parent's
            # rows. So it is never freed.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._writer))

    def write_process(
        self, *, rows: int, dropped: int, streams_left_out: int, is_over: bool
    ) -> None:
        """Write the file with the facts about this process and its counts.
        It replaces the one before.
        """
        facts = {
            "version": VERSION,
            "process": self._process,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            # The name alone: arguments may hold a password.
            "program": sys.argv[0] if sys.argv else "",
            "python": sys.version.split()[0],
            "began": self.began,
            "ended": time_ns() if is_over else None,
            "rows": rows,
            "dropped": dropped,
            "streams_left_out": streams_left_out,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{PROCESSES}-{self._process:016x}.json"
        part = path.with_suffix(".json.part")
        part.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        part.replace(path)

    # --- inside

    def _schema(self) -> Any:
        types = {"outbound": pa.bool_(), "kind": pa.int8()}
        return pa.schema([(name, types.get(name, pa.int64())) for name in (*STREAM, *PACKED)])

    def _table(self, recorded: StreamFacts, rows: bytes | bytearray) -> Any:
        columns = np.frombuffer(rows, dtype="<i8").reshape(-1, ROW_BYTES // 8)
        count = len(columns)
        stream = (self._process, recorded.subscription, recorded.connection, recorded.stream)
        values = [_numbers(np.full(count, value)) for value in stream]
        values.append(_truths([recorded.outbound] * count))
        for position, name in enumerate(PACKED):
            values.append(_numbers(columns[:, position], "int8" if name == "kind" else "int64"))
        return pa.Table.from_arrays(values, schema=self._schema())

    def _subscriptions(self, rows: list[StreamFacts]) -> Any:
        return pa.table(
            {
                "process": _numbers(np.full(len(rows), self._process)),
                "subscription": _numbers([row.subscription for row in rows]),
                "connection": _numbers([row.connection for row in rows]),
                "stream": _numbers([row.stream for row in rows]),
                "outbound": _truths([row.outbound for row in rows]),
                "publisher": _texts(row.publisher for row in rows),
                "pattern": _texts(row.pattern for row in rows),
                "peer": _texts(row.peer for row in rows),
                "began": _numbers([row.began for row in rows]),
            }
        )


# Not `pyarrow.array` and not `pyarrow.scalar`: where pandas is installed they import it. That takes
# half a second, and fails at the end of the program.


def _numbers(values: Any, kind: str = "int64") -> Any:
    column = np.ascontiguousarray(values, dtype=kind)
    return pa.Array.from_buffers(
        pa.int8() if kind == "int8" else pa.int64(), len(column), [None, pa.py_buffer(column)]
    )


def _truths(values: list[bool]) -> Any:
    bits = np.packbits(np.array(values, dtype=bool), bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def _texts(values: Iterable[str]) -> Any:
    builder = pa.lib.StringBuilder()
    for value in values:
        builder.append(value)
    return builder.finish()
