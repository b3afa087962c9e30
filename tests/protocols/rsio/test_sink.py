"""The list of messages: what a decoder tells, collected as records."""

from penstock.protocols import rsio


def test_each_kind_of_signal_becomes_its_record() -> None:
    """Elements one by one, in runs, packed and in parts; requests and all else."""
    heard = rsio.MessageList()
    heard.receive_on_subscribe(3, 2)
    stream = heard.streams[3]
    stream.receive_element(b"aa")
    stream.receive_run([b"bb", b"cc"])
    stream.receive_packed(1, b"dd")
    stream.receive_part(0, b"e", False)
    stream.receive_part(0, b"e", True)
    heard.receive_request(3, 7)
    assert heard.messages == [
        rsio.OnSubscribe(subscriber=3, element_size=2),
        rsio.OnNext(subscriber=3, element=b"aa"),
        rsio.OnNext(subscriber=3, element=b"bb"),
        rsio.OnNext(subscriber=3, element=b"cc"),
        rsio.OnNextPacked(subscriber=3, count=1, elements=b"dd"),
        rsio.OnNextPart(subscriber=3, element=0, data=b"e"),
        rsio.OnNextLastPart(subscriber=3, element=0, data=b"e"),
        rsio.Request(subscriber=3, demand=7),
    ]


def test_a_stream_is_known_from_its_beginning_on() -> None:
    """The decoder's table holds the size of its elements."""
    heard = rsio.MessageList()
    assert heard.streams == {}
    heard.receive_on_subscribe(3, 2)
    assert heard.streams[3].element_size == 2
