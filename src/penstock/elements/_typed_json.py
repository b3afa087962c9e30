"""The serializer ``json`` for elements of one type:
dataclasses and other records arrive as objects of their class.

Rules of this file:

* Python's json defines the result. If msgspec is installed, it is called first. If it raises,
  Python's json gives the value or the reason.
* The element itself is checked when it is sent; the values inside it are checked where they arrive.
* The methods of the fast class do only what every element needs:
  one more call costs as much as msgspec itself.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

from penstock.api import ProtocolError, UsageError, shown
from penstock.elements._json_text import JsonText
from penstock.elements._msgspec import fast_json
from penstock.spi import DoesNotFit, PlainType, Serializer, WrongElementType, plain_type

SHORT: Final = 256
"""Bytes. A shorter text is not checked for its size:
128 lists inside each other have 256 brackets.
"""


def typed_json(kind: Any, text: JsonText, null: object) -> "TypedJson":
    """Return the serializer for elements of type `kind`;
    `null` represents JSON's null as a whole element.
    """
    plain = plain_type(kind)
    # If an element stands for null, each element is compared with it,
    # which only the slower class does.
    fast = fast_json(kind, plain) if null is None else None
    return (
        TypedJson(kind, plain, text, null)
        if fast is None
        else _FastTypedJson(kind, plain, text, *fast)
    )


class TypedJson(Serializer):
    """Elements of one type. None is null inside of elements, and never an element."""

    name = "json"

    def __init__(self, kind: Any, plain: PlainType, text: JsonText, null: object) -> None:
        self._title = kind.__name__ if isinstance(kind, type) else shown(kind)
        self._text = text
        self._null = null
        self._read = plain.read
        self._classes = plain.classes
        self._exact = frozenset(plain.classes or ())

    def dumps(self, element: object, /) -> bytes:
        if self._null is not None and type(element) is type(self._null) and element == self._null:
            return b"null"
        if type(element) not in self._exact:
            self._check(element)
        return self._text.write(element, f"elements of this stream are of type {self._title}")

    def loads(self, data: bytes, /) -> object:
        value = self._text.read(data)
        if value is None and self._null is not None:
            return self._null
        try:
            return self._not_null(self._read(value))
        except DoesNotFit as error:
            raise ProtocolError(f"the element is not of type {self._title}: {error}") from None

    def for_type(self, kind: Any, /) -> Serializer:
        raise UsageError(
            f"this serializer is for elements of type {self._title} already; leave "
            f"type={shown(kind)} out"
        )

    def _check(self, element: object) -> None:
        if element is None:
            raise UsageError(
                "None is never an element (rule 2.13); to send JSON's null, set an element for it: "
                "JsonSerializer(null=…)"
            )
        # A bool is an int for Python, but the reader of an int refuses true.
        if self._classes is not None and (
            not isinstance(element, self._classes) or type(element) is bool
        ):
            raise WrongElementType(
                (
                    f"the element is of type {type(element).__name__}, and elements of this "
                    f"stream are of type {self._title}"
                ),
                "change the type, or the serializer",
            )

    def _not_null(self, element: object) -> object:
        if element is None:
            raise UsageError(
                "null arrived, and None is never an element (rule 2.13); set an element for it: "
                "JsonSerializer(null=…)"
            )
        return element


class _FastTypedJson(TypedJson):
    """Does the same with msgspec, if it reads and writes the type as Python's json does."""

    def __init__(
        self,
        kind: Any,
        plain: PlainType,
        text: JsonText,
        encode: Callable[[Any], bytes],
        decode: Callable[[bytes], Any],
    ) -> None:
        super().__init__(kind, plain, text, None)
        self._encode = encode
        self._decode = decode
        self._has_floats = plain.has_floats
        self._count_none = _count_none(plain.classes, kind)

    def dumps(self, element: object, /) -> bytes:
        if type(element) not in self._exact:
            self._check(element)
        try:
            data = self._encode(element)
        except Exception:
            # boundary: msgspec, and properties that a user wrote; Python's json finds out why.
            return super().dumps(element)
        # msgspec sends NaN as null, and Python's json refuses NaN.
        # So each null must be the None of a field.
        # `partition` and not `in`: that asks first whether b"null" is a number, and the answer is
        # an exception. It takes 215 ns, this 80.
        if (
            self._has_floats
            and data.partition(b"null")[1]
            and (self._count_none is None or self._count_none(element) != data.count(b"null"))
        ):
            return super().dumps(element)
        if len(data) > SHORT:
            self._text.check_written(data)
        return data

    def loads(self, data: bytes, /) -> object:
        if len(data) > SHORT:
            self._text.check_received(data)
        try:
            element = self._decode(data)
        except Exception:
            # boundary: msgspec, and a constructor that a user wrote; Python's json finds out why.
            return super().loads(data)
        return self._not_null(element) if element is None else element

    def loads_many(self, elements: Sequence[bytes], /) -> list[Any]:
        for element in elements if max(map(len, elements), default=0) > SHORT else ():
            if len(element) > SHORT:
                self._text.check_received(element)
        # In C. An element that msgspec refuses, or that is null, is loaded again by `loads`.
        return list(map(self._decode, elements))


def _count_none(classes: Sequence[type] | None, kind: Any) -> Callable[[Any], int] | None:
    """Return a function that counts the fields of a record that are None; None if the elements
    are not records of one class.
    """
    names = tuple(
        getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ())
    )
    if not names:
        names = tuple(each.name for each in getattr(kind, "__attrs_attrs__", ()))
    if classes != (kind,) or len(names) < 2:
        return None
    fields = attrgetter(*names)
    return lambda element: fields(element).count(None)
