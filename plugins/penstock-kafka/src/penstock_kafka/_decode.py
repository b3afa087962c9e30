"""Record batches as elements with dense positions.

Rules of this file:

* A marker, which ends a transaction, has an offset in Kafka, and is not an element. The
  elements of an aborted transaction, and those that compaction has removed, leave their offsets as
  well. So there are gaps. The elements of one call end before the first gap.
* The checksum of each batch is checked, by the instruction of the processor for it. aiokafka has a
  table, which takes a quarter of the processor time of a read of elements of 1 KiB.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import MemoryRecords
from google_crc32c import value as crc32c

T = TypeVar("T")

Aborted = Sequence[tuple[int, int]]
"""The producers of aborted transactions, each with the offset at which its transaction begins."""

_ABORT = b"\0\0\0\0"
"""The key of the marker of an aborted transaction: its version, and its type."""

_OVERHEAD: Final = 12  # the offset and the length of a batch
_NEWEST_FORMAT: Final = 2  # of batches. It has another checksum than those before


class Decoded(NamedTuple, Generic[T]):
    """Elements without a gap, from `start` on. `after` is the position up to which the batches were
    looked through: between the last element and `after` the topic has no other.
    """

    start: int
    elements: list[T]
    after: int


def decode(
    data: bytes | memoryview, position: int, aborted: Aborted, take: Callable[[Any], list[T]]
) -> Decoded[T]:
    """Return what batches have from `position` on. `take` returns the elements of some records."""
    skipped = _Skipped(aborted)
    elements: list[T] = []
    start = after = position
    for part in _parts(data):
        batch = MemoryRecords(part).next_batch()
        _check(part, batch)
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
            base, found = _dense_part(part, max(after, position), take)
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


def _parts(data: bytes | memoryview) -> Iterator[bytes]:
    """Yield the bytes of each batch. A broker cuts off the last one where the fetch ends."""
    begin, end = 0, len(data)
    while begin + _OVERHEAD <= end:
        stop = begin + _OVERHEAD + int.from_bytes(data[begin + 8 : begin + _OVERHEAD], "big")
        if stop > end:
            return
        yield bytes(data[begin:stop])
        begin = stop


def _check(part: bytes, batch: Any) -> None:
    """Raise CorruptRecordException if the checksum of a batch is another one."""
    if part[16] == _NEWEST_FORMAT:
        is_good = crc32c(part[21:]) == int.from_bytes(part[17:21], "big")
    else:
        is_good = batch.validate_crc()
    if not is_good:
        raise CorruptRecordException(f"the checksum of the batch at {batch.base_offset:,}")


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


def _dense_part(part: bytes, position: int, take: Callable[[Any], list[T]]) -> tuple[int, list[T]]:
    """Return the first elements without a gap, from `position` on, of a batch which compaction has
    taken elements from; and their position.
    """
    batch = MemoryRecords(part).next_batch()
    kept = [record for record in batch if record.offset >= position]
    count = 0
    while count < len(kept) and kept[count].offset == kept[0].offset + count:
        count += 1
    return (kept[0].offset if kept else batch.next_offset), take(kept[:count])
