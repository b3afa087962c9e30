"""The serializer ``json``."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError, UsageError
from penstock.elements import JsonSerializer

SERIALIZER = JsonSerializer()
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
INSIDE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=8,
)


@given(INSIDE.filter(lambda element: element is not None))
def test_a_json_value_is_restored(element: object) -> None:
    """Equal, at any nesting, including None inside of lists and dicts."""
    assert SERIALIZER.loads(SERIALIZER.dumps(element)) == element


def test_json_is_written_compactly() -> None:
    """Without spaces, and without escapes for characters that UTF-8 can encode."""
    assert SERIALIZER.dumps({"ä": [1, 2]}) == '{"ä":[1,2]}'.encode()


def test_tuples_become_lists_and_keys_become_strings() -> None:
    """As the docstring of the class says."""
    assert SERIALIZER.loads(SERIALIZER.dumps({1: (2, 3)})) == {"1": [2, 3]}


def _deep() -> list[object]:
    element: list[object] = []
    for _ in range(100_000):
        element = [element]
    return element


def _containing_itself() -> list[object]:
    element: list[object] = []
    element.append(element)
    return element


@pytest.mark.parametrize(
    ("element", "kind"),
    [
        (b"bytes", "bytes"),
        ({1, 2}, "set"),
        ({"a": object()}, "dict"),
        (float("nan"), "float"),
        ([float("inf")], "list"),
        ("\ud800", "str"),
        ({(1, 2): 3}, "dict"),
        (_containing_itself(), "list"),
    ],
    ids=[
        "bytes",
        "set",
        "object inside",
        "nan",
        "infinity inside",
        "surrogate",
        "tuple as key",
        "itself inside",
    ],
)
def test_a_value_that_json_lacks_is_refused_by_its_type(element: object, kind: str) -> None:
    """The message names the type, the reason, and the supported types."""
    with pytest.raises(
        UsageError,
        match=(
            f"does not support this {kind}: .*; it supports dict, list, str, int, float, bool, "
            "and None in"
        ),
    ):
        SERIALIZER.dumps(element)


def test_an_element_nested_too_deeply_is_refused() -> None:
    """When it is sent and when it is received, with an exception of this element only."""
    deep = _deep()
    with pytest.raises(UsageError, match="does not support this list"):
        SERIALIZER.dumps(deep)
    while deep:  # unnested step by step: Python's own deallocation is recursive
        deep = deep[0]  # type: ignore[assignment]  # each holds one list
    with pytest.raises(ProtocolError, match="it has more than 100,000 values"):
        SERIALIZER.loads(b"[" * 100_000)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"nul",
        b"'a'",
        b"[1,]",
        b"\xff",
        b"NaN",
        b"-Infinity",
        b"1 2",
        b"9" * 5000,
        b'"\xed\xa0\x80"',
    ],
    ids=repr,
)
def test_bytes_that_are_not_json_are_a_protocol_error(data: bytes) -> None:
    """The message does not repeat the peer's bytes."""
    with pytest.raises(ProtocolError, match="the element is not JSON") as caught:
        SERIALIZER.loads(data)
    assert len(str(caught.value)) < 100


def test_none_is_refused_with_a_remedy() -> None:
    """When it is sent and when it is received."""
    with pytest.raises(
        UsageError, match=r"None is never an element \(rule 2.13\).*JsonSerializer\(null=…\)"
    ):
        SERIALIZER.dumps(None)
    with pytest.raises(UsageError, match=r"null arrived.*JsonSerializer\(null=…\)"):
        SERIALIZER.loads(b" null ")


@pytest.mark.parametrize("null", ["", "nothing", 0, False, ()])
def test_the_element_for_null_is_sent_as_null_and_restored(null: object) -> None:
    """Only an element that equals it and has its type: 0 is not False."""
    serializer = JsonSerializer(null=null)
    assert serializer.dumps(null) == b"null"
    assert serializer.loads(b"null") == null
    assert serializer.dumps([null, 1]) != b"null"
    assert serializer.dumps(True) == b"true"
    assert JsonSerializer(null=0).dumps(False) == b"false"
    with pytest.raises(UsageError):
        serializer.dumps(None)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_written_without_plus_and_zeros_in_its_exponent(number: float) -> None:
    """It is the same number."""
    text = SERIALIZER.dumps(number).decode()
    assert float(text) == number
    assert "e+" not in text
    assert "e-0" not in text


def test_a_text_that_looks_like_a_number_is_not_changed() -> None:
    """Only the number after it is."""
    assert SERIALIZER.dumps(['1e+16 \\" 1e-05', 1e16]) == b'["1e+16 \\\\\\" 1e-05",1e16]'


@pytest.mark.parametrize("text", [r'"\ud83d\ude00"', r'"\\ud800"', r'["\uD83D\uDE00"]'])
def test_a_whole_surrogate_pair_is_read(text: str) -> None:
    """As an escape; two backslashes do not begin one."""
    assert SERIALIZER.loads(text.encode()) == json.loads(text)


@pytest.mark.parametrize("text", [r'"\ud83d"', r'{"\ude00":1}', r'["\ud83d\ud83d"]', r'"\uDFFF"'])
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    """Python's own module reads it."""
    with pytest.raises(ProtocolError, match=r"not JSON \(UnicodeEncodeError"):
        SERIALIZER.loads(text.encode())
