"""Positions and names: the checks of arguments, and the messages about positions
that a log does not have.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from penstock.api import LimitExceeded, PositionNotRetained, UsageError, partition_of, shown

Position: TypeAlias = int | Literal["earliest", "latest"]
"""A position, or the word for the first position that a log retains,
or for the position of the next element.
"""

DEFAULT_PARTITION: Final = "0"
"""The partition of a log that was given no names of partitions."""

MOST_POSITIONS: Final = 2**48
"""Positions of a partition. At a million elements a second they last for nine years."""

MOST_TIMES: Final = 10_000
"""Pieces that `Log.times` returns at once."""

MOST_PARTITIONS: Final = 1_024
"""Partitions of a log. A log holds some state in memory for each."""

MOST_NAME_BYTES: Final = 255
"""Bytes of the name of a partition and of the id of a transaction."""

MOST_ELEMENT_BYTES: Final = 4_194_304
"""Bytes of an element: the default of `Limits.max_element`, so
that a server can send each element of a log.
"""

MOST_AT_ONCE: Final = 20_000
"""Elements of one `append`: as many as may wait for the disk, so
that each call fits into one group commit.
"""

MOST_BYTES_AT_ONCE: Final = 67_108_864
"""Bytes of one `append`: as many as may wait for the disk.
A transaction stages as many, if it is given no other bound.
"""

MOST_STAGED: Final = 1_000_000
"""Elements that a transaction stages, if it is given no other bound."""


def check_name(name: object, what: str) -> str:
    """Return `name` if it can be the name of a partition or the id of a transaction."""
    try:
        length = len(name.encode()) if isinstance(name, str) else 0
    # Half of a surrogate pair has no UTF-8. The check below refuses it.
    except UnicodeEncodeError:
        length = 0
    if not 0 < length <= MOST_NAME_BYTES:
        raise UsageError(
            f"{what} is a text of 1 to {MOST_NAME_BYTES} bytes of UTF-8, not {shown(name)}"
        )
    return cast("str", name)


def chosen_partition(
    partition: str | None, key: bytes | str | None, partitions: Sequence[str]
) -> str:
    """Return the partition that an append goes to, by its name or by the key of its elements.
    Raises UsageError for both.
    """
    if key is None:
        return DEFAULT_PARTITION if partition is None else partition
    if partition is not None:
        raise UsageError(
            f"partition={shown(partition)} and key={shown(key)}: the key chooses the partition. "
            "Give one of them"
        )
    return partition_of(key, partitions)


def check_partitions(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the partitions of a log."""
    if isinstance(names, str):
        raise UsageError(
            f"partitions={shown(names)} is one text; give a list of names, as in "
            f"partitions=[{shown(names)}]"
        )
    if not isinstance(names, Iterable):  # users give anything
        raise UsageError(
            f"partitions={shown(names)} is no list; give a list of names, as in "
            "partitions=['east', 'west']"
        )
    checked = tuple(check_name(name, "the name of a partition") for name in names)
    if len(set(checked)) < len(checked):
        raise UsageError(
            f"partitions={shown(checked)} has a name twice; give each partition a name of its own"
        )
    if not 0 < len(checked) <= MOST_PARTITIONS:
        raise UsageError(f"a log has 1 to {MOST_PARTITIONS:,} partitions, not {len(checked):,}")
    return checked


def check_elements(elements: Sequence[bytes]) -> tuple[tuple[bytes, ...], int]:
    """Return the elements, so that the caller may change its list, and their size in bytes."""
    if isinstance(elements, str | bytes | bytearray | memoryview) or not isinstance(
        elements, Sequence
    ):
        raise UsageError(
            f"a log takes a list of elements, each of type bytes, not {shown(elements)}; for one "
            "element, give a list of one"
        )
    copied = tuple(elements)
    # All types in one set, without a step of Python for each element.
    # The search runs only for the message.
    if set(map(type, copied)) - {bytes}:
        index, wrong = next(
            (index, each) for index, each in enumerate(copied) if type(each) is not bytes
        )
        raise UsageError(
            f"the element at index {index} is {shown(wrong)}, and a log takes bytes only: "
            "serialize it first"
        )
    size = sum(map(len, copied))
    if len(copied) > MOST_AT_ONCE:
        raise LimitExceeded(
            (
                f"{len(copied):,} elements in one call, and {MOST_AT_ONCE:,} are allowed: append "
                "them in several calls"
            ),
            limit="MOST_AT_ONCE",
            value=MOST_AT_ONCE,
        )
    # The sum first: most calls then need no `max`.
    if size > MOST_ELEMENT_BYTES and max(map(len, copied)) > MOST_ELEMENT_BYTES:
        raise LimitExceeded(
            (
                f"an element of {max(map(len, copied)):,} bytes, and {MOST_ELEMENT_BYTES:,} are "
                "allowed: split it into several elements"
            ),
            limit="MOST_ELEMENT_BYTES",
            value=MOST_ELEMENT_BYTES,
        )
    if size > MOST_BYTES_AT_ONCE:
        raise LimitExceeded(
            (
                f"{size:,} bytes in one call, and {MOST_BYTES_AT_ONCE:,} are allowed: append them "
                "in several calls"
            ),
            limit="MOST_BYTES_AT_ONCE",
            value=MOST_BYTES_AT_ONCE,
        )
    return copied, size


def check_bound(bound: object, what: str) -> int:
    """Return `bound` if it is an integer from 1."""
    # True is an int for Python, and would be a bound of one.
    if isinstance(bound, bool) or not isinstance(bound, int) or bound < 1:
        raise UsageError(f"{what} is an integer from 1, not {shown(bound)}")
    return bound


def check_position(position: Any, what: str) -> int:
    """Return `position` if it is an integer from 0 to MOST_POSITIONS."""
    # True is an int for Python, and no position.
    if (
        isinstance(position, bool)
        or not isinstance(position, int)
        or not 0 <= position <= MOST_POSITIONS
    ):
        raise UsageError(
            f"{what} is an integer from 0 to {MOST_POSITIONS:,}, not {shown(position)}"
        )
    return position


def check_place(place: Any, what: str) -> Position:
    """Return `place` if it is a position or one of the two words."""
    if isinstance(place, str) and place in ("earliest", "latest"):
        return cast("Position", place)
    if isinstance(place, str):
        raise UsageError(f"{what} is a position, 'earliest' or 'latest', not {shown(place)}")
    return check_position(place, what)


def check_range(start: Any, stop: Any) -> tuple[Position, Position | None]:
    """Return where a source starts and stops. `stop` may be None:
    then the source follows the log.
    """
    first, end = check_place(start, "start"), None if stop is None else check_place(stop, "stop")
    if isinstance(first, int) and isinstance(end, int) and end < first:
        raise UsageError(
            f"start={first:,} is behind stop={end:,}; a source hands over the positions from start "
            "up to, and not with, stop"
        )
    return first, end


def check_map(positions: Any, names: Iterable[str], what: str) -> Mapping[str, int]:
    """Return `positions` if it has a position for each of some partitions of the log."""
    if not isinstance(positions, Mapping):
        raise UsageError(
            f"{what} takes a position for each partition, as in {{{DEFAULT_PARTITION!r}: 500}}, "
            f"not {shown(positions)}"
        )
    unknown = [name for name in positions if name not in names]
    if unknown:
        raise unknown_partition(unknown[0], names)
    for name, position in positions.items():
        check_position(position, f"the position of partition {name!r}")
    return positions


def unknown_partition(name: object, names: Iterable[str]) -> UsageError:
    """Return the error about a partition that a log does not have."""
    return UsageError(
        f"the log has no partition {shown(name)}, it has {shown(list(names))}: open the log with "
        "partitions=[...]"
    )


def not_retained(partition: str, position: int, earliest: int, latest: int) -> PositionNotRetained:
    """Return the error about a position that a log has dropped, or does not have yet."""
    if position < earliest:
        advice = (
            f"It was dropped. Start at {earliest:,} or at 'earliest', and give Retention higher "
            "bounds to keep elements for longer"
        )
    else:
        advice = (
            f"It does not exist yet. Start at {latest:,} or at 'latest' to get the next elements"
        )
    return PositionNotRetained(
        (
            f"partition {partition!r} does not have position {position:,}; it has {earliest:,} up "
            f"to, and not with, {latest:,}. {advice}"
        ),
        partition=partition,
        position=position,
        earliest=earliest,
        latest=latest,
    )
