"""A serializer is found by its name, by an object, or by the type of the elements."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.api import UsageError
from penstock.spi import (
    Serializer,
    build_registry,
    check_serializer_argument,
    hookimpl,
    known_media_type,
    resolve_serializer,
)

REGISTRY = build_registry()


class Upper(Serializer):
    """Text in capital letters."""

    name = "upper"

    def dumps(self, element: object, /) -> bytes:
        return str(element).upper().encode()

    def loads(self, data: bytes, /) -> object:
        return data.decode()


class Nameless(Upper):
    name = None  # type: ignore[assignment]  # the mistake that is tried


class Unnamed(Serializer):
    def dumps(self, element: object, /) -> bytes:
        return b""

    def loads(self, data: bytes, /) -> object:
        return 1


@pytest.mark.parametrize(
    ("serializer", "kind"),
    [
        (None, None),
        ("bytes", None),
        (None, bytes),
        (None, bytearray),
        (None, Any),
        (None, object),
        (None, bytes | memoryview),
        ("bytes", bytes),
    ],
    ids=str,
)
def test_bytes_need_no_serializer(serializer: Any, kind: Any) -> None:
    """The result is None, so streams of bytes pass without a call for each element."""
    assert resolve_serializer(REGISTRY, serializer, kind) is None


def test_a_name_and_an_object_give_the_serializer() -> None:
    """An object is used directly; it need not be installed."""
    upper = Upper()
    assert resolve_serializer(REGISTRY, "json") is REGISTRY.serializer("json")
    assert resolve_serializer(REGISTRY, upper) is upper


def test_the_type_str_selects_text() -> None:
    """With or without its name."""
    assert resolve_serializer(REGISTRY, None, str) is REGISTRY.serializer("text")
    assert resolve_serializer(REGISTRY, "text", str) is REGISTRY.serializer("text")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (Upper, r"serializer=Upper is a class; give an object: serializer=Upper\(\)"),
        (
            5,
            (
                "serializer=5; give a name like 'json', or an object whose class inherits from "
                "penstock.spi.Serializer"
            ),
        ),
        (b"json", "serializer=b'json'; give a name"),
        (object(), "give a name like 'json'"),
        (
            Nameless(),
            (
                "the serializer of the class Nameless has name=None; set the class attribute name "
                "to a text"
            ),
        ),
        (Unnamed(), "the serializer of the class Unnamed has name=None"),
    ],
    ids=["class", "number", "bytes", "object", "name is no text", "no name"],
)
def test_anything_else_is_refused_with_what_to_give(wrong: Any, says: str) -> None:
    """Also where no registry is known."""
    with pytest.raises(UsageError, match=says):
        resolve_serializer(REGISTRY, wrong)
    with pytest.raises(UsageError, match=says):
        check_serializer_argument(wrong)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    """And with the nearest of them."""
    with pytest.raises(
        UsageError,
        match=r"there is no serializer 'jsn'; there is: .*json, text\. Did you mean 'json'\?",
    ):
        resolve_serializer(REGISTRY, "jsn")


@pytest.mark.parametrize(
    ("serializer", "kind", "says"),
    [
        ("bytes", int, "'bytes'"),
        ("text", int, "'text'"),
        (
            Upper(),
            int,
            "the serializer 'upper' cannot be bound to a type; leave type=<class 'int'> out",
        ),
    ],
    ids=["bytes", "text", "object"],
)
def test_a_type_that_the_serializer_does_not_support_is_refused(
    serializer: Any, kind: Any, says: str
) -> None:
    """The message says what to leave out."""
    with pytest.raises(UsageError, match=says):
        resolve_serializer(REGISTRY, serializer, kind)


class Odd(Upper):
    """A format with MIME types, for one type."""

    name = "odd"
    media_types = ("application/odd", "application/x-odd")

    def for_type(self, kind: Any, /) -> Serializer:
        if kind is not int:
            raise UsageError("int alone")
        return self


def odd_registry() -> Any:
    @hookimpl
    def penstock_serializers() -> list[Serializer]:
        return [Odd()]

    return build_registry(plugins=[SimpleNamespace(penstock_serializers=penstock_serializers)])


def test_a_mime_type_chooses_the_serializer_of_a_type() -> None:
    """Not of bytes and texts, and not in the place of a choice of the program. A type that the
    format does not know is JSON.
    """
    registry = odd_registry()
    for media_type in ("application/odd", "Application/X-Odd ; v=1"):
        assert _name(resolve_serializer(registry, None, int, media_type)) == "odd"
    assert _name(resolve_serializer(registry, None, int, "application/other")) == "json"
    assert _name(resolve_serializer(registry, None, int)) == "json"
    assert _name(resolve_serializer(registry, None, list[int], "application/odd")) == "json"
    assert _name(resolve_serializer(registry, None, str, "application/odd")) == "text"
    assert _name(resolve_serializer(registry, "json", int, "application/odd")) == "json"
    assert resolve_serializer(registry, None, bytes, "application/odd") is None


def test_the_first_known_of_several_mime_types_is_found() -> None:
    """In one spelling: a peer may add any parameters."""
    registry = odd_registry()
    types = ("a/b", "Application/Odd;v=1", "application/json")
    assert known_media_type(registry, types) == "application/odd"
    assert known_media_type(registry, ("a/b", "")) is None


def _name(serializer: Serializer | None) -> str:
    return "" if serializer is None else serializer.name
