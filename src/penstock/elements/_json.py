"""The serializer ``json``: elements are JSON values, encoded as standard JSON in UTF-8.

Rules of this file:

* What JSON cannot carry is refused both when an element is sent and when it is received: NaN, the
  infinities, 1e999, half a surrogate pair.
* JSON's null is not an element, because None is not an element (rule 2.13).
  ``JsonSerializer(null=…)`` sets an element that represents it.
* A hostile element (nested too deeply, too many values, a number with too many digits) raises
  ProtocolError and has no other effect.
"""

from functools import lru_cache
from typing import Any

from penstock.api import UsageError, shown
from penstock.elements._json_size import MAX_DEPTH, MAX_VALUES
from penstock.elements._json_text import JsonText
from penstock.elements._typed_json import TypedJson, typed_json
from penstock.spi import Serializer, to_plain


class JsonSerializer(Serializer):
    """Elements are dict, list, str, int, float, bool. A tuple arrives as a list;
    keys that are not str arrive as str.

    `null` represents JSON's null as a whole element: an element of the same type that equals it is
    sent as null, and null is received as it. Inside lists and dicts, None is null as usual.

    An element whose lists and objects are more than `max_depth` deep, or which has more than
    `max_values` values, is neither sent nor read.

    `for_type` returns the serializer for elements of one type: a dataclass, an attrs class, a
    TypedDict, a NamedTuple, a msgspec.Struct, a pydantic model, or lists, dicts and unions of these
    and of plain values.
    """

    name = "json"

    def __init__(
        self, *, null: object = None, max_depth: int = MAX_DEPTH, max_values: int = MAX_VALUES
    ) -> None:
        for option, value in (("max_depth", max_depth), ("max_values", max_values)):
            if type(value) is not int or value < 1:
                raise UsageError(
                    f"JsonSerializer({option}={shown(value)}); give a positive integer"
                )
        self._null = null
        self._text = JsonText(max_depth=max_depth, max_values=max_values)
        self._typed_text = JsonText(default=to_plain, max_depth=max_depth, max_values=max_values)
        # The bound is one of types, not of streams: a type is built once.
        self._typed = lru_cache(maxsize=1024)(self._make_typed)

    def for_type(self, kind: Any, /) -> Serializer:
        try:
            hash(kind)
        except TypeError:
            raise UsageError(
                f"type={shown(kind)} is not a type; give a class, or a form like list[int]"
            ) from None
        return self._typed(kind)

    def _make_typed(self, kind: Any) -> TypedJson:
        return typed_json(kind, self._typed_text, self._null)

    def dumps(self, element: object, /) -> bytes:
        if element is None:
            raise UsageError(
                "None is never an element (rule 2.13); to send JSON's null, set an element for it: "
                "JsonSerializer(null=…)"
            )
        # The type as well: 0 equals False.
        if type(element) is type(self._null) and element == self._null:
            return b"null"
        return self._text.write(
            element,
            (
                "it supports dict, list, str, int, float, bool, and None inside them; for "
                "elements of a class leave serializer= out"
            ),
        )

    def loads(self, data: bytes, /) -> object:
        element = self._text.read(data)
        if element is None and self._null is None:
            raise UsageError(
                "null arrived, and None is never an element (rule 2.13); set an element for it: "
                "JsonSerializer(null=…)"
            )
        return self._null if element is None else element
