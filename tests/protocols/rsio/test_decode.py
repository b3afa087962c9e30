"""The decoder: every message whole, cut anywhere, and with bytes to spare; refusals on the header; linear in its input."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.api import ProtocolError
from penstock.protocols import rsio
from penstock.testing import MessageList
from tests.protocols.rsio._vectors import FIXED, STREAMS, VECTORS

ALL = [(message, bytes.fromhex(text)) for message, text in (*VECTORS.values(), FIXED)]
NAMES = [*VECTORS, "onNext of fixed size"]
AFTER = rsio.Cancel(subscriber=99)


def decoder(limits: rsio.WireLimits | None = None) -> tuple[MessageList, rsio.RsioDecoder]:
    heard = MessageList()
    for stream in STREAMS:
        heard.receive_on_subscribe(stream.subscriber, stream.element_size)
    heard.messages.clear()
    return heard, rsio.RsioDecoder(heard, heard.streams, limits)


@pytest.mark.parametrize(("message", "data"), ALL, ids=NAMES)
def test_each_message_is_decoded_whole_and_cut_at_every_byte_with_bytes_to_spare(message: rsio.Message, data: bytes) -> None:
    """What follows the message is not touched by it."""
    tail = rsio.encode(AFTER)
    for cut in range(len(data) + 1):
        heard, decode = decoder()
        decode.feed(data[:cut])
        if cut < len(data):
            assert heard.messages == []
        decode.feed(data[cut:] + tail[:1])
        assert heard.messages == [message]
        decode.feed(tail[1:])
        assert heard.messages == [message, AFTER]
        assert decode.held == 0


@pytest.mark.parametrize(("message", "data"), ALL, ids=NAMES)
def test_each_message_is_decoded_byte_by_byte(message: rsio.Message, data: bytes) -> None:
    """As a peer would drip it."""
    heard, decode = decoder()
    for byte in data:
        decode.feed(bytes([byte]))
    assert heard.messages == [message]


def elements() -> st.SearchStrategy[list[tuple[int, bytes]]]:
    sized = st.tuples(st.just(0), st.binary(max_size=200) | st.binary(min_size=64, max_size=64))
    fixed = st.tuples(st.just(1), st.binary(min_size=4, max_size=4))
    return st.lists(sized | fixed | st.just((0, b"x" * 64)) | st.just((1, b"1234")), max_size=80)


@given(said=elements(), cuts=st.lists(st.integers(1, 90), max_size=40))
@settings(max_examples=200, deadline=None)
def test_runs_of_elements_are_what_single_ones_would_be(said: list[tuple[int, bytes]], cuts: list[int]) -> None:
    """Whatever the mix of lengths and streams, and wherever the chunks end."""
    data = b"".join(rsio.next_header(0, len(each)) + each if stream == 0 else rsio.fixed_header(1) + each for stream, each in said)
    heard, decode = decoder()
    position = 0
    for cut in cuts:
        decode.feed(data[position : position + cut])
        position += cut
    decode.feed(data[position:])
    assert [(message.subscriber, message.element) for message in heard.messages if isinstance(message, rsio.OnNext)] == said
    assert decode.held == 0


@given(junk=st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_junk_is_decoded_or_refused_and_nothing_else(junk: bytes) -> None:
    """A stranger's bytes raise ProtocolError or nothing; and a decoder that has refused goes on refusing, for the same reason."""
    _, decode = decoder()
    refusals = []
    for data in (junk, b"\x12\x00"):
        try:
            decode.feed(data)
        except ProtocolError as broken:
            refusals.append(broken)
    if refusals:
        assert refusals[-1].reason.split(" ")[0].split(":")[0] in {"protocol", "limit", "version"}
    if len(refusals) == 2:
        assert refusals[0] is refusals[1]


@given(junk=st.binary(max_size=200), cut=st.integers(0, 200))
@settings(max_examples=300, deadline=None)
def test_where_the_bytes_are_cut_makes_no_difference(junk: bytes, cut: int) -> None:
    """The same messages, and the same refusal, in one piece and in two."""

    def outcome(*pieces: bytes) -> tuple[list[rsio.Message], str]:
        heard, decode = decoder()
        try:
            for piece in pieces:
                decode.feed(piece)
        except ProtocolError as broken:
            return heard.messages, broken.reason
        return heard.messages, ""

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
def test_what_is_too_long_is_refused_on_its_header(header: bytes, reason: str) -> None:
    """Before any of its body has come, and not one byte of the header earlier."""
    _, decode = decoder(SMALL)
    decode.feed(header[:-1])
    with pytest.raises(ProtocolError) as refused:
        decode.feed(header[-1:])
    assert refused.value.reason == reason


WRONG = {
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


@pytest.mark.parametrize(("data", "reason"), WRONG.values(), ids=WRONG)
def test_what_is_no_message_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    """Where the end of a message cannot be known, nothing behind it can be trusted: refused at that byte, and not one earlier."""
    _, decode = decoder()
    decode.feed(data[:-1])
    with pytest.raises(ProtocolError) as refused:
        decode.feed(data[-1:])
    assert refused.value.reason == reason


def test_an_element_before_its_stream_has_begun_is_refused() -> None:
    """A stream that was subscribed to and not yet accepted has no element size."""
    heard = MessageList()
    heard.receive_on_subscribe(3, rsio.NOT_BEGUN)
    with pytest.raises(ProtocolError, match="has not begun"):
        rsio.RsioDecoder(heard, heard.streams).feed(b"\x21\x03")
    with pytest.raises(ProtocolError, match="has not begun"):
        rsio.RsioDecoder(heard, heard.streams).feed(b"\x24\x03\x00")


def test_decoding_can_be_interrupted_and_gone_on_with() -> None:
    """So that a chunk of the smallest messages does not starve the neighbours."""
    heard, decode = decoder()
    assert decode.feed(rsio.encode(AFTER) * 5, max_messages=2)
    assert len(heard.messages) == 2
    assert decode.feed(b"", max_messages=2)
    assert not decode.feed(b"", max_messages=2)
    assert heard.messages == [AFTER] * 5


def test_a_large_element_in_small_chunks_is_joined_once() -> None:
    """Linear in the input: each byte is looked at when it arrives, and moved once when enough are there."""
    heard, decode = decoder()
    data = rsio.next_header(0, 300_000) + bytes(300_000)
    joins = 0
    for start in range(0, len(data), 100):
        before = decode._data
        decode.feed(data[start : start + 100])
        joins += decode._data is not before
    assert heard.messages == [rsio.OnNext(subscriber=0, element=bytes(300_000))]
    assert joins <= 3


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300, 20_000])
def test_a_run_of_elements_of_any_one_length_is_cut_out_whole(size: int) -> None:
    """Empty ones too, and those whose length takes several bytes."""
    heard, decode = decoder(rsio.WireLimits(frame=1 << 20))
    element = bytes(size)
    decode.feed((rsio.next_header(0, size) + element) * 20)
    assert heard.messages == [rsio.OnNext(subscriber=0, element=element)] * 20


def test_ids_and_lengths_of_several_bytes_wait_for_their_end() -> None:
    """Cut within the id, and within the length."""
    heard = MessageList()
    heard.receive_on_subscribe(300, 0)
    heard.messages.clear()
    decode = rsio.RsioDecoder(heard, heard.streams)
    for byte in rsio.next_header(300, 200) + bytes(200):
        decode.feed(bytes([byte]))
    assert heard.messages == [rsio.OnNext(subscriber=300, element=bytes(200))]


def test_a_message_that_is_dripped_costs_no_more_than_its_size() -> None:
    """Kept piece by piece, three bytes at a time, it would cost more than ten times as much in objects."""
    _, decode = decoder()
    size = 200_000
    decode.feed(rsio.next_header(0, size))
    tracemalloc.start()
    try:
        for _ in range(size // 3):
            decode.feed(bytes(bytearray(3)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decode.held > size - 3
    assert held < 1.2 * size
