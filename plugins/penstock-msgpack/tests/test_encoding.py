"""The encoding ``msgpack``: golden bytes, msgspec as the oracle, runs, and bad input."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock_msgpack import MsgpackEncoding

from penstock.api import ProtocolError, UsageError
from penstock.protocols import rsio
from penstock.testing import MessageList, check_encoding

ENCODING = MsgpackEncoding()
LARGEST = 2**63 - 1
LIMITS = rsio.WireLimits(frame=64, element=256, name=16, text=20, reason=20, extensions=4)

GOLDEN: list[tuple[rsio.Message, str]] = [
    (rsio.ClientHello(), "01 00 90"),
    (
        rsio.ServerHello(extensions=(1, 16, 17, 200, 1 << 62)),
        "02 00 95 01 10 11 cc c8 cf 40 00 00 00 00 00 00 00",
    ),
    (rsio.Goodbye(), "03 a0"),
    (rsio.Goodbye(reason="bye é"), "03 a6 62 79 65 20 c3 a9"),
    (
        rsio.Subscribe(publisher="ticks", subscriber=300, demand=LARGEST),
        "10 a5 74 69 63 6b 73 cd 01 2c cf 7f ff ff ff ff ff ff ff",
    ),
    (rsio.Request(subscriber=0, demand=128), "11 00 cc 80"),
    (rsio.Cancel(subscriber=0), "12 00"),
    (rsio.OnSubscribe(subscriber=1, element_size=4), "20 01 04"),
    (rsio.OnSubscribe(subscriber=0), "20 00 00"),
    (rsio.OnNext(subscriber=1, element=b"item"), "21 01 c4 04 69 74 65 6d"),
    (rsio.OnNext(subscriber=0, element=b""), "21 00 c4 00"),
    (rsio.OnNextPacked(subscriber=1, count=3, elements=b"abc"), "22 01 03 c4 03 61 62 63"),
    (rsio.OnNextPart(subscriber=0, element=0, data=b"aa"), "23 00 00 c4 02 61 61"),
    (rsio.OnNextLastPart(subscriber=0, element=0, data=b""), "24 00 00 c4 00"),
    (rsio.OnComplete(subscriber=0), "25 00"),
    (rsio.OnError(subscriber=1, error="boom"), "26 01 a4 62 6f 6f 6d"),
    (rsio.ExtensionMessage(type=0x40, body=bytes(8)), "40 c4 08 00 00 00 00 00 00 00 00"),
]


class Stream(MessageList):
    """A sink with streams that have begun:
    0 and 1 without a fixed size, 4 with elements of four bytes.
    """

    def __init__(self) -> None:
        super().__init__()
        for number, size in ((0, 0), (1, 0), (4, 4)):
            self.receive_on_subscribe(number, size)
        self.messages.clear()
        self.checked: list[tuple[int, int]] = []

    def check_extension(self, code: int, length: int, /) -> None:
        self.checked.append((code, length))


def decode(
    data: bytes, *, limits: rsio.WireLimits = LIMITS
) -> tuple[list[rsio.Message], str | None, int]:
    """Feed single bytes. Return the messages, the reason of the refusal or None,
    and the number of bytes that were fed.
    """
    sink = Stream()
    decoder = ENCODING.decoder(sink, sink.streams, limits)
    for at in range(len(data)):
        try:
            decoder.feed(data[at : at + 1])
        except ProtocolError as error:
            return sink.messages, error.reason, at + 1
    return sink.messages, None, len(data)


@pytest.mark.parametrize(
    ("message", "text"),
    GOLDEN,
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_each_message_has_the_bytes_of_the_page(message: rsio.Message, text: str) -> None:
    """The table of docs/reference/rsio.md, in both directions."""
    assert ENCODING.encode(message).hex(" ") == text
    seen, reason, _ = decode(
        bytes.fromhex("20 01 01" + text)
        if isinstance(message, rsio.OnNextPacked)
        else bytes.fromhex(text),
        limits=rsio.WireLimits(),
    )
    assert (seen[-1:], reason) == ([message], None)


def test_it_passes_the_check_of_encodings() -> None:
    """Every kind of message, cut at each byte, and in runs."""
    check_encoding(ENCODING)


numbers = st.integers(0, LARGEST)
texts = st.text(max_size=300)


@given(publisher=texts, subscriber=numbers, demand=numbers)
def test_msgspec_reads_what_is_written(publisher: str, subscriber: int, demand: int) -> None:
    """The fields of a subscribe are three objects of MessagePack;
    one byte in front makes them an array.
    """
    data = ENCODING.encode_subscribe(publisher, subscriber, demand)
    assert msgspec.msgpack.decode(b"\x93" + data[1:]) == [publisher, subscriber, demand]


@given(subscriber=numbers, element=st.binary(max_size=70_000), number=numbers)
def test_what_msgspec_writes_is_read(subscriber: int, element: bytes, number: int) -> None:
    """A part, with its fields written by msgspec."""
    body = b"".join(msgspec.msgpack.encode(field) for field in (subscriber, number, element))
    expected = rsio.OnNextPart(subscriber=subscriber, element=number, data=element)
    sink = MessageList()
    sink.receive_on_subscribe(subscriber, 0)
    ENCODING.decoder(sink, sink.streams, rsio.WireLimits()).feed(b"\x23" + body)
    assert sink.messages[1:] == [expected]
    assert ENCODING.encode(expected) == b"\x23" + body


@given(
    ids=st.lists(numbers, max_size=64),
    elements=st.lists(st.binary(max_size=600), min_size=1, max_size=40),
)
def test_hellos_and_runs_are_what_msgspec_writes(ids: list[int], elements: list[bytes]) -> None:
    """An array of ids, and neighbouring elements of any lengths."""
    assert ENCODING.encode(
        rsio.ClientHello(extensions=tuple(ids))
    ) == b"\x01\x00" + msgspec.msgpack.encode(ids)
    run = b"".join(b"\x21\x01" + msgspec.msgpack.encode(element) for element in elements)
    assert ENCODING.join_run(1, elements) == run
    sink = Stream()
    ENCODING.decoder(sink, sink.streams, rsio.WireLimits()).feed(run)
    assert sink.messages == [rsio.OnNext(subscriber=1, element=element) for element in elements]


@pytest.mark.parametrize(
    "text",
    [
        "cc 05",
        "cd 00 05",
        "ce 00 00 00 05",
        "cf 00 00 00 00 00 00 00 05",
        "d0 05",
        "d1 00 05",
        "d2 00 00 00 05",
    ],
)
def test_a_number_may_have_any_width(text: str) -> None:
    """The wider and the signed forms of 5."""
    assert decode(bytes.fromhex("12" + text)) == (
        [rsio.Cancel(subscriber=5)],
        None,
        len(bytes.fromhex(text)) + 1,
    )


@pytest.mark.parametrize("text", ["d9 01 61", "da 00 01 61", "db 00 00 00 01 61"])
def test_a_text_and_an_element_may_have_any_head(text: str) -> None:
    """The longer heads of a str, a bin and an array."""
    data = bytes.fromhex(text)
    assert decode(b"\x03" + data)[:2] == ([rsio.Goodbye(reason="a")], None)
    head = bytes([data[0] - 0xD9 + 0xC4])
    assert decode(b"\x21\x01" + head + data[1:])[:2] == (
        [rsio.OnNext(subscriber=1, element=b"a")],
        None,
    )
    assert decode(bytes.fromhex("01 00 dd 00 00 00 01 05"))[:2] == (
        [rsio.ClientHello(extensions=(5,))],
        None,
    )


WRONG = {"nil": "c0", "never used": "c1", "false": "c2", "true": "c3", "bin": "c4", "ext 8": "c7", "float 32": "ca", "float 64": "cb",
         "fixext 1": "d4", "str": "a1", "str 8": "d9", "array": "91", "array 16": "dc", "map": "81", "map 16": "de", "map 32": "df",
         "negative": "ff"}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_an_object_of_another_kind_is_refused_on_its_first_byte(name: str) -> None:
    """For a number, a text, an element and a list of ids."""
    head = bytes.fromhex(WRONG[name])
    for before, right in ((b"\x12", ()), (b"\x03", ("str", "str 8")), (b"\x21\x01", ("bin",)), (b"\x23\x01\x00", ("bin",)),
                          (b"\x40", ("bin",)), (b"\x01\x00", ("array", "array 16"))):  # fmt: skip
        if name not in right:
            assert decode(before + head + bytes(9)) == ([], "protocol:encoding", len(before) + 1), (
                before
            )


@pytest.mark.parametrize(
    "text", ["cf 80 00 00 00 00 00 00 00", "d0 ff", "d1 80 00", "d3 ff ff ff ff ff ff ff ff"]
)
def test_a_number_outside_of_the_range_is_refused(text: str) -> None:
    """A negative one, and one above 2^63-1."""
    assert decode(bytes.fromhex("12" + text))[1] == "protocol:encoding"


REFUSED: dict[str, tuple[str, str]] = {
    "an array that claims four billion ids": (
        "01 00 dd ff ff ff ff",
        "limit:extensions 4294967295 > 4",
    ),
    "too many ids": ("01 00 95", "limit:extensions 5 > 4"),
    "a bin of four gigabytes": ("21 01 c6 ff ff ff ff", "limit:frame 4294967295 > 64"),
    "an element that is too long": ("21 01 c4 41", "limit:frame 65 > 64"),
    "a part that is too long": ("23 01 00 c4 41", "limit:frame 65 > 64"),
    "a reason that is too long": ("03 b5", "limit:reason 21 > 20"),
    "a name that is too long": ("10 b1", "limit:name 17 > 16"),
    "an error that is too long": ("26 01 b5", "limit:text 21 > 20"),
    "an extension's body that is too long": ("40 c4 41", "limit:frame 65 > 64"),
    "an elementSize that is too large": ("20 05 41", "limit:frame 65 > 64"),
    "another version": ("01 01", "version 0"),
    "a second hello": ("01 00 90 01", "protocol:hello"),
    "a reserved type": ("7f", "protocol:type 0x7f"),
    "an element of an unknown stream": ("21 05", "protocol:stream 5"),
    "a part of an unknown stream": ("23 05", "protocol:stream 5"),
    "packed elements without a fixed size": ("22 01", "protocol:packed"),
    "packed elements that are none": ("22 04 00", "protocol:packed"),
    "packed elements of another length": ("22 04 02 c4 07", "protocol:packed"),
    "packed elements that are too long": ("22 04 11 c4 44", "limit:frame 68 > 64"),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_fault_is_refused_with_the_byte_that_shows_it(text: str, reason: str) -> None:
    """With the reason of the page, and without waiting for the bytes that are announced."""
    data = bytes.fromhex(text)
    assert decode(data)[1:] == (reason, len(data))
    assert decode(data[:-1])[1] is None


def test_a_nested_array_is_refused_on_its_first_byte() -> None:
    """A hello with an array of 10,000 arrays inside each other: nothing nests."""
    assert decode(b"\x01\x00" + b"\x91" * 10_000) == ([], "protocol:encoding", 4)


def test_an_element_of_another_size_is_a_matter_of_its_stream() -> None:
    """It arrives as a part with a number that no peer can send, which the stream refuses.
    The elements around it arrive.
    """
    sink = Stream()
    ENCODING.decoder(sink, sink.streams, rsio.WireLimits()).feed(
        bytes.fromhex("21 04 c4 04 61616161 21 04 c4 03 616161 21 04 c4 04 62626262")
    )
    good = [rsio.OnNext(subscriber=4, element=each * 4) for each in (b"a", b"b")]
    assert sink.messages == [
        good[0],
        rsio.OnNextLastPart(subscriber=4, element=-1, data=b"aaa"),
        good[1],
    ]


def test_the_length_of_an_extension_s_message_is_judged_before_its_body() -> None:
    """The sink is asked once the length is known."""
    sink = Stream()
    decoder = ENCODING.decoder(sink, sink.streams, LIMITS)
    decoder.feed(bytes.fromhex("40 c4 08 00"))
    assert (sink.checked, sink.messages) == ([(0x40, 8)], [])
    decoder.feed(bytes(7))
    assert sink.messages == [rsio.ExtensionMessage(type=0x40, body=bytes(8))]


@given(junk=st.binary(max_size=200), cut=st.integers(0, 200))
def test_random_bytes_are_decoded_or_refused_wherever_they_are_cut(junk: bytes, cut: int) -> None:
    """No other exception, and the same outcome."""

    def outcome(*chunks: bytes) -> tuple[list[rsio.Message], str | None]:
        sink = Stream()
        decoder = ENCODING.decoder(sink, sink.streams, LIMITS)
        try:
            for chunk in chunks:
                decoder.feed(chunk)
        except ProtocolError as error:
            return sink.messages, error.reason
        return sink.messages, None

    assert outcome(junk[:cut], junk[cut:]) == outcome(junk)


@pytest.mark.parametrize(
    "write",
    [
        lambda: ENCODING.encode(rsio.Cancel(subscriber=-1)),
        lambda: ENCODING.encode_cancel(1 << 63),
        lambda: ENCODING.extension_header(0x3F, 0),
        lambda: ENCODING.next_header(0, 1 << 32),
    ],
)
def test_a_number_that_does_not_fit_is_a_usage_error(write: Any) -> None:
    """When it is written: a peer would refuse it."""
    with pytest.raises(UsageError):
        write()
