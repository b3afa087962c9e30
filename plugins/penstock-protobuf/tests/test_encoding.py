"""The encoding ``protobuf``: golden bytes, the package protobuf as the oracle, runs,
and bad input.
"""

import re
from importlib.resources import files
from typing import Any

import attrs
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st
from penstock_protobuf import ProtobufEncoding

from penstock.api import ProtocolError, UsageError
from penstock.protocols import rsio
from penstock.testing import MessageList, check_encoding

ENCODING = ProtobufEncoding()
LARGEST = 2**63 - 1
LIMITS = rsio.WireLimits(frame=64, element=256, name=16, text=20, reason=20, extensions=4)

GOLDEN: list[tuple[rsio.Message, str]] = [
    (rsio.ClientHello(), "01 00"),
    (
        rsio.ServerHello(extensions=(1, 16, 17, 200, 1 << 62)),
        "02 10 12 0e 01 10 11 c8 01 80 80 80 80 80 80 80 80 40",
    ),
    (rsio.Goodbye(), "03 00"),
    (rsio.Goodbye(reason="bye é"), "03 08 0a 06 62 79 65 20 c3 a9"),
    (
        rsio.Subscribe(publisher="ticks", subscriber=300, demand=LARGEST),
        "10 14 0a 05 74 69 63 6b 73 10 ac 02 18 ff ff ff ff ff ff ff ff 7f",
    ),
    (rsio.Request(subscriber=0, demand=128), "11 03 10 80 01"),
    (rsio.Cancel(subscriber=0), "12 00"),
    (rsio.OnSubscribe(subscriber=1, element_size=4), "20 04 08 01 10 04"),
    (rsio.OnSubscribe(subscriber=0), "20 00"),
    (rsio.OnNext(subscriber=1, element=b"item"), "21 08 08 01 12 04 69 74 65 6d"),
    (rsio.OnNext(subscriber=0, element=b""), "21 00"),
    (rsio.OnNextPacked(subscriber=1, count=3, elements=b"abc"), "22 09 08 01 10 03 1a 03 61 62 63"),
    (rsio.OnNextPart(subscriber=0, element=0, data=b"aa"), "23 04 1a 02 61 61"),
    (rsio.OnNextLastPart(subscriber=0, element=0, data=b""), "24 00"),
    (rsio.OnComplete(subscriber=0), "25 00"),
    (rsio.OnError(subscriber=1, error="boom"), "26 08 08 01 12 04 62 6f 6f 6d"),
    (rsio.ExtensionMessage(type=0x40, body=bytes(8)), "40 08 00 00 00 00 00 00 00 00"),
]


_TYPES = {"uint32": 13, "uint64": 4, "string": 9, "bytes": 12}


def _classes() -> dict[str, Any]:
    """Make the classes of `rsio.proto`: the oracle.
    No compiler is needed, because the file has one line for each message.
    """
    text = files("penstock_protobuf").joinpath("rsio.proto").read_text(encoding="utf-8")
    proto = descriptor_pb2.FileDescriptorProto(
        name="rsio.proto", package="penstock.rsio.v0", syntax="proto3"
    )
    for name, body in re.findall(r"^message (\w+) \{([^}]*)\}", text, re.MULTILINE):
        message = proto.message_type.add(name=name)
        for repeated, kind, field, number in re.findall(r"(repeated )?(\w+) (\w+) = (\d+);", body):
            message.field.add(
                name=field, number=int(number), type=_TYPES[kind], label=3 if repeated else 1
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(proto)
    return {
        each.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"penstock.rsio.v0.{each.name}")
        )
        for each in proto.message_type
    }


CLASSES = _classes()
"""By name: ``CLASSES["OnNext"]``."""


class Stream(MessageList):
    """A sink with streams that have begun:
    0, 1 and 300 without a fixed size, 4 with elements of four bytes.
    """

    def __init__(self) -> None:
        super().__init__()
        for number, size in ((0, 0), (1, 0), (300, 0), (4, 4)):
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


def message(code: int, body: str | bytes) -> bytes:
    body = bytes.fromhex(body) if isinstance(body, str) else body
    return bytes([code]) + rsio.encode_varint(len(body)) + body


@pytest.mark.parametrize(
    ("record", "text"),
    GOLDEN,
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_each_message_has_the_bytes_of_the_page(record: rsio.Message, text: str) -> None:
    """The table of docs/reference/rsio.md, in both directions."""
    assert ENCODING.encode(record).hex(" ") == text
    before = "20 04 08 01 10 01" if isinstance(record, rsio.OnNextPacked) else ""
    seen, reason, _ = decode(bytes.fromhex(before + text), limits=rsio.WireLimits())
    assert (seen[-1:], reason) == ([record], None)


def test_it_passes_the_check_of_encodings() -> None:
    """Every kind of message, cut at each byte, and in runs."""
    check_encoding(ENCODING)


numbers = st.integers(0, LARGEST) | st.integers(0, 300)
texts = st.text(max_size=300)
chunks = st.binary(max_size=70_000)
RECORDS = st.one_of(
    st.builds(rsio.ClientHello, extensions=st.lists(numbers, max_size=64).map(tuple)),
    st.builds(rsio.Goodbye, reason=texts),
    st.builds(rsio.SwitchEncoding, extension=numbers),
    st.builds(rsio.Subscribe, publisher=texts, subscriber=numbers, demand=numbers),
    st.builds(rsio.Request, subscriber=numbers, demand=numbers),
    st.builds(rsio.Cancel, subscriber=numbers),
    st.builds(rsio.OnSubscribe, subscriber=numbers, element_size=st.integers(0, 4096)),
    st.builds(rsio.OnNext, subscriber=numbers, element=chunks),
    st.builds(rsio.OnNextPart, subscriber=numbers, element=numbers, data=chunks),
    st.builds(rsio.OnComplete, subscriber=numbers),
    st.builds(rsio.OnError, subscriber=numbers, error=texts),
)


@given(record=RECORDS)
def test_the_package_protobuf_writes_and_reads_the_same_bytes(record: rsio.Message) -> None:
    """For every kind of message, from the `.proto` that the page shows."""
    kind = CLASSES["Hello" if isinstance(record, rsio.ClientHello) else type(record).__name__]
    fields = attrs.asdict(record)  # type: ignore[arg-type]  # every record is an attrs class
    body = kind(**fields).SerializeToString(deterministic=True)
    data = ENCODING.encode(record)
    assert data == data[:1] + rsio.encode_varint(len(body)) + body
    sink = MessageList()
    if hasattr(record, "subscriber") and not isinstance(record, rsio.OnSubscribe):
        sink.receive_on_subscribe(record.subscriber, 0)
        sink.messages.clear()
    ENCODING.decoder(sink, sink.streams, rsio.WireLimits()).feed(data)
    assert sink.messages == [record]


@given(
    elements=st.lists(st.binary(max_size=600), min_size=1, max_size=40),
    subscriber=st.sampled_from([0, 1, 300]),
)
def test_runs_are_what_the_package_writes(elements: list[bytes], subscriber: int) -> None:
    """Neighbouring elements of any lengths, in both directions."""
    bodies = [
        CLASSES["OnNext"](subscriber=subscriber, element=element).SerializeToString()
        for element in elements
    ]
    run = b"".join(message(0x21, body) for body in bodies)
    assert ENCODING.join_run(subscriber, elements) == run
    sink = Stream()
    ENCODING.decoder(sink, sink.streams, rsio.WireLimits()).feed(run)
    assert sink.messages == [
        rsio.OnNext(subscriber=subscriber, element=element) for element in elements
    ]


ITEM = rsio.OnNext(subscriber=1, element=b"item")
ACCEPTED: dict[str, tuple[bytes, rsio.Message]] = {
    "another order": (message(0x21, "12 04 69 74 65 6d 08 01"), ITEM),
    "the last of a field that comes twice": (
        message(0x21, "08 05 12 01 78 08 01 12 04 69 74 65 6d"),
        ITEM,
    ),
    "padded varints": (
        message(0x21, "88 00 81 80 00 92 00 84 80 80 80 80 80 80 80 80 00 69 74 65 6d"),
        ITEM,
    ),
    "an explicit zero": (message(0x11, "08 00 10 07"), rsio.Request(subscriber=0, demand=7)),
    "an empty element that is written": (
        message(0x21, "08 01 12 00"),
        rsio.OnNext(subscriber=1, element=b""),
    ),
    "an unknown varint": (
        message(0x21, "18 ff ff ff ff ff ff ff ff ff 01 08 01 12 04 69 74 65 6d"),
        ITEM,
    ),
    "an unknown field behind the element": (
        message(0x21, "08 01 12 04 69 74 65 6d 1a 01 78"),
        ITEM,
    ),
    "unknown fields of 32 and 64 bits": (
        message(0x12, "15 01 02 03 04 19 01 02 03 04 05 06 07 08 08 09"),
        rsio.Cancel(subscriber=9),
    ),
    "a field with a large number": (
        message(0x12, "f8 ff ff ff 0f 01 08 09"),
        rsio.Cancel(subscriber=9),
    ),
    "ids that are not packed": (
        message(0x01, "10 01 12 02 02 03 10 04"),
        rsio.ClientHello(extensions=(1, 2, 3, 4)),
    ),
    "many unknown bytes": (
        message(0x12, b"\x08\x09\x7a\xfb\x01" + bytes(251)),
        rsio.Cancel(subscriber=9),
    ),
}


@pytest.mark.parametrize(("data", "record"), ACCEPTED.values(), ids=ACCEPTED)
def test_every_form_that_protocol_buffers_allow_is_read(data: bytes, record: rsio.Message) -> None:
    """Each is read byte by byte, and with another message after it."""
    assert decode(data) == ([record], None, len(data))
    sink = Stream()
    ENCODING.decoder(sink, sink.streams, LIMITS).feed(data + ENCODING.encode(ITEM))
    assert sink.messages == [record, ITEM]


BAD: dict[str, bytes] = {
    "a group": message(0x12, "0b 08 01 0c"),
    "an unknown group": message(0x12, "1b 1c"),
    "the end of a group": message(0x12, "1c"),
    "wire type 6": message(0x12, "1e 00"),
    "wire type 7": message(0x12, "1f 00"),
    "field number 0": message(0x12, "00 01"),
    "a tag of 33 bits": message(0x12, "80 80 80 80 10 01"),
    "a number as bytes": message(0x12, "0a 01 01"),
    "a number of 32 bits": message(0x12, "0d 01 00 00 00"),
    "a text as a varint": message(0x03, "08 01"),
    "an element as a varint": message(0x21, "08 01 10 01"),
    "a list of 64 bits": message(0x01, "11 01 00 00 00 00 00 00 00"),
    "an element past its body": message(0x21, "08 01 12 05 69 74 65 6d"),
    "an unknown field past its body": message(0x12, "1a 02 78"),
    "an unknown number past its body": message(0x12, "1d 01 02"),
    "a varint past its body": message(0x12, "08 80"),
    "a stream past its body": message(0x21, "08"),
    "an element without a length": message(0x21, "08 01 12"),
    "an id past its list": message(0x01, "12 02 01 80"),
    "a varint of eleven bytes": message(0x12, "08 80 80 80 80 80 80 80 80 80 80 00"),
    "a number above 2^63-1": message(0x12, "08 80 80 80 80 80 80 80 80 80 01"),
    "a stream above 2^63-1": message(0x21, "08 80 80 80 80 80 80 80 80 80 01 12 01 78"),
    "an id above 2^63-1": message(0x01, "12 0a 80 80 80 80 80 80 80 80 80 01"),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    """They are refused with the last byte of the body; the bytes after it have no effect, also if
    they would continue the broken field.
    """
    assert decode(data) == ([], "protocol:encoding", len(data))
    sink = Stream()
    with pytest.raises(ProtocolError) as refused:
        ENCODING.decoder(sink, sink.streams, LIMITS).feed(
            data + bytes.fromhex("01 02 03 04 05 06 07 08 09") * 3
        )
    assert (refused.value.reason, sink.messages) == ("protocol:encoding", [])


REFUSED: dict[str, tuple[bytes, str]] = {
    "a body of four gigabytes": (
        bytes.fromhex("21 ff ff ff ff 0f"),
        "limit:frame 4294967295 > 320",
    ),
    "an element's body that is too long": (
        b"\x21" + rsio.encode_varint(321),
        "limit:frame 321 > 320",
    ),
    "an element that is too long": (ENCODING.next_header(1, 65) + bytes(65), "limit:frame 65 > 64"),
    "a part's body that is too long": (b"\x23" + rsio.encode_varint(321), "limit:frame 321 > 320"),
    "a part that is too long": (
        ENCODING.part_header(1, 0, 65, last=True) + bytes(65),
        "limit:frame 65 > 64",
    ),
    "a reason's body that is too long": (
        b"\x03" + rsio.encode_varint(277),
        "limit:reason 277 > 276",
    ),
    "a reason that is too long": (
        ENCODING.encode(rsio.Goodbye(reason="r" * 21)),
        "limit:reason 21 > 20",
    ),
    "a name's body that is too long": (b"\x10" + rsio.encode_varint(273), "limit:name 273 > 272"),
    "a name that is too long": (
        ENCODING.encode(rsio.Subscribe(publisher="n" * 17, subscriber=0)),
        "limit:name 17 > 16",
    ),
    "an error's body that is too long": (b"\x26" + rsio.encode_varint(277), "limit:text 277 > 276"),
    "an error that is too long": (
        ENCODING.encode(rsio.OnError(subscriber=1, error="e" * 21)),
        "limit:text 21 > 20",
    ),
    "a hello's body that is too long": (
        b"\x01" + rsio.encode_varint(293),
        "limit:extensions 293 > 292",
    ),
    "too many ids": (
        ENCODING.encode(rsio.ClientHello(extensions=(1,) * 5)),
        "limit:extensions 5 > 4",
    ),
    "a body of numbers that is too long": (
        b"\x12" + rsio.encode_varint(257),
        "limit:frame 257 > 256",
    ),
    "an extension's body that is too long": (bytes.fromhex("40 41"), "limit:frame 65 > 64"),
    "an elementSize that is too large": (
        ENCODING.encode(rsio.OnSubscribe(subscriber=9, element_size=65)),
        "limit:frame 65 > 64",
    ),
    "a length that is longer than it must be": (bytes.fromhex("12 80 00"), "protocol:varint"),
    "another version": (message(0x01, "08 01"), "version 0"),
    "a second hello": (bytes.fromhex("01 00 01"), "protocol:hello"),
    "a reserved type": (b"\x7f", "protocol:type 0x7f"),
    "an element of an unknown stream": (message(0x21, "08 05"), "protocol:stream 5"),
    "a part of an unknown stream": (message(0x23, "08 05"), "protocol:stream 5"),
    "packed elements without a fixed size": (
        message(0x22, "08 01 10 01 1a 01 78"),
        "protocol:packed",
    ),
    "packed elements that are none": (message(0x22, "08 04"), "protocol:packed"),
    "packed elements of another length": (
        message(0x22, "08 04 10 02 1a 03 78 78 78"),
        "protocol:packed",
    ),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_fault_is_refused_with_the_byte_that_shows_it(data: bytes, reason: str) -> None:
    """With the reason of the page, and a body that is too long on its length."""
    assert decode(data)[1:] == (reason, len(data))
    assert decode(data[:-1])[1] is None


@pytest.mark.parametrize(
    "known", ["08 04 12 03 61 61 61", "12 03 61 61 61 08 04"], ids=["usual form", "another order"]
)
def test_an_element_of_another_size_is_a_matter_of_its_stream(known: str) -> None:
    """It arrives as a part with a number that no peer can send, which the stream refuses.
    The elements around it arrive.
    """
    sink = Stream()
    around = [message(0x21, f"08 04 12 04 {each * 4}") for each in ("61", "62")]
    ENCODING.decoder(sink, sink.streams, rsio.WireLimits()).feed(
        around[0] + message(0x21, known) + around[1]
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
    decoder.feed(bytes.fromhex("40 08 00"))
    assert (sink.checked, sink.messages) == ([(0x40, 8)], [])
    decoder.feed(bytes(7))
    assert sink.messages == [rsio.ExtensionMessage(type=0x40, body=bytes(8))]


@given(junk=st.binary(max_size=200), cut=st.integers(0, 200))
def test_random_bytes_are_decoded_or_refused_wherever_they_are_cut(junk: bytes, cut: int) -> None:
    """No other exception, and the same outcome."""

    def outcome(*pieces: bytes) -> tuple[list[rsio.Message], str | None]:
        sink = Stream()
        decoder = ENCODING.decoder(sink, sink.streams, LIMITS)
        try:
            for piece in pieces:
                decoder.feed(piece)
        except ProtocolError as error:
            return sink.messages, error.reason
        return sink.messages, None

    assert outcome(junk[:cut], junk[cut:]) == outcome(junk)


@given(body=st.binary(max_size=60))
def test_a_body_that_the_package_refuses_is_refused(body: bytes) -> None:
    """The other way round does not hold:
    a number above 2^63-1 and a group are read by the package.
    """
    try:
        CLASSES["Cancel"].FromString(body)
    except Exception:  # of the package, in any of its implementations
        assert decode(message(0x12, body))[1] == "protocol:encoding"


@pytest.mark.parametrize(
    "write",
    [
        lambda: ENCODING.encode(rsio.Cancel(subscriber=-1)),
        lambda: ENCODING.encode_cancel(1 << 63),
        lambda: ENCODING.extension_header(0x3F, 0),
    ],
)
def test_a_number_that_does_not_fit_is_a_usage_error(write: Any) -> None:
    """When it is written: a peer would refuse it."""
    with pytest.raises(UsageError):
        write()
