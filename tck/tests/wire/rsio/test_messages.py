"""Hand-written messages, compared with penstock's codec:
two independent readings of one specification.
"""

import pytest
from penstock_tck.wire import rsio as io

from penstock.protocols import rsio as wire


def test_encoded_messages_equal_those_of_the_codec() -> None:
    """One message for each kind of field."""
    assert io.hello(1, 200) == wire.encode(wire.ClientHello(extensions=(1, 200)))
    assert io.subscribe("ticks", 300, io.UNBOUNDED) == wire.encode(
        wire.Subscribe(publisher="ticks", subscriber=300, demand=io.UNBOUNDED)
    )
    assert io.goodbye("bye") == wire.encode(wire.Goodbye(reason="bye"))


def test_messages_are_decoded_byte_by_byte() -> None:
    """In streams with and without a fixed size."""
    reader = io.MessageReader()
    data = (
        io.on_subscribe(1, 4)
        + io.numbers(io.ON_NEXT, 1)
        + b"1111"
        + io.numbers(io.ON_NEXT_PACKED, 1, 2)
        + b"22223333"
    )
    data += io.on_next(2, b"any") + io.part(2, 5, b"last", last=True) + io.on_error(2, "boom")
    found = [message for byte in data for message in reader.feed(bytes([byte]))]
    assert [(message.type, message.stream, message.numbers, message.body) for message in found] == [
        (io.ON_SUBSCRIBE, 1, (4,), b""),
        (io.ON_NEXT, 1, (), b"1111"),
        (io.ON_NEXT_PACKED, 1, (2,), b"22223333"),
        (io.ON_NEXT, 2, (), b"any"),
        (io.ON_NEXT_LAST_PART, 2, (5,), b"last"),
        (io.ON_ERROR, 2, (), b"boom"),
    ]
    assert str(found[-1]) == "onError 2 b'boom'"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x00", "type 0x00"),
        (b"\x12\x81\x00", "longer than necessary"),
        (b"\x12" + b"\xff" * 10, "more than nine bytes"),
    ],
)
def test_a_message_of_unknown_length_stops_the_reader(data: bytes, why: str) -> None:
    """The reader cannot know where the next message begins."""
    reader = io.MessageReader()
    assert reader.feed(data + b"\x25\x01") == []
    assert why in reader.error
