"""vectors.json, which tests in other languages read, has the golden bytes,
and the refusals of this decoder.
"""

import pytest

from penstock.api import ProtocolError
from penstock.protocols import rsio
from penstock.testing import MessageList
from tests.protocols.rsio._golden_bytes import STREAMS
from tests.protocols.rsio._vectors import FILE, REFUSED, render


def test_the_file_has_the_golden_bytes() -> None:
    """A golden message that changes must also change in the file:
    `python -m tests.protocols.rsio._vectors` writes it.
    """
    assert FILE.read_text(encoding="utf-8") == render()


@pytest.mark.parametrize("name", REFUSED)
def test_bytes_of_the_file_are_refused(name: str) -> None:
    """The decoder refuses them with the reason of the file, at their last byte."""
    text, reason = REFUSED[name]
    collected = MessageList()
    for stream in STREAMS:
        collected.receive_on_subscribe(stream.subscriber, stream.element_size)
    decoder = rsio.RsioDecoder(collected, collected.streams, None)
    data = bytes.fromhex(text)
    decoder.feed(data[:-1])
    with pytest.raises(ProtocolError) as caught:
        decoder.feed(data[-1:])
    assert caught.value.reason == reason
