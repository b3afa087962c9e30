"""Tests of `_metadata`: composite metadata, routes, credentials, MIME types, traces."""

import penstock_rsocket as rsocket
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock_rsocket import (
    AUTHENTICATION,
    DATA_TYPE,
    ROUTING,
    Trace,
    decode_credentials,
    decode_route,
    decode_trace,
    decode_types,
    encode_composite,
    encode_credentials,
    encode_route,
    encode_trace,
    encode_type,
    entries_of,
    find_entry,
)
from penstock_rsocket._metadata import MOST_ENTRIES, NUMBER_OF, TYPE_OF

from penstock.api import Credentials, ProtocolError, UsageError

names = st.sampled_from(sorted(NUMBER_OF)) | st.text(
    st.characters(codec="ascii"), min_size=1, max_size=128
)


def test_composite_metadata_has_the_bytes_of_rsocket_java() -> None:
    """A number for a type of the registry; a name with its length less one for others."""
    entries = [
        (ROUTING, encode_route("a.b")),
        (AUTHENTICATION, encode_credentials(Credentials.basic("u", "pw"))),
        (AUTHENTICATION, encode_credentials(Credentials.bearer("tok"))),
        ("x/y", b"z"),
    ]
    text = "fe00000403612e62fc000006800001757077fc00000481746f6b02782f790000017a"
    assert encode_composite(entries).hex() == text
    assert list(entries_of(bytes.fromhex(text))) == entries


def test_mime_types_have_the_bytes_of_rsocket_py() -> None:
    """The type of the data, and the types that are accepted."""
    composite = bytes.fromhex("fa00000185fb0000058502782f79")
    assert decode_types(find_entry(composite, DATA_TYPE) or b"") == ["application/json"]
    assert decode_types(find_entry(composite, rsocket.ACCEPTED_TYPES) or b"") == [
        "application/json",
        "x/y",
    ]
    assert encode_type("application/json") + encode_type("x/y") == bytes.fromhex("8502782f79")
    assert find_entry(composite, ROUTING) is None


@pytest.mark.parametrize(
    ("trace", "text"),
    [
        (
            Trace(
                trace_id=(1 << 64) | 2,
                span_id=3,
                parent_id=4,
                is_long=True,
                sampled=True,
            ),
            "ac0000000000000001000000000000000200000000000000030000000000000004",
        ),
        (Trace(trace_id=2, span_id=3, debug=True), "c000000000000000020000000000000003"),
        (Trace(sampled=False), "10"),
    ],
)
def test_a_trace_has_the_bytes_of_rsocket_java(trace: Trace, text: str) -> None:
    """Ids of 64 and of 128 bits, and no ids."""
    assert encode_trace(trace).hex() == text
    assert decode_trace(bytes.fromhex(text)) == trace


@pytest.mark.parametrize(
    ("credentials", "text"),
    [
        (Credentials.basic("u", "p:w"), "80000175703a77"),
        (Credentials.bearer("tok"), "81746f6b"),
        (Credentials("mine", b"zz"), "036d696e657a7a"),
    ],
)
def test_credentials_cross(credentials: Credentials, text: str) -> None:
    """Simple, bearer, and a scheme with a name."""
    assert encode_credentials(credentials).hex() == text
    assert decode_credentials(bytes.fromhex(text)) == credentials


@given(st.lists(st.tuples(names, st.binary(max_size=30)), max_size=MOST_ENTRIES))
def test_composite_metadata_is_read_as_it_was_written(entries: list[tuple[str, bytes]]) -> None:
    """Types with a number and with a name, in their order."""
    assert list(entries_of(encode_composite(entries))) == entries


@given(st.text(max_size=60))
def test_a_route_is_read_as_it_was_written(route: str) -> None:
    """Any text of up to 255 bytes."""
    assert decode_route(encode_route(route)) == route


@given(st.binary(max_size=80))
def test_random_bytes_raise_the_documented_error_or_nothing(junk: bytes) -> None:
    """Of every reader."""
    for read in (
        lambda: list(entries_of(junk)),
        lambda: decode_types(junk),
        lambda: decode_route(junk),
        lambda: decode_credentials(junk),
        lambda: decode_trace(junk),
    ):
        reason = "protocol:metadata"
        try:
            read()
        except ProtocolError as error:
            reason = error.reason
        assert reason == "protocol:metadata"


def test_a_metadata_bomb_is_refused_after_a_few_entries() -> None:
    """A megabyte of entries of 4 bytes: none of them is kept, and 64 are looked at."""
    bomb = encode_composite([(ROUTING, b"")]) * 250_000
    seen = 0
    with pytest.raises(ProtocolError, match="more than 64 entries"):
        for _ in entries_of(bomb):
            seen += 1
    assert seen == MOST_ENTRIES
    with pytest.raises(ProtocolError, match="more than 64 MIME types"):
        decode_types(b"\x85" * 1000)
    assert len(list(entries_of(encode_composite([(ROUTING, b"")] * MOST_ENTRIES)))) == MOST_ENTRIES


@pytest.mark.parametrize(
    "text",
    [
        "fe",
        "fe0000",
        "fe00000501",
        "05782f79",
        "7f",
    ],
)
def test_composite_metadata_with_a_fault_is_refused(text: str) -> None:
    """An entry that ends within its type, its length or its content."""
    with pytest.raises(ProtocolError, match="the metadata of a request"):
        list(entries_of(bytes.fromhex(text)))


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (decode_route, "0561"),
        (decode_route, "01610562"),
        (decode_route, "01ff"),
        (decode_credentials, ""),
        (decode_credentials, "8000"),
        (decode_credentials, "80000575"),
        (decode_credentials, "800003613a6270"),
        (decode_trace, "80"),
        (decode_trace, "c0" + "00" * 15),
        (decode_trace, "1000"),
        (decode_types, "0561"),
    ],
)
def test_a_content_with_a_fault_is_refused(read: object, text: str) -> None:
    """Each reader has one error."""
    assert callable(read)
    with pytest.raises(ProtocolError, match="the metadata of a request"):
        read(bytes.fromhex(text))


def test_what_does_not_fit_is_a_usage_error() -> None:
    """A route, a name, a content."""
    for write in (
        lambda: encode_route("a" * 256),
        lambda: encode_route("\ud800"),
        lambda: encode_type("a" * 129),
        lambda: encode_type(""),
        lambda: encode_type("ä/b"),
        lambda: encode_composite([("a/b", bytes(2**24))]),
        lambda: encode_credentials(Credentials("ä")),
    ):
        with pytest.raises(UsageError):
            write()


def test_a_number_that_is_not_known_is_read_and_named() -> None:
    """It is one more entry, which its reader skips."""
    assert list(entries_of(bytes.fromhex("b000000161"))) == [("number 0x30", b"a")]
    assert 0x30 not in TYPE_OF
