"""The encoder: the golden bytes, and the numbers that it refuses."""

import pytest

from penstock.api import UsageError
from penstock.protocols import rsio
from tests.protocols.rsio._golden_bytes import GOLDEN


@pytest.mark.parametrize(("message", "text"), GOLDEN.values(), ids=GOLDEN)
def test_each_message_has_its_golden_bytes(message: rsio.Message, text: str) -> None:
    """Byte for byte."""
    assert rsio.encode(message).hex() == text


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (rsio.ClientHello(version=256), "version=256"),
        (rsio.ClientHello(version=-1), "version=-1"),
        (rsio.ExtensionMessage(type=0x3F, body=b""), "0x3f"),
        (rsio.ExtensionMessage(type=0x7F, body=b""), "0x7f"),
        (rsio.Cancel(subscriber=-1), "below zero"),
        (rsio.Request(subscriber=1, demand=2**63), "64 bits"),
        ("garbage", "no message"),
    ],
)
def test_a_number_that_does_not_fit_is_refused(message: rsio.Message, says: str) -> None:
    """The text contains the number, or its size."""
    with pytest.raises(UsageError, match=says):
        rsio.encode(message)
