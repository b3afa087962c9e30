"""The serializer ``bytes``: elements are bytes, and are sent unchanged."""

from typing import Any

from penstock.api import UsageError, shown
from penstock.spi import Serializer


class BytesSerializer(Serializer):
    """Elements are bytes. A bytearray or a memoryview is copied, and arrives as bytes."""

    name = "bytes"

    def dumps(self, element: object, /) -> bytes:
        if type(element) is bytes:
            return element  # immutable, so no copy is needed
        if isinstance(element, bytes | bytearray | memoryview):
            return bytes(element)
        raise UsageError(
            "the serializer 'bytes' takes bytes, bytearray or memoryview, not "
            f"{type(element).__name__}; encode the elements, or give serializer='text' or 'json'"
        )

    def loads(self, data: bytes, /) -> object:
        return data if type(data) is bytes else bytes(data)

    def for_type(self, kind: Any, /) -> Serializer:
        if kind not in (bytes, bytearray, memoryview):
            raise UsageError(
                f"the serializer 'bytes' is for elements of type bytes, not {shown(kind)}; leave "
                "serializer= out to use json"
            )
        return self
