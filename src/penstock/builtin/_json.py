"""The serializer ``json``: elements are what JSON can say; on the wire they are JSON as the standard has it.

Rules of this file:

* NaN and the infinities are not JSON, neither on the way out nor on the way in.
* JSON's null is no element, because None is none (rule 2.13). Who needs it says what stands for it: ``JsonSerializer(null=…)``.
* A hostile element costs no more than a refusal: nesting too deep, numbers too long.
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
    """Elements are dict, list, str, int, float, bool. A tuple arrives as a list; keys that are no str arrive as str.

    `null` is what stands for JSON's null as a whole element: the element that equals it is sent as null, and null arrives as it.
    Inside lists and dicts None is null, as ever.
    """

    name = "json"

    def __init__(self, *, null: object = None) -> None:
        self._null = null

    def dumps(self, element: object, /) -> bytes:
        if element is None:
            raise UsageError("None is never an element (rule 2.13); to send JSON's null, say what stands for it: JsonSerializer(null=…)")
        if type(element) is type(self._null) and element == self._null:
            return b"null"
        try:
            return _ENCODER.encode(element).encode()
        except (TypeError, ValueError, RecursionError) as error:  # UnicodeEncodeError, for half a surrogate pair, is a ValueError
            raise UsageError(
                f"the serializer 'json' cannot take this {type(element).__name__}: {error}; "
                "due are dict, list, str, int, float, bool, and None inside them"
            ) from error

    def loads(self, data: bytes, /) -> object:
        try:
            element: object = _DECODER.decode(bytes(data).decode())
        except (ValueError, RecursionError) as error:  # bad UTF-8 and numbers of thousands of digits are ValueErrors
            # The peer's text is not repeated: the message may end up in a log.
            where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
            raise ProtocolError(f"the element is not JSON ({type(error).__name__}{where})") from None
        if element is None and self._null is None:
            raise UsageError("null arrived, and None is never an element (rule 2.13); say what stands for it: JsonSerializer(null=…)")
        return self._null if element is None else element
