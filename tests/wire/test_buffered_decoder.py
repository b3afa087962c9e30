"""What has arrived and is not decoded yet, for a decoder that knows one kind of message: a length, and so many bytes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError
from penstock.wire import BufferedDecoder
from penstock.wire import _buffered_decoder as _pieces


class Lengths(BufferedDecoder):
    """A byte of length, then so many bytes; 255 is a fault."""

    def __init__(self) -> None:
        super().__init__(need=1)
        self.messages: list[bytes] = []
        self.looks = 0

    def _decode(self, most: int) -> bool:
        self.looks += 1
        while most and self._position < len(self._data):
            size = self._data[self._position]
            if size == 255:
                raise ProtocolError("255", reason="protocol:255")
            start, end = self._position + 1, self._position + 1 + size
            if end > len(self._data):
                self._need = 1 + size
                return False
            self.messages.append(self._data[start:end])
            self._position, self._need, most = end, 1, most - 1
        return not most


def encoded(*messages: bytes) -> bytes:
    return b"".join(bytes([len(message)]) + message for message in messages)


@given(st.lists(st.binary(max_size=254)), st.lists(st.integers(0, 600), max_size=30), st.integers(1, 5))
def test_however_the_bytes_are_cut_the_messages_are_the_same(messages: list[bytes], cuts: list[int], most: int) -> None:
    """And nothing is held when the last of them is whole."""
    decoder, data = Lengths(), encoded(*messages)
    max_open_connections = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(max_open_connections):
        more = decoder.feed(data[start:end], max_messages=most)
        while more:
            more = decoder.feed(b"", max_messages=most)
    assert decoder.messages == messages
    assert decoder.held == 0


def test_nothing_is_looked_at_before_there_is_enough() -> None:
    """For its length, and when it is whole."""
    decoder = Lengths()
    for byte in encoded(bytes(200)):
        decoder.feed(bytes([byte]))
    assert decoder.looks == 2
    assert decoder.messages == [bytes(200)]


def test_small_pieces_are_joined_while_they_wait_and_large_ones_are_not() -> None:
    """Each piece costs an object; to join large ones again and again would cost the square of their length."""
    decoder = Lengths()
    decoder.feed(b"\xfe")
    for _ in range(200):
        decoder.feed(b"x")
    assert len(decoder._pieces) == 1
    assert decoder.held == 201
    decoder._need = 1 << 20
    large = bytes(_pieces.SMALL)
    for _ in range(5):
        decoder.feed(large)
    assert len(decoder._pieces) == 6
    assert decoder._pieces[-1] is large


def test_a_decoder_that_has_raised_is_broken() -> None:
    """It says so again and again, and holds nothing any more of what it had."""
    decoder = Lengths()
    with pytest.raises(ProtocolError) as first:
        decoder.feed(encoded(b"x") + b"\xff" + bytes(1000))
    assert decoder.messages == [b"x"]
    assert decoder.held == 0
    with pytest.raises(ProtocolError) as again:
        decoder.feed(b"")
    assert again.value is first.value
