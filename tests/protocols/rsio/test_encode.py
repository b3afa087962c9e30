"""The encoder: the golden bytes, and refusals of what does not fit."""

import pytest

from penstock.api import UsageError
from penstock.protocols import rsio
from tests.protocols.rsio._vectors import VECTORS


@pytest.mark.parametrize(("message", "text"), VECTORS.values(), ids=VECTORS)
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
def test_what_does_not_fit_is_refused(message: rsio.Message, says: str) -> None:
    """The message says what was given."""
    with pytest.raises(UsageError, match=says):
        rsio.encode(message)
