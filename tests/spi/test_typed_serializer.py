"""The base of the serializers for elements of one type; `tests/elements/test_typed_json.py` and the
tests of penstock-msgpack have the elements.
"""

from typing import Any, ClassVar

import msgspec
import pydantic
import pytest

from penstock.api import ProtocolError, UsageError
from penstock.spi import ElementBounds, TypeCodeFailed, TypedSerializer, WrongElementType


class Model(pydantic.BaseModel):
    name: str = pydantic.Field(alias="NAME")


class Failing(msgspec.Struct):
    x: int

    def __post_init__(self) -> None:
        raise KeyError("secret")


class Bounds(ElementBounds):
    """Counts bytes."""

    serializer = "plain"
    more = "Plain(max_values=…)"

    def why_too_large(self, data: bytes) -> str:
        return self.too_many


class Plain(TypedSerializer):
    name = "plain"
    format = "JSON"
    codec: ClassVar[Any] = msgspec.json

    def __init__(self, kind: Any, max_values: int = 1_000) -> None:
        super().__init__(kind, Bounds(max_values))


def test_a_format_of_msgspec_needs_its_name_only() -> None:
    """A model of pydantic is written by its aliases, and read by its validators."""
    serializer = Plain(list[Model])
    data = serializer.dumps([Model(NAME="a")])
    assert data == b'[{"NAME":"a"}]'
    assert serializer.loads(data) == [Model(NAME="a")]
    assert serializer.to_builtins([Model(NAME="a")]) == [{"NAME": "a"}]
    assert Plain(dict[str, object]).loads(b'{"a":null}') == {"a": None}


def test_an_element_above_the_bounds_is_neither_sent_nor_read() -> None:
    """The texts say how to allow more; shorter elements are not judged."""
    serializer = Plain(list[int], 5)
    assert serializer.loads(serializer.dumps([1, 2])) == [1, 2]
    with pytest.raises(
        UsageError,
        match=r"'plain' does not send this element: it has more than 5 values; send it in parts, "
        r"or give serializer=Plain\(max_values=…\) on both sides",
    ):
        serializer.dumps([1, 2, 3])
    with pytest.raises(
        ProtocolError,
        match=r"was not read: it has more than 5 values; to allow more give serializer=Plain\(",
    ):
        serializer.loads(b"[1,2,3]")
    with pytest.raises(UsageError, match=r"Plain\(max_values=True\); give a positive integer"):
        Plain(int, True)


def test_none_is_no_element() -> None:
    """In neither direction."""
    with pytest.raises(UsageError, match=r"rule 2\.13.*; wrap it"):
        Plain(Model | None).dumps(None)
    with pytest.raises(ProtocolError, match=r"rule 2\.13.*; wrap it"):
        Plain(Model | None).loads(b"null")


def test_each_error_says_who_must_act() -> None:
    """The peer, the program, or the author of the class."""
    with pytest.raises(ProtocolError, match="the element is not JSON"):
        Plain(Model).loads(b"{")
    with pytest.raises(WrongElementType, match="of type str, and elements of this stream are of"):
        Plain(Model).dumps("text")
    with pytest.raises(UsageError, match="objects of type complex cannot be sent; elements of"):
        Plain(list[Any]).dumps([1j])
    with pytest.raises(TypeCodeFailed, match="the code of Failing raised KeyError") as failed:
        Plain(Failing).loads(b'{"x":1}')
    assert "secret" not in str(failed.value)
    assert isinstance(failed.value.__cause__, KeyError)
