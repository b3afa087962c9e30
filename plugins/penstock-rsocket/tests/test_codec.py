"""Tests of `_codec`: the bytes of every frame, faults, and the decoder of a connection."""

from collections.abc import Sequence
from typing import Any

import penstock_rsocket as rsocket
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock_rsocket import FrameType, RsocketDecoder, decode, encode
from penstock_rsocket._codec import join_run, payload_header

from penstock.api import ProtocolError, UsageError

COMPOSITE = rsocket.COMPOSITE

# The bytes of rsocket-java 1.1.5, and of rsocket-py 0.4.20 where it has the frame: the same.
VECTORS: list[tuple[rsocket.Frame, str]] = [
    (
        rsocket.Setup(
            keepalive=20000,
            lifetime=90000,
            metadata_type=COMPOSITE,
            data_type="application/json",
            metadata=b"m",
            data=b"d",
        ),
        "0000000005000001000000004e2000015f90"
        "27" + COMPOSITE.encode().hex() + "106170706c69636174696f6e2f6a736f6e0000016d64",
    ),
    (
        rsocket.Setup(
            keepalive=500,
            lifetime=1000,
            token=b"tok",
            leases=True,
            metadata_type="a/b",
            data_type="c/d",
        ),
        "0000000004c000010000000001f4000003e80003746f6b03612f6203632f64",
    ),
    (
        rsocket.RequestResponse(stream_id=1, metadata=b"meta", data=b"data"),
        "0000000111000000046d65746164617461",
    ),
    (
        rsocket.RequestResponse(stream_id=1, metadata=b"meta", data=b"data", follows=True),
        "0000000111800000046d65746164617461",
    ),
    (rsocket.RequestResponse(stream_id=1, data=b"data"), "00000001100064617461"),
    (
        rsocket.RequestFnf(stream_id=3, metadata=b"meta", data=b"data"),
        "0000000315000000046d65746164617461",
    ),
    (
        rsocket.RequestStream(stream_id=5, demand=7, metadata=b"meta", data=b"data"),
        "000000051900000000070000046d65746164617461",
    ),
    (
        rsocket.RequestChannel(
            stream_id=7, demand=7, metadata=b"meta", data=b"data", complete=True
        ),
        "000000071d40000000070000046d65746164617461",
    ),
    (rsocket.RequestN(stream_id=5, demand=2**31 - 1), "0000000520007fffffff"),
    (rsocket.Cancel(stream_id=5), "000000052400"),
    (
        rsocket.Payload(stream_id=5, metadata=b"meta", data=b"data", complete=True),
        "0000000529600000046d65746164617461",
    ),
    (rsocket.Payload(stream_id=5, complete=True, next=False), "000000052840"),
    (rsocket.Payload(stream_id=5, data=b"x", follows=True), "0000000528a078"),
    (rsocket.Error(stream_id=5, code=0x202, data=b"no"), "000000052c00000002026e6f"),
    (
        rsocket.Keepalive(respond=True, position=9, data=b"k"),
        "000000000c8000000000000000096b",
    ),
    (rsocket.Lease(ttl=1000, requests=5), "000000000800000003e800000005"),
    (rsocket.MetadataPush(metadata=b"m"), "0000000031006d"),
    (
        rsocket.Resume(token=b"tok", received=5, first_kept=6),
        "000000003400000100000003746f6b00000000000000050000000000000006",
    ),
    (rsocket.ResumeOk(received=5), "0000000038000000000000000005"),
    # The specification gives this one: neither library writes an EXT.
    (
        rsocket.Ext(stream_id=1, extended_type=2, ignore=True, data=b"x"),
        "00000001fe000000000278",
    ),
]

ids = st.integers(0, 2**31 - 1)
numbers = st.integers(1, 2**31 - 1)
positions = st.integers(0, 2**63 - 1)
short = st.binary(max_size=40)
metadata = st.none() | short
types = st.text(st.characters(codec="ascii"), max_size=30)
flag = st.booleans()
requests = {"stream_id": ids, "metadata": metadata, "data": short, "follows": flag}
FRAMES: st.SearchStrategy[rsocket.Frame] = st.one_of(
    st.builds(
        rsocket.Setup,
        major=st.integers(0, 0xFFFF),
        minor=st.integers(0, 0xFFFF),
        keepalive=numbers,
        lifetime=numbers,
        token=st.none() | short,
        leases=flag,
        metadata_type=types,
        data_type=types,
        metadata=metadata,
        data=short,
    ),
    st.builds(rsocket.Lease, ttl=numbers, requests=numbers, metadata=metadata),
    st.builds(rsocket.Keepalive, respond=flag, position=positions, data=short),
    st.builds(rsocket.RequestResponse, **requests),
    st.builds(rsocket.RequestFnf, **requests),
    st.builds(rsocket.RequestStream, demand=numbers, **requests),
    st.builds(rsocket.RequestChannel, demand=numbers, complete=flag, **requests),
    st.builds(rsocket.RequestN, stream_id=ids, demand=numbers),
    st.builds(rsocket.Cancel, stream_id=ids),
    st.builds(rsocket.Payload, complete=flag, next=flag, **requests),
    st.builds(rsocket.Error, stream_id=ids, code=st.integers(1, 0xFFFFFFFE), data=short),
    st.builds(rsocket.MetadataPush, metadata=short),
    st.builds(
        rsocket.Resume,
        major=st.integers(0, 0xFFFF),
        minor=st.integers(0, 0xFFFF),
        token=short,
        received=positions,
        first_kept=positions,
    ),
    st.builds(rsocket.ResumeOk, received=positions),
    st.builds(rsocket.Ext, stream_id=ids, extended_type=numbers, ignore=flag, data=short),
)


class Stream:
    """A stream that notes what it gets."""

    def __init__(self, *, takes_whole: bool = True) -> None:
        self.takes_whole = takes_whole
        self.elements: list[bytes] = []
        self.calls = 0

    def receive_element(self, element: bytes, /) -> None:
        self.elements.append(element)
        self.calls += 1

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        assert len(elements) > 1
        assert size in {-1, sum(map(len, elements))}
        self.elements += elements
        self.calls += 1


class Sink:
    """A sink that notes each call."""

    def __init__(self) -> None:
        self.got: list[tuple[Any, ...]] = []

    def receive_frame(self, kind: FrameType, flags: int, stream_id: int, body: bytes, /) -> None:
        self.got.append((kind, flags, stream_id, body))

    def receive_last(self, stream_id: int, body: bytes, /) -> None:
        self.receive_frame(FrameType.PAYLOAD, 0x60, stream_id, body)

    def receive_request(self, stream_id: int, body: bytes, /) -> None:
        self.receive_frame(FrameType.REQUEST_RESPONSE, 0, stream_id, body)

    def receive_unknown(self, frame_type: int, /) -> None:
        self.got.append(("unknown", frame_type))

    def receive_too_long(
        self, kind: FrameType | None, stream_id: int, refusal: ProtocolError, /
    ) -> None:
        self.got.append(("too long", kind, stream_id, refusal.reason))


def decoded(data: bytes) -> rsocket.Frame | None:
    """Return the frame, or None if it is refused with the documented error."""
    reason = ""
    try:
        return decode(data)
    except ProtocolError as error:
        reason = error.reason
    assert reason.startswith("protocol:")
    return None


@pytest.mark.parametrize(("frame", "text"), VECTORS, ids=lambda value: type(value).__name__)
def test_each_frame_has_the_bytes_of_other_implementations(frame: rsocket.Frame, text: str) -> None:
    """Both ways; on a stream of bytes, 24 bits of length come first."""
    body = bytes.fromhex(text)
    assert encode(frame, framed=True) == body
    assert encode(frame) == len(body).to_bytes(3) + body
    assert decode(body) == frame


@given(FRAMES)
def test_a_frame_is_read_as_it_was_written(frame: rsocket.Frame) -> None:
    """Every frame, with every field."""
    assert decode(encode(frame, framed=True)) == frame


@given(FRAMES, st.data())
def test_a_frame_that_is_cut_is_a_shorter_frame_or_refused(
    frame: rsocket.Frame, data: st.DataObject
) -> None:
    """At each byte: never another exception."""
    whole = encode(frame, framed=True)
    for end in range(len(whole)):
        shorter = decoded(whole[:end])
        assert shorter is None or type(shorter) is type(frame)
        assert shorter != frame
    place = data.draw(st.integers(0, len(whole) * 8 - 1))
    flipped = bytearray(whole)
    flipped[place // 8] ^= 1 << place % 8
    decoded(bytes(flipped))


@given(st.binary(max_size=60))
def test_random_bytes_are_a_frame_or_refused(junk: bytes) -> None:
    """The only exception is ProtocolError. A frame that was read can be written again."""
    frame = decoded(junk)
    if frame is None:
        return
    try:
        again = encode(frame, framed=True)
    except UsageError:
        return  # a number that may not be sent, such as a demand of 0
    assert decode(again) == frame


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "protocol:length 0"),
        ("0000000110", "protocol:length 5"),
        ("800000011000", "protocol:id"),
        ("000000010000", "protocol:type 0x00"),
        ("000000013c00", "protocol:type 0x0f"),
        ("00000001110000", "protocol:metadata"),
        ("00000001110000000501", "protocol:metadata"),
        ("000000051800000001", "protocol:length 9"),
        ("0000000505", "protocol:length 5"),
        ("000000000400000100000000000100000001", "protocol:length 18"),
        ("0000000004800001000000000001000000010003616200", "protocol:setup"),
        ("00000000040000010000000000010000000103612f6205", "protocol:setup"),
        ("000000000c008000000000000000", "protocol:position"),
        ("0000000034000001000000030000000000000000000000000000000000", "protocol:resume"),
        ("0000000038008000000000000000", "protocol:position"),
    ],
)
def test_a_fault_is_refused_with_its_reason(text: str, reason: str) -> None:
    """Each fixed part, and each length."""
    with pytest.raises(ProtocolError) as caught:
        decode(bytes.fromhex(text))
    assert caught.value.reason == reason


def test_an_unknown_type_with_the_flag_ignore_is_no_fault() -> None:
    """Without the flag it is one."""
    assert decode(bytes.fromhex("000000073e00ffff")) == rsocket.Unknown(stream_id=7, type=0x0F)


@pytest.mark.parametrize(
    "frame",
    [
        rsocket.RequestN(stream_id=1, demand=0),
        rsocket.RequestN(stream_id=1, demand=2**31),
        rsocket.RequestN(stream_id=1, demand=10**5000),
        rsocket.RequestStream(stream_id=1, demand=0),
        rsocket.RequestChannel(stream_id=1, demand=2**31),
        rsocket.Cancel(stream_id=2**31),
        rsocket.Cancel(stream_id=-1),
        rsocket.Error(stream_id=1, code=0),
        rsocket.Error(stream_id=1, code=0xFFFFFFFF),
        rsocket.Keepalive(position=2**63),
        rsocket.Lease(ttl=2**31, requests=1),
        rsocket.MetadataPush(metadata=bytes(2**24)),
        rsocket.Payload(stream_id=1, data=bytes(2**24)),
        rsocket.Payload(stream_id=1, metadata=bytes(2**24)),
        rsocket.Setup(keepalive=0, lifetime=1, metadata_type="a", data_type="b"),
        rsocket.Setup(keepalive=1, lifetime=1, metadata_type="ä", data_type="b"),
        rsocket.Setup(keepalive=1, lifetime=1, metadata_type="a" * 256, data_type="b"),
        rsocket.Setup(
            keepalive=1, lifetime=1, metadata_type="a", data_type="b", token=bytes(2**16)
        ),
        rsocket.Setup(major=2**16, keepalive=1, lifetime=1, metadata_type="a", data_type="b"),
        rsocket.Ext(extended_type=0),
        rsocket.Unknown(stream_id=1, type=0x0F),
    ],
    ids=lambda frame: type(frame).__name__,
)
@pytest.mark.parametrize("framed", [False, True])
def test_a_number_that_a_peer_would_refuse_is_a_usage_error(
    frame: rsocket.Frame, framed: bool
) -> None:
    """Nothing illegal is sent."""
    with pytest.raises(UsageError):
        encode(frame, framed=framed)


# --- the decoder


def test_neighbouring_elements_are_delivered_together() -> None:
    """Of one length, and of mixed lengths: a call for each run."""
    stream, sink = Stream(), Sink()
    same, mixed = [b"12345678"] * 50, [b"x" * size for size in (1, 300, 0, 7)]
    wire = (
        bytes(join_run(5, same)) + bytes(join_run(5, mixed)) + encode(rsocket.Cancel(stream_id=9))
    )
    assert not RsocketDecoder(sink, {5: stream}).feed(wire)
    assert stream.elements == same + mixed
    assert stream.calls <= 3
    assert sink.got == [(FrameType.CANCEL, 0, 9, b"")]


def test_other_payloads_go_to_the_sink() -> None:
    """With metadata, with the end, of a stream that is not open, or that takes no whole ones."""
    stream, sink = Stream(takes_whole=False), Sink()
    sent: list[rsocket.Frame] = [
        rsocket.Payload(stream_id=5, data=b"a"),
        rsocket.Payload(stream_id=7, data=b"b"),
        rsocket.Payload(stream_id=5, data=b"c", complete=True),
        rsocket.Payload(stream_id=5, metadata=b"m", data=b"d"),
    ]
    RsocketDecoder(sink, {5: stream}).feed(b"".join(map(encode, sent)))
    assert [(row[2], row[3][-1:]) for row in sink.got] == [
        (5, b"a"),
        (7, b"b"),
        (5, b"c"),
        (5, b"d"),
    ]


@given(st.lists(FRAMES, max_size=8), st.lists(st.integers(1, 30), min_size=1, max_size=30))
def test_chunks_of_any_size_give_the_same_frames(
    sent: list[rsocket.Frame], sizes: list[int]
) -> None:
    """One byte after the other, or all at once."""
    wire = b"".join(map(encode, sent))
    sink = Sink()
    decoder = RsocketDecoder(sink, {})
    position = 0
    while position < len(wire):
        size = sizes[position % len(sizes)]
        more = decoder.feed(wire[position : position + size], max_messages=1)
        while more:
            more = decoder.feed(b"", max_messages=1)
        position += size
    assert [
        decode(encode_header(kind, flags, stream_id) + body)
        for kind, flags, stream_id, body in sink.got
    ] == sent
    assert decoder.held == 0


def encode_header(kind: int, flags: int, stream_id: int) -> bytes:
    return stream_id.to_bytes(4) + (kind << 10 | flags).to_bytes(2)


@given(st.binary(max_size=200), st.integers(1, 50))
def test_random_bytes_are_refused_with_the_documented_error(junk: bytes, cut: int) -> None:
    """And the outcome does not depend on where they are cut."""

    def outcome(*chunks: bytes) -> tuple[list[tuple[Any, ...]], str | None]:
        sink = Sink()
        decoder = RsocketDecoder(sink, {}, max_frame=64)
        try:
            for chunk in chunks:
                decoder.feed(chunk)
        except ProtocolError as error:
            return sink.got, error.reason
        return sink.got, None

    assert outcome(junk) == outcome(junk[:cut], junk[cut:])


def test_a_frame_above_the_limit_is_skipped_and_not_held() -> None:
    """It is reported when its header has come. The frame after it is read."""
    stream, sink = Stream(), Sink()
    decoder = RsocketDecoder(sink, {5: stream}, max_frame=100)
    wire = encode(rsocket.Payload(stream_id=5, data=bytes(1_000_000)))
    decoder.feed(wire[:9])
    assert sink.got == [("too long", FrameType.PAYLOAD, 5, "limit:frame 1000000 > 100")]
    for start in range(9, len(wire), 1000):
        decoder.feed(wire[start : start + 1000])
        assert decoder.held < 16
    decoder.feed(bytes(join_run(5, [b"next"])))
    assert stream.elements == [b"next"]


def test_a_message_of_a_transport_is_one_frame() -> None:
    """Without a length; a message of 3 bytes is refused, and an empty one is nothing."""
    stream, sink = Stream(), Sink()
    decoder = RsocketDecoder(sink, {5: stream}, framed=True, max_frame=100)
    decoder.feed(payload_header(5, 2)[3:] + b"ab")
    decoder.feed(encode(rsocket.Cancel(stream_id=9), framed=True))
    decoder.feed(encode(rsocket.Payload(stream_id=5, data=bytes(101)), framed=True))
    assert stream.elements == [b"ab"]
    assert sink.got == [
        (FrameType.CANCEL, 0, 9, b""),
        ("too long", FrameType.PAYLOAD, 5, "limit:frame 101 > 100"),
    ]
    with pytest.raises(ProtocolError, match="3 bytes"):
        decoder.feed(b"abc")
