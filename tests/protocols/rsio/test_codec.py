"""The codec: its receivers, the encoder and the decoder."""

import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.api import ProtocolError, UsageError
from penstock.protocols import rsio
from penstock.protocols.rsio import RsioSink, WireStream
from penstock.testing import MessageList
from penstock.wire import LONGEST_RUN
from tests.protocols.rsio._differential import assert_size
from tests.protocols.rsio._golden_bytes import FIXED, GOLDEN, STREAMS

# --- the receivers


def test_the_message_list_has_the_methods_of_the_sink_and_of_a_stream() -> None:
    """The assignments are checked by mypy;
    the run checks that nothing more is needed to decode a stream.
    """
    recorded = MessageList()
    sink: RsioSink = recorded
    decoder = rsio.RsioDecoder(sink, recorded.streams)
    decoder.feed(
        rsio.encode(rsio.OnSubscribe(subscriber=3, element_size=0))
        + rsio.encode(rsio.OnNext(subscriber=3, element=b"a"))
    )
    stream: WireStream = recorded.streams[3]
    assert stream.element_size == 0
    assert recorded.messages[1:] == [rsio.OnNext(subscriber=3, element=b"a")]


def test_an_element_size_before_on_subscribe_is_no_size() -> None:
    """Sizes are 0 (each element carries its length) or positive, so NOT_BEGUN must be negative."""
    assert rsio.NOT_BEGUN < 0


# --- the encoder


@pytest.mark.parametrize(("message", "text"), GOLDEN.values(), ids=GOLDEN)
def test_each_message_has_its_golden_bytes(message: rsio.Message, text: str) -> None:
    """A message is encoded as its row says."""
    assert rsio.encode(message).hex() == text


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (rsio.ClientHello(version=256), "version=256"),
        (rsio.ClientHello(version=-1), "version=-1"),
        (rsio.ExtensionMessage(type=0x3F, body=b""), "0x3f"),
        (rsio.ExtensionMessage(type=0x7F, body=b""), "0x7f"),
        (rsio.Cancel(subscriber=-1), "below zero"),
        (rsio.Request(subscriber=1, demand=2**63), "64 bits"),
        ("garbage", "no message"),
    ],
)
def test_a_number_that_does_not_fit_is_refused(message: rsio.Message, says: str) -> None:
    """The text contains the number, or its size."""
    with pytest.raises(UsageError, match=says):
        rsio.encode(message)


@pytest.mark.parametrize(
    "message", [rsio.OnError(subscriber=0, error="file\udce9"), rsio.Goodbye(reason="file\udce9")]
)
def test_half_a_surrogate_pair_in_a_text_is_replaced(message: rsio.Message) -> None:
    """UTF-8 cannot carry it, and the message must be sent."""
    assert rsio.encode(message).endswith(b"\x05file?")


LENGTHS = st.lists(
    st.sampled_from([0, 1, 2, 63, 127, 128, 129, 2047, 2048, 16_383, 16_384]),
    min_size=1,
    max_size=12,
)


@given(
    lengths=LENGTHS | st.integers(0, 300).map(lambda n: [n] * 5),
    subscriber=st.sampled_from([0, 127, 128, 2**63 - 1]),
)
def test_a_run_has_the_bytes_of_its_messages(lengths: list[int], subscriber: int) -> None:
    """Of one length or of several, with ids and lengths of any size."""
    elements = [bytes([number]) * length for number, length in enumerate(lengths)]
    messages = [
        rsio.encode(rsio.OnNext(subscriber=subscriber, element=element)) for element in elements
    ]
    assert rsio.join_run(subscriber, elements) == b"".join(messages)


# --- the decoder


ALL = [(message, bytes.fromhex(text)) for message, text in (*GOLDEN.values(), FIXED)]
NAMES = [*GOLDEN, "onNext of fixed size"]
AFTER = rsio.Cancel(subscriber=99)


def make_decoder(limits: rsio.WireLimits | None = None) -> tuple[MessageList, rsio.RsioDecoder]:
    collected = MessageList()
    for stream in STREAMS:
        collected.receive_on_subscribe(stream.subscriber, stream.element_size)
    collected.messages.clear()
    return collected, rsio.RsioDecoder(collected, collected.streams, limits)


def same_error(one: ProtocolError, other: ProtocolError) -> bool:
    """Return whether both say the same and are two exceptions:
    a stored exception would collect the frames of each call.
    """
    return one is not other and (str(one), one.reason) == (str(other), other.reason)


@pytest.mark.parametrize(("message", "data"), ALL, ids=NAMES)
def test_each_message_is_decoded_whole_and_cut_at_any_byte_and_with_bytes_behind_it(
    message: rsio.Message, data: bytes
) -> None:
    """The message after it is decoded as well."""
    tail = rsio.encode(AFTER)
    for cut in range(len(data) + 1):
        collected, decoder = make_decoder()
        decoder.feed(data[:cut])
        if cut < len(data):
            assert collected.messages == []
        decoder.feed(data[cut:] + tail[:1])
        assert collected.messages == [message]
        decoder.feed(tail[1:])
        assert collected.messages == [message, AFTER]
        assert decoder.held == 0


@pytest.mark.parametrize(("message", "data"), ALL, ids=NAMES)
def test_each_message_is_decoded_from_single_bytes(message: rsio.Message, data: bytes) -> None:
    """A chunk may have any size."""
    collected, decoder = make_decoder()
    for byte in data:
        decoder.feed(bytes([byte]))
    assert collected.messages == [message]


def elements_of_two_streams() -> st.SearchStrategy[list[tuple[int, bytes]]]:
    sized = st.tuples(st.just(0), st.binary(max_size=200) | st.binary(min_size=64, max_size=64))
    fixed = st.tuples(st.just(1), st.binary(min_size=4, max_size=4))
    return st.lists(sized | fixed | st.just((0, b"x" * 64)) | st.just((1, b"1234")), max_size=80)


@given(elements=elements_of_two_streams(), cuts=st.lists(st.integers(1, 90), max_size=40))
@settings(max_examples=200, deadline=None)
def test_elements_in_runs_are_the_elements_that_were_sent(
    elements: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    """For any mix of lengths and streams, and any size of the chunks."""
    data = b"".join(
        rsio.next_header(0, len(each)) + each if stream == 0 else b"\x21\x01" + each
        for stream, each in elements
    )
    collected, decoder = make_decoder()
    position = 0
    for cut in cuts:
        decoder.feed(data[position : position + cut])
        position += cut
    decoder.feed(data[position:])
    assert [
        (message.subscriber, message.element)
        for message in collected.messages
        if isinstance(message, rsio.OnNext)
    ] == elements
    assert decoder.held == 0


@given(junk=st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_random_bytes_are_decoded_or_raise_protocol_error(junk: bytes) -> None:
    """No other exception is raised, and a decoder
    that has raised once raises the same error again.
    """
    _, decoder = make_decoder()
    refusals = []
    for data in (junk, b"\x12\x00"):
        try:
            decoder.feed(data)
        except ProtocolError as broken:
            refusals.append(broken)
    if refusals:
        assert refusals[-1].reason.split(" ")[0].split(":")[0] in {"protocol", "limit", "version"}
    if len(refusals) == 2:
        assert same_error(*refusals)


@given(junk=st.binary(max_size=200), cut=st.integers(0, 200))
@settings(max_examples=300, deadline=None)
def test_the_outcome_does_not_depend_on_where_the_bytes_are_cut(junk: bytes, cut: int) -> None:
    """The messages and the refusal are the same in one piece and in two."""

    def outcome(*pieces: bytes) -> tuple[list[rsio.Message], str]:
        collected, decoder = make_decoder()
        try:
            for piece in pieces:
                decoder.feed(piece)
        except ProtocolError as broken:
            return collected.messages, broken.reason
        return collected.messages, ""

    assert outcome(junk) == outcome(junk[:cut], junk[cut:])


SMALL = rsio.WireLimits(frame=100, name=10, text=10, reason=10, extensions=2)
V = rsio.encode_varint
REFUSED = {
    "an element": (b"\x21\x00" + V(101), "limit:frame 101 > 100"),
    "a part": (b"\x23\x00\x00" + V(2**62), f"limit:frame {2**62} > 100"),
    "packed elements": (b"\x22\x01" + V(26), "limit:frame 104 > 100"),
    "packed elements without end": (b"\x22\x01" + V(2**62), f"limit:frame {2**64} > 100"),
    "a fixed size": (b"\x20\x05" + V(101), "limit:frame 101 > 100"),
    "an extension's message": (b"\x40" + V(101), "limit:frame 101 > 100"),
    "a name": (b"\x10" + V(11), "limit:name 11 > 10"),
    "an error": (b"\x26\x00" + V(11), "limit:text 11 > 10"),
    "a reason": (b"\x03" + V(11), "limit:reason 11 > 10"),
    "a list of extensions": (b"\x01\x00" + V(3), "limit:extensions 3 > 2"),
}


@pytest.mark.parametrize(("header", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_length_above_its_limit_is_refused_on_the_header(header: bytes, reason: str) -> None:
    """With the last byte of the length, and not one byte earlier."""
    _, decoder = make_decoder(SMALL)
    decoder.feed(header[:-1])
    with pytest.raises(ProtocolError) as refused:
        decoder.feed(header[-1:])
    assert refused.value.reason == reason


WORDS = {
    "an element": "a size of 101 for the element; the limit of this side is 100",
    "a part": f"a size of {2**62} for the part; the limit of this side is 100",
    "packed elements": "a size of 104 for the packed message; the limit of this side is 100",
    "a fixed size": "a size of 101 for the fixed element size; the limit of this side is 100",
    "an extension's message": (
        "a size of 101 for the extension message; the limit of this side is 100"
    ),
    "a name": "a size of 11 for the publisher name; the limit of this side is 10",
    "an error": "a size of 11 for the error text; the limit of this side is 10",
    "a reason": "a size of 11 for the reason; the limit of this side is 10",
    "a list of extensions": "a size of 3 for the list of extensions; the limit of this side is 2",
}


@pytest.mark.parametrize("name", WORDS)
def test_a_refusal_says_what_is_too_long(name: str) -> None:
    """The program gets the text; the peer gets the reason only."""
    _, decoder = make_decoder(SMALL)
    with pytest.raises(ProtocolError) as refused:
        decoder.feed(REFUSED[name][0])
    assert str(refused.value) == f"the peer announced {WORDS[name]}"


def test_the_longest_lengths_are_taken() -> None:
    """Each limit is the greatest length that is accepted."""
    longest: list[rsio.Message] = [
        rsio.ClientHello(extensions=(1, 2)),
        rsio.OnSubscribe(subscriber=9, element_size=100),
        rsio.OnNext(subscriber=0, element=bytes(100)),
        rsio.OnNextLastPart(subscriber=0, element=0, data=bytes(100)),
        rsio.OnNextPacked(subscriber=1, count=25, elements=bytes(100)),
        rsio.ExtensionMessage(type=0x40, body=bytes(100)),
        rsio.Subscribe(publisher="n" * 10, subscriber=0),
        rsio.OnError(subscriber=0, error="e" * 10),
        rsio.Goodbye(reason="r" * 10),
    ]
    collected, decoder = make_decoder(SMALL)
    decoder.feed(b"".join(map(rsio.encode, longest)))
    assert collected.messages == longest


NOT_DELIMITED = {
    "a varint of ten bytes": (b"\x12" + b"\x80" * 9, "protocol:varint"),
    "a varint with a superfluous byte": (b"\x12\x80\x00", "protocol:varint"),
    "a reserved type": (b"\x7f", "protocol:type 0x7f"),
    "zero": (b"\x00", "protocol:type 0x00"),
    "a high type": (b"\xff", "protocol:type 0xff"),
    "packed without a size": (b"\x22\x00", "protocol:packed"),
    "packed without elements": (b"\x22\x01\x00", "protocol:packed"),
    "an element of an unknown stream": (b"\x21\x05", "protocol:stream 5"),
    "a packed one": (b"\x22\x05", "protocol:stream 5"),
    "a part": (b"\x23\x05", "protocol:stream 5"),
    "a last part": (b"\x24\x05", "protocol:stream 5"),
    "an element of an unknown stream with a long id": (b"\x21\xac\x02", "protocol:stream 300"),
    "a hello of another version": (b"\x01\x01", "version 0"),
    "a second hello": (b"\x01\x00\x00\x01", "protocol:hello"),
    "a hello of each side": (b"\x01\x00\x00\x02", "protocol:hello"),
}


@pytest.mark.parametrize(("data", "reason"), NOT_DELIMITED.values(), ids=NOT_DELIMITED)
def test_bytes_that_are_not_a_message_are_refused_with_the_reason(data: bytes, reason: str) -> None:
    """They are refused at the first byte that shows the fault, and not one byte earlier: the bytes
    after it cannot be delimited.
    """
    _, decoder = make_decoder()
    decoder.feed(data[:-1])
    with pytest.raises(ProtocolError) as refused:
        decoder.feed(data[-1:])
    assert refused.value.reason == reason


def test_an_element_before_its_stream_has_begun_is_refused() -> None:
    """Before onSubscribe the element size of a stream is not known."""
    collected = MessageList()
    collected.receive_on_subscribe(3, rsio.NOT_BEGUN)
    with pytest.raises(ProtocolError, match="has not begun"):
        rsio.RsioDecoder(collected, collected.streams).feed(b"\x21\x03")
    with pytest.raises(ProtocolError, match="has not begun"):
        rsio.RsioDecoder(collected, collected.streams).feed(b"\x24\x03\x00")


def test_feed_stops_after_max_messages_and_continues_with_the_next_call() -> None:
    """So a chunk of the smallest messages does not keep other connections waiting."""
    collected, decoder = make_decoder()
    assert decoder.feed(rsio.encode(AFTER) * 5, max_messages=2)
    assert len(collected.messages) == 2
    assert decoder.feed(b"", max_messages=2)
    assert not decoder.feed(b"", max_messages=2)
    assert collected.messages == [AFTER] * 5


@pytest.mark.parametrize("rest", [b"\x11", b"\x11\x80", b"\x26\x00\x04b"])
def test_a_part_of_a_message_is_not_more_to_decode(rest: bytes) -> None:
    """Also when the part is the last message of a turn: a caller that calls again as long as there
    is more once never came to an end.
    """
    collected, decoder = make_decoder()
    assert decoder.feed(rsio.encode(AFTER) + rest, max_messages=1)
    assert not decoder.feed(b"", max_messages=1)
    assert collected.messages == [AFTER]
    assert decoder.held == len(rest)


def test_a_large_element_in_small_chunks_is_joined_once() -> None:
    """3,000 chunks of 100 bytes cause at most three joins."""
    collected, decoder = make_decoder()
    data = rsio.next_header(0, 300_000) + bytes(300_000)
    joins = 0
    for start in range(0, len(data), 100):
        before = decoder._data
        decoder.feed(data[start : start + 100])
        joins += decoder._data is not before
    assert collected.messages == [rsio.OnNext(subscriber=0, element=bytes(300_000))]
    assert joins <= 3


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300, 20_000])
def test_a_run_of_elements_of_any_length_is_complete(size: int) -> None:
    """Also of empty elements, and of elements whose length takes several bytes."""
    collected, decoder = make_decoder(rsio.WireLimits(frame=1 << 20))
    element = bytes(size)
    decoder.feed((rsio.next_header(0, size) + element) * 20)
    assert collected.messages == [rsio.OnNext(subscriber=0, element=element)] * 20


def test_an_id_or_a_length_of_several_bytes_may_be_cut() -> None:
    """In single bytes, with an id and a length of two bytes each."""
    collected = MessageList()
    collected.receive_on_subscribe(300, 0)
    collected.messages.clear()
    decoder = rsio.RsioDecoder(collected, collected.streams)
    for byte in rsio.next_header(300, 200) + bytes(200):
        decoder.feed(bytes([byte]))
    assert collected.messages == [rsio.OnNext(subscriber=300, element=bytes(200))]


def test_an_incomplete_message_in_small_chunks_takes_memory_for_its_bytes_only() -> None:
    """As one object for each chunk of three bytes it would take more than ten times its size."""
    _, decoder = make_decoder()
    size = 200_000
    decoder.feed(rsio.next_header(0, size))
    tracemalloc.start()
    try:
        for _ in range(size // 3):
            decoder.feed(bytes(bytearray(3)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoder.held > size - 3
    assert held < 1.2 * size


class RunStream:
    """A stream without a fixed size that records how its elements were delivered."""

    element_size = 0

    def __init__(self) -> None:
        self.calls: list[list[bytes]] = []

    @property
    def elements(self) -> list[bytes]:
        return [element for call in self.calls for element in call]

    def receive_element(self, element: bytes, /) -> None:
        self.calls.append([element])

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        assert_size(elements, size)
        self.calls.append(list(elements))

    def receive_packed(self, count: int, elements: bytes, /) -> None:
        raise AssertionError("nothing was packed")

    def receive_part(self, element: int, data: bytes, last: bool, /) -> None:
        raise AssertionError("nothing was split")


def run_decoder(*ids: int) -> tuple[list[RunStream], rsio.RsioDecoder]:
    streams = [RunStream() for _ in ids]
    return streams, rsio.RsioDecoder(
        MessageList(), dict(zip(ids, streams, strict=True)), rsio.WireLimits(frame=30_000)
    )


MIXED = [
    b"",
    b"a",
    bytes(127),
    bytes(128),
    b"",
    bytes(300),
    b"bb",
    bytes(16_383),
    bytes(20_000),
    b"c",
    b"dd",
]


@pytest.mark.parametrize("stream_id", [0, 127, 128, 1 << 40])
def test_a_run_of_mixed_lengths_is_delivered_with_one_call(stream_id: int) -> None:
    """Lengths of one and of two bytes. One of three bytes is read by itself, and ends the run."""
    (stream,), decoder = run_decoder(stream_id)
    decoder.feed(bytes(rsio.join_run(stream_id, MIXED)))
    assert stream.elements == MIXED
    assert [len(call) for call in stream.calls] == [8, 3]


class MemoryStream(RunStream):
    """As `RunStream`, for runs in memory."""

    takes_runs = True


@given(
    st.lists(
        st.one_of(st.binary(max_size=140), st.text("!\x01.", max_size=140).map(str.encode)),
        min_size=1,
        max_size=200,
    ),
    st.booleans(),
)
def test_any_lengths_arrive_as_lists_and_in_memory(elements: list[bytes], in_memory: bool) -> None:
    """Also elements with the bytes of a header, long ones among short ones,
    and runs of many elements.
    """
    stream = MemoryStream() if in_memory else RunStream()
    decoder = rsio.RsioDecoder(MessageList(), {1: stream}, rsio.WireLimits(frame=30_000))
    decoder.feed(bytes(rsio.join_run(1, elements)) + rsio.encode(rsio.Goodbye()))
    assert stream.elements == elements


def test_short_elements_are_taken_in_memory_together() -> None:
    """A run of them is one call; the same elements as lists are also one call."""
    elements = [b"%d" % number for number in (1, 10, *range(100, 1000))]
    for stream in (MemoryStream(), RunStream()):
        rsio.RsioDecoder(MessageList(), {1: stream}).feed(bytes(rsio.join_run(1, elements)))
        assert stream.elements == elements
        assert len(stream.calls) == 1


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_short_limit_holds_in_a_run(in_memory: bool) -> None:
    """An element above it is refused, although its length takes one byte,
    and the elements before it arrive.
    """
    stream = MemoryStream() if in_memory else RunStream()
    decoder = rsio.RsioDecoder(MessageList(), {1: stream}, rsio.WireLimits(frame=100))
    with pytest.raises(ProtocolError, match="100"):
        decoder.feed(bytes(rsio.join_run(1, [bytes(number) for number in range(102)])))
    assert stream.elements == [bytes(number) for number in range(101)]


def test_a_run_of_mixed_lengths_may_be_cut_at_any_byte() -> None:
    """Each element is delivered once, when it is whole."""
    elements = [b"", b"a", bytes(130), b"bb", b""]
    data = bytes(rsio.join_run(300, elements))
    ends = [len(rsio.join_run(300, elements[:n])) for n in range(1, len(elements) + 1)]
    for cut in range(len(data) + 1):
        (stream,), decoder = run_decoder(300)
        decoder.feed(data[:cut])
        assert len(stream.elements) == sum(end <= cut for end in ends)
        decoder.feed(data[cut:])
        assert (stream.elements, decoder.held) == (elements, 0)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"\x21\x07\x80\x00", "protocol:varint"),
        (b"\x21\x07" + rsio.encode_varint(30_001), "limit:frame 30001 > 30000"),
        (b"\x21\x07" + b"\x80" * 9, "protocol:varint"),
        (b"\x21\x06\x00", "protocol:stream 6"),
        (b"\x7f", "protocol:type 0x7f"),
    ],
)
def test_elements_before_a_fault_are_delivered(bad: bytes, reason: str) -> None:
    """Elements after it are not delivered."""
    (stream,), decoder = run_decoder(7)
    with pytest.raises(ProtocolError) as broken:
        decoder.feed(
            bytes(rsio.join_run(7, [b"a", b"bb"])) + bad + bytes(rsio.join_run(7, [b"c", b"dd"]))
        )
    assert (stream.elements, broken.value.reason) == ([b"a", b"bb"], reason)


@pytest.mark.parametrize("elements", [[b"x"] * 3000, [b"x", b"yy"] * 1500], ids=["equal", "mixed"])
def test_a_run_is_bounded_because_it_counts_as_one_message(elements: list[bytes]) -> None:
    """A turn decodes a number of messages. Without the bound one of them could be a whole chunk."""
    (stream,), decoder = run_decoder(1)
    assert decoder.feed(bytes(rsio.join_run(1, elements)), max_messages=1)
    assert [len(call) for call in stream.calls] == [LONGEST_RUN]
    assert decoder.feed(b"", max_messages=1)
    assert not decoder.feed(b"", max_messages=2)
    assert stream.elements == elements


@pytest.mark.parametrize("pattern", ["01", "0011", "001", "000011", "0123"])
def test_streams_that_alternate_are_delivered_in_order(pattern: str) -> None:
    """Neighbours of one stream together, and each byte is looked at a fixed number of times:
    see the count of slices.
    """
    ids = sorted({int(each) for each in pattern})
    streams, decoder = run_decoder(*ids)
    sent = [(int(each), bytes(number % 5)) for number, each in enumerate(pattern * 300)]
    data = CountedBytes(
        b"".join(rsio.next_header(stream, len(element)) + element for stream, element in sent)
    )
    decoder.feed(data)
    for stream_id, stream in zip(ids, streams, strict=True):
        assert stream.elements == [element for other, element in sent if other == stream_id]
    assert data.sliced <= 8 * len(data)


class CountedBytes(bytes):
    """Counts the bytes that are sliced out of it."""

    sliced = 0

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        if isinstance(key, slice):
            self.sliced += len(part)
        return part
