"""The base of decoders for other encodings:
its judgement of numbers and lengths, and where each message goes.
"""

from typing import Any

import pytest

from penstock.api import ProtocolError
from penstock.protocols import rsio
from penstock.testing import MessageList
from tests.protocols.rsio._masked_encoding import MaskedEncoding

ENCODING = MaskedEncoding()
LIMITS = rsio.WireLimits(frame=64, element=256, name=16, text=20, reason=20, extensions=4)


def decode(*chunks: bytes) -> tuple[list[rsio.Message], str | None]:
    """Decode on a side with the streams 0, without a fixed size, and 4,
    with elements of four bytes.
    """
    sink = MessageList()
    sink.receive_on_subscribe(0, 0)
    sink.receive_on_subscribe(4, 4)
    sink.messages.clear()
    decoder = ENCODING.decoder(sink, sink.streams, LIMITS)
    try:
        for chunk in chunks:
            decoder.feed(chunk)
    except ProtocolError as error:
        return sink.messages, error.reason
    return sink.messages, None


def encoded(message: rsio.Message, cut: int = 0) -> bytes:
    data = ENCODING.encode(message)
    return data[: len(data) - cut]


REFUSED: dict[str, tuple[bytes, str]] = {
    "another version": (encoded(rsio.ClientHello(version=1), cut=2), "version 0"),
    "a second hello": (encoded(rsio.ClientHello()) + b"\x01", "protocol:hello"),
    "too many extensions": (
        encoded(rsio.ClientHello(extensions=(1,) * 5), cut=10),
        "limit:extensions 5 > 4",
    ),
    "a reserved type": (b"\x7f", "protocol:type 0x7f"),
    "an element of an unknown stream": (
        encoded(rsio.OnNext(subscriber=5, element=b"x"), cut=3),
        "protocol:stream 5",
    ),
    "a part of an unknown stream": (
        encoded(rsio.OnNextPart(subscriber=5, element=0, data=b""), cut=4),
        "protocol:stream 5",
    ),
    "packed elements without a fixed size": (
        b"\x22" + ENCODING.encode(rsio.Cancel(subscriber=0))[1:],
        "protocol:packed",
    ),
    "packed elements that are none": (ENCODING.packed_header(4, 0, 0), "protocol:packed"),
    "packed elements of another length": (ENCODING.packed_header(4, 2, 7), "protocol:packed"),
    "packed elements that are too long": (ENCODING.packed_header(4, 17, 68), "limit:frame 68 > 64"),
    "an element that is too long": (ENCODING.next_header(0, 65), "limit:frame 65 > 64"),
    "a part that is too long": (ENCODING.part_header(0, 0, 65, last=True), "limit:frame 65 > 64"),
    "an extension's body that is too long": (
        ENCODING.extension_header(0x40, 65),
        "limit:frame 65 > 64",
    ),
    "a name that is too long": (
        encoded(rsio.Subscribe(publisher="n" * 17, subscriber=0), cut=21),
        "limit:name 17 > 16",
    ),
    "a reason that is too long": (
        encoded(rsio.Goodbye(reason="r" * 21), cut=21),
        "limit:reason 21 > 20",
    ),
    "an error that is too long": (
        encoded(rsio.OnError(subscriber=0, error="e" * 21), cut=21),
        "limit:text 21 > 20",
    ),
    "a number above 2^63-1": (
        b"\x12" + ENCODING.next_header(1 << 63, 0)[1:21],
        "protocol:encoding",
    ),
    "an elementSize that is too large": (
        encoded(rsio.OnSubscribe(subscriber=9, element_size=65)),
        "limit:frame 65 > 64",
    ),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_fault_is_refused_as_in_the_compact_encoding(data: bytes, reason: str) -> None:
    """With the same reason, on the number or the length that shows it, whole and byte by byte."""
    assert decode(data)[1] == reason
    assert decode(*(data[at : at + 1] for at in range(len(data))))[1] == reason


def test_texts_that_are_no_utf_8_keep_the_connection() -> None:
    """A name has surrogates, by which the dialect refuses the stream;
    a reason and an error have U+FFFD.
    """
    bad = [
        data.replace(b"\x7f\x7f", b"\xff\xfe")
        for data in map(
            encoded,
            (
                rsio.Subscribe(publisher="\x7f\x7f", subscriber=1),
                rsio.OnError(subscriber=0, error="\x7f\x7f"),
                rsio.Goodbye(reason="\x7f\x7f"),
            ),
        )
    ]
    expected = [
        rsio.Subscribe(publisher="\udcff\udcfe", subscriber=1),
        rsio.OnError(subscriber=0, error="\ufffd\ufffd"),
        rsio.Goodbye(reason="\ufffd\ufffd"),
    ]
    assert decode(*bad) == (expected, None)


def test_an_element_of_another_size_ends_its_stream_alone() -> None:
    """It goes to the stream as a part that no peer can send, which the stream refuses."""
    messages = [rsio.OnNext(subscriber=4, element=each) for each in (b"aaaa", b"bbb", b"cccc")]
    expected: list[Any] = [
        messages[0],
        rsio.OnNextLastPart(subscriber=4, element=-1, data=b"bbb"),
        messages[2],
    ]
    assert decode(*map(ENCODING.encode, messages)) == (expected, None)


def test_a_bound_on_messages_is_kept() -> None:
    """Each call decodes at most that number, and says whether more are there."""
    sink = MessageList()
    decoder = ENCODING.decoder(sink, sink.streams, LIMITS)
    data = b"".join(encoded(rsio.Cancel(subscriber=n)) for n in range(3))
    assert [
        decoder.feed(data, max_messages=2),
        len(sink.messages),
        decoder.feed(b"", max_messages=2),
        len(sink.messages),
    ] == [
        True,
        2,
        False,
        3,
    ]
    assert decoder.held == 0
    assert not decoder.feed(encoded(rsio.Cancel(subscriber=4))[:1], max_messages=1)  # a part
    assert decoder.held == 1


WORDS: dict[str, str] = {
    "too many extensions": "a size of 5 for the list of extensions; the limit of this side is 4",
    "an element that is too long": "a size of 65 for the element; the limit of this side is 64",
    "a part that is too long": "a size of 65 for the message; the limit of this side is 64",
    "a name that is too long": "a size of 17 for the publisher name; the limit of this side is 16",
    "a reason that is too long": "a size of 21 for the reason; the limit of this side is 20",
    "an error that is too long": "a size of 21 for the error text; the limit of this side is 20",
    "an elementSize that is too large": (
        "a size of 65 for the fixed element size; the limit of this side is 64"
    ),
}


@pytest.mark.parametrize("name", WORDS)
def test_a_refusal_says_what_is_too_long(name: str) -> None:
    """The program gets the text; the peer gets the reason only."""
    sink = MessageList()
    sink.receive_on_subscribe(0, 0)
    with pytest.raises(ProtocolError) as refused:
        ENCODING.decoder(sink, sink.streams, LIMITS).feed(REFUSED[name][0])
    assert str(refused.value) == f"the peer announced {WORDS[name]}"


def test_the_longest_lengths_are_taken() -> None:
    """Each limit is the greatest length that is accepted."""
    longest: list[rsio.Message] = [
        rsio.ClientHello(extensions=(1,) * 4),
        rsio.OnSubscribe(subscriber=9, element_size=64),
        rsio.OnNext(subscriber=0, element=bytes(64)),
        rsio.OnNextLastPart(subscriber=0, element=0, data=bytes(64)),
        rsio.OnNextPacked(subscriber=4, count=16, elements=bytes(64)),
        rsio.ExtensionMessage(type=0x40, body=bytes(64)),
        rsio.Subscribe(publisher="n" * 16, subscriber=0),
        rsio.OnError(subscriber=0, error="e" * 20),
        rsio.Goodbye(reason="r" * 20),
    ]
    assert decode(b"".join(map(encoded, longest))) == (longest, None)


@pytest.mark.parametrize("hello", [rsio.ClientHello(version=1), rsio.ServerHello(version=1)])
def test_a_hello_of_another_version_is_passed_on_before_the_refusal(hello: rsio.Message) -> None:
    """A client must know that its server speaks another version:
    all of its streams may be asked for again.
    """
    assert decode(encoded(hello, cut=2)) == ([hello], "version 0")
