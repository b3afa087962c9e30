"""MessageList: each call of the decoder becomes a record."""

from penstock.protocols import rsio


def test_each_call_appends_its_record() -> None:
    """Elements one by one, in runs, packed and in parts; requests; and messages that are records already."""
    collected = rsio.MessageList()
    collected.receive_on_subscribe(3, 2)
    stream = collected.streams[3]
    stream.receive_element(b"aa")
    stream.receive_run([b"bb", b"cc"])
    stream.receive_packed(1, b"dd")
    stream.receive_part(0, b"e", False)
    stream.receive_part(0, b"e", True)
    collected.receive_request(3, 7)
    assert collected.messages == [
        rsio.OnSubscribe(subscriber=3, element_size=2),
        rsio.OnNext(subscriber=3, element=b"aa"),
        rsio.OnNext(subscriber=3, element=b"bb"),
        rsio.OnNext(subscriber=3, element=b"cc"),
        rsio.OnNextPacked(subscriber=3, count=1, elements=b"dd"),
        rsio.OnNextPart(subscriber=3, element=0, data=b"e"),
        rsio.OnNextLastPart(subscriber=3, element=0, data=b"e"),
        rsio.Request(subscriber=3, demand=7),
    ]


def test_on_subscribe_enters_the_stream_into_the_table() -> None:
    """The decoder finds the element size there."""
    collected = rsio.MessageList()
    assert collected.streams == {}
    collected.receive_on_subscribe(3, 2)
    assert collected.streams[3].element_size == 2
