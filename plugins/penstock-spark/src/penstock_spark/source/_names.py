"""The names of publishers with the words of a log behind the ``?``."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

MOST_AFTER: Final = 512
"""Bytes of the positions in one name. A server takes names of 1,024 bytes (`Limits.max_name`), so if there are many, not all fit."""


def range_name(stream: str, partition: str, start: int, stop: int) -> str:
    """Return the name of a part of a partition."""
    return _with(stream, f"partition={_quoted(partition)}&start={start}&stop={stop}")


def positions_name(stream: str, after: Mapping[str, int] | None = None, timeout: float = 0.0) -> str:
    """Return the name of the positions of a stream. With `after` the server waits until a partition is beyond its position."""
    if not after:
        return _with(stream, "positions")
    pieces, size = [], 0
    for partition, position in after.items():
        piece = f"{_quoted(partition)}:{position}"
        # A comma separates the partitions, so the name of one cannot have a comma here. Its growth shows when the wait is over.
        if "," in partition or size + len(piece) > MOST_AFTER:
            continue
        pieces.append(piece)
        size += len(piece) + 1
    if not pieces:
        return _with(stream, "positions")
    return _with(stream, f"positions&after={','.join(pieces)}&timeout={timeout:.3f}")


def _with(stream: str, words: str) -> str:
    return f"{stream}{'&' if '?' in stream else '?'}{words}"


def _quoted(text: str) -> str:
    return quote(text, safe="")
