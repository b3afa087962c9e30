"""The two interfaces that the RS.io decoder calls: `RsioSink` and `WireStream`."""

from penstock.protocols import rsio
from penstock.protocols.rsio import RsioSink, WireStream
from penstock.testing import MessageList


def test_the_message_list_has_the_methods_of_the_sink_and_of_a_stream() -> None:
    """The assignments are checked by mypy;
    the run checks that nothing more is needed to decode a stream.
    """
    recorded = MessageList()
    sink: RsioSink = recorded
    decoder = rsio.RsioDecoder(sink, recorded.streams)
    decoder.feed(
        rsio.encode(rsio.OnSubscribe(subscriber=3, element_size=0))
        + rsio.encode(rsio.OnNext(subscriber=3, element=b"a"))
    )
    stream: WireStream = recorded.streams[3]
    assert stream.element_size == 0
    assert recorded.messages[1:] == [rsio.OnNext(subscriber=3, element=b"a")]


def test_an_element_size_before_on_subscribe_is_no_size() -> None:
    """Sizes are 0 (each element carries its length) or positive, so NOT_BEGUN must be negative."""
    assert rsio.NOT_BEGUN < 0
