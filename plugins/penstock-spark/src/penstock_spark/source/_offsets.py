"""Offsets: how far a query has read each partition, as the JSON that Spark keeps in the checkpoint,
and the decision how far to go next.

Rules of this file:

* A position is that of the next element.
  A range has the positions from its start up to, and not with, its stop.
* An offset has a digest for each partition: that of the last element before the position. A
  publisher that comes back with other elements at the same positions is found out by it.
* An offset says where a range begins if that is not where the offset before it ends: the partition
  is new, or the log has dropped elements. So a range that is read again has the same start.
* The digests of a stream are one text, in the order of its partitions: a checkpoint with 10,000
  partitions has 280 kB in the place of 430 kB.
* Nothing here does I/O, and nothing reads a clock.
"""

import itertools
from base64 import b64decode, b64encode
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from penstock.api import UsageError, shown

T = TypeVar("T", bound=Hashable)

FORMAT: Final = 2
"""The version of an offset. Another one is refused: it was written by a later version of this
package. Version 1 had a text for each digest, and is read as well.
"""

DIGEST_BYTES: Final = 8
"""Bytes of a digest. In memory it is the text of their hexadecimal digits."""

TASKS: Final = 32
"""Ranges of a batch, up to which each has a separate task: more than most machines have cores."""

ENOUGH: Final = 16_384
"""Elements of the ranges that share a task, at most: reading them takes some 10 ms."""

Key: TypeAlias = tuple[str, str]
"""A stream, and one of its partitions."""


_OfStreams: TypeAlias = Mapping[str, Mapping[str, int]]


class Facts(NamedTuple):
    """The part of a partition that a publisher keeps: the positions from `earliest` up to, and not
    with, `latest`, and where to read them.
    """

    earliest: int
    latest: int
    addresses: tuple[str, ...] = ()


class Range(NamedTuple):
    """A part of a partition that one task reads.
    `digest` is that of its last element, if it is known.
    """

    stream: str
    partition: str
    start: int
    stop: int
    digest: str = ""

    @property
    def key(self) -> Key:
        """The partition."""
        return self.stream, self.partition


class Offset(NamedTuple):
    """How far a query has read."""

    positions: Mapping[Key, int]
    digests: Mapping[Key, str] = {}
    begins: Mapping[Key, int] = {}
    subscription: str = ""
    """The subscriptionId of the query that has planned it; empty without one."""

    def to_json(self) -> dict[str, Any]:
        """Return the value for Spark. Two offsets are equal for Spark if their texts are, so the
        order of the keys is fixed.
        """
        value: dict[str, Any] = {"penstock": FORMAT, "positions": _nested(self.positions)}
        if self.digests:
            value["digests"] = _packed(value["positions"], self.digests)
        if self.begins:
            value["begins"] = _nested(self.begins)
        return value | ({"subscription": self.subscription} if self.subscription else {})

    @classmethod
    def from_json(cls, value: Any) -> "Offset":
        """Read the value that Spark has kept.
        Raises UsageError for the offset of another source.
        """
        if not isinstance(value, dict) or value.get("penstock") not in (1, FORMAT):
            raise UsageError(
                f"the checkpoint has the offset {shown(value)}, and this source writes "
                f"{{'penstock': {FORMAT}, …}}: it belongs to another "
                "source, or to another version of penstock-spark. Give this query a "
                "checkpointLocation of its own"
            )
        try:
            return cls(
                {key: int(position) for key, position in _flat(value["positions"]).items()},
                _unpacked(value["positions"], value.get("digests", {})),
                {key: int(position) for key, position in _flat(value.get("begins", {})).items()},
                str(value.get("subscription", "")),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UsageError(
                f"the offset {shown(value)} in the checkpoint is damaged; begin with a new "
                "checkpointLocation"
            ) from None


def read_places(
    value: Mapping[str, Any], facts: Mapping[Key, Facts], option: str
) -> dict[Key, int]:
    """Return the positions of ``{"orders": {"0": 500, "1": "latest"}}``, as Kafka's users write
    them: -2 is earliest, and -1 latest.

    Raises UsageError for a partition that does not exist, and for a value that is not a place.
    """
    places: dict[Key, int] = {}
    for stream, each in value.items():
        for partition, place in (each if isinstance(each, dict) else {"": each}).items():
            key = (stream, partition)
            if key not in facts:
                known = ", ".join(f"{name}/{part}" for name, part in sorted(facts))
                raise UsageError(
                    f"option {option}: there is no partition {shown(partition)} of stream "
                    f"{shown(stream)}; there are {known}"
                )
            places[key] = _place(place, facts[key], option)
    return places


def _place(place: Any, facts: Facts, option: str) -> int:
    words = {
        "earliest": facts.earliest,
        -2: facts.earliest,
        "latest": facts.latest,
        -1: facts.latest,
    }
    is_hashable = isinstance(place, str | int) and not isinstance(place, bool)
    if is_hashable and place in words:
        return words[place]
    if not is_hashable or not isinstance(place, int) or place < 0:
        raise UsageError(
            f"option {option}: {shown(place)} is no position, and not earliest (-2) or latest (-1)"
        )
    return place


def share(backlog: Mapping[Key, int], most: int) -> dict[Key, int]:
    """Return how much of each backlog to read if `most` elements may be read in all: in
    proportion, and all of `most` is used.
    """
    total = sum(backlog.values())
    if total <= most:
        return dict(backlog)
    shares = {key: count * most // total for key, count in backlog.items()}
    # Division leaves fewer elements than there are partitions. The largest backlogs get them, so a
    # small `most` still makes progress.
    for key in sorted(backlog, key=lambda key: (-backlog[key], key))[: most - sum(shares.values())]:
        shares[key] += 1
    return shares


def share_bytes(counts: Mapping[Key, int], means: Mapping[Key, float], most: int) -> dict[Key, int]:
    """Return how many of `counts` elements of each partition to read if all together may have
    `most` bytes: at least one element.
    """
    size = sum(count * means.get(key, 0.0) for key, count in counts.items())
    if size <= most:
        return dict(counts)
    return share(counts, max(1, int(sum(counts.values()) * most / size)))


def ranges_between(start: Offset, end: Offset, least: int) -> list[Range]:
    """Return the ranges that tasks read for one batch, `least` of them
    if there are as many elements.
    """
    whole = []
    for key, stop in sorted(end.positions.items()):
        begin = end.begins.get(key, start.positions.get(key, 0))
        if stop > begin:
            whole.append(Range(*key, begin, stop, end.digests.get(key, "")))
    total = sum(each.stop - each.start for each in whole)
    return [part for each in whole for part in _cut(each, _parts(each, total, least, len(whole)))]


def pack_into_tasks(
    ranges: Sequence[tuple[Range, T]], least: int
) -> list[tuple[tuple[Range, ...], T]]:
    """Return the ranges of each task. Of more than `TASKS`, small ones with the same addresses
    share one, and `least` tasks stay.

    A task costs Spark some 45 ms, so a batch with one element of each of a thousand streams took 23
    s on two cores.
    """
    alone: list[tuple[tuple[Range, ...], T]] = [((part,), addresses) for part, addresses in ranges]
    if len(ranges) <= max(TASKS, least):
        return alone
    count = sum(each.stop - each.start for each, _ in ranges)
    most = min(ENOUGH, count // max(TASKS, least))
    tasks: list[tuple[list[Range], T]] = []
    counts: list[int] = []
    newest: dict[T, int] = {}
    for part, addresses in ranges:
        size = part.stop - part.start
        at = newest.get(addresses)
        if at is not None and counts[at] + size <= most:
            tasks[at][0].append(part)
            counts[at] += size
            continue
        if size <= most:
            newest[addresses] = len(tasks)
        tasks.append(([part], addresses))
        counts.append(size)
    if len(tasks) < least:
        return alone
    return [(tuple(parts), addresses) for parts, addresses in tasks]


def _parts(each: Range, total: int, least: int, ranges: int) -> int:
    if least <= ranges:
        return 1
    size = each.stop - each.start
    return min(size, max(1, -(-size * least // total)))


def _cut(each: Range, parts: int) -> Iterable[Range]:
    size = each.stop - each.start
    edges = [each.start + size * part // parts for part in range(parts + 1)]
    for start, stop in itertools.pairwise(edges):
        yield each._replace(start=start, stop=stop, digest=each.digest if stop == each.stop else "")


def _nested(flat: Mapping[Key, Any]) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for (stream, partition), value in sorted(flat.items()):
        nested.setdefault(stream, {})[partition] = value
    return nested


def _packed(positions: _OfStreams, digests: Mapping[Key, str]) -> dict[str, str]:
    """Return one text for the digests of each stream. An unknown one is zeros."""
    unknown = "00" * DIGEST_BYTES
    known = {stream for stream, _ in digests}
    return {
        stream: b64encode(
            b"".join(bytes.fromhex(digests.get((stream, each), unknown)) for each in partitions)
        ).decode()
        for stream, partitions in positions.items()
        if stream in known
    }


def _unpacked(positions: _OfStreams, packed: Mapping[str, Any]) -> dict[Key, str]:
    found: dict[Key, str] = {}
    for stream, text in packed.items():
        if isinstance(text, str):
            # The order of `_nested`, also if a program has read and written the JSON between.
            found |= _digests_of(stream, sorted(positions[stream]), b64decode(text, validate=True))
        else:  # version 1
            found |= {(stream, partition): str(digest) for partition, digest in text.items()}
    return found


def _digests_of(stream: str, partitions: Sequence[str], data: bytes) -> dict[Key, str]:
    if len(data) != DIGEST_BYTES * len(partitions):
        raise ValueError("a digest is missing")
    digests = [data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES)]
    of_all = zip(partitions, digests, strict=True)
    return {(stream, each): digest.hex() for each, digest in of_all if any(digest)}


def _flat(nested: Any) -> dict[Key, Any]:
    return {
        (stream, partition): value
        for stream, each in nested.items()
        for partition, value in each.items()
    }
