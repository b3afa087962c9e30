"""The serializer ``json`` for elements of one type: dataclasses and other records arrive as objects
of their class.

Rules of this file:

* msgspec writes and reads. NaN, which it sends as null, is refused.
* The element itself is checked when it is sent; the values inside it are checked where they arrive.
* The methods do only what every element needs: one more call costs as much as msgspec itself.
"""

import json
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Final

import msgspec

from penstock.api import UsageError
from penstock.elements._json_size import JsonBounds
from penstock.spi import Serializer, TypedSerializer

NO_NULL: Final = (
    "None is never an element (rule 2.13); to send JSON's null, set an element for it: "
    "JsonSerializer(null=…)"
)
NULL_ARRIVED: Final = (
    "null arrived, and None is never an element (rule 2.13); set an element for it: "
    "JsonSerializer(null=…)"
)


class TypedJson(TypedSerializer):
    """Elements of one type. None is null inside of elements, and never an element."""

    name = "json"
    format = "JSON"
    codec: ClassVar[Any] = msgspec.json
    no_element = NO_NULL

    def __init__(self, kind: Any, bounds: JsonBounds) -> None:
        super().__init__(kind, bounds)
        self._has_floats = self.type.has_floats
        self._count_none = _count_none(kind)

    def dumps(self, element: object, /) -> bytes:
        if type(element) not in self._exact:
            self.check(element)
        try:
            data: bytes = self._encode(element)
        except Exception as error:  # boundary: msgspec, and properties that a user wrote
            raise self.failed_write(element, error) from error
        # msgspec sends NaN as null. So each null must be the None of a field, or NaN is looked for.
        # `partition` and not `in`: that asks first whether b"null" is a number,
        # and the answer is an exception. It takes 215 ns, this 80.
        if (
            self._has_floats
            and data.partition(b"null")[1]
            and (self._count_none is None or self._count_none(element) != data.count(b"null"))
        ):
            self._refuse_nan(element)
        if len(data) > self._short:
            self._bounds.check_written(data)
        return data

    def _null_arrived(self) -> Exception:
        return UsageError(NULL_ARRIVED)

    def loads_many(self, elements: Sequence[bytes], /) -> list[Any]:
        for element in elements if max(map(len, elements), default=0) > self._short else ():
            if len(element) > self._short:
                self._bounds.check_received(element)
        # In C. An element that msgspec refuses, or that is null, is loaded again by `loads`.
        return list(map(self._decode, elements))

    def _refuse_nan(self, element: object) -> None:
        try:
            json.dumps(self.to_builtins(element), allow_nan=False)
        except ValueError as error:
            raise self.failed_write(element, error) from error


class NullJson(TypedJson):
    """The same, with an element that stands for null."""

    def __init__(self, kind: Any, bounds: JsonBounds, null: object) -> None:
        super().__init__(kind, bounds)
        self._null = null

    def dumps(self, element: object, /) -> bytes:
        if type(element) is type(self._null) and element == self._null:
            return b"null"
        return super().dumps(element)

    def loads(self, data: bytes, /) -> object:
        return self._null if data.strip() == b"null" else super().loads(data)

    loads_many = Serializer.loads_many


def _count_none(kind: Any) -> Callable[[Any], int] | None:
    """Return a function that counts the fields of a record that are None; None if the elements are
    not records of one class.
    """
    names = tuple(
        getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ())
    )
    if not names:
        names = tuple(each.name for each in getattr(kind, "__attrs_attrs__", ()))
    if len(names) < 2:
        return None
    fields = attrgetter(*names)
    return lambda element: fields(element).count(None)
