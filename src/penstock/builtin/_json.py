"""The serializer ``json``: elements are JSON values, encoded as standard JSON in UTF-8.

Rules of this file:

* NaN and the infinities are not JSON. They are refused both when an element is sent and when it is received.
* JSON's null is not an element, because None is not an element (rule 2.13). ``JsonSerializer(null=…)`` sets an element that represents it.
* A hostile element (nested too deeply, a number with too many digits) raises ProtocolError and has no other effect.
"""

import json
from typing import Final, NoReturn

from penstock.api import ProtocolError, UsageError
from penstock.plugins import Serializer


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


class JsonSerializer(Serializer):
    """Elements are dict, list, str, int, float, bool. A tuple arrives as a list; keys that are not str arrive as str.

    `null` represents JSON's null as a whole element: an element of the same type that equals it is sent as null, and null is received as
    it. Inside lists and dicts, None is null as usual.
    """

    name = "json"

    def __init__(self, *, null: object = None) -> None:
        self._null = null

    def dumps(self, element: object, /) -> bytes:
        if element is None:
            raise UsageError("None is never an element (rule 2.13); to send JSON's null, set an element for it: JsonSerializer(null=…)")
        if type(element) is type(self._null) and element == self._null:  # the type as well: 0 equals False
            return b"null"
        try:
            return _ENCODER.encode(element).encode()
        except (TypeError, ValueError, RecursionError) as error:  # UnicodeEncodeError, for half a surrogate pair, is a ValueError
            raise UsageError(
                f"the serializer 'json' does not support this {type(element).__name__}: {error}; "
                "it supports dict, list, str, int, float, bool, and None inside them"
            ) from error

    def loads(self, data: bytes, /) -> object:
        try:
            element: object = _DECODER.decode(bytes(data).decode())
        except (ValueError, RecursionError) as error:  # invalid UTF-8 and numbers with more than 4,300 digits are ValueErrors
            # The message does not repeat the peer's text, because messages are logged.
            where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
            raise ProtocolError(f"the element is not JSON ({type(error).__name__}{where})") from None
        if element is None and self._null is None:
            raise UsageError("null arrived, and None is never an element (rule 2.13); set an element for it: JsonSerializer(null=…)")
        return self._null if element is None else element
