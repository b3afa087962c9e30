"""`FrameList` keeps each frame that a ReactiveSocket decoder reports as a record."""

from penstock.protocols import reactivesocket as rs
from penstock.testing import FrameList


def test_each_kind_of_call_becomes_its_record() -> None:
    """Single elements, runs of elements, the four kinds of requests, and every other frame."""
    frame_list = FrameList()
    frame_list.receive_setup(1, 2, b"cap")
    frame_list.receive_request_response(1, b"a")
    frame_list.receive_request(rs.FrameType.REQUEST_FNF, 2, None, b"b")
    frame_list.receive_request(rs.FrameType.REQUEST_STREAM, 3, 0, b"c")
    frame_list.receive_request(rs.FrameType.REQUEST_SUB, 4, 9, b"d")
    frame_list.receive_request_n(3, 7)
    frame_list.receive_cancel(4)
    frame_list.receive_response(5, True, False, False, b"e")
    stream = frame_list.open(5)
    stream.receive_element(b"f")
    stream.receive_run([b"g", b"h"])
    frame_list.receive_error(6, b"boom")
    frame_list.receive_ext(0, True, 1, b"x")
    assert frame_list.frames == [
        rs.Setup(version=1, stream_id=2, data=b"cap"),
        rs.RequestResponse(stream_id=1, data=b"a"),
        rs.RequestFnf(stream_id=2, data=b"b"),
        rs.RequestStream(stream_id=3, demand=0, data=b"c"),
        rs.RequestSub(stream_id=4, demand=9, data=b"d"),
        rs.RequestN(stream_id=3, demand=7),
        rs.Cancel(stream_id=4),
        rs.Response(stream_id=5, end=False, data=b"e"),
        rs.Response(stream_id=5, data=b"f"),
        rs.Response(stream_id=5, data=b"g"),
        rs.Response(stream_id=5, data=b"h"),
        rs.Error(stream_id=6, data=b"boom"),
        rs.Ext(ignore=True, ext_type=1, data=b"x"),
    ]


def test_a_frame_of_unknown_type_has_no_record() -> None:
    """Only its type is kept."""
    frame_list = FrameList()
    frame_list.receive_unknown(0x17)
    assert frame_list.unknown_types == [0x17]
    assert frame_list.frames == []


def test_open_enters_a_stream_into_the_table() -> None:
    """Before `open` the table is empty, so the decoder reports responses to the list itself."""
    frame_list = FrameList()
    assert frame_list.streams == {}
    assert frame_list.open(3) is frame_list.streams[3]
    assert frame_list.streams[3].takes_whole
