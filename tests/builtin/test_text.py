"""The serializer ``text``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError, UsageError
from penstock.builtin import TextSerializer

SERIALIZER = TextSerializer()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(element: str) -> None:
    """By way of UTF-8."""
    data = SERIALIZER.dumps(element)
    assert data == element.encode()
    assert SERIALIZER.loads(data) == element
    assert SERIALIZER.loads(bytearray(data)) == element


@pytest.mark.parametrize(("element", "kind"), [(b"bytes", "bytes"), (1, "int"), (None, "NoneType")])
def test_another_type_is_refused_by_name(element: object, kind: str) -> None:
    """The message says what came, what was due, and what to do."""
    with pytest.raises(UsageError, match=f"takes str, not {kind}; give serializer='bytes' or 'json'"):
        SERIALIZER.dumps(element)


def test_half_a_surrogate_pair_is_refused_with_its_position() -> None:
    """Python's text can hold it, UTF-8 cannot."""
    with pytest.raises(UsageError, match="half a surrogate pair at position 2"):
        SERIALIZER.dumps("ab\ud800")


@pytest.mark.parametrize("data", [b"\xff", b"ab\xc3", b"\xed\xa0\x80"])
def test_bytes_that_are_no_utf8_are_the_peer_s_fault(data: bytes) -> None:
    """Nothing is replaced in silence, and the peer's bytes are not repeated."""
    with pytest.raises(ProtocolError, match=rf"not UTF-8: .* at byte \d of {len(data)}"):
        SERIALIZER.loads(data)
