"""The base of all decoders, with a decoder of one kind of message:
a byte of length, and then that number of bytes.
"""

import gc
import weakref
from itertools import pairwise
from traceback import walk_tb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError
from penstock.wire import BufferedDecoder
from penstock.wire import _buffered_decoder as module


class LengthDecoder(BufferedDecoder):
    """A message is a byte of length and that number of bytes.
    The length 255 is a protocol error.
    """

    def __init__(self) -> None:
        super().__init__(need=1)
        self.messages: list[bytes] = []
        self.decode_calls = 0

    def _decode(self, max_messages: int) -> bool:
        self.decode_calls += 1
        while max_messages and self._position < len(self._data):
            size = self._data[self._position]
            if size == 255:
                raise ProtocolError("255", reason="protocol:255")
            start, end = self._position + 1, self._position + 1 + size
            if end > len(self._data):
                self._need = 1 + size
                return False
            self.messages.append(self._data[start:end])
            self._position, self._need, max_messages = end, 1, max_messages - 1
        return not max_messages


def encoded(*messages: bytes) -> bytes:
    return b"".join(bytes([len(message)]) + message for message in messages)


@given(
    st.lists(st.binary(max_size=254)), st.lists(st.integers(0, 600), max_size=30), st.integers(1, 5)
)
def test_the_messages_do_not_depend_on_where_the_bytes_are_cut(
    messages: list[bytes], cuts: list[int], max_messages: int
) -> None:
    """After the last byte nothing is held."""
    decoder, data = LengthDecoder(), encoded(*messages)
    positions = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(positions):
        more = decoder.feed(data[start:end], max_messages=max_messages)
        while more:
            more = decoder.feed(b"", max_messages=max_messages)
    assert decoder.messages == messages
    assert decoder.held == 0


def test_a_message_in_single_bytes_is_decoded_twice() -> None:
    """`_decode` is called when the length is there, and when the message is complete."""
    decoder = LengthDecoder()
    for byte in encoded(bytes(200)):
        decoder.feed(bytes([byte]))
    assert decoder.decode_calls == 2
    assert decoder.messages == [bytes(200)]


def test_small_chunks_are_joined_while_they_wait_and_large_chunks_are_not() -> None:
    """200 chunks of one byte are one piece. Five chunks of `JOIN_BELOW` bytes are five pieces,
    and none of them was copied.
    """
    decoder = LengthDecoder()
    decoder.feed(b"\xfe")
    for _ in range(200):
        decoder.feed(b"x")
    assert len(decoder._pieces) == 1
    assert decoder.held == 201
    decoder._need = 1 << 20
    large = bytes(module.JOIN_BELOW)
    for _ in range(5):
        decoder.feed(large)
    assert len(decoder._pieces) == 6
    assert decoder._pieces[-1] is large


def test_a_decoder_that_has_raised_raises_the_same_error_again() -> None:
    """The text and the reason are the same, the exception is new, and nothing is held."""
    decoder = LengthDecoder()
    with pytest.raises(ProtocolError) as first:
        decoder.feed(encoded(b"x") + b"\xff" + bytes(1000))
    assert decoder.messages == [b"x"]
    assert decoder.held == 0
    with pytest.raises(ProtocolError) as again:
        decoder.feed(b"")
    assert again.value is not first.value
    assert (
        (str(again.value), again.value.reason)
        == (str(first.value), first.value.reason)
        == ("255", "protocol:255")
    )


class Chunk(bytes):
    """Received bytes whose end of life can be observed: a weak reference to `bytes` is not
    possible, one to `marker` is.
    """

    def __init__(self, _: bytes) -> None:
        self.marker = Marker()


class Marker:
    """Lives as long as its chunk."""


def test_a_failed_decoder_keeps_no_chunk_that_it_is_fed() -> None:
    """After 1,000 chunks none of them is alive, and the traceback of the last error is as long
    as that of the first one.
    """
    decoder = LengthDecoder()
    markers: list[weakref.ref[Marker]] = []
    frames: set[int] = set()
    for _ in range(1000):
        chunk = Chunk(b"\xff" + bytes(100))
        markers.append(weakref.ref(chunk.marker))
        try:
            decoder.feed(chunk)
        except ProtocolError as error:
            if len(markers) > 1:  # the first error comes from `_decode`, one frame deeper
                frames.add(len(list(walk_tb(error.__traceback__))))
        del chunk
    gc.collect()
    assert [marker for marker in markers if marker() is not None] == []
    assert frames == {2}


def test_the_rest_of_the_bytes_leaves_the_decoder() -> None:
    """Another decoder goes on with the bytes of an incomplete message, also
    if they came in several chunks.
    """
    decoder = LengthDecoder()
    decoder.feed(encoded(b"whole") + b"\x08in")
    decoder.feed(b"com")
    decoder.feed(b"p")
    assert decoder.take_rest() == b"\x08incomp"
    assert decoder.held == 0
    assert decoder.take_rest() == b""
