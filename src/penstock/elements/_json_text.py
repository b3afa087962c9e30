"""Standard JSON, read and written by Python's own module;
what JSON cannot carry is refused in both directions.

Rules of this file:

* NaN and the infinities are not JSON, and neither is a number like 1e999,
  which Python would read as infinity.
* Half a surrogate pair has no UTF-8. It is refused, also if it is written as an escape.
* Numbers are written as msgspec writes them (1e16 and not 1e+16), so that a peer sees the same
  bytes with and without msgspec.
* A hostile element raises ProtocolError, and has no other effect.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from penstock.api import ProtocolError, UsageError
from penstock.elements._json_size import MAX_DEPTH, MAX_VALUES, why_too_large


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0.0:
        raise ValueError("a number is too large for a float")
    return number


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)

# A text is matched as a whole, so that nothing inside it is taken for a number.
_TEXT_OR_EXPONENT: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9.]+e[+-][0-9]+')
_MAYBE_EXPONENT: Final = re.compile(r"[0-9]e[+-][0-9]")


class JsonText:
    """Writes and reads JSON within its bounds."""

    def __init__(
        self,
        *,
        default: Callable[[Any], object] | None = None,
        max_depth: int = MAX_DEPTH,
        max_values: int = MAX_VALUES,
    ) -> None:
        """`default` turns values that are not plain into plain ones."""
        self._encoder = json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default
        )
        self._max_depth = max_depth
        self._max_values = max_values

    def write(self, element: object, supported: str) -> bytes:
        """Return the JSON text of `element`.
        Raises UsageError, which ends with what is supported.
        """
        try:
            text = self._encoder.encode(element)
            if _MAYBE_EXPONENT.search(text):
                text = _TEXT_OR_EXPONENT.sub(_short_exponent, text)
            data = text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            # UnicodeEncodeError, for half a surrogate pair, is a ValueError.
            raise UsageError(
                f"the serializer 'json' does not support this {type(element).__name__}: {error}; "
                f"{supported}"
            ) from error
        self.check_written(data)
        return data

    def read(self, data: bytes) -> Any:
        """Return the value in a JSON text.
        Raises ProtocolError, without the peer's text in the message.
        """
        self.check_received(data)
        try:
            value = _DECODER.decode(bytes(data).decode())
            # Python reads half a surrogate pair from an escape. Written again it cannot be encoded.
            if b"\\ud" in data or b"\\uD" in data:
                json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            # invalid UTF-8 and numbers with more than 4,300 digits are ValueErrors.
            where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
            raise ProtocolError(
                f"the element is not JSON ({type(error).__name__}{where})"
            ) from None
        return value

    def check_written(self, data: bytes) -> None:
        """Raise UsageError for an element that the peer would refuse."""
        if reason := why_too_large(data, self._max_depth, self._max_values):
            raise UsageError(
                f"the serializer 'json' does not send this element: {reason}; send it in parts, or "
                f"give {_MORE} on both sides"
            )

    def check_received(self, data: bytes) -> None:
        """Raise ProtocolError for an element that would take too long to read."""
        if reason := why_too_large(data, self._max_depth, self._max_values):
            raise ProtocolError(f"the element was not read: {reason}; to allow more give {_MORE}")


_MORE: Final = "serializer=JsonSerializer(max_depth=…, max_values=…)"


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
