"""`MessageList` keeps each message that an RS.io decoder reports as a record."""

from penstock.protocols import rsio
from penstock.testing import MessageList


def test_each_kind_of_signal_becomes_its_record() -> None:
    """Single elements, runs, packs and parts of elements, requests, and every other message."""
    message_list = MessageList()
    message_list.receive_on_subscribe(3, 2)
    stream = message_list.streams[3]
    stream.receive_element(b"aa")
    stream.receive_run([b"bb", b"cc"])
    stream.receive_packed(1, b"dd")
    stream.receive_part(0, b"e", False)
    stream.receive_part(0, b"e", True)
    message_list.receive_request(3, 7)
    assert message_list.messages == [
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
    """The decoder reads the element size from the table."""
    message_list = MessageList()
    assert message_list.streams == {}
    message_list.receive_on_subscribe(3, 2)
    assert message_list.streams[3].element_size == 2
