"""The serializer ``bytes``."""

import pytest

from penstock.api import UsageError
from penstock.elements import BytesSerializer

SERIALIZER = BytesSerializer()


@pytest.mark.parametrize(
    "element",
    [b"", b"\x00\xff", bytearray(b"ab"), memoryview(b"abcd")[1:3], type("Sub", (bytes,), {})(b"x")],
)
def test_bytes_of_every_kind_become_bytes(element: bytes) -> None:
    """A copy, which the publisher cannot change afterwards."""
    data = SERIALIZER.dumps(element)
    assert type(data) is bytes
    assert data == bytes(element)
    assert SERIALIZER.loads(data) == data


def test_plain_bytes_are_not_copied() -> None:
    """They are immutable. This holds for `dumps` and `loads`."""
    element = b"abc"
    assert SERIALIZER.dumps(element) is element
    assert SERIALIZER.loads(element) is element


def test_a_bytearray_that_arrives_becomes_bytes() -> None:
    """The element does not share its memory with the buffer of the connection."""
    assert type(SERIALIZER.loads(bytearray(b"a"))) is bytes


@pytest.mark.parametrize(
    ("element", "kind"), [("text", "str"), (1, "int"), (None, "NoneType"), ([1], "list")]
)
def test_another_type_is_refused_by_name(element: object, kind: str) -> None:
    """The message names the type, the supported types, and a remedy."""
    with pytest.raises(
        UsageError,
        match=(
            f"takes bytes, bytearray or memoryview, not {kind}; encode the elements, or give "
            "serializer='text'"
        ),
    ):
        SERIALIZER.dumps(element)
