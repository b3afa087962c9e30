"""The numbers of the compact encoding, and the values that they must not have."""

import pytest

from penstock.protocols.rsio import _layout as layout

CODES = {name: value for name, value in vars(layout).items() if name.isupper() and name not in {
    "VERSION", "LARGEST_VARINT", "LONGEST_VARINT", "LARGEST_VERSION", "FIRST_EXTENSION", "LAST_EXTENSION",
}}  # fmt: skip


def test_each_message_has_its_own_code() -> None:
    """The first byte of a message tells its type."""
    assert len(set(CODES.values())) == len(CODES) == 14


@pytest.mark.parametrize(("name", "code"), CODES.items(), ids=CODES)
def test_a_code_cannot_be_taken_for_another_protocol(name: str, code: int) -> None:
    """Not zero (RSocket), not 0x16 (TLS), not a letter (HTTP),
    and below the codes of extensions.
    """
    assert code not in {0x00, 0x16}
    assert not chr(code).isalpha()
    assert code < layout.FIRST_EXTENSION


def test_extensions_have_the_codes_0x40_to_0x7e() -> None:
    """0x7f and the codes above it are reserved."""
    assert (layout.FIRST_EXTENSION, layout.LAST_EXTENSION) == (0x40, 0x7E)


def test_nine_bytes_hold_the_largest_varint() -> None:
    """Seven bits a byte."""
    assert layout.LARGEST_VARINT == (1 << 7 * layout.LONGEST_VARINT) - 1
