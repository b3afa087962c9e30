"""The varint, both ways and at its edges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError, UsageError
from penstock.protocols.rsio import decode_varint, encode_varint

EDGES = [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (16383, "ff7f"), (16384, "808001"), (2**63 - 1, "ff" * 8 + "7f")]


@pytest.mark.parametrize(("value", "text"), EDGES)
def test_edges_have_their_bytes(value: int, text: str) -> None:
    """One byte more at each power of 128."""
    assert encode_varint(value).hex() == text
    assert decode_varint(bytes.fromhex(text), 0) == (value, len(text) // 2)


@given(value=st.integers(0, 2**63 - 1), before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_every_value_comes_back_wherever_it_stands(value: int, before: bytes, after: bytes) -> None:
    """And what is cut off is "not yet", not a smaller value."""
    data = encode_varint(value)
    assert decode_varint(before + data + after, len(before)) == (value, len(before) + len(data))
    for cut in range(len(data)):
        assert decode_varint(data[:cut], 0)[1] < 0


@pytest.mark.parametrize("bad", ["8000", "ff00", "80808000", "ff" * 9, "80" * 9 + "01", "ff" * 10])
def test_what_is_longer_than_it_must_be_is_refused(bad: str) -> None:
    """Nine bytes are enough for anything, and one spelling is enough for each."""
    with pytest.raises(ProtocolError) as refused:
        decode_varint(bytes.fromhex(bad), 0)
    assert refused.value.reason == "protocol:varint"


@pytest.mark.parametrize("bad", [-1, 2**63, 2**20_000], ids=["below zero", "one too many", "six thousand digits"])
def test_what_has_no_varint_is_refused_with_a_short_message(bad: int) -> None:
    """Even a number whose digits Python will not print."""
    with pytest.raises(UsageError, match="bits"):
        encode_varint(bad)
