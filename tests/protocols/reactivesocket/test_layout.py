"""The numbers of ReactiveSocket version 0, and the values that they must not have."""

from penstock.protocols.reactivesocket import _layout as layout


def test_the_header_is_16_bytes_or_12_without_its_length() -> None:
    """Length, version, flags, type, stream id."""
    assert (layout.HEADER_SIZE, layout.FRAMED_HEADER_SIZE) == (16, 12)
    assert layout.HEADER_SIZE - layout.FRAMED_HEADER_SIZE == layout.LENGTH_SIZE


def test_each_type_of_frame_has_its_number() -> None:
    """The numbers are those of the table in the draft; 0 is reserved."""
    assert {kind.name: kind.value for kind in layout.FrameType} == {
        "SETUP": 0x01,
        "REQUEST_RESPONSE": 0x11,
        "REQUEST_FNF": 0x12,
        "REQUEST_STREAM": 0x13,
        "REQUEST_SUB": 0x14,
        "REQUEST_N": 0x15,
        "CANCEL": 0x16,
        "RESPONSE": 0x20,
        "ERROR": 0x21,
        "EXT": 0xFFFF,
    }


def test_each_type_of_frame_has_its_fixed_part() -> None:
    """A decoder takes a type that is missing in `SHORTEST_BODY` for an unknown type."""
    assert set(layout.SHORTEST_BODY) == set(layout.FrameType)


def test_flags_share_no_bit() -> None:
    """`WHOLE` is B and E."""
    flags = [layout.IGNORE, layout.BEGIN, layout.END, layout.COMPLETE]
    assert sum(flags) == 0xF0
    assert layout.WHOLE == 0x60


def test_whole_responses_are_all_words_of_a_whole_element() -> None:
    """Version 0, B and E or neither, not C. The ignore bit and the reserved bits do not matter."""
    expected = {flags << 16 | 0x20 for flags in range(0x100) if flags & 0x70 in (0x60, 0x00)}
    assert expected == layout.WHOLE_RESPONSES
    assert len(expected) == 64
