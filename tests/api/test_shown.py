"""A message can show any value."""

import pytest

from penstock.api import shown


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr today")


class OddInt(int):
    def bit_length(self) -> int:
        raise RuntimeError("no bits today")


def test_a_short_value_is_shown_unchanged() -> None:
    """A short value is shown as its repr."""
    assert shown("x") == "'x'"
    assert shown(2**63) == "9223372036854775808"


@pytest.mark.parametrize("length", [78, 79, 80, 10_000])
def test_a_long_value_is_cut_to_eighty_characters(length: int) -> None:
    """The message stays readable, and dots show that something is missing."""
    text = shown("x" * length)
    assert len(text) == min(length + 2, 80)
    assert text.endswith("...") == (length + 2 > 80)


@pytest.mark.parametrize("bits", [256, 257, 100_000])
def test_a_huge_integer_is_shown_by_its_size(bits: int) -> None:
    """Up to 256 bits it is shown in digits. Python refuses to print more than 4,300 digits."""
    number = 2 ** (bits - 1)
    assert shown(number) == (str(number) if bits <= 256 else f"an integer of {bits} bits")
    assert shown(-number) == (str(-number) if bits <= 256 else f"an integer of {bits} bits")


@pytest.mark.parametrize(("value", "kind"), [(Unprintable(), "Unprintable"), (OddInt(3), "OddInt")])
def test_a_value_that_cannot_be_printed_is_shown_by_its_type(value: object, kind: str) -> None:
    """An error path that raises would hide the error."""
    assert shown(value) == f"an unprintable {kind!r}"
