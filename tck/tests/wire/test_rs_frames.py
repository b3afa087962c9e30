"""Frames by hand, compared with the library's codec: two readings of one page."""

from penstock_tck.wire import _rs_frames as rs

from penstock.protocols import reactivesocket as wire


def test_frames_are_what_the_codec_writes() -> None:
    """For a request and for a grant."""
    request = wire.encode(wire.RequestStream(stream_id=5, demand=4, data=b"s"))
    assert rs.with_length(rs.encode_frame(rs.REQUEST_STREAM, 5, rs.encode_demand(4) + b"s")) == request
    assert rs.with_length(rs.encode_frame(rs.REQUEST_N, 5, rs.encode_demand(2))) == wire.request_n(5, 2)


def test_a_frame_is_read_wherever_it_is_cut() -> None:
    """Byte by byte; what is wrong about it is told, not judged."""
    reader = rs.FrameReader(framed=False)
    data = bytearray(rs.with_length(rs.encode_frame(rs.RESPONSE, 7, b"item", flags=rs.B | rs.E, version=3)))
    data[0] |= 0x80
    found = [frame for byte in data for frame in reader.feed(bytes([byte]))]
    assert [(frame.type, frame.flags, frame.stream, frame.body, frame.version, frame.reserved) for frame in found] == [
        (rs.RESPONSE, rs.B | rs.E, 7, b"item", 3, True)
    ]
    assert str(found[0]) == "RESPONSE[BE] on 7 of 4 bytes"


def test_a_length_that_holds_no_header_ends_the_reading() -> None:
    """Nothing behind it can be found."""
    reader = rs.FrameReader(framed=False)
    assert reader.feed(bytes([0, 0, 0, 15]) + bytes(40)) == []
    assert "the length 15" in reader.error


def test_a_message_is_a_frame_without_its_length() -> None:
    """Where the transport delimits."""
    assert rs.FrameReader(framed=True).feed(rs.encode_frame(rs.CANCEL, 9))[0].stream == 9
