"""A key chooses a partition by a fixed rule that other clients can compute."""

from typing import Any

import pytest

from penstock.api import UsageError, partition_of

FOUR = ("0", "1", "2", "3")


def test_the_rule_is_the_crc_32_of_the_key() -> None:
    """The check value of CRC-32 is 0xCBF43926 for these nine digits. A text counts as its UTF-8."""
    names = [str(index) for index in range(1_000)]
    assert partition_of(b"123456789", names) == str(0xCBF43926 % 1_000)
    assert partition_of("123456789", names) == partition_of(b"123456789", names)
    assert partition_of("\u00fc", names) == partition_of(b"\xc3\xbc", names)
    assert partition_of(b"", names) == "0"


@pytest.mark.parametrize("form", ["%d", "customer-%d", "%08x", "device/%d/temperature"])
@pytest.mark.parametrize("count", [2, 3, 4, 16, 100])
def test_keys_are_spread_evenly(form: str, count: int) -> None:
    """Also keys that differ in their last digits alone: no partition has more than twice its share
    of 100 keys a partition.
    """
    names = [str(index) for index in range(count)]
    found = [partition_of(form % number, names) for number in range(100 * count)]
    assert max(map(found.count, names)) < 200


@pytest.mark.parametrize("key", [1, None, bytearray(b"x"), "\ud800"])
def test_a_key_is_bytes_or_a_text(key: Any) -> None:
    """Other values have no bytes that all clients agree on."""
    with pytest.raises(UsageError, match="a key is bytes, or a text"):
        partition_of(key, FOUR)


def test_a_key_needs_partitions() -> None:
    """Without them no partition can be chosen."""
    with pytest.raises(UsageError, match="no partitions"):
        partition_of(b"x", ())
