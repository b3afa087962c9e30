"""Two readings of RS.io's wire, penstock's and one written from the reference page alone, make the same of the same bytes."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.api import Limits
from penstock.protocols import rsio
from tests.protocols.rsio import _reference_codec as reference
from tests.protocols.rsio._differential import CODE, DEMANDS, EXTENSION, as_record, by_penstock, by_the_page
from tests.protocols.rsio._golden_bytes import FIXED, STREAMS, GOLDEN

PAGE = Path(__file__).parents[3] / "docs/reference/rsio.md"

# ---- messages

ids = st.integers(0, 4) | st.sampled_from([300, 2**63 - 1])
ours = st.sampled_from(range(len(DEMANDS)))
numbers = st.integers(0, 3) | st.sampled_from([127, 128, 16384, 2**63 - 1])
texts = st.sampled_from(["", "s", "s", "nobody", "zwölf", "\0", "a" * 16])
chunks = st.binary(max_size=20) | st.binary(min_size=64, max_size=64)
hellos = st.lists(st.sampled_from([EXTENSION, 0, 1, 2**63 - 1]), max_size=4).map(tuple)
anything = st.one_of(
    st.tuples(st.just("goodbye"), texts),
    st.tuples(st.just("subscribe"), texts, ids, numbers),
    st.tuples(st.just("request"), ids, numbers),
    st.tuples(st.just("cancel"), ids),
    st.tuples(st.just("onSubscribe"), ids, st.integers(0, 5)),
    st.tuples(st.just("onNext"), ids, chunks),
    st.tuples(st.just("onNextPacked"), ids, st.lists(chunks, max_size=5).map(tuple)),
    st.tuples(st.sampled_from(["onNextPart", "onNextLastPart"]), ids, numbers, chunks),
    st.tuples(st.just("onComplete"), ids),
    st.tuples(st.just("onError"), ids, texts),
    st.tuples(st.just("extension"), st.sampled_from([CODE, CODE, 0x40, 0x7E]), chunks),
    st.tuples(st.sampled_from(["clientHello", "serverHello"]), st.just(0), hellos),
    st.tuples(st.just("switchEncoding"), numbers),
)


def said(messages: list[reference.Message], hello: reference.Message) -> bytes:
    """The bytes of a conversation; elements of a stream that has a fixed size are cut and filled to it."""
    sizes: dict[int, int] = {}
    return reference.encode(hello) + b"".join(_said(message, sizes) for message in messages)


def _said(message: reference.Message, sizes: dict[int, int]) -> bytes:
    match message:
        case ("onSubscribe", stream_id, element_size):
            sizes.setdefault(stream_id, element_size)
        case ("onNext", stream_id, element) if size := sizes.get(stream_id, 0):
            return reference.encode(("onNext", stream_id, element[:size].ljust(size, b".")), size)
        case ("onNextPacked", stream_id, elements):
            size = sizes.get(stream_id, 0) or 1
            return reference.encode(("onNextPacked", stream_id, tuple(each[:size].ljust(size, b".") for each in elements)), size)
    return reference.encode(message)


@st.composite
def mannerly(draw: st.DrawFn) -> list[reference.Message]:
    """What a peer may say: streams of its own, and everything about the three that it was asked for."""
    messages: list[Any] = []
    running: dict[int, int | None] = dict.fromkeys(range(len(DEMANDS)))
    free = iter(range(1000))
    for _ in range(draw(st.integers(0, 30))):
        stream_id = draw(ours)
        size = running.get(stream_id, -1)
        if size == -1 or draw(st.integers(0, 5)) == 0:
            messages.append(
                draw(
                    st.one_of(
                        st.just(("subscribe", draw(texts), next(free), draw(numbers))),
                        st.tuples(st.just("request"), ids, numbers),
                        st.tuples(st.just("cancel"), ids),
                        st.tuples(st.just("extension"), st.just(CODE), chunks),
                    )
                )
            )
        elif draw(st.integers(0, 9)) == 0:
            messages.append(draw(st.sampled_from([("onComplete", stream_id), ("onError", stream_id, "boom")])))
            del running[stream_id]
        elif size is None:
            running[stream_id] = size = draw(st.sampled_from([0, 0, 1, 4, 64]))
            messages.append(("onSubscribe", stream_id, size))
        else:
            kinds = ["onNext", "onNext", "onNextPart", "onNextLastPart"] + ["onNextPacked"] * (0 < size <= 12)
            messages.append(draw(_element(draw(st.sampled_from(kinds)), stream_id)))
    return messages


def _element(kind: str, stream_id: int) -> st.SearchStrategy[Any]:
    if kind == "onNext":
        return st.tuples(st.just(kind), st.just(stream_id), chunks)
    if kind == "onNextPacked":
        return st.tuples(st.just(kind), st.just(stream_id), st.lists(chunks, min_size=1, max_size=5).map(tuple))
    return st.tuples(st.just(kind), st.just(stream_id), st.integers(0, 3), chunks)


def hello_of(*, is_server: bool, extensions: tuple[int, ...] = (EXTENSION,)) -> reference.Message:
    return ("clientHello" if is_server else "serverHello", 0, extensions)


def agree(data: bytes, *, is_server: bool, pieces: list[int]) -> None:
    """Both make the same of it: whole, in pieces, and byte by byte, where they also refuse it at the same byte."""
    page = by_the_page(data, is_server=is_server)
    slowly = by_penstock(data, is_server=is_server, pieces=[1])
    assert slowly == page
    for cuts in ([1 << 20], pieces):
        at_once = by_penstock(data, is_server=is_server, pieces=cuts)
        at_once.decided_at = page.decided_at
        assert at_once == page


pieces = st.lists(st.integers(1, 40), min_size=1, max_size=10)
sides = pytest.mark.parametrize("is_server", [True, False], ids=["to a server", "to a client"])

# ---- the same messages, the same bytes


@given(message=anything)
def test_both_encoders_write_the_same_bytes(message: reference.Message) -> None:
    """For every kind of message, and every size of its numbers."""
    if message[0] == "onNextPacked":
        message = ("onNextPacked", message[1], tuple(b"four" for _ in message[2]))
        assert reference.encode(message, 4) == rsio.encode(as_record(message))
    else:
        assert reference.encode(message) == rsio.encode(as_record(message))


@given(message=anything, size=st.integers(1, 300), count=st.integers(1, 300))
def test_both_write_the_same_headers_of_elements(message: reference.Message, size: int, count: int) -> None:
    """Those that stand before elements which penstock never copies into a message."""
    stream_id, element = size * count, bytes(size)
    assert reference.encode(("onNext", stream_id, element)) == rsio.next_header(stream_id, size) + element
    assert reference.encode(("onNextPacked", stream_id, (b"x",) * count), 1) == rsio.packed_header(stream_id, count) + b"x" * count
    last = rsio.part_header(stream_id, count, size, last=True) + element
    assert reference.encode(("onNextLastPart", stream_id, count, element)) == last


@given(value=st.integers(0, 2**63 - 1))
def test_both_write_the_same_varints(value: int) -> None:
    """All of them."""
    assert reference.varint(value) == rsio.encode_varint(value)


@pytest.mark.parametrize(("message", "text"), GOLDEN.values(), ids=GOLDEN)
def test_the_golden_bytes_are_what_the_page_says(message: rsio.Message, text: str) -> None:
    """Written and read by the codec of the page."""
    told = [each for each in REFERENCE_MESSAGES if as_record(each) == message]
    assert [reference.encode(each, 4 if each[0] == "onNextPacked" else 0).hex() for each in told] == [text]
    heard, refused = read_by_the_page(bytes.fromhex(text), of_server=isinstance(message, rsio.ServerHello))
    if isinstance(message, rsio.SwitchEncoding):
        assert refused == "protocol:type 0x04"
    else:
        assert (heard, refused) == (told, None)


REFERENCE_MESSAGES: list[reference.Message] = [
    ("clientHello", 0, ()),
    ("serverHello", 0, (1, 200)),
    ("goodbye", ""),
    ("goodbye", "bye"),
    ("switchEncoding", 16),
    ("subscribe", "ticks", 0, 0),
    ("subscribe", "ticks", 300, 2**63 - 1),
    ("request", 0, 128),
    ("cancel", 0),
    ("onSubscribe", 0, 0),
    ("onSubscribe", 1, 4),
    ("onNext", 0, b"item"),
    ("onNextPacked", 1, (b"\0\0\0\1", b"\0\0\0\2", b"\0\0\0\3")),
    ("onNextPart", 0, 0, b"aa"),
    ("onNextLastPart", 0, 0, b"b"),
    ("onComplete", 0),
    ("onError", 0, "boom"),
    ("extension", 0x40, b"hi"),
]


def read_by_the_page(data: bytes, *, of_server: bool) -> tuple[list[reference.Message], str | None]:
    """One message, after what must have been said before it."""
    decoder = reference.Decoder(is_server=not of_server, extensions={7: frozenset({0x40})})
    kind = data[0]
    if kind not in (reference.TYPES["clientHello"], reference.TYPES["serverHello"]):
        decoder.feed(reference.encode(("clientHello", 0, (7,))))
        for stream in STREAMS:
            decoder.subscribed(stream.subscriber)
            if kind != reference.TYPES["onSubscribe"]:
                decoder.feed(rsio.encode(stream))
    return decoder.feed(data), decoder.refused


def test_an_element_of_fixed_size_has_no_length_by_the_page() -> None:
    """The one golden message that only a decoder which knows the stream can read."""
    assert read_by_the_page(bytes.fromhex(FIXED[1]), of_server=False) == ([("onNext", 1, FIXED[0].element)], None)


def test_the_examples_of_the_page_are_golden() -> None:
    """Every example that the page prints is among the golden bytes."""
    section = PAGE.read_text(encoding="utf-8").split("Examples, in hexadecimal:")[1].split("##")[0]
    printed = [row.replace(" ", "") for row in re.findall(r"\| `([0-9a-f ]+)` \|$", section, re.MULTILINE)]
    assert len(printed) == 14
    assert set(printed) <= {*(text for _, text in GOLDEN.values()), FIXED[1]}


# ---- the same bytes, the same messages


@sides
@given(messages=mannerly(), pieces=pieces)
@settings(max_examples=40, deadline=None)
def test_both_understand_what_is_allowed(is_server: bool, messages: list[reference.Message], pieces: list[int]) -> None:
    """Streams in both directions, of sized, fixed, packed and split elements; some beyond demand, and some for a stream cancelled."""
    data = said(messages, hello_of(is_server=is_server))
    assert by_the_page(data, is_server=is_server).reason is None
    agree(data, is_server=is_server, pieces=pieces)


@sides
@given(messages=mannerly())
@settings(max_examples=8, deadline=None)
def test_where_the_bytes_are_cut_makes_no_difference(is_server: bool, messages: list[reference.Message]) -> None:
    """In two pieces, at every byte."""
    data = said(messages[:12], hello_of(is_server=is_server))
    page = by_the_page(data, is_server=is_server)
    for cut in range(1, len(data)):
        assert by_penstock(data, is_server=is_server, pieces=[cut, 1 << 20]) == page


@sides
@given(messages=st.lists(anything, max_size=12), extensions=hellos, pieces=pieces)
@settings(max_examples=80, deadline=None)
def test_both_refuse_the_same_messages_for_the_same_reason(
    is_server: bool, messages: list[reference.Message], extensions: tuple[int, ...], pieces: list[int]
) -> None:
    """Well-formed messages that nobody may send here and now."""
    agree(said(messages, hello_of(is_server=is_server, extensions=extensions)), is_server=is_server, pieces=pieces)


changes = st.lists(
    st.tuples(st.sampled_from(["put", "add", "drop", "cut"]), st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3
)


@sides
@given(messages=mannerly(), changes=changes, pieces=pieces)
@settings(max_examples=80, deadline=None)
def test_both_make_the_same_of_damaged_bytes(
    is_server: bool, messages: list[reference.Message], changes: list[tuple[str, int, int]], pieces: list[int]
) -> None:
    """Bytes changed, added, left out, and cut off, anywhere."""
    data = bytearray(said(messages, hello_of(is_server=is_server)))
    for what, place, byte in changes:
        at = place % (len(data) or 1)
        data[at : {"put": at + 1, "add": at, "drop": at + 1, "cut": len(data)}[what]] = b"" if what in ("drop", "cut") else bytes([byte])
    agree(bytes(data), is_server=is_server, pieces=pieces)


@sides
@given(junk=st.binary(max_size=200), greets=st.booleans(), pieces=pieces)
@settings(max_examples=80, deadline=None)
def test_both_make_the_same_of_junk(is_server: bool, junk: bytes, greets: bool, pieces: list[int]) -> None:
    """Behind a hello, and in the place of one."""
    agree(greets * reference.encode(hello_of(is_server=is_server)) + junk, is_server=is_server, pieces=pieces)


HELLO = b"\x01\x00\x01" + reference.varint(EXTENSION)
BEGUN = HELLO + b"\x20\x00\x00" + b"\x20\x01\x04"
REFUSED: dict[str, tuple[bytes, str]] = {
    "another protocol": (b"G", "protocol:hello"),
    "the other side's hello": (b"\x02", "protocol:hello"),
    "another version": (b"\x01\x01", "version 0"),
    "a second hello": (HELLO + b"\x01", "protocol:hello"),
    "too many extensions": (b"\x01\x00\x05", "limit:extensions 5 > 4"),
    "a reason that is too long": (b"\x03\x15", "limit:reason 21 > 20"),
    "a reserved type": (HELLO + b"\x7f", "protocol:type 0x7f"),
    "an encoding switched to": (HELLO + b"\x04\x10", "protocol:type 0x04"),
    "an extension that is not active": (HELLO + b"\x40\x01x", "protocol:type 0x40"),
    "an extension's body that is too long": (HELLO + b"\x60\x41", "limit:frame 65 > 64"),
    "a name that is too long": (HELLO + b"\x10\x11", "limit:name 17 > 16"),
    "a stream opened twice": (HELLO + b"\x10\x01s\x07\x00" * 2, "protocol:subscribe 7"),
    "a varint of ten bytes": (HELLO + b"\x12" + b"\x80" * 9, "protocol:varint"),
    "a varint longer than it must be": (HELLO + b"\x12\xff\x00", "protocol:varint"),
    "an element before onSubscribe": (HELLO + b"\x21\x00", "protocol:stream 0"),
    "an element on a stream that was never opened": (HELLO + b"\x21\x05", "protocol:stream 5"),
    "a part before onSubscribe": (HELLO + b"\x23\x00", "protocol:stream 0"),
    "packed elements before onSubscribe": (HELLO + b"\x22\x00", "protocol:stream 0"),
    "an element after the end": (BEGUN + b"\x25\x00" + b"\x21\x00", "protocol:stream 0"),
    "an end of what was never opened": (HELLO + b"\x25\x05", "protocol:stream 5"),
    "a second end": (HELLO + b"\x25\x00" * 2, "protocol:stream 0"),
    "an error of what was never opened": (HELLO + b"\x26\x05\x01x", "protocol:stream 5"),
    "a second onSubscribe": (BEGUN + b"\x20\x00\x00", "protocol:stream 0"),
    "a second onSubscribe of a cancelled stream": (HELLO + b"\x20\x02\x00" * 2, "protocol:stream 2"),
    "an elementSize that is too large": (HELLO + b"\x20\x05\x41", "limit:frame 65 > 64"),
    "packed elements without a fixed size": (BEGUN + b"\x22\x00", "protocol:packed"),
    "packed elements that are none": (BEGUN + b"\x22\x01\x00", "protocol:packed"),
    "too many packed elements": (BEGUN + b"\x22\x01\x11", "limit:frame 68 > 64"),
    "an element that is too long": (BEGUN + b"\x21\x00\x41", "limit:frame 65 > 64"),
    "a part that is too long": (BEGUN + b"\x23\x00\x00\x41", "limit:frame 65 > 64"),
    "an error that is too long": (BEGUN + b"\x26\x00\x15", "limit:text 21 > 20"),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_both_refuse_what_the_page_refuses_at_the_byte_that_it_names(data: bytes, reason: str) -> None:
    """Not a byte earlier, and for that reason."""
    for outcome in (by_the_page(data, is_server=True), by_penstock(data, is_server=True, pieces=[1])):
        assert (outcome.reason, outcome.decided_at) == (reason, len(data))
    agree(data + b"\x03\x00", is_server=True, pieces=[len(data) - 1, 1])


def test_each_reason_that_bytes_alone_can_earn_is_tried() -> None:
    """The page's list of tokens, without those that need time, numbers of things, or a program."""
    listed = set(re.findall(r"`((?:protocol|limit):[a-z]+|version)", PAGE.read_text(encoding="utf-8")))
    over_time = {
        "limit:hello",
        "limit:handshake",
        "limit:churn",
        "limit:control",
        "limit:glitches",
        "limit:ids",
        "limit:requests",
        "limit:pings",
        "limit:memory",
        "limit:partial",
        "protocol:ping",
    }
    assert {reason.split()[0] for _, reason in REFUSED.values()} == listed - over_time


def test_the_codec_of_the_page_shares_nothing_with_penstock() -> None:
    """It imports the standard library alone: what both get wrong, they get wrong on their own."""
    tree = ast.parse(Path(reference.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "collections.abc", "dataclasses", "typing"}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))


def test_the_page_tells_the_limits_that_there_are() -> None:
    """Each row of its tables names a field of `Limits` and its default."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Limits")[1]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in section.splitlines() if "`" in row and row.startswith("|")]
    assert len(rows) == 17
    for row in rows:
        fields = re.findall(r"`([a-z_]+)`", row[3])
        figures = row[2:3] if len(fields) == 1 else row[1:3]
        assert [f"{getattr(Limits(), name):,.0f}" for name in fields] == figures, row
        if len(fields) == 1:
            assert int(row[1].replace(",", "")) <= getattr(Limits(), fields[0])


def test_the_least_that_a_peer_may_rely_on_is_what_the_codec_of_the_page_takes() -> None:
    """Its own limits are the page's column."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Limits")[1]
    least = [int(row.replace(",", "")) for row in re.findall(r"^\| [^|]+ \| ([\d,]+) \| [\d,]+ \| `\w+` \|", section, re.MULTILINE)]
    limits, stream = reference.Limits(), reference.Incoming(0)
    codec = [limits.extensions, limits.name, limits.text, limits.reason, limits.body, limits.element_size]
    assert least[:9] == [*codec, stream.joined_limit, stream.parts_limit, stream.unfinished_limit]
