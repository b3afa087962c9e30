"""The base of the decoders of frames, with frames of one kind: a byte of length, and the body."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError
from penstock.wire import FrameDecoder, shown_number, split_frames, too_long, too_short, write_apart

LONGEST = 8


class ShortFrames(FrameDecoder):
    """A frame is a byte of length and its body; one above `LONGEST` is skipped, 0 is refused."""

    def __init__(self, *, framed: bool = False) -> None:
        super().__init__({}, 1, framed=framed, max_frame=LONGEST)
        self.bodies: list[bytes] = []

    def _decode_frame(self, data: bytes) -> None:
        if data == b"broken":
            raise too_short(0, 1)
        self.bodies.append(data)

    def _decode(self, max_messages: int) -> bool:
        if self._framed:
            return self._decode_waiting_frame()
        position = self._drop_skipped() if self._to_skip else self._position
        while max_messages and position < len(self._data):
            size = self._data[position]
            max_messages -= 1
            if size > self._max_body:
                position = self._skip(position, 1 + size)
                continue
            if position + 1 + size > len(self._data):
                break
            self._decode_frame(self._data[position + 1 : position + 1 + size])
            position += 1 + size
        self._position = position
        if position == len(self._data):
            self._data, self._position, self._need = b"", 0, 0 if self._to_skip else 1
            return False
        self._need = 1 + self._data[position]
        return not max_messages


@given(st.lists(st.binary(max_size=20)), st.lists(st.integers(0, 300), max_size=20))
def test_a_frame_that_is_too_long_is_skipped_wherever_the_bytes_are_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    """None of its bytes is held, and the frames around it are decoded."""
    data = b"".join(bytes([len(body)]) + body for body in bodies)
    decoder = ShortFrames()
    positions = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(positions):
        decoder.feed(data[start:end])
        assert decoder.held <= LONGEST
    assert decoder.bodies == [body for body in bodies if len(body) <= LONGEST]
    assert decoder.held == 0


def test_a_framed_transport_delivers_one_frame_in_each_call() -> None:
    """By `feed` and by `feed_frame`, with the same effect; a call to go on decodes nothing."""
    decoder = ShortFrames(framed=True)
    decoder.feed(b"one")
    decoder.feed(b"")
    decoder.feed_frame(b"two")
    assert decoder.bodies == [b"one", b"two"]


def test_a_fault_in_a_frame_of_a_framed_transport_ends_the_decoding() -> None:
    """Each later call raises the error again, and decodes nothing."""
    decoder = ShortFrames(framed=True)
    for frame in (b"broken", b"one"):
        with pytest.raises(ProtocolError, match="a frame of 0 bytes"):
            decoder.feed_frame(frame)
    with pytest.raises(ProtocolError, match="a frame of 0 bytes"):
        decoder.feed(b"one")
    assert not decoder.bodies


@pytest.mark.parametrize("uncounted", [0, 2])
def test_frames_are_split_without_their_lengths(uncounted: int) -> None:
    """Whether a length counts itself is for the protocol to say."""
    frames = [b"", b"a", b"bc" * 200]
    data = bytearray()
    for frame in frames:
        data += (len(frame) + 2 - uncounted).to_bytes(2) + frame
    assert [bytes(each) for each in split_frames(data, 2, uncounted)] == frames


def test_packed_elements_are_written_in_parts_of_a_size() -> None:
    """The header is told of the length, and of the first and the last part."""
    into = bytearray()
    write_apart(
        into,
        bytearray(b"abcdefgh"),
        4,
        3,
        lambda number, length, first, last: b"<%d%d%d%d>" % (number, length, first, last),
    )
    assert into == b"<0310>abc<0101>d<0310>efg<0101>h"


def test_the_errors_say_both_numbers() -> None:
    """The reason crosses, and the text is for the program."""
    assert too_short(3, 6).reason == "protocol:length 3"
    assert too_long(9, LONGEST).reason == "limit:frame 9 > 8"
    assert "9 bytes" in str(too_long(9, LONGEST))


def test_a_number_of_any_size_is_shown() -> None:
    """Python refuses to print the largest ones."""
    assert shown_number(-5) == "-5"
    assert shown_number(1 << 100_000) == "an integer of 100001 bits"
