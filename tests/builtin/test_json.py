"""The serializer ``json``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError, UsageError
from penstock.builtin import JsonSerializer

SERIALIZER = JsonSerializer()
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
INSIDE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=8,
)


@given(INSIDE.filter(lambda element: element is not None))
def test_what_json_can_say_comes_back(element: object) -> None:
    """Equal, whatever the nesting, None inside included."""
    assert SERIALIZER.loads(SERIALIZER.dumps(element)) == element


def test_json_is_written_without_waste() -> None:
    """No spaces, no escapes that UTF-8 makes needless."""
    assert SERIALIZER.dumps({"ä": [1, 2]}) == '{"ä":[1,2]}'.encode()


def test_tuples_and_keys_become_what_json_has() -> None:
    """As the docstring of the class says."""
    assert SERIALIZER.loads(SERIALIZER.dumps({1: (2, 3)})) == {"1": [2, 3]}


def _deep() -> list[object]:
    element: list[object] = []
    for _ in range(100_000):
        element = [element]
    return element


def _own() -> list[object]:
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
        (_own(), "list"),
    ],
    ids=["bytes", "a set", "an object inside", "NaN", "infinity inside", "half a character", "a key that is no text", "a circle"],
)
def test_what_json_cannot_say_is_refused_by_its_type(element: object, kind: str) -> None:
    """The message says what came, why it cannot be taken, and what was due."""
    with pytest.raises(UsageError, match=f"cannot take this {kind}: .*; due are dict, list, str, int, float, bool, and None inside them"):
        SERIALIZER.dumps(element)


def test_nesting_without_end_is_refused_and_ends_nothing_else() -> None:
    """Both ways: an element that is too deep is one failed element."""
    deep = _deep()
    with pytest.raises(UsageError, match="cannot take this list"):
        SERIALIZER.dumps(deep)
    while deep:  # taken apart by hand: Python would do it recursively
        deep = deep[0]  # type: ignore[assignment]  # each holds one list
    with pytest.raises(ProtocolError, match=r"not JSON \(RecursionError"):
        SERIALIZER.loads(b"[" * 100_000)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"nul", b"'a'", b"[1,]", b"\xff", b"NaN", b"-Infinity", b"1 2", b"9" * 5000, b'"\xed\xa0\x80"'], ids=repr
)
def test_what_is_not_json_is_the_peer_s_fault(data: bytes) -> None:
    """Refused, without repeating what the peer wrote."""
    with pytest.raises(ProtocolError, match="the element is not JSON") as caught:
        SERIALIZER.loads(data)
    assert len(str(caught.value)) < 100


def test_none_is_no_element_and_the_way_out_is_told() -> None:
    """Neither on the way out nor on the way in."""
    with pytest.raises(UsageError, match=r"None is never an element \(rule 2.13\).*JsonSerializer\(null=…\)"):
        SERIALIZER.dumps(None)
    with pytest.raises(UsageError, match=r"null arrived.*JsonSerializer\(null=…\)"):
        SERIALIZER.loads(b" null ")


@pytest.mark.parametrize("null", ["", "nothing", 0, False, ()])
def test_what_stands_for_null_is_sent_and_arrives_as_null(null: object) -> None:
    """Only the element that equals it and has its type: 0 is not False."""
    serializer = JsonSerializer(null=null)
    assert serializer.dumps(null) == b"null"
    assert serializer.loads(b"null") == null
    assert serializer.dumps([null, 1]) != b"null"
    assert serializer.dumps(True) == b"true"
    assert JsonSerializer(null=0).dumps(False) == b"false"
    with pytest.raises(UsageError):
        serializer.dumps(None)
