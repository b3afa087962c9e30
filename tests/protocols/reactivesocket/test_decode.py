"""The decoder: every frame whole, cut anywhere, and with bytes to spare; refusals on the header; linear in its input."""

import random
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.api import ProtocolError
from penstock.protocols import reactivesocket as rs
from penstock.testing import FrameList
from penstock.wire import _element_runs as _runs
from tests.protocols.reactivesocket._vectors import FRAMED, OTHER_VERSION, VECTORS

ALL = [(frame, bytes.fromhex(text)) for frame, text in VECTORS.values()]
AFTER = rs.Cancel(stream_id=99)
LIMIT = 1000


def decoder(*open_streams: int, framed: bool = False, max_frame: int = 1 << 20) -> tuple[FrameList, rs.ReactiveSocketDecoder]:
    heard = FrameList()
    for stream_id in open_streams:
        heard.open(stream_id)
    return heard, rs.ReactiveSocketDecoder(heard, heard.streams, framed=framed, max_frame=max_frame)


def header(kind: int, *, length: int = 16, version: int = 0, flags: int = 0, stream_id: int = 1) -> bytes:
    return length.to_bytes(4) + bytes([version, flags]) + kind.to_bytes(2) + stream_id.to_bytes(8)


# --- every frame, however it comes


@pytest.mark.parametrize(("frame", "data"), ALL, ids=VECTORS)
def test_each_frame_is_decoded_whole_and_cut_at_every_byte_with_bytes_to_spare(frame: rs.Frame, data: bytes) -> None:
    """What follows the frame is not touched by it."""
    tail = rs.encode(AFTER)
    for cut in range(len(data) + 1):
        heard, decode = decoder()
        decode.feed(data[:cut])
        if cut < len(data):
            assert heard.frames == []
        decode.feed(data[cut:] + tail[:1])
        assert heard.frames == [frame]
        decode.feed(tail[1:])
        assert heard.frames == [frame, AFTER]
        assert decode.held == 0


@pytest.mark.parametrize(("frame", "data"), ALL, ids=VECTORS)
def test_each_frame_is_decoded_byte_by_byte(frame: rs.Frame, data: bytes) -> None:
    """As a peer would drip it."""
    heard, decode = decoder()
    for byte in data:
        decode.feed(bytes([byte]))
    assert heard.frames == [frame]


@pytest.mark.parametrize(("frame", "data"), [*ALL, (FRAMED[0], bytes(4) + bytes.fromhex(FRAMED[1]))], ids=[*VECTORS, "framed"])
def test_each_frame_is_decoded_where_the_transport_frames(frame: rs.Frame, data: bytes) -> None:
    """Through either name of the call."""
    heard, decode = decoder(framed=True)
    decode.feed_frame(data[4:])
    assert not decode.feed(data[4:])
    assert heard.frames == [frame, frame]
    assert decode.held == 0


def test_nothing_is_no_frame_and_no_fault() -> None:
    """To be called with no data is to be asked to go on; where the transport frames there is nothing to go on with."""
    heard, decode = decoder(framed=True)
    assert not decode.feed(b"")
    assert heard.frames == []


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
    st.builds(rs.Response, stream_id=ids, begin=st.booleans(), end=st.booleans(), complete=st.booleans(), data=data),
    st.builds(rs.Error, stream_id=ids, data=data),
    st.builds(rs.Ext, stream_id=ids, ignore=st.booleans(), ext_type=st.integers(0, 2**32 - 1), data=data),
)


@given(said=st.lists(frames, max_size=20), cuts=st.lists(st.integers(1, 90), max_size=20))
@settings(max_examples=200, deadline=None)
def test_what_was_encoded_is_decoded(said: list[rs.Frame], cuts: list[int]) -> None:
    """Any frames in any order, wherever the chunks end; and one by one where the transport frames."""
    joined = b"".join(rs.encode(frame) for frame in said)
    heard, decode = decoder()
    position = 0
    for cut in cuts:
        decode.feed(joined[position : position + cut])
        position += cut
    decode.feed(joined[position:])
    assert heard.frames == said
    assert decode.held == 0
    one_by_one, decode = decoder(framed=True)
    for frame in said:
        decode.feed_frame(rs.encode(frame, framed=True))
    assert one_by_one.frames == said


# --- elements and their runs


class Taken:
    """A stream that notes how its elements came."""

    def __init__(self) -> None:
        self.takes_whole = True
        self.elements: list[bytes] = []
        self.runs: list[int] = []

    def receive_element(self, element: bytes, /) -> None:
        self.elements.append(element)

    def receive_run(self, elements: Sequence[bytes], /) -> None:
        self.elements += elements
        self.runs.append(len(elements))


def elements() -> st.SearchStrategy[list[tuple[int, bytes]]]:
    ids = st.sampled_from([1, 2, 1 << 8 | 1, 1 << 56 | 1, 1 << 63 | 1])
    any_size = st.tuples(ids, st.binary(max_size=40))
    repeated = st.tuples(ids, st.sampled_from([b"x" * 64, b"", rs.response_header(1, 16), rs.response_header(1, 0) * 3]))
    return st.lists(st.tuples(any_size | repeated, st.integers(1, 12)).map(lambda each: [each[0]] * each[1]), max_size=12).map(
        lambda groups: [each for group in groups for each in group]
    )


@given(said=elements(), flags=st.sampled_from([rs.WHOLE, 0]), cuts=st.lists(st.integers(1, 400), max_size=20))
@settings(max_examples=300, deadline=None)
def test_runs_of_elements_are_what_frame_by_frame_decoding_finds(said: list[tuple[int, bytes]], flags: int, cuts: list[int]) -> None:
    """Whatever the mix of sizes and streams, and wherever the chunks end; elements that look like headers too."""
    table = {stream_id: Taken() for stream_id, _ in said}
    decode = rs.ReactiveSocketDecoder(FrameList(), table)
    joined = b"".join(rs.response_header(stream_id, len(element), flags) + element for stream_id, element in said)
    position = 0
    for cut in cuts:
        decode.feed(joined[position : position + cut])
        position += cut
    decode.feed(joined[position:])
    assert {stream_id: taken.elements for stream_id, taken in table.items()} == {
        stream_id: [element for other, element in said if other == stream_id] for stream_id in table
    }
    assert decode.held == 0


@pytest.mark.parametrize("size", [0, 1, 64, 300, 20_000])
@pytest.mark.parametrize("flags", [rs.WHOLE, 0, 0x8F, 0xE5])
def test_elements_of_any_one_size_are_cut_out_as_a_run(size: int, flags: int) -> None:
    """Empty ones too; without begin and end, and with bits that mean nothing, they are whole all the same."""
    taken = Taken()
    decode = rs.ReactiveSocketDecoder(FrameList(), {7: taken})
    decode.feed((rs.response_header(7, size, flags) + bytes(size)) * 50)
    assert taken.elements == [bytes(size)] * 50
    assert taken.runs == [49]


@pytest.mark.parametrize("place", range(16))
def test_a_header_that_differs_in_any_one_byte_ends_the_run(place: int) -> None:
    """The stranger among them is read for what it is; it would be an element if one byte of its header were not looked at."""
    good = rs.response_header(1, 4, 0x60) + b"item"
    other = bytearray(good)
    other[place] ^= 0x80 if place in (0, 4, 8) else 0x01
    taken = Taken()
    decode = rs.ReactiveSocketDecoder(FrameList(), {1: taken})
    with suppress(ProtocolError):
        decode.feed(good * 10 + bytes(other) + good * 10)
    own = 10  # those before it; those after it too, where the stranger is a frame and of the same length
    if place == 3:
        own = 11  # a longer element, and behind it nothing that is a frame
    elif place == 5:
        own = 21  # a reserved flag: an element like the others
    elif place >= 7:
        own = 20  # an error, or an element of another stream
    assert own == len(taken.elements)
    assert taken.elements[:10] == [b"item"] * 10


def test_what_a_stream_does_not_take_goes_to_the_sink() -> None:
    """While parts are open, and for a single response, whole elements are not the stream's to judge."""
    taken, heard = Taken(), FrameList()
    taken.takes_whole = False
    element = rs.Response(stream_id=1, data=b"x")
    rs.ReactiveSocketDecoder(heard, {1: taken}).feed(rs.encode(element) * 10)
    assert heard.frames == [element] * 10
    assert taken.elements == []


def test_what_completes_or_is_a_part_or_is_unknown_goes_to_the_sink() -> None:
    """A stream in the table gets whole elements alone."""
    taken, heard = Taken(), FrameList()
    decode = rs.ReactiveSocketDecoder(heard, {1: taken})
    said = [
        rs.Response(stream_id=1, end=False, data=b"a"),
        rs.Response(stream_id=1, begin=False, data=b"b"),
        rs.Response(stream_id=1, complete=True, data=b"c"),
        rs.Response(stream_id=2, data=b"d"),
        rs.Response(stream_id=1, begin=False, end=False, complete=True),
    ]
    decode.feed(b"".join(map(rs.encode, said)))
    assert heard.frames == said
    assert taken.elements == []


def test_the_table_can_be_exchanged_in_the_middle_of_a_chunk() -> None:
    """So that a session can look at the first response itself, and let the others take the short way."""

    class Accepting(FrameList):
        def receive_response(self, stream_id: int, begin: bool, end: bool, complete: bool, data: bytes, /) -> None:
            super().receive_response(stream_id, begin, end, complete, data)
            decode.streams = {1: taken}

    taken, heard = Taken(), Accepting()
    decode = rs.ReactiveSocketDecoder(heard, {})
    decode.feed(rs.encode(rs.Response(stream_id=1, data=b"x")) * 5)
    assert len(heard.frames) == 1
    assert taken.elements == [b"x"] * 4


def test_where_the_transport_frames_whole_elements_take_the_short_way_too() -> None:
    """One at a time."""
    taken, heard = Taken(), FrameList()
    decode = rs.ReactiveSocketDecoder(heard, {1: taken}, framed=True)
    decode.feed_frame(rs.encode(rs.Response(stream_id=1, data=b"x"), framed=True))
    taken.takes_whole = False
    decode.feed_frame(rs.encode(rs.Response(stream_id=1, data=b"y"), framed=True))
    assert taken.elements == [b"x"]
    assert heard.frames == [rs.Response(stream_id=1, data=b"y")]


# --- what means nothing


@pytest.mark.parametrize(("frame", "data"), [each for each in ALL if not isinstance(each[0], rs.Ext)], ids=str)
def test_flags_that_mean_nothing_are_not_looked_at(frame: rs.Frame, data: bytes) -> None:
    """The ignore bit on a type that is known, and every bit that version 0 reserves."""
    meaningless = 0x8F if isinstance(frame, rs.Response) else 0xFF
    heard, decode = decoder()
    decode.feed(data[:5] + bytes([data[5] | meaningless]) + data[6:])
    assert heard.frames == [frame]


def test_bytes_behind_the_fixed_part_of_a_frame_without_data_are_skipped() -> None:
    """The length says where the next frame begins."""
    heard, decode = decoder()
    decode.feed(header(0x15, length=26) + (3).to_bytes(8) + b"??" + header(0x16, length=18) + b"??" + rs.encode(AFTER))
    assert heard.frames == [rs.RequestN(stream_id=1, demand=3), rs.Cancel(stream_id=1), AFTER]


@pytest.mark.parametrize("number", [0, 2**63, 2**64 - 1])
def test_demand_is_told_as_it_stands(number: int) -> None:
    """Whether it is legal is for the sink to say, who can end the one stream that it is about."""
    heard, decode = decoder()
    decode.feed(header(0x15, length=24) + number.to_bytes(8) + header(0x13, length=24) + number.to_bytes(8))
    assert heard.frames == [rs.RequestN(stream_id=1, demand=number), rs.RequestStream(stream_id=1, demand=number)]


@pytest.mark.parametrize("kind", [0x0000, 0x0002, 0x0010, 0x0017, 0x0022, 0xFFFE])
@pytest.mark.parametrize("framed", [False, True])
def test_an_unknown_frame_that_may_be_ignored_is_skipped(kind: int, framed: bool) -> None:
    """By its length; the sink learns that there was one."""
    heard, decode = decoder(framed=framed)
    skip = 4 if framed else 0
    decode.feed((header(kind, length=19, flags=0x80) + b"???")[skip:])
    decode.feed(rs.encode(AFTER, framed=framed))
    assert heard.frames == [AFTER]
    assert heard.unknown_types == [kind]


def test_a_setup_on_a_stream_of_its_own_is_handed_on() -> None:
    """Whether that matters depends on what came before, which the sink knows."""
    heard, decode = decoder()
    decode.feed(header(0x01, stream_id=4))
    assert heard.frames == [rs.Setup(stream_id=4)]


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
def test_a_length_is_judged_when_it_is_there(start: bytes, reason: str) -> None:
    """Before anything else of the frame has come, and not one byte earlier."""
    _, decode = decoder(max_frame=LIMIT)
    decode.feed(start[:-1])
    with pytest.raises(ProtocolError) as refused:
        decode.feed(start[-1:])
    assert refused.value.reason == reason
    _, decode = decoder(max_frame=LIMIT)
    with pytest.raises(ProtocolError) as refused:
        decode.feed(rs.encode(AFTER) + start + bytes(100))
    assert refused.value.reason == reason


def test_a_frame_of_exactly_the_limit_is_taken() -> None:
    """The limit is on what follows the header, with and without a length."""
    largest = rs.Response(stream_id=1, data=bytes(LIMIT))
    for framed in (False, True):
        heard, decode = decoder(framed=framed, max_frame=LIMIT)
        decode.feed(rs.encode(largest, framed=framed))
        assert heard.frames == [largest]


@pytest.mark.parametrize("kind", [0x01, 0x11, 0x20, 0x21, 0x17])
def test_a_frame_above_the_limit_is_refused_though_all_of_it_is_there(kind: int) -> None:
    """An element for a stream that waits for it, too; what came before it was told."""
    heard, decode = decoder(1, max_frame=LIMIT)
    with pytest.raises(ProtocolError) as refused:
        decode.feed(rs.encode(AFTER) + header(kind, length=16 + LIMIT + 1, flags=0xE0) + bytes(LIMIT + 1))
    assert refused.value.reason == "limit:frame 1001 > 1000"
    assert heard.frames == [AFTER]


CONDEMNED = {
    "a stream without demand": (header(0x13, length=23), "protocol:length 23"),
    "a subscription without demand": (header(0x14, length=16), "protocol:length 16"),
    "a request without demand": (header(0x15, length=20), "protocol:length 20"),
    "an extension without a type": (header(0xFFFF, length=19, flags=0x80), "protocol:length 19"),
    "another version": (header(0x16, length=100, version=1), "version 0"),
    "another version that asks to be ignored": (header(0x77, length=100, version=1, flags=0x80), "version 0"),
    "an extension of another version": (header(0xFFFF, length=100, version=255, flags=0x80), "version 0"),
    "the reserved type": (header(0x00, length=100), "protocol:type 0x0000"),
    "an unknown type": (header(0x17, length=100, flags=0x7F), "protocol:type 0x0017"),
}


@pytest.mark.parametrize(("start", "reason"), CONDEMNED.values(), ids=CONDEMNED)
def test_what_a_header_condemns_is_refused_when_it_is_there(start: bytes, reason: str) -> None:
    """Before any of the body has come, and not one byte of the header earlier; with the body, the same."""
    _, decode = decoder()
    decode.feed(start[:-1])
    with pytest.raises(ProtocolError) as refused:
        decode.feed(start[-1:])
    assert refused.value.reason == reason
    _, decode = decoder()
    with pytest.raises(ProtocolError) as refused:
        decode.feed(start + bytes(100))
    assert refused.value.reason == reason


def test_a_setup_of_another_version_is_told_and_refused_on_its_header() -> None:
    """The sink can answer it; its data is not waited for, and nothing behind it can be trusted."""
    frame, text = OTHER_VERSION
    start = bytes.fromhex(text)
    for pieces in ([start + rs.encode(AFTER)], [start[:-1], start[-1:]], [header(0x01, version=1, length=900, stream_id=0)]):
        heard, decode = decoder()
        for piece in pieces[:-1]:
            decode.feed(piece)
        with pytest.raises(ProtocolError) as refused:
            decode.feed(pieces[-1])
        assert refused.value.reason == "version 0"
        assert heard.frames == [frame]
    heard, decode = decoder(framed=True)
    with pytest.raises(ProtocolError, match="version 1"):
        decode.feed_frame(start[4:])
    assert heard.frames == [frame]


FRAMED_REFUSED = {
    "an empty message": (b"", "protocol:length 0"),
    "a message within the header": (bytes(11), "protocol:length 11"),
    "a body above the limit": (header(0x20)[4:] + bytes(LIMIT + 1), "limit:frame 1001 > 1000"),
    "a request without demand": (header(0x15)[4:] + bytes(7), "protocol:length 19"),
    "another version": (header(0x20, version=1)[4:], "version 0"),
    "an unknown type": (header(0x17)[4:], "protocol:type 0x0017"),
}


@pytest.mark.parametrize(("message", "reason"), FRAMED_REFUSED.values(), ids=FRAMED_REFUSED)
def test_what_is_no_frame_is_refused_where_the_transport_frames(message: bytes, reason: str) -> None:
    """For the same reasons; and the decoder stays broken."""
    _, decode = decoder(1, framed=True, max_frame=LIMIT)
    with pytest.raises(ProtocolError) as refused:
        decode.feed_frame(message)
    assert refused.value.reason == reason
    for again in (decode.feed, decode.feed_frame):
        with pytest.raises(ProtocolError) as still:
            again(b"")
        assert still.value is refused.value


class Refusing(FrameList):
    """A sink that refuses a request, as a session does for one before SETUP."""

    def receive_cancel(self, stream_id: int, /) -> None:
        raise ProtocolError("the first frame was no SETUP", reason="protocol:setup")


@pytest.mark.parametrize("framed", [False, True])
def test_a_sink_that_refuses_breaks_the_decoder(framed: bool) -> None:
    """Nothing that came behind is told any more, nor kept."""
    heard = Refusing()
    decode = rs.ReactiveSocketDecoder(heard, {}, framed=framed)
    with pytest.raises(ProtocolError) as refused:
        decode.feed(rs.encode(AFTER, framed=framed) + (b"" if framed else rs.encode(rs.RequestN(stream_id=1, demand=1))))
    with pytest.raises(ProtocolError) as again:
        decode.feed(b"")
    assert again.value is refused.value
    assert decode.held == 0
    assert heard.frames == []


# --- strangers


def junk() -> st.SearchStrategy[bytes]:
    """Bytes, and bytes that look like frames."""
    some_header = st.builds(
        header,
        st.sampled_from([*rs.FrameType, 0, 0x17, 0xFFFE]),
        length=st.integers(14, 40),
        version=st.sampled_from([0, 0, 0, 0, 1]),
        flags=st.integers(0, 255),
        stream_id=st.integers(0, 3) | st.integers(0, 2**64 - 1),
    )
    return st.lists(some_header | st.binary(max_size=30), max_size=8).map(b"".join)


@given(junk=junk(), framed=st.booleans())
@settings(max_examples=400, deadline=None)
def test_junk_is_decoded_or_refused_and_nothing_else(junk: bytes, framed: bool) -> None:
    """A stranger's bytes raise ProtocolError or nothing; and a decoder that has refused goes on refusing, for the same reason."""
    _, decode = decoder(1, 2, framed=framed)
    refusals = []
    for piece in (junk, rs.encode(AFTER, framed=framed)):
        try:
            decode.feed(piece)
        except ProtocolError as broken:
            refusals.append(broken)
    if refusals:
        assert refusals[-1].reason.split(" ")[0] in {"protocol:length", "protocol:reserved", "protocol:type", "limit:frame", "version"}
    if len(refusals) == 2:
        assert refusals[0] is refusals[1]


@given(junk=junk(), cut=st.integers(0, 200))
@settings(max_examples=400, deadline=None)
def test_where_the_bytes_are_cut_makes_no_difference(junk: bytes, cut: int) -> None:
    """The same frames, and the same refusal, in one piece and in two."""

    def outcome(*pieces: bytes) -> tuple[list[rs.Frame], list[int], str]:
        heard, decode = decoder()
        try:
            for piece in pieces:
                decode.feed(piece)
        except ProtocolError as broken:
            return heard.frames, heard.unknown_types, broken.reason
        return heard.frames, heard.unknown_types, ""

    assert outcome(junk) == outcome(junk[:cut], junk[cut:])


# --- the work it takes


def test_decoding_can_be_interrupted_and_gone_on_with() -> None:
    """So that a chunk of the smallest frames does not starve the neighbours; new bytes may come in between."""
    heard, decode = decoder()
    assert decode.feed(rs.encode(AFTER) * 5, max_messages=2)
    assert len(heard.frames) == 2
    assert decode.feed(rs.encode(AFTER)[:7], max_messages=2)
    assert len(heard.frames) == 4
    assert not decode.feed(b"", max_messages=2)
    assert heard.frames == [AFTER] * 5
    assert decode.held == 7


def test_what_was_needed_for_a_large_frame_is_not_needed_for_the_next() -> None:
    """Small ones behind it are told at once, also where the decoding was interrupted there."""
    large, small = rs.Response(stream_id=1, data=bytes(5000)), rs.encode(AFTER)
    heard, decode = decoder()
    decode.feed(rs.encode(large)[:100])
    decode.feed(rs.encode(large)[100:])
    decode.feed(small)
    assert heard.frames == [large, AFTER]
    heard, decode = decoder()
    decode.feed(rs.encode(large)[:100])
    assert decode.feed(rs.encode(large)[100:] + small * 3, max_messages=2)
    assert not decode.feed(b"")
    assert heard.frames == [large, AFTER, AFTER, AFTER]


def test_a_run_counts_as_one() -> None:
    """It costs about as much."""
    heard, decode = decoder(1)
    assert not decode.feed(rs.encode(rs.Response(stream_id=1, data=b"x")) * 1000, max_messages=3)
    assert len(heard.frames) == 1000


@pytest.mark.parametrize("chunk", [1, 10, 100])
def test_a_large_frame_in_small_chunks_is_joined_once(chunk: int) -> None:
    """Linear in the input: for its length, for its header, and when it is whole; and then it is let go of."""
    heard, decode = decoder()
    frame = rs.Response(stream_id=1, data=bytes(3000 * chunk))
    encoded = rs.encode(frame)
    joins = 0
    for start in range(0, len(encoded), chunk):
        before = decode._data
        decode.feed(encoded[start : start + chunk])
        joins += decode._data is not before
    assert heard.frames == [frame]
    assert joins <= 4


def test_an_announced_length_takes_no_memory() -> None:
    """Only what has arrived is held, whatever a header promises."""
    _, decode = decoder()
    decode.feed(header(0x20, length=1 << 20))
    assert decode.held == len(decode._data) == 16


def test_random_streams_and_sizes_cost_no_more_than_their_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for what chance mixes."""
    windows: list[int] = []
    look = _runs._same
    monkeypatch.setattr(_runs, "_same", lambda *given: windows.append(given[-1]) or look(*given))
    chance = random.Random(5)
    frames = [rs.encode(rs.Response(stream_id=chance.choice([1, 2]), data=bytes(chance.choice([0, 8])))) for _ in range(4000)]
    heard, decode = decoder(1, 2)
    decode.feed(b"".join(frames))
    assert len(heard.frames) == len(frames)
    assert 0 < sum(windows) <= 4 * len(frames)


def test_a_frame_that_is_dripped_costs_no_more_than_its_size() -> None:
    """Kept piece by piece, three bytes at a time, it would cost more than ten times as much in objects."""
    _, decode = decoder()
    size = 200_000
    decode.feed(rs.encode(rs.Response(stream_id=1, data=bytes(size)))[:100])
    tracemalloc.start()
    try:
        for _ in range(size // 3 - 40):
            decode.feed(bytes(bytearray(3)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decode.held > size - 200
    assert held < 1.2 * size
