"""The serializer ``text``: elements are str, encoded as UTF-8."""

from typing import Any

from penstock.api import ProtocolError, UsageError, shown
from penstock.spi import Serializer, WrongElementType


class TextSerializer(Serializer):
    """Elements are str, encoded as UTF-8. Other bytes are a ProtocolError:
    nothing is replaced silently.
    """

    name = "text"

    def dumps(self, element: object, /) -> bytes:
        if not isinstance(element, str):
            raise WrongElementType(
                f"the serializer 'text' takes str, not {type(element).__name__}",
                "give serializer='bytes' or 'json' for others",
            )
        try:
            return element.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"this text holds half a surrogate pair at position {error.start}, which UTF-8 "
                "cannot carry"
            ) from None

    def loads(self, data: bytes, /) -> object:
        try:
            return bytes(data).decode()
        except UnicodeDecodeError as error:
            # `from None`: the chained error would contain the peer's bytes,
            # and tracebacks are logged.
            raise ProtocolError(
                f"the element is not UTF-8: {error.reason} at byte {error.start} of {len(data)}"
            ) from None

    def for_type(self, kind: Any, /) -> Serializer:
        if kind is not str:
            raise UsageError(
                f"the serializer 'text' is for elements of type str, not {shown(kind)}; leave "
                "serializer= out to use json"
            )
        return self
