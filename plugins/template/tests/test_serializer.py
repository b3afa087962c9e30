"""The serializer ``fraction``."""

from fractions import Fraction

import pytest
from penstock_template import FractionSerializer

from penstock.api import ProtocolError, UsageError

SERIALIZER = FractionSerializer()


@pytest.mark.parametrize(("element", "data"), [(Fraction(3, 4), b"3/4"), (Fraction(-1), b"-1/1"), (Fraction(0), b"0/1")])
def test_a_fraction_comes_back(element: Fraction, data: bytes) -> None:
    """Equal, and written as people write it."""
    assert SERIALIZER.dumps(element) == data
    assert SERIALIZER.loads(data) == element


@pytest.mark.parametrize(("element", "why"), [(0.75, "not float"), (None, "not NoneType"), (Fraction(10) ** 1000, "at most 1000 digits")])
def test_what_is_no_such_fraction_is_refused(element: object, why: str) -> None:
    """The message says what came, or what is allowed."""
    with pytest.raises(UsageError, match=why):
        SERIALIZER.dumps(element)


@pytest.mark.parametrize("data", [b"", b"3", b"3/", b"/4", b"3/0", b"3/-4", b" 3/4", b"3/4\n", b"\xd9\xa1/4", b"9" * 1001 + b"/1"])
def test_what_a_peer_made_up_is_refused(data: bytes) -> None:
    """It is the peer's fault, and costs nothing."""
    with pytest.raises(ProtocolError, match="not a fraction"):
        SERIALIZER.loads(data)
