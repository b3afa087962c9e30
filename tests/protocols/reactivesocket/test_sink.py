"""The two interfaces that the ReactiveSocket decoder calls:
`ReactiveSocketSink` and `WireStream`.
"""

from penstock.protocols import reactivesocket as rs
from penstock.protocols.reactivesocket import ReactiveSocketSink, WireStream
from penstock.testing import FrameList


def test_the_frame_list_has_the_methods_of_the_sink_and_of_a_stream() -> None:
    """The assignments are checked by mypy;
    the run checks that nothing more is needed to decode a stream.
    """
    recorded = FrameList()
    sink: ReactiveSocketSink = recorded
    stream: WireStream = recorded.open(5)
    decoder = rs.ReactiveSocketDecoder(sink, recorded.streams)
    decoder.feed(rs.encode(rs.Response(stream_id=5, data=b"a")) + rs.encode(rs.Cancel(stream_id=5)))
    assert stream.takes_whole
    assert recorded.frames == [rs.Response(stream_id=5, data=b"a"), rs.Cancel(stream_id=5)]
