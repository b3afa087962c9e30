"""The serializer ``bytes``."""

import pytest

from penstock.api import UsageError
from penstock.builtin import BytesSerializer

SERIALIZER = BytesSerializer()


@pytest.mark.parametrize("element", [b"", b"\x00\xff", bytearray(b"ab"), memoryview(b"abcd")[1:3], type("Sub", (bytes,), {})(b"x")])
def test_bytes_of_every_kind_become_bytes(element: bytes) -> None:
    """The same bytes, as plain bytes: nothing that the publisher could still change."""
    data = SERIALIZER.dumps(element)
    assert type(data) is bytes
    assert data == bytes(element)
    assert SERIALIZER.loads(data) == data


def test_plain_bytes_are_not_copied() -> None:
    """They cannot change, so they go through as they are, both ways."""
    element = b"abc"
    assert SERIALIZER.dumps(element) is element
    assert SERIALIZER.loads(element) is element


def test_a_bytearray_that_arrives_becomes_bytes() -> None:
    """An element is the subscriber's alone, whatever the wire hands in."""
    assert type(SERIALIZER.loads(bytearray(b"a"))) is bytes


@pytest.mark.parametrize(("element", "kind"), [("text", "str"), (1, "int"), (None, "NoneType"), ([1], "list")])
def test_another_type_is_refused_by_name(element: object, kind: str) -> None:
    """The message says what came, what was due, and what to do."""
    with pytest.raises(
        UsageError, match=f"takes bytes, bytearray or memoryview, not {kind}; encode the elements, or give serializer='text'"
    ):
        SERIALIZER.dumps(element)
