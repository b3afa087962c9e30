"""The files of one process: signals and subscriptions as Parquet, and a small JSON file about the process.

A file has the name `….part` while it is written, and gets its own name when it is whole. So a reader never meets half a file.
"""

import json
import os
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from time import time_ns
from typing import Any, Final

from penstock.recording._columns import PACKED, PROCESSES, ROW_BYTES, SIGNALS, STREAM, SUBSCRIPTIONS, VERSION
from penstock.recording._tap import Recorded

COMPRESSION: Final = "zstd"


class RecordFiles:
    """Writes the files of one process. All methods are called by one thread; each raises OSError if the disk refuses."""

    def __init__(self, folder: Path, process: int) -> None:
        # Here and not at the top of the file: programs that record nothing do not need these libraries, and they take 0.2 s to import.
        import numpy as np  # noqa: PLC0415
        import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415

        self._numpy: Any = np
        self._arrow: Any = pa
        self._parquet: Any = parquet
        self.folder: Path = folder
        self._process = process
        self._number = 0
        self._writer: Any = None
        self._path: Path | None = None
        self.began: int = time_ns()

    @property
    def size(self) -> int:
        """Bytes of the file of signals that is being written; 0 if there is none."""
        if self._path is None:
            return 0
        with suppress(OSError):
            return self._path.stat().st_size
        return 0

    def write_signals(self, blocks: "Iterable[tuple[Recorded, bytes | bytearray]]") -> int:
        """Write the packed rows of some subscriptions as one row group, those of a subscription together. Return the number of rows."""
        tables = [self._table(recorded, rows) for recorded, rows in blocks]
        table = self._arrow.concat_tables(tables)
        if self._writer is None:
            self._number += 1
            self.folder.mkdir(parents=True, exist_ok=True)
            self._path = self.folder / f"{SIGNALS}-{self._process:016x}-{self._number:06d}.parquet.part"
            self._writer = self._parquet.ParquetWriter(self._path, self._schema(), compression=COMPRESSION)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        return int(table.num_rows)

    def finish(self, subscriptions: Iterable[Recorded]) -> None:
        """End the file of signals, and write what the subscriptions were that began since the last call."""
        writer, self._writer, path, self._path = self._writer, None, self._path, None
        if writer is not None and path is not None:
            writer.close()
            path.rename(path.with_suffix(""))
        rows = list(subscriptions)
        if rows:
            self.folder.mkdir(parents=True, exist_ok=True)
            part = self.folder / f"{SUBSCRIPTIONS}-{self._process:016x}-{rows[0].subscription:012d}.parquet.part"
            self._parquet.write_table(self._subscriptions(rows), part, compression=COMPRESSION)
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

    def write_process(self, *, rows: int, dropped: int, streams_left_out: int, is_over: bool) -> None:
        """Write what is known of this process, in place of what was written before."""
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
        arrow = self._arrow
        shared = {"process": arrow.int64(), "subscription": arrow.int64(), "connection": arrow.int64(), "stream": arrow.int64()}
        columns = [(name, shared.get(name, arrow.bool_())) for name in STREAM]
        columns += [(name, arrow.int8() if name == "kind" else arrow.int64()) for name in PACKED]
        return arrow.schema(columns)

    def _table(self, recorded: Recorded, rows: bytes | bytearray) -> Any:
        numpy, arrow = self._numpy, self._arrow
        columns = numpy.frombuffer(rows, dtype="<i8").reshape(-1, ROW_BYTES // 8)
        count = len(columns)
        stream = (self._process, recorded.subscription, recorded.connection, recorded.stream)
        shared = [numpy.full(count, value, dtype="int64") for value in stream]
        values = [arrow.array(column) for column in shared]
        values.append(arrow.array(numpy.full(count, recorded.outbound)))
        for position, name in enumerate(PACKED):
            column = columns[:, position]
            values.append(arrow.array(column.astype("int8" if name == "kind" else "int64")))
        return arrow.Table.from_arrays(values, schema=self._schema())

    def _subscriptions(self, rows: list[Recorded]) -> Any:
        arrow = self._arrow
        return arrow.table(
            {
                "process": arrow.array([self._process] * len(rows), arrow.int64()),
                "subscription": arrow.array([row.subscription for row in rows], arrow.int64()),
                "connection": arrow.array([row.connection for row in rows], arrow.int64()),
                "stream": arrow.array([row.stream for row in rows], arrow.int64()),
                "outbound": arrow.array([row.outbound for row in rows], arrow.bool_()),
                "publisher": arrow.array([row.publisher for row in rows], arrow.string()),
                "pattern": arrow.array([row.pattern for row in rows], arrow.string()),
                "peer": arrow.array([row.peer for row in rows], arrow.string()),
                "began": arrow.array([row.began for row in rows], arrow.int64()),
            }
        )
