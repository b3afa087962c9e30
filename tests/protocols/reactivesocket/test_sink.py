"""FrameList: each call of the decoder becomes a record."""

from penstock.protocols import reactivesocket as rs


def test_each_call_appends_its_record() -> None:
    """Elements alone and in runs, requests of all four kinds, and all other frames."""
    collected = rs.FrameList()
    collected.receive_setup(1, 2, b"cap")
    collected.receive_request(rs.FrameType.REQUEST_RESPONSE, 1, None, b"a")
    collected.receive_request(rs.FrameType.REQUEST_FNF, 2, None, b"b")
    collected.receive_request(rs.FrameType.REQUEST_STREAM, 3, 0, b"c")
    collected.receive_request(rs.FrameType.REQUEST_SUB, 4, 9, b"d")
    collected.receive_request_n(3, 7)
    collected.receive_cancel(4)
    collected.receive_response(5, True, False, False, b"e")
    stream = collected.open(5)
    stream.receive_element(b"f")
    stream.receive_run([b"g", b"h"])
    collected.receive_error(6, b"boom")
    collected.receive_ext(0, True, 1, b"x")
    assert collected.frames == [
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


def test_an_unknown_frame_has_no_record() -> None:
    """Its type is appended to `unknown_types`."""
    collected = rs.FrameList()
    collected.receive_unknown(0x17)
    assert collected.unknown_types == [0x17]
    assert collected.frames == []


def test_open_enters_a_stream_into_the_table() -> None:
    """Before that the table is empty, and the list itself gets the responses."""
    collected = rs.FrameList()
    assert collected.streams == {}
    assert collected.open(3) is collected.streams[3]
    assert collected.streams[3].takes_whole
