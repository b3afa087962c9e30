"""The codec: its receivers, the encoder and the decoder."""

import random
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.api import ProtocolError, UsageError
from penstock.protocols import reactivesocket as rs
from penstock.protocols.reactivesocket import ReactiveSocketSink
from penstock.testing import FrameList
from penstock.wire import WireStream
from penstock.wire import _element_runs as element_runs
from tests.protocols.reactivesocket._golden_bytes import FRAMED, GOLDEN, OTHER_VERSION

# --- the receivers


def test_the_frame_list_has_the_methods_of_the_sink_and_of_a_stream() -> None:
    """The assignments are checked by mypy;
    the run checks that nothing more is needed to decode a stream.
    """
    recorded = FrameList()
    sink: ReactiveSocketSink = recorded
    stream: WireStream = recorded.open(5)
    decoder = rs.ReactiveSocketDecoder(sink, recorded.streams)
    decoder.feed(rs.encode(rs.Response(stream_id=5, data=b"a")) + rs.encode(rs.Cancel(stream_id=5)))
    assert stream.takes_whole
    assert recorded.frames == [rs.Response(stream_id=5, data=b"a"), rs.Cancel(stream_id=5)]


# --- the encoder


@pytest.mark.parametrize(("frame", "text"), GOLDEN.values(), ids=GOLDEN)
def test_each_frame_has_its_golden_bytes(frame: rs.Frame, text: str) -> None:
    """A frame is encoded as its row says."""
    assert rs.encode(frame).hex() == text


@pytest.mark.parametrize(
    ("frame", "text"),
    [*GOLDEN.values(), (FRAMED[0], "00000014" + FRAMED[1])],
    ids=[*GOLDEN, "framed"],
)
def test_framed_leaves_the_length_out(frame: rs.Frame, text: str) -> None:
    """The other bytes are the same."""
    assert rs.encode(frame, framed=True).hex() == text[8:]


def test_a_setup_may_have_another_version() -> None:
    """Tools use it to test a peer."""
    frame, text = OTHER_VERSION
    assert rs.encode(frame).hex() == text


def test_a_response_without_its_length_has_its_golden_bytes() -> None:
    """A WebSocket carries frames in this form."""
    frame, text = FRAMED
    assert rs.encode(frame, framed=True).hex() == text


@pytest.mark.parametrize("framed", [False, True])
def test_response_header_and_data_are_the_encoded_response(framed: bool) -> None:
    """An element need not be copied to be sent. Without flags it is whole."""
    whole = rs.response_header(5, 4, framed=framed)
    assert whole + b"item" == rs.encode(rs.Response(stream_id=5, data=b"item"), framed=framed)
    last = rs.response_header(5, 1, rs.END | rs.COMPLETE, framed=framed)
    assert last + b"c" == rs.encode(
        rs.Response(stream_id=5, begin=False, complete=True, data=b"c"), framed=framed
    )


def test_an_answer_can_have_any_id_that_a_peer_may_choose() -> None:
    """Ids have no sign: those of the peer may be above 2^63,
    though penstock chooses smaller ones.
    """
    assert rs.encode(rs.Error(stream_id=2**64 - 1))[8:] == b"\xff" * 8


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (rs.Setup(version=256), "version=256"),
        (rs.Setup(version=-1), "version=-1"),
        (rs.Setup(stream_id=1), "stream_id=1"),
        (rs.Cancel(stream_id=-1), "stream_id=-1"),
        (rs.Cancel(stream_id=2**64), "65 bits"),
        (rs.Cancel(stream_id=10**9000), "29898 bits"),
        (rs.RequestN(stream_id=1, demand=0), "demand=0; 1 to"),
        (rs.RequestN(stream_id=1, demand=2**63), "demand=9223372036854775808"),
        (rs.RequestN(stream_id=1, demand=2**64), "65 bits"),
        (rs.RequestStream(stream_id=1, demand=-1), "demand=-1; 0 to"),
        (rs.RequestSub(stream_id=1, demand=2**63), "demand=9223372036854775808"),
        (rs.Ext(ext_type=2**32), "ext_type=4294967296"),
        (rs.Ext(ext_type=-1), "ext_type=-1"),
        ("garbage", "no frame"),
    ],
)
def test_a_number_that_does_not_fit_or_must_not_be_sent_is_refused(
    frame: rs.Frame, says: str
) -> None:
    """The text contains the number, or its size."""
    with pytest.raises(UsageError, match=says):
        rs.encode(frame)


def test_a_length_that_would_need_the_reserved_bit_is_refused() -> None:
    """The largest length is 2^31-1, with the header.
    `response_header` needs no element of that size.
    """
    assert rs.response_header(1, 2**31 - 17)[:4] == b"\x7f\xff\xff\xff"
    with pytest.raises(UsageError, match="2147483648 bytes"):
        rs.response_header(1, 2**31 - 16)


@given(
    lengths=st.lists(st.integers(0, 300), min_size=1, max_size=12)
    | st.integers(0, 300).map(lambda n: [n] * 5),
    stream_id=st.sampled_from([0, 7, 2**64 - 1]),
)
def test_a_run_has_the_bytes_of_its_frames(lengths: list[int], stream_id: int) -> None:
    """Of one length or of several."""
    elements = [bytes([number]) * length for number, length in enumerate(lengths)]
    responses = [rs.encode(rs.Response(stream_id=stream_id, data=element)) for element in elements]
    assert rs.join_run(stream_id, elements) == b"".join(responses)


# --- the decoder


ALL = [(frame, bytes.fromhex(text)) for frame, text in GOLDEN.values()]
AFTER = rs.Cancel(stream_id=99)
LIMIT = 1000


def make_decoder(
    *open_streams: int, framed: bool = False, max_frame: int = 1 << 20
) -> tuple[FrameList, rs.ReactiveSocketDecoder]:
    collected = FrameList()
    for stream_id in open_streams:
        collected.open(stream_id)
    return collected, rs.ReactiveSocketDecoder(
        collected, collected.streams, framed=framed, max_frame=max_frame
    )


def same_error(one: ProtocolError, other: ProtocolError) -> bool:
    """Return whether both say the same and are two exceptions:
    a stored exception would collect the frames of each call.
    """
    return one is not other and (str(one), one.reason) == (str(other), other.reason)


def header(
    kind: int, *, length: int = 16, version: int = 0, flags: int = 0, stream_id: int = 1
) -> bytes:
    return length.to_bytes(4) + bytes([version, flags]) + kind.to_bytes(2) + stream_id.to_bytes(8)


# --- every frame, in chunks of any size


@pytest.mark.parametrize(("frame", "data"), ALL, ids=GOLDEN)
def test_each_frame_is_decoded_whole_and_cut_at_any_byte_and_with_bytes_behind_it(
    frame: rs.Frame, data: bytes
) -> None:
    """The frame after it is decoded as well."""
    tail = rs.encode(AFTER)
    for cut in range(len(data) + 1):
        collected, decoder = make_decoder()
        decoder.feed(data[:cut])
        if cut < len(data):
            assert collected.frames == []
        decoder.feed(data[cut:] + tail[:1])
        assert collected.frames == [frame]
        decoder.feed(tail[1:])
        assert collected.frames == [frame, AFTER]
        assert decoder.held == 0


@pytest.mark.parametrize(("frame", "data"), ALL, ids=GOLDEN)
def test_each_frame_is_decoded_from_single_bytes(frame: rs.Frame, data: bytes) -> None:
    """A chunk may have any size."""
    collected, decoder = make_decoder()
    for byte in data:
        decoder.feed(bytes([byte]))
    assert collected.frames == [frame]


@pytest.mark.parametrize(
    ("frame", "data"),
    [*ALL, (FRAMED[0], bytes(4) + bytes.fromhex(FRAMED[1]))],
    ids=[*GOLDEN, "framed"],
)
def test_each_frame_is_decoded_from_a_message_of_the_transport(
    frame: rs.Frame, data: bytes
) -> None:
    """With `feed` and with `feed_frame`."""
    collected, decoder = make_decoder(framed=True)
    decoder.feed_frame(data[4:])
    assert not decoder.feed(data[4:])
    assert collected.frames == [frame, frame]
    assert decoder.held == 0


def test_feed_without_data_is_not_an_empty_frame() -> None:
    """It means "continue". Where the transport delivers messages,
    nothing is left to continue with.
    """
    collected, decoder = make_decoder(framed=True)
    assert not decoder.feed(b"")
    assert collected.frames == []


ids = st.integers(1, 3) | st.integers(0, 2**64 - 1)
data = st.binary(max_size=40)
demand = st.integers(0, 2**63 - 1)
frames: st.SearchStrategy[rs.Frame] = st.one_of(
    st.builds(rs.Setup, data=data),
    st.builds(rs.RequestResponse, stream_id=ids, data=data),
    st.builds(rs.RequestFnf, stream_id=ids, data=data),
    st.builds(rs.RequestStream, stream_id=ids, demand=demand, data=data),
    st.builds(rs.RequestSub, stream_id=ids, demand=demand, data=data),
    st.builds(rs.RequestN, stream_id=ids, demand=st.integers(1, 2**63 - 1)),
    st.builds(rs.Cancel, stream_id=ids),
    st.builds(
        rs.Response,
        stream_id=ids,
        begin=st.booleans(),
        end=st.booleans(),
        complete=st.booleans(),
        data=data,
    ),
    st.builds(rs.Error, stream_id=ids, data=data),
    st.builds(
        rs.Ext, stream_id=ids, ignore=st.booleans(), ext_type=st.integers(0, 2**32 - 1), data=data
    ),
)


@given(sent=st.lists(frames, max_size=20), cuts=st.lists(st.integers(1, 90), max_size=20))
@settings(max_examples=200, deadline=None)
def test_encoded_frames_are_decoded(sent: list[rs.Frame], cuts: list[int]) -> None:
    """Any frames in any order, in chunks of any size, and one by one from a transport
    that delivers messages.
    """
    joined = b"".join(rs.encode(frame) for frame in sent)
    collected, decoder = make_decoder()
    position = 0
    for cut in cuts:
        decoder.feed(joined[position : position + cut])
        position += cut
    decoder.feed(joined[position:])
    assert collected.frames == sent
    assert decoder.held == 0
    one_by_one, decoder = make_decoder(framed=True)
    for frame in sent:
        decoder.feed_frame(rs.encode(frame, framed=True))
    assert one_by_one.frames == sent


# --- elements and their runs


class CollectingStream:
    """Collects elements, and the lengths of the runs."""

    def __init__(self) -> None:
        self.takes_whole = True
        self.elements: list[bytes] = []
        self.runs: list[int] = []

    def receive_element(self, element: bytes, /) -> None:
        self.elements.append(element)

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        assert size == sum(map(len, elements))
        self.elements += elements
        self.runs.append(len(elements))


def elements_of_several_streams() -> st.SearchStrategy[list[tuple[int, bytes]]]:
    ids = st.sampled_from([1, 2, 1 << 8 | 1, 1 << 56 | 1, 1 << 63 | 1])
    any_size = st.tuples(ids, st.binary(max_size=40))
    repeated = st.tuples(
        ids,
        st.sampled_from([b"x" * 64, b"", rs.response_header(1, 16), rs.response_header(1, 0) * 3]),
    )
    return st.lists(
        st.tuples(any_size | repeated, st.integers(1, 12)).map(lambda each: [each[0]] * each[1]),
        max_size=12,
    ).map(lambda groups: [each for group in groups for each in group])


@given(
    elements=elements_of_several_streams(),
    flags=st.sampled_from([rs.WHOLE, 0]),
    cuts=st.lists(st.integers(1, 400), max_size=20),
)
@settings(max_examples=300, deadline=None)
def test_elements_inelement_runs_are_the_elements_that_were_sent(
    elements: list[tuple[int, bytes]], flags: int, cuts: list[int]
) -> None:
    """For any mix of sizes and streams, any size of the chunks, and elements
    that look like headers.
    """
    table = {stream_id: CollectingStream() for stream_id, _ in elements}
    decoder = rs.ReactiveSocketDecoder(FrameList(), table)
    joined = b"".join(
        rs.response_header(stream_id, len(element), flags) + element
        for stream_id, element in elements
    )
    position = 0
    for cut in cuts:
        decoder.feed(joined[position : position + cut])
        position += cut
    decoder.feed(joined[position:])
    assert {stream_id: stream.elements for stream_id, stream in table.items()} == {
        stream_id: [element for other, element in elements if other == stream_id]
        for stream_id in table
    }
    assert decoder.held == 0


@pytest.mark.parametrize("size", [0, 1, 64, 300, 20_000])
@pytest.mark.parametrize("flags", [rs.WHOLE, 0, 0x8F, 0xE5])
def test_a_run_of_elements_of_any_size_is_complete(size: int, flags: int) -> None:
    """Also of empty elements, of elements without B and E, and with reserved bits."""
    stream = CollectingStream()
    decoder = rs.ReactiveSocketDecoder(FrameList(), {7: stream})
    decoder.feed((rs.response_header(7, size, flags) + bytes(size)) * 50)
    assert stream.elements == [bytes(size)] * 50
    assert stream.runs == [50]


@pytest.mark.parametrize("place", range(16))
def test_a_header_that_differs_in_any_one_byte_ends_the_run(place: int) -> None:
    """If one byte of the header were not compared,
    the different frame would be delivered as an element.
    """
    good = rs.response_header(1, 4, 0x60) + b"item"
    other = bytearray(good)
    other[place] ^= 0x80 if place in (0, 4, 8) else 0x01
    stream = CollectingStream()
    decoder = rs.ReactiveSocketDecoder(FrameList(), {1: stream})
    with suppress(ProtocolError):
        decoder.feed(good * 10 + bytes(other) + good * 10)
    own = 10  # the elements before it; more, if it is a frame of the same length
    if place == 3:
        own = 11  # a longer element; the bytes after it are not a frame
    elif place == 5:
        own = 21  # a reserved flag: an element too
    elif place >= 7:
        own = 20  # an error, or an element of another stream
    assert own == len(stream.elements)
    assert stream.elements[:10] == [b"item"] * 10


def test_responses_go_to_the_sink_while_takes_whole_is_false() -> None:
    """It is false while an element is open in parts, and for a request with a single response."""
    stream, collected = CollectingStream(), FrameList()
    stream.takes_whole = False
    element = rs.Response(stream_id=1, data=b"x")
    rs.ReactiveSocketDecoder(collected, {1: stream}).feed(rs.encode(element) * 10)
    assert collected.frames == [element] * 10
    assert stream.elements == []


def test_only_whole_elements_that_do_not_complete_go_to_the_stream() -> None:
    """Parts, completes, and responses of other streams go to the sink."""
    stream, collected = CollectingStream(), FrameList()
    decoder = rs.ReactiveSocketDecoder(collected, {1: stream})
    sent = [
        rs.Response(stream_id=1, end=False, data=b"a"),
        rs.Response(stream_id=1, begin=False, data=b"b"),
        rs.Response(stream_id=1, complete=True, data=b"c"),
        rs.Response(stream_id=2, data=b"d"),
        rs.Response(stream_id=1, begin=False, end=False, complete=True),
    ]
    decoder.feed(b"".join(map(rs.encode, sent)))
    assert collected.frames == sent
    assert stream.elements == []


def test_the_table_of_streams_can_be_replaced_within_a_chunk() -> None:
    """A session can take the first response of a stream itself,
    and leave the others to the decoder.
    """

    class Accepting(FrameList):
        def receive_response(
            self, stream_id: int, begin: bool, end: bool, complete: bool, data: bytes, /
        ) -> None:
            super().receive_response(stream_id, begin, end, complete, data)
            decoder.streams = {1: stream}

    stream, collected = CollectingStream(), Accepting()
    decoder = rs.ReactiveSocketDecoder(collected, {})
    decoder.feed(rs.encode(rs.Response(stream_id=1, data=b"x")) * 5)
    assert len(collected.frames) == 1
    assert stream.elements == [b"x"] * 4


def test_whole_elements_in_messages_of_the_transport_go_to_the_stream() -> None:
    """Without the sink, unless `takes_whole` is false."""
    stream, collected = CollectingStream(), FrameList()
    decoder = rs.ReactiveSocketDecoder(collected, {1: stream}, framed=True)
    decoder.feed_frame(rs.encode(rs.Response(stream_id=1, data=b"x"), framed=True))
    stream.takes_whole = False
    decoder.feed_frame(rs.encode(rs.Response(stream_id=1, data=b"y"), framed=True))
    assert stream.elements == [b"x"]
    assert collected.frames == [rs.Response(stream_id=1, data=b"y")]


# --- flags and bytes without a meaning


@pytest.mark.parametrize(
    ("frame", "data"), [each for each in ALL if not isinstance(each[0], rs.Ext)], ids=str
)
def test_flags_without_a_meaning_are_ignored(frame: rs.Frame, data: bytes) -> None:
    """The ignore bit on a known type, and every reserved bit."""
    meaningless = 0x8F if isinstance(frame, rs.Response) else 0xFF
    collected, decoder = make_decoder()
    decoder.feed(data[:5] + bytes([data[5] | meaningless]) + data[6:])
    assert collected.frames == [frame]


def test_bytes_behind_the_fixed_part_of_a_frame_without_data_are_skipped() -> None:
    """The length says where the next frame begins."""
    collected, decoder = make_decoder()
    decoder.feed(
        header(0x15, length=26)
        + (3).to_bytes(8)
        + b"??"
        + header(0x16, length=18)
        + b"??"
        + rs.encode(AFTER)
    )
    assert collected.frames == [rs.RequestN(stream_id=1, demand=3), rs.Cancel(stream_id=1), AFTER]


@pytest.mark.parametrize("number", [0, 2**63, 2**64 - 1])
def test_demand_is_passed_on_unchanged(number: int) -> None:
    """Illegal demand is an error of one stream, so it is for the sink to refuse."""
    collected, decoder = make_decoder()
    decoder.feed(
        header(0x15, length=24) + number.to_bytes(8) + header(0x13, length=24) + number.to_bytes(8)
    )
    assert collected.frames == [
        rs.RequestN(stream_id=1, demand=number),
        rs.RequestStream(stream_id=1, demand=number),
    ]


@pytest.mark.parametrize("kind", [0x0000, 0x0002, 0x0010, 0x0017, 0x0022, 0xFFFE])
@pytest.mark.parametrize("framed", [False, True])
def test_an_unknown_frame_with_the_ignore_flag_is_skipped(kind: int, framed: bool) -> None:
    """By its length. The sink gets its type."""
    collected, decoder = make_decoder(framed=framed)
    skip = 4 if framed else 0
    decoder.feed((header(kind, length=19, flags=0x80) + b"???")[skip:])
    decoder.feed(rs.encode(AFTER, framed=framed))
    assert collected.frames == [AFTER]
    assert collected.unknown_types == [kind]


def test_a_setup_with_a_stream_id_is_passed_on() -> None:
    """Whether it is a fault depends on the frames before it, which the sink knows."""
    collected, decoder = make_decoder()
    decoder.feed(header(0x01, stream_id=4))
    assert collected.frames == [rs.Setup(stream_id=4)]


# --- refusals

REFUSED = {
    "no length": (bytes(4), "protocol:length 0"),
    "a length within the header": ((15).to_bytes(4), "protocol:length 15"),
    "the reserved bit": (b"\x80\x00\x00\x10", "protocol:reserved"),
    "every bit": (b"\xff" * 4, "protocol:reserved"),
    "a body above the limit": ((16 + LIMIT + 1).to_bytes(4), "limit:frame 1001 > 1000"),
    "the longest body": ((2**31 - 1).to_bytes(4), f"limit:frame {2**31 - 17} > 1000"),
    "HTTP": (b"GET ", f"limit:frame {0x47455420 - 16} > 1000"),
    "TLS": (b"\x16\x03\x01\x02", f"limit:frame {0x16030102 - 16} > 1000"),
}


@pytest.mark.parametrize(("start", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_length_is_refused_with_its_last_byte(start: bytes, reason: str) -> None:
    """Before any other byte of the frame is there, and not one byte earlier."""
    _, decoder = make_decoder(max_frame=LIMIT)
    decoder.feed(start[:-1])
    with pytest.raises(ProtocolError) as refused:
        decoder.feed(start[-1:])
    assert refused.value.reason == reason
    _, decoder = make_decoder(max_frame=LIMIT)
    with pytest.raises(ProtocolError) as refused:
        decoder.feed(rs.encode(AFTER) + start + bytes(100))
    assert refused.value.reason == reason


def test_a_frame_of_exactly_the_limit_is_accepted() -> None:
    """The limit counts the bytes behind the header, with and without a length."""
    largest = rs.Response(stream_id=1, data=bytes(LIMIT))
    for framed in (False, True):
        collected, decoder = make_decoder(framed=framed, max_frame=LIMIT)
        decoder.feed(rs.encode(largest, framed=framed))
        assert collected.frames == [largest]


@pytest.mark.parametrize("kind", [0x01, 0x11, 0x20, 0x21, 0x17])
def test_a_complete_frame_above_the_limit_is_refused(kind: int) -> None:
    """So is an element of an open stream. The frame before it is decoded."""
    collected, decoder = make_decoder(1, max_frame=LIMIT)
    with pytest.raises(ProtocolError) as refused:
        decoder.feed(
            rs.encode(AFTER) + header(kind, length=16 + LIMIT + 1, flags=0xE0) + bytes(LIMIT + 1)
        )
    assert refused.value.reason == "limit:frame 1001 > 1000"
    assert collected.frames == [AFTER]


WRONG_HEADERS = {
    "a stream without demand": (header(0x13, length=23), "protocol:length 23"),
    "a subscription without demand": (header(0x14, length=16), "protocol:length 16"),
    "a request without demand": (header(0x15, length=20), "protocol:length 20"),
    "an extension without a type": (header(0xFFFF, length=19), "protocol:length 19"),
    "another version": (header(0x16, length=100, version=1), "version 0"),
    "another version that asks to be ignored": (
        header(0x77, length=100, version=1, flags=0x80),
        "version 0",
    ),
    "an extension of another version": (
        header(0xFFFF, length=100, version=255, flags=0x80),
        "version 0",
    ),
    "the reserved type": (header(0x00, length=100), "protocol:type 0x0000"),
    "an unknown type": (header(0x17, length=100, flags=0x7F), "protocol:type 0x0017"),
}


@pytest.mark.parametrize(("start", "reason"), WRONG_HEADERS.values(), ids=WRONG_HEADERS)
def test_a_wrong_header_is_refused_with_its_last_byte(start: bytes, reason: str) -> None:
    """Before any byte of the body is there, and not one byte earlier.
    With the body the reason is the same.
    """
    _, decoder = make_decoder()
    decoder.feed(start[:-1])
    with pytest.raises(ProtocolError) as refused:
        decoder.feed(start[-1:])
    assert refused.value.reason == reason
    _, decoder = make_decoder()
    with pytest.raises(ProtocolError) as refused:
        decoder.feed(start + bytes(100))
    assert refused.value.reason == reason


def test_a_setup_of_another_version_is_passed_on_and_refused_with_its_header() -> None:
    """The sink can answer it. The decoder does not wait for its data,
    and decodes nothing after it.
    """
    frame, text = OTHER_VERSION
    start = bytes.fromhex(text)
    for pieces in (
        [start + rs.encode(AFTER)],
        [start[:-1], start[-1:]],
        [header(0x01, version=1, length=900, stream_id=0)],
    ):
        collected, decoder = make_decoder()
        for piece in pieces[:-1]:
            decoder.feed(piece)
        with pytest.raises(ProtocolError) as refused:
            decoder.feed(pieces[-1])
        assert refused.value.reason == "version 0"
        assert collected.frames == [frame]
    collected, decoder = make_decoder(framed=True)
    with pytest.raises(ProtocolError, match="version 1"):
        decoder.feed_frame(start[4:])
    assert collected.frames == [frame]


FRAMED_REFUSED = {
    "an empty message": (b"", "protocol:length 0"),
    "a message within the header": (bytes(11), "protocol:length 11"),
    "a body above the limit": (header(0x20)[4:] + bytes(LIMIT + 1), "limit:frame 1001 > 1000"),
    "a request without demand": (header(0x15)[4:] + bytes(7), "protocol:length 19"),
    "another version": (header(0x20, version=1)[4:], "version 0"),
    "an unknown type": (header(0x17)[4:], "protocol:type 0x0017"),
}


@pytest.mark.parametrize(("message", "reason"), FRAMED_REFUSED.values(), ids=FRAMED_REFUSED)
def test_a_message_of_the_transport_that_is_not_a_frame_is_refused(
    message: bytes, reason: str
) -> None:
    """With the same reasons as without such a transport. Later calls raise the same error again."""
    _, decoder = make_decoder(1, framed=True, max_frame=LIMIT)
    with pytest.raises(ProtocolError) as refused:
        decoder.feed_frame(message)
    assert refused.value.reason == reason
    for again in (decoder.feed, decoder.feed_frame):
        with pytest.raises(ProtocolError) as still:
            again(b"")
        assert same_error(still.value, refused.value)


class RefusingSink(FrameList):
    """A sink that refuses a CANCEL, as a session does before SETUP."""

    def receive_cancel(self, stream_id: int, /) -> None:
        raise ProtocolError("the first frame was no SETUP", reason="protocol:setup")


@pytest.mark.parametrize("framed", [False, True])
def test_the_decoder_fails_with_the_protocol_error_of_its_sink(framed: bool) -> None:
    """Frames behind the refused one are neither decoded nor held."""
    collected = RefusingSink()
    decoder = rs.ReactiveSocketDecoder(collected, {}, framed=framed)
    with pytest.raises(ProtocolError) as refused:
        decoder.feed(
            rs.encode(AFTER, framed=framed)
            + (b"" if framed else rs.encode(rs.RequestN(stream_id=1, demand=1)))
        )
    with pytest.raises(ProtocolError) as again:
        decoder.feed(b"")
    assert same_error(again.value, refused.value)
    assert decoder.held == 0
    assert collected.frames == []


# --- random bytes


def random_bytes() -> st.SearchStrategy[bytes]:
    """Random bytes, and bytes that look like frames."""
    some_header = st.builds(
        header,
        st.sampled_from([*rs.FrameType, 0, 0x17, 0xFFFE]),
        length=st.integers(14, 40),
        version=st.sampled_from([0, 0, 0, 0, 1]),
        flags=st.integers(0, 255),
        stream_id=st.integers(0, 3) | st.integers(0, 2**64 - 1),
    )
    return st.lists(some_header | st.binary(max_size=30), max_size=8).map(b"".join)


@given(junk=random_bytes(), framed=st.booleans())
@settings(max_examples=400, deadline=None)
def test_random_bytes_are_decoded_or_raise_protocol_error(junk: bytes, framed: bool) -> None:
    """No other exception is raised, and a decoder
    that has raised once raises the same error again.
    """
    _, decoder = make_decoder(1, 2, framed=framed)
    refusals = []
    for piece in (junk, rs.encode(AFTER, framed=framed)):
        try:
            decoder.feed(piece)
        except ProtocolError as broken:
            refusals.append(broken)
    if refusals:
        assert refusals[-1].reason.split(" ")[0] in {
            "protocol:length",
            "protocol:reserved",
            "protocol:type",
            "limit:frame",
            "version",
        }
    if len(refusals) == 2:
        assert same_error(*refusals)


@given(junk=random_bytes(), cut=st.integers(0, 200))
@settings(max_examples=400, deadline=None)
def test_the_outcome_does_not_depend_on_where_the_bytes_are_cut(junk: bytes, cut: int) -> None:
    """The frames and the refusal are the same in one piece and in two."""

    def outcome(*pieces: bytes) -> tuple[list[rs.Frame], list[int], str]:
        collected, decoder = make_decoder()
        try:
            for piece in pieces:
                decoder.feed(piece)
        except ProtocolError as broken:
            return collected.frames, collected.unknown_types, broken.reason
        return collected.frames, collected.unknown_types, ""

    assert outcome(junk) == outcome(junk[:cut], junk[cut:])


# --- time and memory


def test_feed_stops_after_max_messages_and_continues_with_the_next_call() -> None:
    """So a chunk of the smallest frames does not keep other connections waiting.
    The next call may bring more bytes.
    """
    collected, decoder = make_decoder()
    assert decoder.feed(rs.encode(AFTER) * 5, max_messages=2)
    assert len(collected.frames) == 2
    assert decoder.feed(rs.encode(AFTER)[:7], max_messages=2)
    assert len(collected.frames) == 4
    assert not decoder.feed(b"", max_messages=2)
    assert collected.frames == [AFTER] * 5
    assert decoder.held == 7


def test_a_small_frame_behind_a_large_one_is_decoded_at_once() -> None:
    """The number of bytes that the large frame needed is reset, also if `feed` stopped after it."""
    large, small = rs.Response(stream_id=1, data=bytes(5000)), rs.encode(AFTER)
    collected, decoder = make_decoder()
    decoder.feed(rs.encode(large)[:100])
    decoder.feed(rs.encode(large)[100:])
    decoder.feed(small)
    assert collected.frames == [large, AFTER]
    collected, decoder = make_decoder()
    decoder.feed(rs.encode(large)[:100])
    assert decoder.feed(rs.encode(large)[100:] + small * 3, max_messages=2)
    assert not decoder.feed(b"")
    assert collected.frames == [large, AFTER, AFTER, AFTER]


def test_a_run_counts_as_one_message() -> None:
    """1,000 elements are decoded with `max_messages=3`."""
    collected, decoder = make_decoder(1)
    assert not decoder.feed(rs.encode(rs.Response(stream_id=1, data=b"x")) * 1000, max_messages=3)
    assert len(collected.frames) == 1000


@pytest.mark.parametrize("chunk", [1, 10, 100])
def test_a_large_frame_in_small_chunks_is_joined_once(chunk: int) -> None:
    """3,000 chunks cause at most four joins:
    for the length, for the header, for the frame, and to let go of it.
    """
    collected, decoder = make_decoder()
    frame = rs.Response(stream_id=1, data=bytes(3000 * chunk))
    encoded = rs.encode(frame)
    joins = 0
    for start in range(0, len(encoded), chunk):
        before = decoder._data
        decoder.feed(encoded[start : start + chunk])
        joins += decoder._data is not before
    assert collected.frames == [frame]
    assert joins <= 4


def test_the_length_in_a_header_reserves_no_memory() -> None:
    """The decoder holds the 16 bytes that it received."""
    _, decoder = make_decoder()
    decoder.feed(header(0x20, length=1 << 20))
    assert decoder.held == len(decoder._data) == 16


def test_random_streams_and_sizes_examine_at_most_four_elements_for_each_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Runs in a random mix are as cheap as runs in a pattern."""
    windows: list[int] = []
    look = element_runs._equal_headers
    monkeypatch.setattr(
        element_runs, "_equal_headers", lambda *given: windows.append(given[-1]) or look(*given)
    )
    chance = random.Random(5)
    frames = [
        rs.encode(rs.Response(stream_id=chance.choice([1, 2]), data=bytes(chance.choice([0, 8]))))
        for _ in range(4000)
    ]
    collected, decoder = make_decoder(1, 2)
    decoder.feed(b"".join(frames))
    assert len(collected.frames) == len(frames)
    assert 0 < sum(windows) <= 4 * len(frames)


def test_an_incomplete_frame_in_small_chunks_takes_memory_for_its_bytes_only() -> None:
    """As one object for each chunk of three bytes it would take more than ten times its size."""
    _, decoder = make_decoder()
    size = 200_000
    decoder.feed(rs.encode(rs.Response(stream_id=1, data=bytes(size)))[:100])
    tracemalloc.start()
    try:
        for _ in range(size // 3 - 40):
            decoder.feed(bytes(bytearray(3)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoder.held > size - 200
    assert held < 1.2 * size


MIXED = [b"", b"a", bytes(127), b"", bytes(300), b"bb", bytes(20_000), b"c"]


def test_a_run_of_mixed_lengths_is_delivered_with_one_call() -> None:
    """A run may have elements of any length, and empty ones."""
    stream = CollectingStream()
    decoder = rs.ReactiveSocketDecoder(FrameList(), {7: stream})
    decoder.feed(bytes(rs.join_run(7, MIXED)))
    assert (stream.elements, stream.runs) == (MIXED, [len(MIXED)])


def test_a_run_of_mixed_lengths_may_be_cut_at_any_byte() -> None:
    """Each element is delivered once, when it is whole."""
    elements = [b"", b"a", bytes(30), b"bb", b""]
    data = bytes(rs.join_run(7, elements))
    ends = [len(rs.join_run(7, elements[:n])) for n in range(1, len(elements) + 1)]
    for cut in range(len(data) + 1):
        stream = CollectingStream()
        decoder = rs.ReactiveSocketDecoder(FrameList(), {7: stream})
        decoder.feed(data[:cut])
        assert len(stream.elements) == sum(end <= cut for end in ends)
        decoder.feed(data[cut:])
        assert (stream.elements, decoder.held) == (elements, 0)


@pytest.mark.parametrize(
    "bad",
    [
        bytes(16),
        rs.response_header(7, 2000),
        b"\xff" * 16,
        rs.response_header(7, 4, 0x60)[:5] + b"\x60\x00\x99",
    ],
)
def test_elements_before_a_fault_are_delivered(bad: bytes) -> None:
    """Elements after it are not delivered."""
    stream = CollectingStream()
    decoder = rs.ReactiveSocketDecoder(FrameList(), {7: stream}, max_frame=LIMIT)
    with pytest.raises(ProtocolError):
        decoder.feed(
            bytes(rs.join_run(7, [b"a", b"bb"])) + bad + bytes(rs.join_run(7, [b"c", b"dd"]))
        )
    assert stream.elements == [b"a", b"bb"]


@pytest.mark.parametrize("elements", [[b"x"] * 3000, [b"x", b"yy"] * 1500], ids=["equal", "mixed"])
def test_a_run_is_bounded_because_it_counts_as_one_message(elements: list[bytes]) -> None:
    """A turn decodes a number of messages. Without the bound one of them could be a whole chunk."""
    stream = CollectingStream()
    decoder = rs.ReactiveSocketDecoder(FrameList(), {1: stream})
    assert decoder.feed(bytes(rs.join_run(1, elements)), max_messages=1)
    assert stream.runs == [element_runs.LONGEST_RUN]
    assert decoder.feed(b"", max_messages=1)
    assert not decoder.feed(b"", max_messages=2)
    assert stream.elements == elements
