"""Record batches as elements without gaps."""

from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from penstock_kafka._broker import _times, _values
from penstock_kafka._decode import decode

CONTROL, TRANSACTIONAL = 0x20, 0x10


def _batch(
    base: int, values: Sequence[bytes | None], *, missing: Sequence[int] = (), bits: int = 0
) -> bytes:
    """Return a batch. `missing` are the numbers of records that compaction has taken out."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, 7, 0, 0, 1 << 20)
    for number, value in enumerate(values):
        if number not in missing:
            key = b"\0\0\0\1" if bits & CONTROL else None
            builder.append(number, 1_000 + number, key, value, [])
    data = bytearray(builder.build())
    data[:8] = base.to_bytes(8, "big")
    data[23:27] = (len(values) - 1).to_bytes(4, "big")  # a compacted batch keeps its end
    data[21:23] = bits.to_bytes(2, "big")
    return _with_checksum(data)


def _with_checksum(data: bytearray) -> bytes:
    from aiokafka.record._crc32c import crc  # noqa: PLC0415  # this check needs it alone

    data[17:21] = crc(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def _read(data: bytes, position: int, aborted: Any = ()) -> tuple[int, list[bytes], int]:
    return tuple(decode(data, position, aborted, _values))  # type: ignore[return-value]  # a tuple of these


def test_batches_are_joined_from_the_position_on() -> None:
    """A batch that begins before the position is cut, and a batch that was cut off is left out."""
    data = _batch(5, [b"a", b"b", b"c"]) + _batch(8, [b"d"])
    assert _read(data, 6) == (6, [b"b", b"c", b"d"], 9)
    assert _read(data + _batch(9, [b"e"])[:-3], 8) == (8, [b"d"], 9)
    assert _read(b"", 4) == (4, [], 4)


def test_elements_end_before_a_marker_and_begin_after_it() -> None:
    """A marker has an offset and is no element."""
    data = _batch(0, [b"a"]) + _batch(1, [b"m"], bits=CONTROL | TRANSACTIONAL) + _batch(2, [b"b"])
    assert _read(data, 0) == (0, [b"a"], 1)
    assert _read(data, 1) == (2, [b"b"], 3)


def test_elements_of_an_aborted_transaction_are_left_out() -> None:
    """Those of the same producer before the transaction are there."""
    inside = _batch(1, [b"x", b"y"], bits=TRANSACTIONAL)
    data = _batch(0, [b"a"]) + inside + _batch(3, [b"b"])
    assert _read(data, 0, [(7, 1)]) == (0, [b"a"], 1)
    assert _read(data, 1, [(7, 1)]) == (3, [b"b"], 4)
    assert _read(data, 0) == (0, [b"a", b"x", b"y", b"b"], 4)


def test_a_compacted_batch_gives_its_part_before_the_gap() -> None:
    """Each part is found from its own position on."""
    data = _batch(0, [b"a", b"b", b"c", b"d"], missing=[2]) + _batch(4, [b"e"])
    assert _read(data, 0) == (0, [b"a", b"b"], 2)
    assert _read(data, 2)[:2] == (3, [b"d", b"e"])
    assert _read(_batch(0, [b"a", b"b"], missing=[0, 1][:1]), 0) == (1, [b"b"], 2)


def test_a_record_without_a_value_is_an_empty_element() -> None:
    """Compaction knows such records, and another program may write them."""
    assert _read(_batch(0, [b"a", None]), 0) == (0, [b"a", b""], 2)


def test_times_are_those_of_the_records() -> None:
    """In milliseconds."""
    assert decode(_batch(3, [b"a", b"b"]), 4, (), _times).elements == [1_001]


def test_a_changed_batch_is_found() -> None:
    """Its checksum does not fit."""
    data = bytearray(_batch(0, [b"aaaa"]))
    data[-2] ^= 1
    with pytest.raises(CorruptRecordException, match="checksum of the batch at 0"):
        _read(bytes(data), 0)
