"""Connections in another encoding:
where each direction changes, and which bytes are sent unchanged.
"""

from penstock_tck.wire import rsio as io
from penstock_tck.wire._rsio_forms import MSGPACK, PROTOBUF
from penstock_tck.wire._rsio_translation import Incoming, Outgoing

CANCEL = io.Message(io.CANCEL, 300)


def test_without_an_encoding_the_bytes_stay_as_they_are() -> None:
    """Bytes that are not a message are also not changed."""
    assert Outgoing().encode(io.hello(5) + b"\x7f") == io.hello(5) + b"\x7f"


def test_the_hello_lists_the_encoding_and_messages_change_behind_the_agreement() -> None:
    """Messages behind the hello are compact until the server's hello has come."""
    outgoing = Outgoing(MSGPACK)
    assert outgoing.encode(io.hello(5) + io.cancel(1)) == io.hello(16, 5) + io.cancel(1)
    assert outgoing.encode(io.cancel(300), is_agreed=True) == b"\x04\x10" + MSGPACK.encode(CANCEL)
    assert outgoing.encode(io.cancel(300), is_agreed=True) == MSGPACK.encode(CANCEL)


def test_a_hello_of_another_version_and_one_with_64_ids_are_not_made_longer() -> None:
    """The first is not read, and the second would have too many ids."""
    assert Outgoing(MSGPACK).encode(io.hello(version=9)) == io.hello(version=9)
    assert Outgoing(MSGPACK).encode(io.hello(*range(100, 164))) == io.hello(16, *range(100, 163))


def test_an_encoding_that_was_chosen_outside_has_no_change() -> None:
    """The hello is in it, and lists nothing."""
    assert Outgoing(PROTOBUF, is_outside=True).encode(io.hello()) == b"\x01\x00"
    incoming = Incoming(PROTOBUF)
    assert incoming.feed(PROTOBUF.encode(CANCEL)) == [CANCEL]
    incoming.feed(b"\x04\x02\x08\x11")
    assert "was not agreed on" in incoming.error


def test_elements_of_a_fixed_size_get_their_length() -> None:
    """The compact encoding has no length there, so the size of the stream is remembered."""
    outgoing = Outgoing(MSGPACK, is_outside=True)
    outgoing.encode(io.on_subscribe(1, 4))
    assert outgoing.encode(io.numbers(io.ON_NEXT, 1) + b"1111") == b"\x21\x01\xc4\x041111"


def test_the_direction_of_the_target_changes_where_its_marker_stands() -> None:
    """In the middle of a chunk, at each cut. Element sizes are kept."""
    data = (
        io.on_subscribe(1, 4) + b"\x04\x10" + MSGPACK.encode(io.Message(io.ON_NEXT, 1, (), b"1111"))
    )
    for cut in range(len(data)):
        incoming = Incoming(agreed=(16,))
        found = incoming.feed(data[:cut]) + incoming.feed(data[cut:])
        assert [message.type for message in found] == [
            io.ON_SUBSCRIBE,
            io.SWITCH_ENCODING,
            io.ON_NEXT,
        ]
        assert (incoming.error, incoming.sizes) == ("", {1: 4})


def test_a_change_of_the_target_that_was_not_agreed_on_is_an_error() -> None:
    """Another id, an unknown one that was listed, and a second change."""
    for agreed, data in (
        ((16,), b"\x04\x11"),
        ((200,), b"\x04\xc8\x01"),
        ((16,), b"\x04\x10\x04\x10"),
    ):
        incoming = Incoming(agreed=agreed)
        incoming.feed(data)
        assert "not agreed on, or is the second one" in incoming.error
