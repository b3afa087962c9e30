"""Record batches as elements with dense positions.

Rules of this file:

* Kafka counts with offsets what is no element: the markers that end a transaction. The elements of
  a transaction that was aborted, and those that compaction has removed, leave their offsets, too.
  So there are gaps. The elements of one call have none: they end before the first one.
* The checksum of each batch is checked.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import MemoryRecords

T = TypeVar("T")

Aborted = Sequence[tuple[int, int]]
"""The producers of aborted transactions, each with the offset at which its transaction begins."""

_ABORT = b"\0\0\0\0"
"""The key of the marker of an aborted transaction: its version, and its type."""


class Decoded(NamedTuple, Generic[T]):
    """Elements without a gap, from `start` on. `after` is the position up to which the batches were
    looked through: there are no elements between the last one and it.
    """

    start: int
    elements: list[T]
    after: int


def decode(
    data: bytes, position: int, aborted: Aborted, take: Callable[[Any], list[T]]
) -> Decoded[T]:
    """Return what batches have from `position` on. `take` returns the elements of some records."""
    skipped = _Skipped(aborted)
    records = MemoryRecords(data)
    elements: list[T] = []
    start = after = position
    while records.has_next():
        batch = records.next_batch()
        if batch is None:
            break
        if not batch.validate_crc():
            raise CorruptRecordException(f"the checksum of the batch at {batch.base_offset:,}")
        base, stop = batch.base_offset, batch.next_offset
        if skipped.skips(batch):
            if elements:
                break
            start = after = max(after, stop)
            continue
        if stop <= position:
            continue
        found = take(batch)
        if len(found) != stop - base:
            base, found = _dense_part(data, base, max(after, position), take)
        if base < position:
            del found[: position - base]
            base = position
        if elements and base != after:
            break
        if not elements:
            start = base
        elements.extend(found)
        after = base + len(found)
        if after != stop and found:
            break  # a gap follows in this batch
        after = max(after, stop)
    return Decoded(start, elements, after)


class _Skipped:
    """Decides which batches are markers, or were aborted. It is asked about each, in order."""

    def __init__(self, aborted: Aborted) -> None:
        self._coming = sorted(aborted, key=lambda each: each[1], reverse=True)
        self._producers: set[int] = set()

    def skips(self, batch: Any) -> bool:
        while self._coming and self._coming[-1][1] <= batch.base_offset:
            self._producers.add(self._coming.pop()[0])
        if batch.is_control_batch:
            if any(record.key == _ABORT for record in batch):
                self._producers.discard(batch.producer_id)
            return True
        return bool(batch.is_transactional) and batch.producer_id in self._producers


def _dense_part(
    data: bytes, base: int, position: int, take: Callable[[Any], list[T]]
) -> tuple[int, list[T]]:
    """Return the first elements without a gap, from `position` on, of the batch at `base`, which
    compaction has taken elements from; and their position.
    """
    records = MemoryRecords(data)
    while records.has_next():
        batch = records.next_batch()
        if batch is None or batch.base_offset != base:
            continue
        kept = [record for record in batch if record.offset >= position]
        count = 0
        while count < len(kept) and kept[count].offset == kept[0].offset + count:
            count += 1
        return (kept[0].offset if kept else batch.next_offset), take(kept[:count])
    return position, []
