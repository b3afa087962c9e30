"""Numbers and fields in the bodies of extension messages."""

import pytest

from penstock.spi import BROKEN, encode_field, encode_number, read_field, read_number


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 25_000, 2**63 - 1])
def test_a_number_is_read_as_it_was_written(number: int) -> None:
    """There are bytes before it and after it."""
    encoded = encode_number(number)
    assert len(encoded) <= 9
    assert read_number(b"x" + encoded + b"y", 1) == (number, 1 + len(encoded))


@pytest.mark.parametrize(
    "body",
    [b"", b"\x80", b"\x80\x00", b"\xff" * 9 + b"\x01", b"\xff" * 20],
    ids=["none", "cut", "longer", "ten", "more"],
)
def test_a_number_that_is_cut_or_not_the_shortest_is_broken(body: bytes) -> None:
    """So is one of more than nine bytes."""
    assert read_number(body, 0) == (0, BROKEN)


def test_a_field_is_read_with_the_position_behind_it() -> None:
    """The field may be empty."""
    body = encode_field(b"abc") + encode_field(b"")
    assert read_field(body, 0) == (b"abc", 4)
    assert read_field(body, 4) == (b"", 5)


@pytest.mark.parametrize("body", [b"", b"\x03ab", b"\x80\x00"])
def test_a_field_that_is_cut_is_broken(body: bytes) -> None:
    """Each part after a broken one is broken."""
    assert read_field(body, 0) == (b"", BROKEN)
    assert read_field(b"\x00\x00", BROKEN) == (b"", BROKEN)
