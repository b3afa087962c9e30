"""Penstock and the reference codec, which is written from the reference page alone, have the
same outcome for the same bytes.
"""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.api import Limits
from penstock.protocols import rsio
from penstock.session import CONNECTION_REASONS
from tests.protocols.rsio import _reference_codec as reference
from tests.protocols.rsio._differential import (
    CODE,
    DEMANDS,
    EXTENSION,
    as_record,
    run_penstock,
    run_reference,
)
from tests.protocols.rsio._golden_bytes import FIXED, GOLDEN, STREAMS

PAGE = Path(__file__).parents[3] / "docs/reference/rsio.md"

# ---- messages

ids = st.integers(0, 4) | st.sampled_from([300, 2**63 - 1])
own_ids = st.sampled_from(range(len(DEMANDS)))
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


def encoded(messages: list[reference.Message], hello: reference.Message) -> bytes:
    """The bytes of `messages` behind `hello`.
    Elements of a stream of fixed size are cut or filled to that size.
    """
    sizes: dict[int, int] = {}
    return reference.encode(hello) + b"".join(_encoded(message, sizes) for message in messages)


def _encoded(message: reference.Message, sizes: dict[int, int]) -> bytes:
    match message:
        case ("onSubscribe", stream_id, element_size):
            sizes.setdefault(stream_id, element_size)
        case ("onNext", stream_id, element) if size := sizes.get(stream_id, 0):
            return reference.encode(("onNext", stream_id, element[:size].ljust(size, b".")), size)
        case ("onNextPacked", stream_id, elements):
            size = sizes.get(stream_id, 0) or 1
            return reference.encode(
                (
                    "onNextPacked",
                    stream_id,
                    tuple(each[:size].ljust(size, b".") for each in elements),
                ),
                size,
            )
    return reference.encode(message)


@st.composite
def legal_messages(draw: st.DrawFn) -> list[reference.Message]:
    """Messages that a peer may send:
    about its streams, and about the three that it was asked for.
    """
    messages: list[Any] = []
    running: dict[int, int | None] = dict.fromkeys(range(len(DEMANDS)))
    free = iter(range(1000))
    for _ in range(draw(st.integers(0, 30))):
        stream_id = draw(own_ids)
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
            messages.append(
                draw(st.sampled_from([("onComplete", stream_id), ("onError", stream_id, "boom")]))
            )
            del running[stream_id]
        elif size is None:
            running[stream_id] = size = draw(st.sampled_from([0, 0, 1, 4, 64]))
            messages.append(("onSubscribe", stream_id, size))
        else:
            kinds = ["onNext", "onNext", "onNextPart", "onNextLastPart"] + ["onNextPacked"] * (
                0 < size <= 12
            )
            messages.append(draw(_element(draw(st.sampled_from(kinds)), stream_id)))
    return messages


def _element(kind: str, stream_id: int) -> st.SearchStrategy[Any]:
    if kind == "onNext":
        return st.tuples(st.just(kind), st.just(stream_id), chunks)
    if kind == "onNextPacked":
        return st.tuples(
            st.just(kind), st.just(stream_id), st.lists(chunks, min_size=1, max_size=5).map(tuple)
        )
    return st.tuples(st.just(kind), st.just(stream_id), st.integers(0, 3), chunks)


def hello_of(*, is_server: bool, extensions: tuple[int, ...] = (EXTENSION,)) -> reference.Message:
    return ("clientHello" if is_server else "serverHello", 0, extensions)


def assert_equal_outcomes(data: bytes, *, is_server: bool, pieces: list[int]) -> None:
    """Assert that both outcomes are equal: in one piece, in `pieces`, and in single bytes, where
    the byte of a refusal is equal too.
    """
    expected = run_reference(data, is_server=is_server)
    slowly = run_penstock(data, is_server=is_server, pieces=[1])
    assert slowly == expected
    for cuts in ([1 << 20], pieces):
        at_once = run_penstock(data, is_server=is_server, pieces=cuts)
        at_once.decided_at = expected.decided_at
        assert at_once == expected


pieces = st.lists(st.integers(1, 40), min_size=1, max_size=10)
sides = pytest.mark.parametrize("is_server", [True, False], ids=["to a server", "to a client"])

# ---- the same messages, the same bytes


@given(message=anything)
def test_both_encoders_write_the_same_bytes(message: reference.Message) -> None:
    """For every kind of message, with numbers of all sizes."""
    if message[0] == "onNextPacked":
        message = ("onNextPacked", message[1], tuple(b"four" for _ in message[2]))
        assert reference.encode(message, 4) == rsio.encode(as_record(message))
    else:
        assert reference.encode(message) == rsio.encode(as_record(message))


@given(message=anything, size=st.integers(1, 300), count=st.integers(1, 300))
def test_both_write_the_same_headers_of_elements(
    message: reference.Message, size: int, count: int
) -> None:
    """The headers of elements, which penstock does not copy into a message."""
    stream_id, element = size * count, bytes(size)
    assert (
        reference.encode(("onNext", stream_id, element))
        == rsio.next_header(stream_id, size) + element
    )
    assert (
        reference.encode(("onNextPacked", stream_id, (b"x",) * count), 1)
        == rsio.packed_header(stream_id, count) + b"x" * count
    )
    last = rsio.part_header(stream_id, count, size, last=True) + element
    assert reference.encode(("onNextLastPart", stream_id, count, element)) == last


@given(value=st.integers(0, 2**63 - 1))
def test_both_write_the_same_varints(value: int) -> None:
    """For every number that has one."""
    assert reference.varint(value) == rsio.encode_varint(value)


@pytest.mark.parametrize(("message", "text"), GOLDEN.values(), ids=GOLDEN)
def test_the_reference_codec_agrees_with_the_golden_bytes(message: rsio.Message, text: str) -> None:
    """It encodes the messages to these bytes, and decodes the bytes to these messages."""
    expected = [each for each in REFERENCE_MESSAGES if as_record(each) == message]
    assert [
        reference.encode(each, 4 if each[0] == "onNextPacked" else 0).hex() for each in expected
    ] == [text]
    messages, refused = decode_with_reference(
        bytes.fromhex(text), of_server=isinstance(message, rsio.ServerHello)
    )
    if isinstance(message, rsio.SwitchEncoding):
        assert refused == "protocol:switch 16"
    else:
        assert (messages, refused) == (expected, None)


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


def decode_with_reference(
    data: bytes, *, of_server: bool
) -> tuple[list[reference.Message], str | None]:
    """Decode one message, behind the messages that must come before it."""
    decoder = reference.Decoder(is_server=not of_server, extensions={7: frozenset({0x40})})
    kind = data[0]
    if kind not in (reference.TYPES["clientHello"], reference.TYPES["serverHello"]):
        decoder.feed(reference.encode(("clientHello", 0, (7,))))
        for stream in STREAMS:
            decoder.on_subscribe_sent(stream.subscriber)
            if kind != reference.TYPES["onSubscribe"]:
                decoder.feed(rsio.encode(stream))
    return decoder.feed(data), decoder.refused


def test_the_reference_codec_delimits_an_element_of_fixed_size() -> None:
    """The element has no length: the decoder must know the size from onSubscribe."""
    assert decode_with_reference(bytes.fromhex(FIXED[1]), of_server=False) == (
        [("onNext", 1, FIXED[0].element)],
        None,
    )


def test_the_examples_of_the_page_are_golden() -> None:
    """The page prints 14 examples, and each is one of the golden bytes."""
    section = PAGE.read_text(encoding="utf-8").split("Examples, in hexadecimal:")[1].split("##")[0]
    printed = [
        row.replace(" ", "") for row in re.findall(r"\| `([0-9a-f ]+)` \|$", section, re.MULTILINE)
    ]
    assert len(printed) == 14
    assert set(printed) <= {*(text for _, text in GOLDEN.values()), FIXED[1]}


# ---- the same bytes, the same messages


@sides
@given(messages=legal_messages(), pieces=pieces)
@settings(max_examples=40, deadline=None)
def test_both_accept_legal_messages(
    is_server: bool, messages: list[reference.Message], pieces: list[int]
) -> None:
    """Streams both ways; elements of any and of fixed size, packed, split, beyond demand,
    and on a cancelled stream.
    """
    data = encoded(messages, hello_of(is_server=is_server))
    assert run_reference(data, is_server=is_server).reason is None
    assert_equal_outcomes(data, is_server=is_server, pieces=pieces)


@sides
@given(messages=legal_messages())
@settings(max_examples=8, deadline=None)
def test_the_outcome_does_not_depend_on_where_the_bytes_are_cut(
    is_server: bool, messages: list[reference.Message]
) -> None:
    """In two pieces, cut at every byte."""
    data = encoded(messages[:12], hello_of(is_server=is_server))
    expected = run_reference(data, is_server=is_server)
    for cut in range(1, len(data)):
        assert run_penstock(data, is_server=is_server, pieces=[cut, 1 << 20]) == expected


@sides
@given(messages=st.lists(anything, max_size=12), extensions=hellos, pieces=pieces)
@settings(max_examples=80, deadline=None)
def test_both_refuse_the_same_messages_for_the_same_reason(
    is_server: bool,
    messages: list[reference.Message],
    extensions: tuple[int, ...],
    pieces: list[int],
) -> None:
    """Well-formed messages in an order that is not allowed."""
    assert_equal_outcomes(
        encoded(messages, hello_of(is_server=is_server, extensions=extensions)),
        is_server=is_server,
        pieces=pieces,
    )


changes = st.lists(
    st.tuples(
        st.sampled_from(["put", "add", "drop", "cut"]), st.integers(0, 400), st.integers(0, 255)
    ),
    min_size=1,
    max_size=3,
)


@sides
@given(messages=legal_messages(), changes=changes, pieces=pieces)
@settings(max_examples=80, deadline=None)
def test_both_have_the_same_outcome_for_damaged_bytes(
    is_server: bool,
    messages: list[reference.Message],
    changes: list[tuple[str, int, int]],
    pieces: list[int],
) -> None:
    """Bytes are changed, added, removed, or cut off at the end."""
    data = bytearray(encoded(messages, hello_of(is_server=is_server)))
    for what, place, byte in changes:
        at = place % (len(data) or 1)
        data[at : {"put": at + 1, "add": at, "drop": at + 1, "cut": len(data)}[what]] = (
            b"" if what in ("drop", "cut") else bytes([byte])
        )
    assert_equal_outcomes(bytes(data), is_server=is_server, pieces=pieces)


@sides
@given(junk=st.binary(max_size=200), greets=st.booleans(), pieces=pieces)
@settings(max_examples=80, deadline=None)
def test_both_have_the_same_outcome_for_random_bytes(
    is_server: bool, junk: bytes, greets: bool, pieces: list[int]
) -> None:
    """Behind a hello, and instead of one."""
    assert_equal_outcomes(
        greets * reference.encode(hello_of(is_server=is_server)) + junk,
        is_server=is_server,
        pieces=pieces,
    )


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
    "an encoding switched to": (HELLO + b"\x04\x10", "protocol:switch 16"),
    "an extension that is not active": (HELLO + b"\x40\x01", "protocol:type 0x40"),
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
    "a second onSubscribe of a cancelled stream": (
        HELLO + b"\x20\x02\x00" * 2,
        "protocol:stream 2",
    ),
    "an elementSize that is too large": (HELLO + b"\x20\x05\x41", "limit:frame 65 > 64"),
    "packed elements without a fixed size": (BEGUN + b"\x22\x00", "protocol:packed"),
    "packed elements that are none": (BEGUN + b"\x22\x01\x00", "protocol:packed"),
    "too many packed elements": (BEGUN + b"\x22\x01\x11", "limit:frame 68 > 64"),
    "an element that is too long": (BEGUN + b"\x21\x00\x41", "limit:frame 65 > 64"),
    "a part that is too long": (BEGUN + b"\x23\x00\x00\x41", "limit:frame 65 > 64"),
    "an error that is too long": (BEGUN + b"\x26\x00\x15", "limit:text 21 > 20"),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_both_refuse_a_fault_at_the_byte_that_the_page_names(data: bytes, reason: str) -> None:
    """With the reason of the page, and not one byte earlier."""
    for outcome in (
        run_reference(data, is_server=True),
        run_penstock(data, is_server=True, pieces=[1]),
    ):
        assert (outcome.reason, outcome.decided_at) == (reason, len(data))
    assert_equal_outcomes(data + b"\x03\x00", is_server=True, pieces=[len(data) - 1, 1])


def test_each_reason_that_depends_on_bytes_alone_is_tried() -> None:
    """The tokens of the table, without those that depend on time, on rates, on memory or on the
    program, and those of other protocols.
    """
    listed = {
        reason.token
        for reason in CONNECTION_REASONS
        if re.match("(protocol|limit):|version", reason.token)
    }
    others = {
        "protocol:setup",
        "protocol:length",
        "protocol:reserved",
        "protocol:extension",
        "protocol:demand",
    }
    others |= {
        "protocol:http",
        "protocol:tls",
        "protocol:rsocket",
        "protocol:text",
        "protocol:not-served",
        "protocol:encoding",
    }
    over_time = {
        "limit:hello",
        "limit:handshake",
        "limit:churn",
        "limit:control",
        "limit:glitches",
        "limit:ids",
        "limit:late",
        "limit:requests",
        "limit:pings",
        "limit:attempts",
        "limit:memory",
        "limit:partial",
        "protocol:ping",
        "protocol:resume",  # of an extension
        "protocol:request",  # of an extension, as the ping is
        "protocol:auth",
        "protocol:content",
        "protocol:drain",
        "limit:auth",
        "protocol:position",
        "limit:position",
    }
    assert {reason.split()[0] for _, reason in REFUSED.values()} == listed - over_time - others


def test_the_reference_codec_imports_nothing_of_penstock() -> None:
    """Four modules of the standard library are its imports.
    A fault of penstock cannot be in both codecs.
    """
    tree = ast.parse(Path(reference.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "collections.abc", "dataclasses", "typing"}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))


def test_each_limit_on_the_page_is_a_field_with_its_default() -> None:
    """The column *at least* is not above the default."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Limits")[1]
    rows = [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in section.splitlines()
        if "`" in row and row.startswith("|")
    ]
    assert len(rows) == 18
    for row in rows:
        fields = re.findall(r"`([a-z_]+)`", row[3])
        figures = row[2:3] if len(fields) == 1 else row[1:3]
        assert [f"{getattr(Limits(), name):,.0f}" for name in fields] == figures, row
        if len(fields) == 1:
            assert int(row[1].replace(",", "")) <= getattr(Limits(), fields[0])


def test_the_limits_of_the_reference_codec_are_the_column_at_least() -> None:
    """The first nine rows of the table, in order."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Limits")[1]
    least = [
        int(row.replace(",", ""))
        for row in re.findall(r"^\| [^|]+ \| ([\d,]+) \| [\d,]+ \| `\w+` \|", section, re.MULTILINE)
    ]
    limits, stream = reference.Limits(), reference.Incoming(0)
    codec = [
        limits.extensions,
        limits.name,
        limits.text,
        limits.reason,
        limits.body,
        limits.element_size,
    ]
    assert least[:9] == [*codec, stream.joined_limit, stream.parts_limit, stream.unfinished_limit]
