"""Standard JSON by Python's own module, within its bounds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError, UsageError
from penstock.elements._json_text import JsonText


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_written_without_plus_and_zeros_in_its_exponent(number: float) -> None:
    """It is the same number."""
    text = JsonText().write(number, "").decode()
    assert float(text) == number
    assert "e+" not in text
    assert "e-0" not in text


def test_a_text_that_looks_like_a_number_is_not_changed() -> None:
    """Only the number behind it is."""
    assert JsonText().write(['1e+16 \\" 1e-05', 1e16], "") == b'["1e+16 \\\\\\" 1e-05",1e16]'


@pytest.mark.parametrize("text", [r'"\ud83d\ude00"', r'"\\ud800"', r'["\uD83D\uDE00"]'])
def test_a_whole_surrogate_pair_is_read(text: str) -> None:
    """As an escape; two backslashes do not begin one."""
    assert JsonText().read(text.encode()) == json.loads(text)


@pytest.mark.parametrize("text", [r'"\ud83d"', r'{"\ude00":1}', r'["\ud83d\ud83d"]', r'"\uDFFF"'])
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    """Python's own module reads it."""
    with pytest.raises(ProtocolError, match=r"not JSON \(UnicodeEncodeError"):
        JsonText().read(text.encode())


def test_other_values_are_turned_into_plain_ones() -> None:
    """By `default`; without it they are refused."""
    assert JsonText(default=str).write([1j], "") == b'["1j"]'
    with pytest.raises(UsageError, match=r"does not support this list: .*; only this"):
        JsonText().write([1j], "only this")
