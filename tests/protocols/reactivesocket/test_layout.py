"""The numbers of ReactiveSocket version 0: what they are, and what they may never be."""

from penstock.protocols.reactivesocket import _layout as layout


def test_the_header_is_16_bytes_or_12_without_its_length() -> None:
    """Length, version, flags, type, stream id."""
    assert (layout.HEADER_SIZE, layout.FRAMED_HEADER_SIZE) == (16, 12)
    assert layout.HEADER_SIZE - layout.FRAMED_HEADER_SIZE == layout.LENGTH_SIZE


def test_each_type_of_frame_has_its_number() -> None:
    """As the draft's table has them; 0 is reserved."""
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
    """None was forgotten: a decoder takes a type that is missing here for unknown."""
    assert set(layout.SHORTEST_BODY) == set(layout.FrameType)


def test_flags_share_no_bit() -> None:
    """Whole is begin and end."""
    flags = [layout.IGNORE, layout.BEGIN, layout.END, layout.COMPLETE]
    assert sum(flags) == 0xF0
    assert layout.WHOLE == 0x60


def test_a_whole_response_is_known_by_its_word() -> None:
    """Version 0, begin and end or neither, no complete; the ignore bit and the reserved ones say nothing."""
    expected = {flags << 16 | 0x20 for flags in range(0x100) if flags & 0x70 in (0x60, 0x00)}
    assert expected == layout.WHOLE_RESPONSES
    assert len(expected) == 64
