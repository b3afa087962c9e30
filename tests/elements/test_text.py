"""The serializer ``text``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError, UsageError
from penstock.elements import TextSerializer

SERIALIZER = TextSerializer()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_restored(element: str) -> None:
    """A text is sent as UTF-8 and read back."""
    data = SERIALIZER.dumps(element)
    assert data == element.encode()
    assert SERIALIZER.loads(data) == element
    assert SERIALIZER.loads(bytearray(data)) == element


@pytest.mark.parametrize(("element", "kind"), [(b"bytes", "bytes"), (1, "int"), (None, "NoneType")])
def test_another_type_is_refused_by_name(element: object, kind: str) -> None:
    """The message names the type, the supported type, and a remedy."""
    with pytest.raises(
        UsageError, match=f"takes str, not {kind}; give serializer='bytes' or 'json'"
    ):
        SERIALIZER.dumps(element)


def test_half_a_surrogate_pair_is_refused_with_its_position() -> None:
    """A Python str can contain it, UTF-8 cannot."""
    with pytest.raises(UsageError, match="half a surrogate pair at position 2"):
        SERIALIZER.dumps("ab\ud800")


@pytest.mark.parametrize("data", [b"\xff", b"ab\xc3", b"\xed\xa0\x80"])
def test_bytes_that_are_not_utf8_are_a_protocol_error(data: bytes) -> None:
    """No character is replaced, and the message does not repeat the peer's bytes."""
    with pytest.raises(ProtocolError, match=rf"not UTF-8: .* at byte \d of {len(data)}"):
        SERIALIZER.loads(data)
