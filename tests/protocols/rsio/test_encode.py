"""The encoder: the golden bytes, and the numbers that it refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UsageError
from penstock.protocols import rsio
from tests.protocols.rsio._golden_bytes import GOLDEN


@pytest.mark.parametrize(("message", "text"), GOLDEN.values(), ids=GOLDEN)
def test_each_message_has_its_golden_bytes(message: rsio.Message, text: str) -> None:
    """A message is encoded as its row says."""
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


@pytest.mark.parametrize(
    "message", [rsio.OnError(subscriber=0, error="file\udce9"), rsio.Goodbye(reason="file\udce9")]
)
def test_half_a_surrogate_pair_in_a_text_is_replaced(message: rsio.Message) -> None:
    """UTF-8 cannot carry it, and the message must be sent."""
    assert rsio.encode(message).endswith(b"\x05file?")


LENGTHS = st.lists(
    st.sampled_from([0, 1, 2, 63, 127, 128, 129, 2047, 2048, 16_383, 16_384]),
    min_size=1,
    max_size=12,
)


@given(
    lengths=LENGTHS | st.integers(0, 300).map(lambda n: [n] * 5),
    subscriber=st.sampled_from([0, 127, 128, 2**63 - 1]),
)
def test_a_run_has_the_bytes_of_its_messages(lengths: list[int], subscriber: int) -> None:
    """Of one length or of several, with ids and lengths of any size."""
    elements = [bytes([number]) * length for number, length in enumerate(lengths)]
    messages = [
        rsio.encode(rsio.OnNext(subscriber=subscriber, element=element)) for element in elements
    ]
    assert rsio.join_run(subscriber, elements) == b"".join(messages)
