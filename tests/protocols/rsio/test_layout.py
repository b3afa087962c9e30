"""The numbers of the compact encoding, and the varint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError, UsageError
from penstock.protocols.rsio import _layout as layout
from penstock.protocols.rsio import decode_varint, encode_varint
from penstock.protocols.rsio._layout import LENGTHS, MOST_LENGTHS

# --- type codes


CODES = {
    name: code
    for name, code in vars(layout).items()
    if name.startswith(("CLIENT_", "SERVER_", "GOODBYE", "SWITCH_", "ON_"))
    or name in {"SUBSCRIBE", "REQUEST", "CANCEL"}
}


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


# --- varints


EDGES = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**63 - 1, "ff" * 8 + "7f"),
]


@pytest.mark.parametrize(("value", "text"), EDGES)
def test_each_power_of_128_takes_one_byte_more(value: int, text: str) -> None:
    """The numbers on both sides of such an edge have the expected bytes."""
    assert encode_varint(value).hex() == text
    assert decode_varint(bytes.fromhex(text), 0) == (value, len(text) // 2)


@given(value=st.integers(0, 2**63 - 1), before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_an_encoded_number_is_decoded_at_any_position(
    value: int, before: bytes, after: bytes
) -> None:
    """An incomplete varint is not decoded as a smaller number: its end position is negative."""
    data = encode_varint(value)
    assert decode_varint(before + data + after, len(before)) == (value, len(before) + len(data))
    for cut in range(len(data)):
        assert decode_varint(data[:cut], 0)[1] < 0


@pytest.mark.parametrize("bad", ["8000", "ff00", "80808000", "ff" * 9, "80" * 9 + "01", "ff" * 10])
def test_a_varint_that_is_not_the_shortest_is_refused(bad: str) -> None:
    """So is one of more than nine bytes."""
    with pytest.raises(ProtocolError) as refused:
        decode_varint(bytes.fromhex(bad), 0)
    assert refused.value.reason == "protocol:varint"


@pytest.mark.parametrize(
    "bad", [-1, 2**63, 2**20_000], ids=["below zero", "one too many", "six thousand digits"]
)
def test_a_number_without_a_varint_is_refused_with_a_short_text(bad: int) -> None:
    """The text has the size of the number: Python does not print 6,000 digits."""
    with pytest.raises(UsageError, match="bits") as refused:
        encode_varint(bad)
    assert len(str(refused.value)) < 120


def test_the_varint_of_a_length_is_made_once_up_to_a_bound() -> None:
    """A peer's or a program's lengths cannot fill the memory."""
    assert [LENGTHS[n] for n in (5, 300, 2047, 2048, 1 << 40)] == [
        encode_varint(n) for n in (5, 300, 2047, 2048, 1 << 40)
    ]
    assert LENGTHS[300] is LENGTHS[300]
    assert max(LENGTHS) < MOST_LENGTHS
