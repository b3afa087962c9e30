"""How deep and how large a JSON text may be."""

import pytest

from penstock.api import Limits, ProtocolError, UsageError
from penstock.elements import JsonSerializer
from penstock.elements._json_size import MAX_DEPTH, JsonBounds
from penstock.spi import MAX_VALUES

why_too_large = JsonBounds().why_too_large


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def filled(values: int) -> bytes:
    return b"[" + b",".join([b"1"] * values) + b"]"


def test_the_deepest_text_is_read_and_a_deeper_one_is_not() -> None:
    """Lists and objects count alike."""
    assert why_too_large(nested(MAX_DEPTH)) == ""
    assert why_too_large(b'{"a":' * 60 + nested(68) + b"}" * 60) == ""
    for deep in (nested(MAX_DEPTH + 1), b'{"a":' * 60 + nested(69) + b"}" * 60, b"[" * 300):
        assert "deep, and 128 is the most" in why_too_large(deep)


def test_the_largest_text_is_read_and_a_larger_one_is_not() -> None:
    """Values inside lists and objects count, and so do these themselves."""
    assert why_too_large(filled(MAX_VALUES - 1)) == ""
    assert why_too_large(filled(MAX_VALUES)) == "it has more than 100,000 values"
    assert why_too_large(b"[" + b"[]," * 60_000 + b"[]]") == "it has more than 100,000 values"
    assert why_too_large(b'["' + b'","' * 300_000 + b'"]') == "it has more than 100,000 values"


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 200_000,
        b",[{" * 100_000,
        rb"\"[" * 100_000,
        rb"\\" * 100_000 + b"[" * 200,
        rb"\\\"," * 100_000,
    ],
)
def test_what_is_inside_a_text_does_not_count(text: bytes) -> None:
    """Escaped quotes do not end a text."""
    data = b'{"text":"' + text + b'"}'
    assert why_too_large(data) == ""
    JsonSerializer().loads(data)


def test_an_element_that_is_too_large_is_neither_sent_nor_read() -> None:
    """The message says how to allow more, on both sides."""
    element = list(range(MAX_VALUES))
    for serializer in (JsonSerializer(), JsonSerializer().for_type(list[int])):
        with pytest.raises(
            UsageError,
            match=r"more than 100,000 values; send it in parts, or give serializer=JsonSerializer\(max_depth=…",
        ):
            serializer.dumps(element)
        with pytest.raises(
            ProtocolError,
            match=r"more than 100,000 values; to allow more give serializer=JsonSerializer\(",
        ):
            serializer.loads(filled(MAX_VALUES))
        with pytest.raises(ProtocolError, match="129 deep, and 128 is the most"):
            serializer.loads(nested(129))
    more = JsonSerializer(max_depth=200, max_values=200_000)
    assert more.loads(more.dumps(element)) == element
    assert more.dumps(more.loads(nested(129))) == nested(129)


@pytest.mark.parametrize("options", [{"max_depth": 0}, {"max_values": True}, {"max_depth": "1"}])
def test_an_impossible_bound_is_refused(options: dict[str, int]) -> None:
    """When the serializer is made."""
    with pytest.raises(UsageError, match="give a positive integer"):
        JsonSerializer(**options)


SIZE = Limits().max_element
HOSTILE = {
    "opening brackets": b"[" * SIZE,
    "empty lists": b"[" + b"[]," * (SIZE // 3 - 1) + b"[]]",
    "lists 100 deep": b"[" + (nested(100) + b",") * (SIZE // 201 - 1) + b"[]]",
    "empty objects": b"[" + b"{}," * (SIZE // 3 - 1) + b"{}]",
    "keys": b"{" + b'"":0,' * (SIZE // 5 - 1) + b'"":0}',
    "quoted brackets": b'["[",' * (SIZE // 5),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_the_largest_hostile_element_is_refused_without_being_read(data: bytes) -> None:
    """To read the worst of these takes 0.7 s, in which no other task runs."""
    with pytest.raises(ProtocolError, match="the element was not read"):
        JsonSerializer().loads(data)
