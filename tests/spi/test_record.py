"""Records have fixed bytes, which other programs can read and write."""

from random import Random
from typing import Any

import msgspec
import pytest

from penstock.api import UsageError, partition_of
from penstock.spi import Record


@pytest.mark.parametrize(
    ("record", "data"),
    [
        (Record(b"v"), "91c40176"),
        (Record(b""), "91c400"),
        (Record(b"v", b"k"), "92c40176c4016b"),
        (Record(b"v", b""), "92c40176c400"),
        (Record(b"v", None, (("h", b"1"),)), "93c40176c09192a168c40131"),
        (Record(b"v", None, (("", None),)), "93c40176c09192a0c0"),
        (Record(b"v", b"k", (), "0"), "94c40176c4016b90a130"),
        (Record(b"v", name="eu"), "95c40176c090c0a26575"),
        (Record(b"v", name=""), "95c40176c090c0a0"),
    ],
)
def test_the_bytes_of_a_record(record: Record, data: str) -> None:
    """Fields at the end that say nothing are left out."""
    assert record.pack().hex() == data
    assert Record.unpack(bytes.fromhex(data)) == record


@pytest.mark.parametrize(
    "value",
    [
        "text",
        [],
        ["text"],
        [b"v", "text"],
        [b"v", b"k", [["h"]]],
        [b"v", b"k", [["h", b"1"]] * 65],
        [b"v", b"k", [], 1],
        [b"v", b"k", [], None, None, None],
        {"value": b"v"},
    ],
)
def test_other_bytes_are_refused(value: Any) -> None:
    """Also an array with one field more."""
    with pytest.raises(UsageError, match="a record is a MessagePack array"):
        Record.unpack(msgspec.msgpack.encode(value))


def test_damaged_bytes_are_refused_or_are_another_record() -> None:
    """Each prefix of a record, and records with changed bytes."""
    random = Random(1)
    data = Record(b"value", b"key", (("name", b"1"), ("other", b"")), "0", "orders").pack()
    changed = [data[:at] for at in range(len(data))]
    for _ in range(2_000):
        copy = bytearray(data)
        for _ in range(random.randrange(1, 4)):
            copy[random.randrange(len(copy))] = random.randrange(256)
        changed.append(bytes(copy))
    for each in (*changed, b"\xc1", b"\x91" * 10_000):
        try:
            record = Record.unpack(each)
        except UsageError:
            continue
        assert Record.unpack(record.pack()) == record


def test_the_partition_counts_more_than_the_key() -> None:
    """A record with neither goes where it is sent."""
    names = ("a", "b", "c")
    assert Record(b"").partition_in(names, "b") == "b"
    assert Record(b"", b"k").partition_in(names, "b") == partition_of(b"k", names)
    assert Record(b"", b"k", partition="c").partition_in(names, "b") == "c"
    with pytest.raises(UsageError, match="names the partition 'd', and the log has"):
        Record(b"", partition="d").partition_in(names, "b")
