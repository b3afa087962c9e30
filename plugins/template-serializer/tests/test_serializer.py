"""The serializer ``fraction``."""

from fractions import Fraction

import pytest
from penstock_template_serializer import FractionSerializer

from penstock.api import ProtocolError, UsageError

SERIALIZER = FractionSerializer()


@pytest.mark.parametrize(
    ("element", "data"), [(Fraction(3, 4), b"3/4"), (Fraction(-1), b"-1/1"), (Fraction(0), b"0/1")]
)
def test_a_fraction_is_restored(element: Fraction, data: bytes) -> None:
    """`loads` returns an element that is equal to the argument of `dumps`."""
    assert SERIALIZER.dumps(element) == data
    assert SERIALIZER.loads(data) == element


@pytest.mark.parametrize(
    ("element", "why"),
    [(0.75, "not float"), (None, "not NoneType"), (Fraction(10) ** 1000, "at most 1000 digits")],
)
def test_an_unsupported_element_is_a_usage_error(element: object, why: str) -> None:
    """The message names the type, or the bound."""
    with pytest.raises(UsageError, match=why):
        SERIALIZER.dumps(element)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"3",
        b"3/",
        b"/4",
        b"3/0",
        b"3/-4",
        b" 3/4",
        b"3/4\n",
        b"\xd9\xa1/4",
        b"9" * 1001 + b"/1",
    ],
)
def test_bytes_that_are_not_a_fraction_are_a_protocol_error(data: bytes) -> None:
    """The peer must act, and the bytes have no other effect."""
    with pytest.raises(ProtocolError, match="not a fraction"):
        SERIALIZER.loads(data)
