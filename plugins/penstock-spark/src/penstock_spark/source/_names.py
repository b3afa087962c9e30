"""The names of publishers with the words of a log behind the ``?``.

With `subscription` each name has the id of the query, which the log ignores: the server's access
log and its `may_open` see it.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

MOST_AFTER: Final = 512
"""Bytes of the positions in one name. A server takes names of 1,024 bytes (`Limits.max_name`),
so if there are many, not all fit.
"""


def range_name(
    stream: str, partition: str, start: int, stop: int, subscription: str | None = None
) -> str:
    """Return the name of a part of a partition."""
    return _with(stream, f"partition={_quoted(partition)}&start={start}&stop={stop}", subscription)


def positions_name(
    stream: str,
    after: Mapping[str, int] | None = None,
    timeout: float = 0.0,
    subscription: str | None = None,
) -> str:
    """Return the name of the positions of a stream. With `after` the server waits until a
    partition is beyond its position.
    """
    pieces, size = [], 0
    for partition, position in ({} if after is None else after).items():
        piece = f"{_quoted(partition)}:{position}"
        # A comma separates the partitions, so the name of one cannot have a comma here. Its growth
        # shows when the wait is over.
        if "," in partition or size + len(piece) > MOST_AFTER:
            continue
        pieces.append(piece)
        size += len(piece) + 1
    if not pieces:
        return _with(stream, "positions", subscription)
    return _with(stream, f"positions&after={','.join(pieces)}&timeout={timeout:.3f}", subscription)


def time_name(stream: str, time: float, subscription: str | None = None) -> str:
    """Return the name of the positions of a stream at a time in seconds."""
    return _with(stream, f"positions&at={time:.6f}", subscription)


def times_name(
    stream: str, partition: str, start: int, stop: int, subscription: str | None = None
) -> str:
    """Return the name of the times at which a part of a partition was appended."""
    return _with(
        stream, f"times&partition={_quoted(partition)}&start={start}&stop={stop}", subscription
    )


def digests_names(
    stream: str, places: Mapping[str, int], subscription: str | None = None
) -> list[str]:
    """Return the names that ask for the digests of the elements before `places`: as many as their
    length needs. A partition with a comma in its name is left out.
    """
    names, pieces, size = [], list[str](), 0
    for partition, position in places.items():
        piece = f"{_quoted(partition)}:{position}"
        if "," in partition or len(piece) > MOST_AFTER:
            continue
        if size + len(piece) > MOST_AFTER:
            names.append(pieces)
            pieces, size = [], 0
        pieces.append(piece)
        size += len(piece) + 1
    return [
        _with(stream, f"positions&digests={','.join(each)}", subscription)
        for each in (*names, pieces)
        if each
    ]


def _with(stream: str, words: str, subscription: str | None) -> str:
    name = f"{stream}{'&' if '?' in stream else '?'}{words}"
    return name if subscription is None else f"{name}&subscription={subscription}"


def _quoted(text: str) -> str:
    return quote(text, safe="")
