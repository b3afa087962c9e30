"""The base of the serializers for elements of one type; `tests/elements/test_typed_json.py` and the
tests of penstock-msgpack have the elements.
"""

from typing import Any, ClassVar

import msgspec
import pydantic
import pytest

from penstock.api import ProtocolError, UsageError
from penstock.spi import TypeCodeFailed, TypedSerializer, WrongElementType


class Model(pydantic.BaseModel):
    name: str = pydantic.Field(alias="NAME")


class Failing(msgspec.Struct):
    x: int

    def __post_init__(self) -> None:
        raise KeyError("secret")


class Plain(TypedSerializer):
    name = "plain"
    format = "JSON"
    codec: ClassVar[Any] = msgspec.json


def test_a_format_of_msgspec_needs_its_name_only() -> None:
    """A model of pydantic is written by its aliases, and read by its validators."""
    serializer = Plain(list[Model])
    data = serializer.dumps([Model(NAME="a")])
    assert data == b'[{"NAME":"a"}]'
    assert serializer.loads(data) == [Model(NAME="a")]
    assert serializer.to_builtins([Model(NAME="a")]) == [{"NAME": "a"}]
    assert Plain(dict[str, object]).loads(b'{"a":null}') == {"a": None}


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
