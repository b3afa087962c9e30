"""Reads what a recorder has written."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def rows_of(folder: Path) -> list[dict[str, int]]:
    """Return all recorded rows of a folder, in the order of their subscriptions."""
    table = pa.concat_tables(
        [pq.read_table(path) for path in sorted(folder.glob("signals-*.parquet"))]
    )
    rows: list[dict[str, int]] = table.to_pylist()
    return sorted(rows, key=lambda row: (row["subscription"], row["seq"]))


def facts_of(folder: Path) -> dict[str, int]:
    (path,) = folder.glob("process-*.json")
    facts: dict[str, int] = json.loads(path.read_text())
    return facts
