"""Hand-written frames, compared with penstock's codec:
two independent readings of one specification.
"""

from penstock_tck.wire import reactivesocket as rs

from penstock.protocols import reactivesocket as wire


def test_encoded_frames_equal_those_of_the_codec() -> None:
    """A request and a REQUEST_N."""
    request = wire.encode(wire.RequestStream(stream_id=5, demand=4, data=b"s"))
    assert (
        rs.with_length(rs.encode_frame(rs.REQUEST_STREAM, 5, rs.encode_demand(4) + b"s")) == request
    )
    assert rs.with_length(rs.encode_frame(rs.REQUEST_N, 5, rs.encode_demand(2))) == wire.request_n(
        5, 2
    )


def test_a_frame_is_decoded_byte_by_byte() -> None:
    """A wrong version and a set reserved bit are recorded, and do not stop the reader."""
    reader = rs.FrameReader(framed=False)
    data = bytearray(
        rs.with_length(rs.encode_frame(rs.RESPONSE, 7, b"item", flags=rs.B | rs.E, version=3))
    )
    data[0] |= 0x80
    found = [frame for byte in data for frame in reader.feed(bytes([byte]))]
    assert [
        (frame.type, frame.flags, frame.stream, frame.body, frame.version, frame.reserved)
        for frame in found
    ] == [(rs.RESPONSE, rs.B | rs.E, 7, b"item", 3, True)]
    assert str(found[0]) == "RESPONSE[BE] on 7 of 4 bytes"


def test_a_length_below_the_header_stops_the_reader() -> None:
    """The reader cannot know where the next frame begins."""
    reader = rs.FrameReader(framed=False)
    assert reader.feed(bytes([0, 0, 0, 15]) + bytes(40)) == []
    assert "the length 15" in reader.error


def test_a_framed_transport_carries_frames_without_a_length() -> None:
    """One message of the transport is one frame."""
    assert rs.FrameReader(framed=True).feed(rs.encode_frame(rs.CANCEL, 9))[0].stream == 9
