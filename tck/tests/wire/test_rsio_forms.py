"""The encodings msgpack and protobuf as the checks write and read them,
compared with the table of the reference page.
"""

import re
from pathlib import Path

import pytest
from penstock_tck.wire import rsio as io
from penstock_tck.wire._rsio_forms import FORMS, FORMS_BY_ID, MSGPACK, PROTOBUF

PAGE = Path(__file__).parents[3] / "docs/reference/rsio.md"
MESSAGES = {
    "clientHello, version 0, no extensions": io.Message(io.CLIENT_HELLO, numbers=(0,)),
    "serverHello, version 0, ids 1, 16, 17, 200, 2^62": io.Message(
        io.SERVER_HELLO, numbers=(0, 1, 16, 17, 200, 1 << 62)
    ),
    'goodbye ""': io.Message(io.GOODBYE),
    'goodbye "bye é"': io.Message(io.GOODBYE, body="bye é".encode()),
    'subscribe "ticks", id 300, demand 2^63−1': io.Message(  # noqa: RUF001 (as the page has it)
        io.SUBSCRIBE, 300, (io.UNBOUNDED,), b"ticks"
    ),
    "request, id 0, demand 128": io.Message(io.REQUEST, 0, (128,)),
    "cancel, id 0": io.Message(io.CANCEL, 0),
    "onSubscribe, id 1, elementSize 4": io.Message(io.ON_SUBSCRIBE, 1, (4,)),
    "onSubscribe, id 0, elementSize 0": io.Message(io.ON_SUBSCRIBE, 0, (0,)),
    'onNext, id 1, "item"': io.Message(io.ON_NEXT, 1, (), b"item"),
    "onNext, id 0, empty": io.Message(io.ON_NEXT, 0),
    "onNextPacked, id 1, three elements of 1 byte": io.Message(io.ON_NEXT_PACKED, 1, (3,), b"abc"),
    'onNextPart, id 0, element 0, "aa"': io.Message(io.ON_NEXT_PART, 0, (0,), b"aa"),
    "onNextLastPart, id 0, element 0, empty": io.Message(io.ON_NEXT_LAST_PART, 0, (0,)),
    "onComplete, id 0": io.Message(io.ON_COMPLETE, 0),
    'onError, id 1, "boom"': io.Message(io.ON_ERROR, 1, (), b"boom"),
    "message `40` of an extension, 8 bytes of 00": io.Message(0x40, body=bytes(8)),
}


def golden() -> dict[str, dict[str, bytes]]:
    """Return the bytes of the page by message and encoding."""
    rows = re.findall(
        r"^\| (.+?) \| `([0-9a-f ]+)` \| `([0-9a-f ]+)` \|$",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    found = {
        name: {"msgpack": bytes.fromhex(first), "protobuf": bytes.fromhex(second)}
        for name, first, second in rows
    }
    assert found.keys() >= MESSAGES.keys()
    return {name: each for name, each in found.items() if name in MESSAGES}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_each_message_is_written_as_on_the_page(form) -> None:
    """The bytes of each form are the golden bytes."""
    assert {name: form.encode(message) for name, message in MESSAGES.items()} == {
        name: each[form.name] for name, each in golden().items()
    }


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_each_message_is_read_byte_by_byte(form) -> None:
    """As it was written. The size of the packed elements is known before."""
    reader = form.reader()
    reader.sizes[1] = 1
    found = []
    for name, message in MESSAGES.items():
        if name != "onSubscribe, id 1, elementSize 4":
            found += [each for byte in form.encode(message) for each in reader.feed(bytes([byte]))]
    assert found == [
        message for name, message in MESSAGES.items() if name != "onSubscribe, id 1, elementSize 4"
    ]
    assert reader.error == ""


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_bytes_that_are_no_message_stop_the_reader(form) -> None:
    """Each of those that the checks send, an unknown type,
    and packed elements of another length.
    """
    for wrong in (
        *form.unreadable,
        b"\x7f",
        form.encode(io.Message(io.ON_NEXT_PACKED, 1, (2,), b"abc")),
    ):
        reader = form.reader()
        assert reader.feed(wrong) == []
        assert reader.error, wrong.hex()


def test_a_wrong_kind_of_object_stops_the_reader_of_msgpack() -> None:
    """A bin for a text, a text for an element, and an array that has no end."""
    for wrong in (b"\x03\xc4\x00", b"\x21\x00\xa0", b"\x01\x00\xc0"):
        reader = MSGPACK.reader()
        assert reader.feed(wrong) == []
        assert "is due" in reader.error


def test_a_reader_of_protobuf_takes_what_the_page_allows() -> None:
    """Fields in another order, the last of two, padded numbers,
    unknown fields of four wire types, single extensions.
    """
    reader = PROTOBUF.reader()
    # demand 5, id 1, demand 0 in four bytes.
    any_order = bytes.fromhex("11" + "09" + "1005" + "0801" + "1080808000")
    unknown = bytes.fromhex(
        "12" + "1a" + "0807" + "7801" + "7a0161" + "7d00000000" + "79" + "00" * 8 + "7d01000000"
    )
    single = bytes.fromhex("02" + "04" + "1001" + "1011")
    assert reader.feed(any_order + unknown + single) == [
        io.Message(io.REQUEST, 1, (0,)),
        io.Message(io.CANCEL, 7),
        io.Message(io.SERVER_HELLO, numbers=(0, 1, 17)),
    ]
    assert reader.error == ""


def test_long_lengths_have_the_shortest_heads() -> None:
    """At each border of msgpack."""
    for size, head in (
        (31, "bf"),
        (32, "d920"),
        (255, "d9ff"),
        (256, "da0100"),
        (65_535, "daffff"),
        (65_536, "db00010000"),
    ):
        assert MSGPACK.encode(io.Message(io.GOODBYE, body=b"x" * size)).startswith(
            bytes.fromhex("03" + head)
        )
    for number, head in (
        (127, "7f"),
        (128, "cc80"),
        (256, "cd0100"),
        (1 << 16, "ce00010000"),
        (1 << 32, "cf0000000100000000"),
    ):
        assert MSGPACK.encode(io.Message(io.CANCEL, number)) == bytes.fromhex("12" + head)


def test_ids_are_those_of_the_page() -> None:
    """The page gives 16 to msgpack and 17 to protobuf."""
    assert {each: form.name for each, form in FORMS_BY_ID.items()} == {
        16: "msgpack",
        17: "protobuf",
    }
