"""The serializer ``json``: elements are JSON values, encoded as standard JSON in UTF-8.

Rules of this file:

* What JSON cannot carry is refused both when an element is sent and when it is received: NaN, the
  infinities, a number like 1e999, which Python would read as infinity, and half a surrogate pair,
  which has no UTF-8, also if it is written as an escape.
* JSON's null is not an element, because None is not an element (rule 2.13).
  ``JsonSerializer(null=…)`` sets an element that represents it.
* Elements without a type pass through Python's own module, which takes the types of JSON only.
  msgspec would send a set as a list and bytes as a text, and they would arrive as these.
* Numbers are written as msgspec writes them (1e16 and not 1e+16), so that an element has the same
  bytes with a type and without.
* A hostile element (nested too deeply, too many values, a number with too many digits) raises
  ProtocolError and has no other effect.
"""

import json
import re
from functools import lru_cache
from typing import Any, ClassVar, Final, NoReturn

from penstock.api import ProtocolError, UsageError, shown
from penstock.elements._json_size import MAX_DEPTH, JsonBounds
from penstock.elements._typed_json import NO_NULL, NULL_ARRIVED, NullJson, TypedJson
from penstock.spi import MAX_VALUES, Serializer


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0.0:
        raise ValueError("a number is too large for a float")
    return number


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)

# A text is matched as a whole, so that nothing inside it is taken for a number.
_TEXT_OR_EXPONENT: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9.]+e[+-][0-9]+')
_MAYBE_EXPONENT: Final = re.compile(r"[0-9]e[+-][0-9]")


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
    media_types: ClassVar[tuple[str, ...]] = ("application/json",)

    def __init__(
        self, *, null: object = None, max_depth: int = MAX_DEPTH, max_values: int = MAX_VALUES
    ) -> None:
        self._null = null
        self._bounds = JsonBounds(max_depth=max_depth, max_values=max_values)
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
        # If an element stands for null, each one is compared with it, which takes time.
        if self._null is None:
            return TypedJson(kind, self._bounds)
        return NullJson(kind, self._bounds, self._null)

    def dumps(self, element: object, /) -> bytes:
        if element is None:
            raise UsageError(NO_NULL)
        # The type as well: 0 equals False.
        if type(element) is type(self._null) and element == self._null:
            return b"null"
        try:
            text = _ENCODER.encode(element)
            if _MAYBE_EXPONENT.search(text):
                text = _TEXT_OR_EXPONENT.sub(_short_exponent, text)
            data = text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            # UnicodeEncodeError, for half a surrogate pair, is a ValueError.
            raise UsageError(
                f"the serializer 'json' does not support this {type(element).__name__}: {error}; "
                "it supports dict, list, str, int, float, bool, and None inside them; for elements "
                "of a class leave serializer= out"
            ) from error
        self._bounds.check_written(data)
        return data

    def loads(self, data: bytes, /) -> object:
        self._bounds.check_received(data)
        try:
            element = _DECODER.decode(bytes(data).decode())
            # Python reads half a surrogate pair from an escape. Written again it cannot be encoded.
            if b"\\ud" in data or b"\\uD" in data:
                json.dumps(element, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            # Invalid UTF-8 and numbers with more than 4,300 digits are ValueErrors.
            # Without the peer's text, and without the cause, which has it.
            where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
            raise ProtocolError(
                f"the element is not JSON ({type(error).__name__}{where})"
            ) from None
        if element is None and self._null is None:
            raise UsageError(NULL_ARRIVED)
        return self._null if element is None else element


def _short_exponent(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] == '"':
        return found
    digits, _, exponent = found.partition("e")
    if exponent != "-05":
        return f"{digits}e{int(exponent)}"
    # The one exponent that msgspec writes out: 0.000015.
    sign = "-" if digits[0] == "-" else ""
    return f"{sign}0.0000{digits.lstrip('-').replace('.', '')}"
